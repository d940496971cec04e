// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

import { $, h, past, plural, set } from "./dom.js";
import { aborted, get } from "./api.js";
import { link } from "./address.js";
import { sortable, table } from "./table.js";

const DAY = "86400";

let namespace; // undefined until the page knows it
let stale = true; // The records are read when somebody looks at them.
let reading;
let records = [];
let page;

export function prepare(given) {
  page = given;
  $("history-search").addEventListener("input", () => { render(); page.remember(); });
  $("history-within").addEventListener("change", () => { load(); page.remember(); });
}

export const chosen = () => ({ search: $("history-search").value.trim(), within: $("history-within").value === DAY ? "" : $("history-within").value });

export function choose(address) {
  const before = $("history-within").value;
  $("history-search").value = address.get("search") ?? "";
  $("history-within").value = address.get("within") ?? DAY;
  if ($("history-within").selectedIndex < 0) $("history-within").value = DAY;
  stale ||= $("history-within").value !== before;
  render();
}

export function enter() { if (stale && namespace !== undefined) load(); }

// show reads again what people look at.
export function show(of) {
  namespace = of;
  stale = true;
  if (!$("history").hidden) load();
}

async function load() {
  reading?.abort();
  const mine = (reading = new AbortController());
  try {
    const answer = await get("records", { namespace, within: $("history-within").value }, mine.signal);
    records = answer.records ?? [];
    stale = false;
    notes(answer.notes ?? []);
    render();
  } catch (error) {
    if (aborted(error)) return;
    records = [];
    notes([]);
    render();
    set($("history-found"), error.message);
  }
}

function notes(all) {
  set($("history-notes"), all.map((note) => h("li", {}, note)));
  $("history-notes").hidden = all.length === 0;
}

const contains = (r, text) => [`${r.resource}/${r.name}`, r.namespace, r.policy, r.uid].some((value) => value.toLowerCase().includes(text));

function render() {
  const text = $("history-search").value.trim().toLowerCase();
  const found = records.filter((r) => contains(r, text));
  const none = records.length === 0
    ? ["There are no records of deletions here in that time. Choose a longer time, or look at ", h("a", { href: "#candidates" }, "what will be deleted"), "."]
    : "No deleted objects match.";
  set($("history-found"), found.length === 0 ? none : plural(found.length, "object"));
  set($("history-table"), found.length > 0 && sortable(table("Deleted objects",
    ["Object", "Namespace", "Deleted", "Decided by", "Reason", "Late", "Controller", "Deleted as", "Copy"], found.map(row))));
}

// explained leads to what is known of an object, which may have been created again.
const explained = (r) => h("a", {
  href: link("candidates", { namespace: r.namespace, search: r.name, object: [r.resource, r.namespace, r.name].join("/") }),
}, `${r.resource}/${r.name}`);

const row = (r) => [
  [explained(r), h("small", {}, ` ${r.uid}`)], r.namespace, past(Date.parse(r.time) / 1000),
  r.policy + (r.rule ? `, rule ${r.rule}` : ""), r.reason + (r.answerLost ? " (the answer was lost)" : ""), r.late, r.owner, r.account || "Winnow",
  r.copied === "-" ? "-" : [`for ${r.copied}: `, h("code", {}, `kubectl winnow restore ${r.resource}/${r.name} -n ${r.namespace}`)],
];
