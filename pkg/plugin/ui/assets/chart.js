// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

import { $, h, number, plural, s, set, table } from "./dom.js";

export const names = { hour: "Next hour", day: "Next day", week: "Next week" };

const HEIGHT = 210, LEFT = 48, RIGHT = 8, TOP = 8, BOTTOM = 24;
const COLOURS = 5; // that the style sheet has; what comes after them counts together

// grouped returns the resources that have bars, the largest first, and the rest as one.
function grouped(bars) {
  const sum = (list) => list.reduce((a, b) => a + b, 0);
  const all = Object.entries(bars).map(([name, list]) => ({ name, list, sum: sum(list) }));
  all.sort((a, b) => b.sum - a.sum || (a.name < b.name ? -1 : 1));
  if (all.length <= COLOURS) return all;
  const rest = all.slice(COLOURS - 1);
  const list = rest[0].list.map((_, i) => sum(rest.map((r) => r.list[i])));
  return [...all.slice(0, COLOURS - 1), { name: `${rest.length} others`, list, sum: sum(list) }];
}

// nice returns a round number that is not less.
function nice(n) {
  const power = 10 ** Math.floor(Math.log10(n));
  return [1, 2, 4, 5, 10].map((f) => f * power).find((f) => f >= n);
}

function label(chart, time) {
  if (chart.name === "week") return time.toLocaleDateString(undefined, { weekday: "short", day: "numeric" });
  return time.toLocaleTimeString(undefined, { hour: "2-digit", minute: "2-digit" });
}

// draw draws how many objects are due in each step of a chart, by resource.
export function draw(chart, begin) {
  const groups = grouped(chart.bars);
  const steps = groups[0]?.list.length ?? 0;
  const end = (i) => new Date(begin.getTime() + i * chart.step * 1000);
  set($("legend"), groups.map((g, i) => h("li", {}, h("span", { class: `swatch series-${i}` }), `${g.name} (${number(g.sum)})`)));
  if (steps === 0) {
    set($("chart"), h("p", { class: "empty" }, `Nothing becomes due in the ${names[chart.name].toLowerCase()}.`));
    set($("chart-table"), h("p", { class: "empty" }, "There is nothing to show."));
    return;
  }
  const stacked = Array.from({ length: steps }, (_, i) => groups.reduce((sum, g) => sum + g.list[i], 0));
  const text = `${plural(stacked.reduce((a, b) => a + b, 0), "object")} become due in the ${names[chart.name].toLowerCase()}.`;
  set($("chart"), picture(chart, groups, stacked, end, text));
  set($("chart-table"), table(text, ["Until", ...groups.map((g) => "#" + g.name), "#All"],
    stacked.map((sum, i) => [end(i + 1).toLocaleString(), ...groups.map((g) => number(g.list[i])), number(sum)])));
}

function picture(chart, groups, stacked, end, text) {
  const width = Math.max(280, $("chart").clientWidth), inner = width - LEFT - RIGHT, height = HEIGHT - TOP - BOTTOM;
  const top = nice(Math.max(...stacked)), y = (n) => TOP + height - (n / top) * height;
  const slot = inner / stacked.length, x = (i) => LEFT + i * slot;
  const lines = (top < 4 ? [0, top] : [0, top / 4, top / 2, (3 * top) / 4, top]).map((n) => [
    s("line", { class: "grid", x1: LEFT, x2: width - RIGHT, y1: y(n), y2: y(n) }),
    s("text", { class: "axis", x: LEFT - 8, y: y(n) + 4, "text-anchor": "end" }, number(n)),
  ]);
  const bars = stacked.map((sum, i) => {
    let below = 0;
    const parts = groups.filter((g) => g.list[i]).map((g) => `${number(g.list[i])} ${g.name}`);
    const title = `Until ${end(i + 1).toLocaleString()}: ${parts.join(", ")}`;
    return sum > 0 && s("g", {}, s("title", {}, title), groups.map((g, at) => {
      const from = below;
      below += g.list[i];
      return g.list[i] > 0 && s("rect", {
        class: `series-${at}`, x: x(i) + slot * 0.12, width: slot * 0.76,
        y: y(below), height: Math.max(1, y(from) - y(below) - (from ? 1 : 0)),
      });
    }));
  });
  const each = Math.max(1, Math.ceil(stacked.length / Math.floor(inner / 72)));
  const ticks = stacked.map((_, i) => i % each === 0 && i * slot < inner - 30 &&
    s("text", { class: "axis", x: x(i), y: HEIGHT - 6, "text-anchor": i ? "middle" : "start" }, i ? label(chart, end(i)) : "now"));
  return s("svg", { role: "img", "aria-label": text, width, height: HEIGHT, viewBox: `0 0 ${width} ${HEIGHT}` }, lines, bars, ticks);
}
