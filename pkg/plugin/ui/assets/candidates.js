// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

import { $, ago, badge, h, instant, number, plural, set, when } from "./dom.js";
import { aborted, get } from "./api.js";
import * as explanation from "./explanation.js";
import { showOrder } from "./table.js";

// The table has elements only for the rows that one sees, and reads them page by page, so that their number does not matter. All rows are
// equally high; the style sheet has the same numbers.
const PAGE = 100, BEYOND = 8, PAGES_MOST = 30;
const narrow = matchMedia("(max-width: 640px)");
const row = () => (narrow.matches ? 124 : 46);

let namespace = "";
let version = 0;
let total = 0;
let active = 0; // the row that Tab leads to
let picked; // the row that is explained
let loading = new AbortController();
let page; // what the table needs of the page
let typing; // the timer of what a person types
let sort = ""; // the column, with "-" before it for the opposite order
let more = {}; // what numbers of the page select, and no control has: a reason, or a time
const pages = new Map(); // by number; null while it is read
const drawn = new Map(); // elements by index

const controls = ["search", "state", "resource", "policy", "when"];

export const chosen = () => ({
  ...Object.fromEntries(controls.map((id) => [id, $(id).value.trim()])), ...more, sort,
  object: picked && [picked.resource, picked.namespace, picked.name].join("/"),
});

// choose takes over what an address says.
export function choose(address, of) {
  namespace = of;
  for (const id of controls) pick(id, address.get(id) ?? "");
  more = {};
  for (const name of ["reason", "from", "until"]) if (address.get(name)) more[name] = address.get(name);
  sort = address.get("sort") ?? "";
  const [resource, where, name] = (address.get("object") ?? "").split("/");
  picked = name ? { resource, namespace: where, name } : undefined;
  if (picked) explanation.explain(picked);
  else explanation.describe();
  restart();
}

// pick sets a control, also to what is not among its options.
function pick(id, value) {
  if ($(id).options && ![...$(id).options].some((o) => o.value === value)) $(id).append(h("option", { value }, value));
  $(id).value = value;
}

const filter = () => {
  const { object, ...all } = chosen();
  return { namespace, ...all };
};

const key = (r) => `${r.namespace}/${r.resource}/${r.name}`;

export function prepare(given) {
  page = given;
  $("search").addEventListener("input", () => {
    clearTimeout(typing);
    busy(true);
    typing = setTimeout(change, 200);
  });
  for (const id of controls.slice(1)) $(id).addEventListener("change", change);
  for (const button of $("table").querySelectorAll("button.sort")) button.addEventListener("click", () => sortBy(button.dataset.column));
  let frame;
  $("viewport").addEventListener("scroll", () => {
    frame ??= requestAnimationFrame(() => { frame = undefined; render(); });
  }, { passive: true });
  $("rows").addEventListener("keydown", move);
  $("explanation").addEventListener("keydown", (event) => { if (event.key === "Escape") focusRow(); });
  new ResizeObserver(render).observe($("viewport"));
  narrow.addEventListener("change", () => render(true));
  explanation.prepare(page);
  showChosen();
}

// change begins again after a person has chosen something else.
function change() {
  clearTimeout(typing);
  page.remember();
  restart();
}

function sortBy(column) {
  sort = sort === column ? `-${column}` : column;
  change();
}

// showChosen shows what no control has, each with a button that ends it.
function showChosen() {
  for (const heading of $("table").tHead.rows[0].cells) {
    const { column } = heading.querySelector("button").dataset;
    showOrder(heading, (sort || "due").replace("-", "") === column && (sort.startsWith("-") ? "descending" : "ascending"));
  }
  const end = (text, ...names) => h("button", { type: "button", click: () => { for (const name of names) delete more[name]; change(); } },
    `${text} ✕`, h("span", { class: "hidden" }, "Show all"));
  const local = (seconds) => new Date(seconds * 1000).toLocaleString();
  set($("chosen"), more.reason && end(`Reason: ${more.reason}`, "reason"),
    more.until && end(`Due after ${local(more.from ?? 0)} and until ${local(more.until)}`, "from", "until"));
}

export function enter() { render(); }

// show begins again with another snapshot, and leaves the table where it is.
export function show(all, of) {
  options("state", "All states", all.states);
  options("resource", "All resources", all.counts.map((c) => c.resource));
  options("policy", "All policies", all.policies);
  if (of !== namespace) {
    namespace = of;
    if (picked && of && picked.namespace !== of) {
      picked = undefined;
      explanation.describe();
    }
    restart();
  } else if (version !== all.version) load();
}

function options(id, every, values) {
  const before = $(id).value;
  const all = before && !values.includes(before) ? [...values, before] : values;
  set($(id), h("option", { value: "" }, every), all.map((value) => h("option", { value }, value)));
  $(id).value = before;
}

// restart shows the beginning of what the filter selects.
function restart() {
  $("viewport").scrollTop = 0;
  active = 0;
  showChosen();
  load();
}

// load forgets what was read, and reads what one sees.
function load() {
  loading.abort();
  loading = new AbortController();
  busy(true);
  pages.clear();
  fetchPage(first() / PAGE | 0);
}

const busy = (yes) => $("table").setAttribute("aria-busy", yes);

const first = () => Math.max(0, Math.floor($("viewport").scrollTop / row()) - BEYOND);
const last = () => Math.min(total, Math.ceil(($("viewport").scrollTop + $("viewport").clientHeight) / row()) + BEYOND);

