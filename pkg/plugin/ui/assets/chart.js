// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

import { $, h, number, plural, s, set, span } from "./dom.js";
import { link } from "./address.js";
import { table } from "./table.js";

export const names = { hour: "Next hour", day: "Next day", week: "Next week" };

const HEIGHT = 210, RIGHT = 12, TOP = 8, BOTTOM = 24, DIGIT = 7.5;
const COLOURS = 5; // that the style sheet has; what comes after them counts together
const LABELS = { hour: 3, day: 6, week: 2 }; // bars between two labels

const sum = (list) => list.reduce((a, b) => a + b, 0);

// groupsOf returns the resources that have bars, the largest first, the rest as one, and what is held.
function groupsOf(chart) {
  let all = Object.entries(chart.bars).map(([name, list]) => ({ name, list, chosen: { resource: name } }));
  all.sort((a, b) => sum(b.list) - sum(a.list) || (a.name < b.name ? -1 : 1));
  if (all.length > COLOURS) {
    const rest = all.slice(COLOURS - 1);
    all = [...all.slice(0, COLOURS - 1), { name: `${rest.length} others`, list: rest[0].list.map((_, i) => sum(rest.map((r) => r.list[i]))) }];
  }
  all.forEach((g, i) => { g.style = `series-${i}`; });
  if (chart.held) all.push({ name: "Held when due", list: chart.held, chosen: { when: "held" }, style: "series-held" });
  return all;
}

// scale returns whole numbers for the lines of the chart, with as much room as the most needs.
export function scale(most) {
  const power = 10 ** Math.floor(Math.log10(Math.max(1, most / 4)));
  const step = [1, 2, 5, 10].map((f) => f * power).find((f) => f >= most / 4);
  return Array.from({ length: Math.ceil(most / step) + 1 }, (_, i) => i * step);
}

// draw draws how many objects are due in each step of a chart, by resource.
export function draw(chart, begin) {
  const groups = groupsOf(chart), time = names[chart.name].toLowerCase();
  const steps = groups[0]?.list.length ?? 0;
  const first = Math.floor(begin.getTime() / 1000);
  const at = (i) => first + i * chart.step; // where step i begins
  const due = (chosen, from, until) => link("candidates", { ...chosen, from: at(from), until: at(until) });
  // A number is a link to what is due in the steps from one until another. There is nothing behind 0, and no link to several resources.
  const linked = (n, g, from, until) => (n > 0 && g.chosen ? h("a", { href: due(g.chosen, from, until) }, number(n)) : number(n));
  set($("legend"), groups.map((g) =>
    h("li", {}, h("span", { class: `swatch ${g.style}` }), g.name, " (", linked(sum(g.list), g, 0, steps), ")")));
  if (steps === 0) {
    set($("chart"), h("p", { class: "empty" }, `Nothing becomes due in the ${time}.`));
    set($("chart-table"));
    return;
  }
  const stacked = Array.from({ length: steps }, (_, i) => sum(groups.map((g) => g.list[i])));
  const text = `${plural(sum(stacked), "object")} become due in the ${time}.`;
  const local = (i) => new Date(at(i) * 1000).toLocaleString();
  set($("chart"), picture(chart, groups, stacked, (i) => due({}, i, i + 1), (i) => `From ${local(i)} until ${local(i + 1)}`, text));
  set($("chart-table"), table(text, ["From", "Until", ...groups.map((g) => "#" + g.name), "#All"],
    stacked.map((n, i) => [local(i), local(i + 1), ...groups.map((g) => linked(g.list[i], g, i, i + 1)), number(n)])));
}

function picture(chart, groups, stacked, href, when, text) {
  const ticks = scale(Math.max(...stacked)), top = ticks.at(-1);
  const left = 16 + DIGIT * number(top).length;
  const width = Math.max(280, $("chart").clientWidth), inner = width - left - RIGHT, height = HEIGHT - TOP - BOTTOM;
  const y = (n) => TOP + height - (n / top) * height;
  const slot = inner / stacked.length, x = (i) => left + i * slot;
  const lines = ticks.map((n) => [
    s("line", { class: "grid", x1: left, x2: width - RIGHT, y1: y(n), y2: y(n) }),
    s("text", { class: "axis count", x: left - 8, y: y(n) + 4, "text-anchor": "end" }, number(n)),
  ]);
  const bars = stacked.map((n, i) => n > 0 && bar(groups, i, href(i), when(i), { x: x(i) + slot * 0.12, width: slot * 0.76 }, y));
  // A label stands where a bar begins, and says how long from now that is.
  const labels = Array.from({ length: stacked.length / LABELS[chart.name] + 1 }, (_, n) => n * LABELS[chart.name]).map((i) =>
    s("text", { class: "axis time", x: x(i), y: HEIGHT - 6, "text-anchor": i === 0 ? "start" : i === stacked.length ? "end" : "middle" },
      i === 0 ? "now" : span(i * chart.step)));
  return s("svg", { role: "group", "aria-label": text, width, height: HEIGHT, viewBox: `0 0 ${width} ${HEIGHT}` }, lines, bars, labels);
}

// bar stacks the groups of one step, and leads to their candidates.
function bar(groups, i, href, when, place, y) {
  let below = 0;
  const parts = groups.filter((g) => g.list[i]).map((g) => `${number(g.list[i])} ${g.name}`);
  const said = `${when}: ${parts.join(", ")}`;
  return s("a", { href, "aria-label": said }, s("title", {}, said), groups.map((g) => {
    const from = below;
    below += g.list[i];
    return g.list[i] > 0 && s("rect", { class: g.style, ...place, y: y(below), height: Math.max(1, y(from) - y(below) - (from ? 1 : 0)) });
  }));
}
