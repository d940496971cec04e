// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

import { $, h, number, past, plural, set, size } from "./dom.js";
import { link } from "./address.js";
import { draw, names } from "./chart.js";
import { sortable, table } from "./table.js";

let shown;
let span = "day";
let page;

const counts = {
  now: "Now", hour: "Hour", day: "Day", week: "Week", held: "Held", later: "Later or never", preview: "In Preview", going: "Being deleted",
};

const total = (all, key) => all.reduce((sum, c) => sum + c[key], 0);

// linked shows a number as a link to the candidates behind it. There is nothing behind 0.
const linked = (n, chosen) => (n > 0 ? h("a", { href: link("candidates", chosen) }, number(n)) : number(n));

// prepare makes the choice of the time that the chart shows.
export function prepare(given) {
  page = given;
  for (const [name, text] of Object.entries(names)) {
    const change = () => { span = name; redraw(); page.remember(); };
    $("span").append(h("input", { type: "radio", name: "span", id: `span-${name}`, value: name, change }), h("label", { for: `span-${name}` }, text));
  }
  $(`span-${span}`).checked = true;
  new ResizeObserver(redraw).observe($("chart"));
}

export const chosen = () => ({ span: span === "day" ? "" : span });

export function choose(address) {
  span = Object.hasOwn(names, address.get("span")) ? address.get("span") : "day";
  $(`span-${span}`).checked = true;
}

export function enter() { redraw(); }

function redraw() {
  if (shown) draw(shown.charts.find((c) => c.name === span), new Date(shown.time));
}

export function show(all) {
  shown = all;
  const tile = (name, when, text, kind) =>
    h("div", { class: kind }, h("dt", {}, name), h("dd", {}, linked(total(all.counts, when), { when }), h("small", {}, text)));
  set($("tiles"),
    tile("Due now", "now", "goes as soon as possible"),
    tile("Next hour", "hour", "due within an hour"),
    tile("Next day", "day", "due within 24 hours"),
    tile("Next week", "week", "due within seven days"),
    tile("Held", "held", "due within seven days, but something keeps them", total(all.counts, "held") > 0 && "attention"),
    h("div", {}, h("dt", {}, "Candidates"), h("dd", {}, linked(all.total, {}),
      h("small", {}, linked(total(all.counts, "later"), { when: "later" }), " later or never"))));
  redraw();
  set($("resources"), all.counts.length === 0
    ? h("p", { class: "empty" }, "No policy decides for any object here. ", h("a", { href: "#editor" }, "Write a policy"))
    : sortable(countTable("What policies delete", "Resource", all.counts, (c) => [c.resource, { resource: c.resource }])));
  showNamespaces(all.namespaces ?? []);
  showFinished(all.finished);
}

// countTable has a row for each count. Its numbers are links to what they count.
function countTable(name, first, all, of) {
  return table(name, [first, ...Object.values(counts).map((c) => "#" + c)], all.map((c) => {
    const [heading, chosen] = of(c);
    return [heading, ...Object.keys(counts).map((when) => linked(c[when], { ...chosen, when }))];
  }));
}

function showNamespaces(all) {
  $("namespaces-card").hidden = all.length === 0;
  set($("namespace-table"), all.length > 0 && sortable(countTable("Namespaces", "Namespace", all,
    (c) => [h("a", { href: link("overview", { namespace: c.namespace }) }, c.namespace), { namespace: c.namespace }])));
}

function showFinished(finished) {
  $("finished-card").hidden = !finished;
  if (!finished) return;
  set($("finished"), sortable(table("Finished objects", ["Namespace", "Resource", "#Objects", "#Failed", "Oldest", "#Size", "Created by"],
    finished.map((f) => [
      f.namespace, f.resource, number(f.objects), number(f.failed), f.oldest ? past(Date.parse(f.oldest) / 1000) : "–",
      h("data", { value: f.bytes }, size(f.bytes)), creators(f.creators ?? []),
    ]))));
}

function creators(all) {
  const first = all.slice(0, 3).map((c) => `${c.name || "no controller"} (${number(c.objects)})`);
  return first.join(", ") + (all.length > 3 ? `, ${plural(all.length - 3, "other")}` : "");
}
