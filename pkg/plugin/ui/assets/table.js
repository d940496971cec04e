// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

import { h, set } from "./dom.js";

// table makes a table with a name. Columns whose name begins with "#" have numbers. The first cell of each row is its heading.
export function table(name, columns, rows) {
  const numeric = columns.map((c) => c.startsWith("#"));
  const titles = columns.map((c) => c.replace("#", ""));
  // On a narrow screen the rows are blocks, where the roles say what the elements do not, and each value has its title before it.
  const cell = (value, i) => h(i === 0 ? "th" : "td", {
    class: numeric[i] && "number", scope: i === 0 && "row", role: i === 0 ? "rowheader" : "cell", "data-title": i > 0 && titles[i],
  }, value);
  const heading = (text, i) => h("th", { scope: "col", role: "columnheader", class: numeric[i] && "number" }, text);
  const out = h("table", { "aria-label": name, role: "table" },
    h("thead", { role: "rowgroup" }, h("tr", { role: "row" }, titles.map(heading))),
    h("tbody", { role: "rowgroup" }, rows.map((row) => h("tr", { role: "row" }, row.map(cell)))));
  fits.observe(out);
  return out;
}

// A box whose table does not fit gets the focus, so that the arrow keys scroll it.
const fits = new ResizeObserver((tables) => {
  for (const { target } of tables) {
    const box = target.closest(".scroll");
    const given = { tabindex: 0, role: "group", "aria-label": target.getAttribute("aria-label") };
    for (const [name, value] of Object.entries(given)) {
      if (box && target.offsetWidth > box.clientWidth) box.setAttribute(name, value);
      else box?.removeAttribute(name);
    }
  }
});

const orders = new Map(); // by the name of a table: the column, and whether the largest comes first

// sortable makes the headings of a table buttons that sort it. The order stays when a table of the same name takes its place.
export function sortable(of) {
  const name = of.getAttribute("aria-label");
  const headings = [...of.tHead.rows[0].cells];
  headings.forEach((heading, column) => {
    const click = () => {
      const before = orders.get(name);
      orders.set(name, { column, down: before?.column === column ? !before.down : heading.classList.contains("number") });
      sort(of, headings, orders.get(name));
    };
    set(heading, h("button", { type: "button", class: "sort", click }, heading.textContent));
  });
  if (orders.has(name)) sort(of, headings, orders.get(name));
  return of;
}

function sort(of, headings, { column, down }) {
  headings.forEach((heading, i) => showOrder(heading, i === column && (down ? "descending" : "ascending")));
  const rows = [...of.tBodies[0].rows].map((row) => ({ row, key: keyOf(row.cells[column]) }));
  rows.sort((a, b) => (down ? -1 : 1) * compare(a.key, b.key));
  of.tBodies[0].append(...rows.map(({ row }) => row));
}

// showOrder says in a heading how its column is sorted; false if it is not.
export function showOrder(heading, order) {
  if (order) heading.setAttribute("aria-sort", order);
  else heading.removeAttribute("aria-sort");
}

const compare = (a, b) => (typeof a === "number" ? a - b : a.localeCompare(b));

// keyOf returns what a cell is sorted by: its exact time or number, if it shows a rounded one.
function keyOf(cell) {
  const time = cell.querySelector("time"), exact = cell.querySelector("data");
  if (time) return time.dateTime;
  if (exact) return Number(exact.value);
  return cell.classList.contains("number") ? Number(cell.textContent.replaceAll(",", "")) : cell.textContent;
}
