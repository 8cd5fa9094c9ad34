// Makes the pages quicker to use. Every one of them works without this.
//
// Nothing here turns text into markup: parts of pages are fetched as documents, which the browser
// parses without running anything, and moved over.

/** The newest request for each part of the page. */
const requests = new Map();

/**
 * Fetches a page and puts the part with this id in place of ours. Returns the fetched document, or
 * `null` if there was none, or if the same part was asked for again meanwhile: answers may come in
 * another order than the questions, and an old one must not replace a newer one.
 */
const refresh = (address, id) =>
  new Promise((resolve) => {
    requests.get(id)?.abort();
    const request = new XMLHttpRequest();
    requests.set(id, request);
    request.open("GET", address);
    request.responseType = "document";
    request.onload = () => {
      if (requests.get(id) !== request) return resolve(null);
      const fresh = request.response?.getElementById(id);
      const old = document.getElementById(id);
      if (request.status !== 200 || !fresh || !old) return resolve(null);
      const page = request.response;
      old.replaceWith(document.adoptNode(fresh));
      resolve(page);
    };
    request.onerror = request.onabort = () => resolve(null);
    request.send();
  });

/** Returns an element with this text. */
const element = (name, text) => {
  const made = document.createElement(name);
  made.textContent = text;
  return made;
};

// Keys: elements with `data-key` are focused or followed by that key. Single letters disturb people who
// talk to their computer, so the help can turn them off.
const KEYS_OFF = "quipu-keys-off";
const PLACES = { s: "/ui", e: "/ui/sessions", r: "/ui/redact", a: "/ui/admin" };
const SHORTCUTS = [
  ["/", "search"],
  ["j, k", "next and previous entry of a list"],
  ["g s", "stores"],
  ["g e", "sessions"],
  ["g r", "redact"],
  ["g a", "administration"],
  ["?", "this help"],
];

const showHelp = () => {
  const dialog = document.createElement("dialog");
  dialog.id = "key-help";
  dialog.setAttribute("aria-labelledby", "key-help-title");
  const title = element("h2", "Keys");
  title.id = "key-help-title";
  const list = document.createElement("dl");
  for (const [key, meaning] of SHORTCUTS) {
    const term = document.createElement("dt");
    term.append(element("kbd", key));
    list.append(term, element("dd", meaning));
  }
  const label = element("label", "");
  label.className = "inline";
  const box = document.createElement("input");
  box.type = "checkbox";
  box.checked = !localStorage.getItem(KEYS_OFF);
  box.addEventListener("change", () => {
    if (box.checked) localStorage.removeItem(KEYS_OFF);
    else localStorage.setItem(KEYS_OFF, "1");
  });
  label.append(box, "Keys are on (the help always opens with ?)");
  const close = element("button", "Close");
  close.type = "button";
  close.addEventListener("click", () => dialog.close());
  dialog.addEventListener("close", () => dialog.remove());
  dialog.append(title, list, label, close);
  document.body.append(dialog);
  dialog.showModal();
};

/** Moves the focus to the next or the previous entry of the lists of the page. */
const move = (step) => {
  const entries = document.querySelectorAll("main tbody tr, main ol > li, main ul > li");
  const links = [...entries].map((entry) => entry.querySelector("a[href]")).filter(Boolean);
  const distinct = [...new Set(links)].filter((link) => link.checkVisibility?.() ?? true);
  const here = distinct.findIndex((link) => link.closest("tr, li").contains(document.activeElement));
  const next = here < 0 ? (step > 0 ? 0 : distinct.length - 1) : here + step;
  distinct[next]?.focus();
};

let isGoing = false;
document.addEventListener("keydown", (event) => {
  const isTyping = event.target.closest?.("input, textarea, select, [contenteditable], dialog");
  if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
  const wasGoing = isGoing;
  isGoing = false;
  if (event.key === "?") {
    event.preventDefault();
    showHelp();
    return;
  }
  if (localStorage.getItem(KEYS_OFF)) return;
  if (wasGoing) {
    // Only to where the page itself leads.
    const place = document.querySelector(`header nav a[href="${PLACES[event.key]}"]`);
    if (place) {
      event.preventDefault();
      place.click();
    }
    return;
  }
  if (event.key === "g") {
    isGoing = true;
    setTimeout(() => { isGoing = false; }, 1500);
    return;
  }
  if (event.key === "j" || event.key === "k") {
    event.preventDefault();
    move(event.key === "j" ? 1 : -1);
    return;
  }
  const within = (selector) => [...document.querySelectorAll(selector)];
  const marked = [...within("main [data-key]"), ...within("[data-key]")];
  const target = marked.find((it) => it.dataset.key === event.key);
  if (!target) return;
  event.preventDefault();
  if (target.matches("a, button, summary")) target.click();
  else target.focus();
});