async function fetchPage(n) {
  if (pages.has(n)) return;
  pages.set(n, null);
  const { signal } = loading;
  try {
    const answer = await get("candidates", { ...filter(), offset: n * PAGE, limit: PAGE }, signal);
    if (signal.aborted) return;
    if (version && answer.version !== version && pages.size > 1) { // Another snapshot begins.
      version = answer.version;
      load();
      return;
    }
    version = answer.version;
    pages.set(n, answer.rows);
    for (const old of pages.keys()) if (pages.size > PAGES_MOST && old !== n) pages.delete(old);
    if (answer.total !== total || pages.size === 1) resize(answer.total);
    render(true);
    busy(false);
  } catch (error) {
    if (aborted(error)) return;
    pages.delete(n);
    busy(false);
    set($("found"), error.message);
  }
}

function resize(n) {
  total = n;
  active = Math.min(active, Math.max(0, total - 1));
  $("table").setAttribute("aria-rowcount", total + 1);
  set($("found"), total === 0 ? none() : plural(total, "candidate") + (sort ? "" : ", the next to go first"));
}

// none says what to do if there is nothing to show.
function none() {
  const { object, sort: _, ...all } = chosen();
  return Object.values(all).some(Boolean)
    ? ["No candidates match. ", h("a", { href: "#candidates?" }, "Show all")]
    : ["No policy decides for any object here. ", h("a", { href: "#editor" }, "Write a policy")];
}

const above = h("tr", { class: "space", "aria-hidden": "true" }, h("td", { colspan: 5 }));
const below = h("tr", { class: "space", "aria-hidden": "true" }, h("td", { colspan: 5 }));

// render makes the elements of the rows that one sees. If anew, those that are there are made again.
function render(anew) {
  if ($("candidates").hidden) return;
  const from = Math.min(first(), Math.max(0, total - 1)), to = last();
  const focused = [...drawn].find(([, element]) => element.contains(document.activeElement))?.[0];
  for (const [i, element] of drawn) {
    if (i < from || i >= to || anew === true) {
      element.remove();
      drawn.delete(i);
    }
  }
  above.firstChild.style.height = `${from * row()}px`;
  below.firstChild.style.height = `${Math.max(0, total - to) * row()}px`;
  if (!above.isConnected) $("rows").append(above, below);
  let next = above.nextSibling;
  for (let i = from; i < to; i++) {
    const present = drawn.get(i);
    if (present) {
      next = present.nextSibling;
      continue;
    }
    const read = pages.get(Math.floor(i / PAGE));
    const element = rowOf(i, read?.[i % PAGE]);
    drawn.set(i, element);
    $("rows").insertBefore(element, next);
    if (!read) fetchPage(Math.floor(i / PAGE));
  }
  if (focused !== undefined) drawn.get(focused)?.querySelector("button").focus({ preventScroll: true });
}

function rowOf(i, r) {
  const attributes = { "aria-rowindex": i + 2, class: picked && r && key(r) === key(picked) ? "chosen" : "", "data-index": i };
  const button = (name, more) =>
    h("button", { type: "button", class: "link", tabindex: i === active ? 0 : -1, click: () => r && explain(i, r), ...more }, name);
  if (!r) {
    return h("tr", attributes, h("td", {}, button("…", { "aria-label": "Not read yet" })), Array.from({ length: 4 }, () => h("td")));
  }
  return h("tr", attributes,
    h("td", { class: "c-object" },
      button(r.name, { title: `Explain ${r.resource}/${r.name}`, "aria-current": attributes.class ? "true" : null }),
      h("small", {}, `${r.resource} in ${r.namespace}`)),
    h("td", { class: "c-state" }, badge(r.state, explanation.kinds[r.state]), r.preview && " Preview"),
    h("td", { class: "c-due", title: r.due ? instant(r.due) : null }, (r.state === "Due" ? ago : when)(r.due)),
    h("td", { class: "c-policy" }, r.policy ?? "–", r.rule && h("small", {}, `rule ${r.rule}`)),
    h("td", { class: "c-reason" }, r.reason));
}

// move moves through the table with the keyboard.
function move(event) {
  const rows = Math.max(1, Math.floor($("viewport").clientHeight / row()) - 2);
  const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: rows, PageUp: -rows, Home: -total, End: total };
  if (!(event.key in steps) || event.altKey || event.ctrlKey || event.metaKey) return;
  event.preventDefault();
  activate(active + steps[event.key]);
  focusRow();
}

function activate(i) {
  drawn.get(active)?.querySelector("button").setAttribute("tabindex", "-1");
  active = Math.max(0, Math.min(total - 1, i));
  drawn.get(active)?.querySelector("button").setAttribute("tabindex", "0");
}

// focusRow scrolls to the active row, and focuses it.
function focusRow() {
  const viewport = $("viewport"), high = row(), head = 46, y = active * high;
  if (y < viewport.scrollTop) viewport.scrollTop = y;
  else if (y + head + high > viewport.scrollTop + viewport.clientHeight) viewport.scrollTop = y + head + high - viewport.clientHeight;
  render();
  drawn.get(active)?.querySelector("button").focus({ preventScroll: true });
}

// explain explains a row that one sees, also while the table is read again.
async function explain(i, r) {
  activate(i);
  picked = r;
  page.remember();
  render(true);
  await explanation.explain(r);
  if (narrow.matches) $("explanation").scrollIntoView({ block: "start" }); // It stands below the table.
}
