// The heads of tables, by which they are sorted.

import { button, el } from "./dom.js";

// heads makes a row of heads. Columns that have a key can be sorted by; pick is called
// when that is changed, with the key and whether the greatest comes first.
export function heads(columns, pick, { key = columns[0].key, descending = false } = {}) {
  const cells = columns.map((column) => {
    const properties = { scope: "col", class: column.class };
    if (!column.key) {
      return el("th", properties, column.unseen ? el("span", { class: "unseen" }, column.head) : column.head);
    }
    return el("th", properties, button(column.head, () => {
      descending = key === column.key && !descending;
      key = column.key;
      show();
      pick(key, descending);
    }, { class: "sort" }));
  });
  const show = () => columns.forEach((column, i) => {
    if (column.key) {
      cells[i].setAttribute("aria-sort", column.key !== key ? "none" : descending ? "descending" : "ascending");
    }
  });
  show();
  return el("thead", {}, el("tr", {}, ...cells));
}
