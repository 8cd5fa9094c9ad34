
// Parts that take longer to find out are fetched when the rest is there: `data-lazy` names a page that
// has the part under the same id.
for (const part of document.querySelectorAll("[data-lazy]")) refresh(part.dataset.lazy, part.id);

// One box selects all rows of the page.
for (const head of document.querySelectorAll("#selection thead th:first-child")) {
  const all = document.createElement("input");
  all.type = "checkbox";
  all.setAttribute("aria-label", "Select all on this page");
  all.addEventListener("change", () => {
    for (const box of document.querySelectorAll("#selection tbody input[type=checkbox]")) box.checked = all.checked;
  });
  head.append(" ", all);
}
