// Keeps the page up to date: asks for it again when the server says that something changed, and puts the changed parts in
// place. The order of cards stays as the reader sees it, and nothing is taken from under the keyboard or a selection.
(() => {
  const address = document.body.dataset.live;
  if (!address) return;
  // Milliseconds: between a change and the question, and between questions where no events come.
  const SOON = 300, OFTEN = 5000, SELDOM = 60000;
  let paused = false, source = null, timer = 0, wait = OFTEN, busy = false, again = false;
  const alert = document.querySelector("[data-lost]");

  const lost = (is) => {
    if (is === !alert.hidden) return;
    alert.hidden = !is;
    alert.textContent = is ? alert.dataset.lost : "";
  };
  const inUse = (part) => {
    const selected = getSelection();
    return part.contains(document.activeElement) || (!selected.isCollapsed && selected.containsNode(part, true));
  };
  const replaceCards = (have, want) => {
    const fresh = new Map([...want.children].map((card) => [card.id, card]));
    for (const card of [...have.children]) {
      const now = fresh.get(card.id);
      if (now && now.dataset.version !== card.dataset.version && !inUse(card)) card.replaceWith(now);
      if (now) fresh.delete(card.id);
    }
    for (const card of fresh.values()) if (card.id) have.append(card);
  };
  const replace = (part, now) => {
    const opened = [...part.querySelectorAll("details")].map((one) => one.open);
    part.innerHTML = now.innerHTML;
    for (const [at, one] of part.querySelectorAll("details").entries()) if (at in opened) one.open = opened[at];
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
        else if (part.innerHTML !== now.innerHTML && !inUse(part)) replace(part, now);
      }
      lost(false);
      wait = OFTEN;
    } catch { lost(true); wait = Math.min(2 * wait, SELDOM); }
    busy = false;
    if (again) { again = false; later(); }
  };
  const later = () => { if (source) { clearTimeout(timer); timer = setTimeout(refresh, SOON); } };
  const poll = () => { clearTimeout(timer); timer = setTimeout(async () => { await refresh(); if (!source && awake()) poll(); }, wait); };
  const awake = () => !paused && !document.hidden;

  const start = () => {
    if (!awake()) return;
    if (!("EventSource" in window)) { poll(); return; }
    source = new EventSource(address);
    source.addEventListener("change", later);
    source.onopen = () => { if (!alert.hidden) refresh(); };
    source.onerror = () => {
      // The browser tries again by itself, but where it was refused; whether the site is away, the page itself tells.
      const refused = source?.readyState === EventSource.CLOSED;
      if (refused) { source = null; poll(); }
      refresh();
    };
  };
  const stop = () => { source?.close(); source = null; clearTimeout(timer); };
  const turn = () => { stop(); if (awake()) { refresh(); start(); } };

  document.addEventListener("visibilitychange", turn);
  const button = document.querySelector("[data-pause]");
  if (button) {
    button.hidden = false;
    button.addEventListener("click", () => {
      paused = !paused;
      button.textContent = paused ? button.dataset.off : button.dataset.on;
      turn();
    });
  }
  start();
})();
