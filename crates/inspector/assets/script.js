// Makes the pages quicker to use. Every one of them works without this.
//
// Nothing here turns text into markup: parts of pages are fetched as documents, which the browser
// parses without running anything, and moved over.

/** Fetches a page and puts the part with this id in place of ours. */
const refresh = (address, id) =>
  new Promise((resolve) => {
    const request = new XMLHttpRequest();
    request.open("GET", address);
    request.responseType = "document";
    request.onload = () => {
      const fresh = request.response?.getElementById(id);
      const old = document.getElementById(id);
      if (request.status === 200 && fresh && old) old.replaceWith(document.adoptNode(fresh));
      resolve(request);
    };
    request.onerror = () => resolve(request);
    request.send();
  });

// Keys: elements with `data-key` are focused or followed by that key.
document.addEventListener("keydown", (event) => {
  const isTyping = event.target.closest?.("input, textarea, select, [contenteditable]");
  if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
  const target = [...document.querySelectorAll("[data-key]")].find((it) => it.dataset.key === event.key);
  if (!target) return;
  event.preventDefault();
  if (target.matches("a, button, summary")) target.click();
  else target.focus();
});

// Search as you type: a form with `data-live-search` replaces the part that it names, and keeps the
// address in step, so that it can be copied.
for (const form of document.querySelectorAll("form[data-live-search]")) {
  let pending = null;
  let newest = 0;
  const update = async () => {
    const address = `${form.getAttribute("action")}?${new URLSearchParams(new FormData(form))}`;
    const number = ++newest;
    await refresh(address, form.dataset.liveSearch);
    if (number === newest) history.replaceState(null, "", address);
  };
  form.addEventListener("input", () => {
    clearTimeout(pending);
    pending = setTimeout(update, 60);
  });
}

// Live changes: what one reads does not move. A part with `data-live` says how many changes there are
// since the page was loaded, and is replaced when asked.
const live = document.querySelector("[data-live]");
if (live) {
  const store = live.dataset.store;
  const events = new EventSource(store ? `/ui/events?store=${encodeURIComponent(store)}` : "/ui/events");
  let count = 0;
  const status = document.createElement("p");
  status.setAttribute("role", "status");
  const button = document.createElement("button");
  button.type = "button";
  button.addEventListener("click", async () => {
    count = 0;
    status.replaceChildren();
    await refresh(location.href, live.id);
  });
  live.before(status);
  const news = () => {
    count += 1;
    button.textContent = count === 1 ? "Show 1 new change" : `Show ${count} new changes`;
    if (!button.isConnected) status.append(button);
  };
  for (const kind of ["change", "version", "message"]) events.addEventListener(kind, news);
}
