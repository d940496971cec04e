// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

import { $, badge, h, instant, number, plural, set, when } from "./dom.js";
import { aborted, get } from "./api.js";

// The table has elements only for the rows that one sees, and reads them page by page, so that their number does not matter.
const ROW = 46, PAGE = 100, BEYOND = 8, PAGES_MOST = 30;

let namespace = "";
let version = 0;
let total = 0;
let active = 0; // the row that Tab leads to
let chosen; // the row that is explained
let loading = new AbortController();
let explaining;
const pages = new Map(); // by number; null while it is read
const drawn = new Map(); // elements by index

const kinds = { Due: "warn", Held: "attention", Terminating: "warn", Waiting: "info", Notified: "info", Kept: "plain" };

const filter = () => ({
  namespace, search: $("search").value, state: $("state").value, resource: $("resource").value, policy: $("policy").value,
});

const key = (row) => `${row.namespace}/${row.resource}/${row.name}`;

export function prepare() {
  let typing;
  $("search").addEventListener("input", () => {
    clearTimeout(typing);
    busy(true);
    typing = setTimeout(restart, 200);
  });
  for (const id of ["state", "resource", "policy"]) $(id).addEventListener("change", restart);
  let frame;
  $("viewport").addEventListener("scroll", () => {
    frame ??= requestAnimationFrame(() => { frame = undefined; render(); });
  }, { passive: true });
  $("rows").addEventListener("keydown", move);
  $("explanation").addEventListener("keydown", (event) => { if (event.key === "Escape") focusRow(); });
  new ResizeObserver(render).observe($("viewport"));
  describe();
}

export function enter() { render(); }

// show begins again with another snapshot, and leaves the table where it is.
export function show(all, of) {
  options("state", "All states", all.states);
  options("resource", "All resources", all.counts.map((c) => c.resource));
  options("policy", "All policies", all.policies);
  if (of !== namespace) {
    namespace = of;
    chosen = undefined;
    describe();
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

const first = () => Math.max(0, Math.floor($("viewport").scrollTop / ROW) - BEYOND);
const last = () => Math.min(total, Math.ceil(($("viewport").scrollTop + $("viewport").clientHeight) / ROW) + BEYOND);

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
  set($("found"), total === 0 ? "No candidates match." : `${plural(total, "candidate")}, the next to go first`);
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
  above.firstChild.style.height = `${from * ROW}px`;
  below.firstChild.style.height = `${Math.max(0, total - to) * ROW}px`;
  if (!above.isConnected) $("rows").append(above, below);
  let next = above.nextSibling;
  for (let i = from; i < to; i++) {
    const present = drawn.get(i);
    if (present) {
      next = present.nextSibling;
      continue;
    }
    const page = pages.get(Math.floor(i / PAGE));
    const element = rowOf(i, page?.[i % PAGE]);
    drawn.set(i, element);
    $("rows").insertBefore(element, next);
    if (!page) fetchPage(Math.floor(i / PAGE));
  }
  if (focused !== undefined) drawn.get(focused)?.querySelector("button").focus({ preventScroll: true });
}

function rowOf(i, row) {
  const attributes = { "aria-rowindex": i + 2, class: chosen && row && key(row) === key(chosen) ? "chosen" : "", "data-index": i };
  const button = (name, more) =>
    h("button", { type: "button", class: "link", tabindex: i === active ? 0 : -1, click: () => row && explain(i, row), ...more }, name);
  if (!row) {
    return h("tr", attributes, h("td", {}, button("…", { "aria-label": "Not read yet" })), Array.from({ length: 4 }, () => h("td")));
  }
  return h("tr", attributes,
    h("td", { class: "c-object" },
      button(row.name, { title: `Explain ${row.resource}/${row.name}`, "aria-current": attributes.class ? "true" : null }),
      h("small", {}, `${row.resource} in ${row.namespace}`)),
    h("td", { class: "c-state" }, badge(row.state, kinds[row.state]), row.preview && " Preview"),
    h("td", { class: "c-due", title: row.due ? instant(row.due) : null }, when(row.due)),
    h("td", { class: "c-policy" }, row.policy ?? "–", row.rule && h("small", {}, `rule ${row.rule}`)),
    h("td", { class: "c-reason" }, row.reason));
}

// move moves through the table with the keyboard.
function move(event) {
  const rows = Math.max(1, Math.floor($("viewport").clientHeight / ROW) - 2);
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
  const viewport = $("viewport"), head = ROW, y = active * ROW;
  if (y < viewport.scrollTop) viewport.scrollTop = y;
  else if (y + head + ROW > viewport.scrollTop + viewport.clientHeight) viewport.scrollTop = y + head + ROW - viewport.clientHeight;
  render();
  drawn.get(active)?.querySelector("button").focus({ preventScroll: true });
}

// explain shows why a row that one sees is kept or deleted, also while the table is read again.
async function explain(i, row) {
  activate(i);
  chosen = row;
  render(true);
  explaining?.abort();
  const { signal } = (explaining = new AbortController());
  $("explanation").setAttribute("aria-busy", "true");
  try {
    describe(await get("explanation", { namespace: row.namespace, resource: row.resource, name: row.name }, signal));
  } catch (error) {
    if (!aborted(error)) set($("explanation"), h("h3", {}, row.name), h("p", { class: "failure" }, error.message));
  } finally {
    if (!signal.aborted) $("explanation").setAttribute("aria-busy", "false");
  }
}

// describe shows an explanation, or how to get one.
function describe(e) {
  if (!e) {
    set($("explanation"), h("h3", {}, "Why"),
      h("p", { class: "empty" }, "Choose an object to see when it is deleted, by what, and what would keep it."));
    return;
  }
  set($("explanation"),
    h("h3", {}, e.title),
    e.state && h("p", {}, badge(e.state, kinds[e.state]), " ", h("span", { class: "reason" }, e.reason)),
    e.message && h("p", { class: "message" }, e.message),
    h("dl", { class: "facts" }, (e.facts ?? []).map((f) => [
      h("dt", {}, f.name), h("dd", {}, f.text, (f.details ?? []).map((d) => h("p", {}, d))),
    ])),
    (e.lines ?? []).map((line) => h("p", {}, line)));
}
