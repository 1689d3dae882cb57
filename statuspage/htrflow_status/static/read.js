// A line of text and its outline on the image belong together: pointing at one, or going to it, marks both.
(() => {
  const lines = [...document.querySelectorAll(".lines li")];
  const mark = (line, on) => {
    line.classList.toggle("marked", on);
    document.getElementById(line.dataset.outline)?.classList.toggle("marked", on);
  };
  const go = (line) => {
    for (const other of lines) { other.tabIndex = other === line ? 0 : -1; mark(other, other === line); }
    line.focus({ preventScroll: true });
    line.scrollIntoView({ block: "nearest" });
  };
  for (const [at, line] of lines.entries()) {
    const outline = document.getElementById(line.dataset.outline);
    line.addEventListener("focus", () => { for (const other of lines) mark(other, other === line); });
    for (const part of [line, outline]) {
      part?.addEventListener("pointerenter", () => mark(line, true));
      part?.addEventListener("pointerleave", () => mark(line, document.activeElement === line));
    }
    outline?.addEventListener("click", () => go(line));
    line.addEventListener("keydown", (event) => {
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      const target = event.key === "Home" ? lines[0] : event.key === "End" ? lines.at(-1) : step && lines[at + step];
      if (target) { event.preventDefault(); go(target); }
    });
  }
  const wanted = location.hash.startsWith("#line-") && document.getElementById(location.hash.slice(1));
  if (wanted) go(wanted);
})();
