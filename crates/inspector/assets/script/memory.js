
// What is typed is not lost by accident: forms with `data-unsaved` ask before one leaves, and are sent
// by Ctrl+Enter.
for (const form of document.querySelectorAll("form[data-unsaved]")) {
  let isChanged = false;
  form.querySelector("#text-limit small")?.append(" Ctrl+Enter saves.");
  form.addEventListener("input", () => (isChanged = true));
  form.addEventListener("submit", () => (isChanged = false));
  addEventListener("beforeunload", (event) => {
    if (isChanged) event.preventDefault();
  });
  form.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    form.requestSubmit();
  });
}

// Commands can be copied with a button, where the browser allows it.
if (navigator.clipboard) {
  for (const code of document.querySelectorAll("code[data-copy]")) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = "Copy";
    button.setAttribute("aria-label", `Copy ${code.textContent}`);
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(code.textContent);
      button.textContent = "Copied";
      setTimeout(() => (button.textContent = "Copy"), 2000);
    });
    code.after(button);
  }
}
