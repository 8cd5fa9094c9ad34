
// Texts that people copy: a button that does it in one step.
for (const text of document.querySelectorAll("textarea[data-copy]")) {
  if (!navigator.clipboard) break;
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = "Copy";
  const status = document.createElement("span");
  status.setAttribute("role", "status");
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text.value);
      status.textContent = " Copied.";
    } catch {
      text.focus();
      text.select();
      status.textContent = " Selected; copy it with the keyboard.";
    }
  });
  const place = document.createElement("p");
  place.append(button, status);
  text.closest("label").after(place);
}
