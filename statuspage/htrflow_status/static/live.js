// Keeps the page up to date: asks for it again when the server says that something changed, and puts the changed parts in
// place. The order of cards stays as the reader sees it.
(() => {
  const address = document.body.dataset.live;
  if (!address) return;
  let paused = false, source = null, wait = 1000, timer = 0, busy = false, again = false;
  const lost = document.querySelector("[data-lost]");

  const replaceCards = (have, want) => {
    const fresh = new Map([...want.children].map((card) => [card.id, card]));
    for (const card of [...have.children]) {
      const now = fresh.get(card.id);
      if (now && now.dataset.version !== card.dataset.version && !card.contains(document.activeElement)) card.replaceWith(now);
      if (now) fresh.delete(card.id);
    }
    for (const card of fresh.values()) if (card.id) have.append(card);
  };

  const refresh = async () => {
    if (busy) { again = true; return; }
    busy = true;
    try {
      const answer = await fetch(location.href, { headers: { Accept: "text/html" }, credentials: "same-origin" });
      if (!answer.ok || answer.redirected) throw new Error(String(answer.status));
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      for (const part of document.querySelectorAll("[data-part]")) {
        const now = page.querySelector(`[data-part="${part.dataset.part}"]`);
        if (!now) continue;
        if (part.dataset.part === "cards") replaceCards(part, now);
        else if (part.innerHTML !== now.innerHTML && !part.contains(document.activeElement)) part.innerHTML = now.innerHTML;
      }
      lost.hidden = true;
      wait = 1000;
    } catch { lost.hidden = false; }
    busy = false;
    if (again) { again = false; later(); }
  };
  const later = () => { clearTimeout(timer); timer = setTimeout(refresh, 300); };

  const poll = () => { timer = setTimeout(async () => { if (!paused && !document.hidden) await refresh(); poll(); }, wait = Math.min(wait * 1.5, 30000)); };
  const start = () => {
    if (paused || document.hidden) return;
    if (!("EventSource" in window)) { poll(); return; }
    source = new EventSource(address);
    source.addEventListener("change", later);
    source.onopen = () => { lost.hidden = true; };
    source.onerror = () => { lost.hidden = false; };
  };
  const stop = () => { source?.close(); source = null; clearTimeout(timer); };

  document.addEventListener("visibilitychange", () => { stop(); if (!document.hidden && !paused) { refresh(); start(); } });
  const button = document.querySelector("[data-pause]");
  if (button) {
    button.hidden = false;
    button.addEventListener("click", () => {
      paused = !paused;
      button.textContent = paused ? button.dataset.off : button.dataset.on;
      stop();
      if (!paused) { refresh(); start(); }
    });
  }
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.target.closest("input, textarea, select")) return;
    const search = document.querySelector("input[type=search]");
    if (search) { event.preventDefault(); search.focus(); }
  });
  start();
})();
