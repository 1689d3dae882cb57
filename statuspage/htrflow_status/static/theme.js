// Before anything is painted: the theme that the reader chose.
(() => {
  const kept = (() => { try { return localStorage.getItem("theme"); } catch { return null; } })();
  if (kept === "dark" || kept === "light") document.documentElement.dataset.theme = kept;
  document.addEventListener("DOMContentLoaded", () => {
    const button = document.querySelector("[data-theme-switch]");
    if (!button) return;
    button.hidden = false;
    button.addEventListener("click", () => {
      const root = document.documentElement;
      const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
      root.dataset.theme = dark ? "light" : "dark";
      try { localStorage.setItem("theme", root.dataset.theme); } catch { /* only for this page then */ }
    });
  });
})();
