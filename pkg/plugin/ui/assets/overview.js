// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

import { $, h, number, plural, set, size, table, when } from "./dom.js";
import { draw, names } from "./chart.js";

let shown;
let chosen = "day";

const columns = ["now", "hour", "day", "week", "held", "later", "preview", "going"];

const total = (counts, key) => counts.reduce((sum, c) => sum + c[key], 0);

// prepare makes the choice of the time that the chart shows.
export function prepare() {
  for (const [name, text] of Object.entries(names)) {
    const radio = h("input", { type: "radio", name: "span", id: `span-${name}`, value: name, change: () => { chosen = name; redraw(); } });
    radio.checked = name === chosen;
    $("span").append(radio, h("label", { for: radio.id }, text));
  }
  new ResizeObserver(redraw).observe($("chart"));
}

export function enter() { redraw(); }

function redraw() {
  if (shown) draw(shown.charts.find((c) => c.name === chosen), new Date(shown.time));
}

export function show(all) {
  shown = all;
  const tile = (name, n, text, kind) => h("div", { class: kind }, h("dt", {}, name), h("dd", {}, number(n), h("small", {}, text)));
  const week = total(all.counts, "week"), held = total(all.counts, "held");
  set($("tiles"),
    tile("Due now", total(all.counts, "now"), "goes as soon as possible"),
    tile("Next hour", total(all.counts, "hour"), "due within an hour"),
    tile("Next day", total(all.counts, "day"), "due within 24 hours"),
    tile("Next week", week, "due within seven days"),
    tile("Held", held, "something keeps them", held > 0 && "attention"),
    tile("Candidates", all.total, `${number(total(all.counts, "later"))} later or never`));
  redraw();
  set($("resources"), all.counts.length === 0
    ? h("p", { class: "empty" }, "No policy decides for any object here.")
    : table("What policies delete",
      ["Resource", "#Now", "#Hour", "#Day", "#Week", "#Held", "#Later or never", "#In Preview", "#Being deleted"],
      all.counts.map((c) => [c.resource, ...columns.map((k) => number(c[k]))])));
  showFinished(all.finished);
}

function showFinished(finished) {
  $("finished-card").hidden = !finished;
  if (!finished) return;
  set($("finished"), table("Finished objects", ["Namespace", "Resource", "#Objects", "#Failed", "Oldest", "#Size", "Created by"],
    finished.map((f) => [
      f.namespace, f.resource, number(f.objects), number(f.failed), f.oldest ? when(Date.parse(f.oldest) / 1000) : "–", size(f.bytes),
      creators(f.creators ?? []),
    ])));
}

function creators(all) {
  const first = all.slice(0, 3).map((c) => `${c.name || "no controller"} (${number(c.objects)})`);
  return first.join(", ") + (all.length > 3 ? `, ${plural(all.length - 3, "other")}` : "");
}