// Search as you type: a form with `data-live-search` replaces the part that it names, and keeps the
// address in step, so that it can be copied. The field that one types in is outside of that part, so
// focus and caret stay. `data-live-status` names the live region that says the outcome: a region that is
// itself replaced would not be read out.
for (const form of document.querySelectorAll("form[data-live-search]")) {
  let pending = null;
  const update = async () => {
    const fields = [...new FormData(form)].filter(([, value]) => value !== "");
    const address = `${form.getAttribute("action")}?${new URLSearchParams(fields)}`;
    const page = await refresh(address, form.dataset.liveSearch);
    if (!page) return;
    history.replaceState(null, "", address);
    const status = document.getElementById(form.dataset.liveStatus);
    const news = page.getElementById(form.dataset.liveStatus)?.textContent ?? "";
    if (status && status.textContent !== news) status.textContent = news;
    document.title = page.title || document.title;
  };
  const later = (event) => {
    // Choosing is one event; typing is many.
    clearTimeout(pending);
    pending = setTimeout(update, event.target.matches("[type=search], [type=text]") ? 60 : 0);
  };
  form.addEventListener("input", later);
}

// Live changes: what one reads does not move. A part with `data-live` says how many changes there are
// since the page was made, and is replaced when asked. `data-after` is the last change that the page
// shows; without it, what happens until the stream is open goes unnoticed.
const live = document.querySelector("[data-live]");
if (live) {
  const NAMES = [
    "memory_version.created",
    "memory_version.redacted",
    "memory_store.created",
    "memory_store.updated",
    "memory_store.archived",
    "memory_store.deleted",
    "gap",
  ];
  // Browsers allow a server six connections over HTTP/1.1, which the streams of hidden tabs would use up.
  const HIDDEN_FOR_MS_MAX = 10_000;
  const { id } = live;
  const { store } = live.dataset;
  let { after } = live.dataset;
  let events = null;
  let count = 0;
  let pending = null;
  const status = document.createElement("p");
  status.setAttribute("role", "status");
  status.className = "news";
  live.before(status);
  const button = document.createElement("button");
  button.type = "button";
  button.id = "show-changes";
  button.addEventListener("click", async () => {
    count = 0;
    status.replaceChildren();
    await refresh(location.href, id);
    // The button is gone, and the focus would be at the start of the page.
    const fresh = document.getElementById(id);
    fresh?.setAttribute("tabindex", "-1");
    fresh?.focus();
  });
  const show = () => {
    pending = null;
    if (count === 0) return;
    button.textContent = count === 1 ? "Show 1 new change" : `Show ${count} new changes`;
    if (!button.isConnected) status.append(button);
  };
  const news = (event) => {
    if (event.lastEventId) after = event.lastEventId;
    count += 1;
    // An agent writes many memories at a time; each number would be read out.
    pending ??= setTimeout(show, count === 1 ? 0 : 1000);
  };
  const open = () => {
    if (events) return;
    const query = new URLSearchParams();
    if (store) query.set("store", store);
    if (after) query.set("after", after);
    // It reconnects by itself, and stops by itself when the server refuses, as after signing out.
    events = new EventSource(`/ui/events?${query}`);
    for (const name of NAMES) events.addEventListener(name, news);
  };
  const close = () => {
    events?.close();
    events = null;
  };
  let hiding = null;
  document.addEventListener("visibilitychange", () => {
    clearTimeout(hiding);
    if (document.hidden) hiding = setTimeout(close, HIDDEN_FOR_MS_MAX);
    else open();
  });
  addEventListener("pagehide", close);
  addEventListener("pageshow", open);
  if (!document.hidden) open();
}
