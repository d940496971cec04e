// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

import { $, h, number, past, plural, set } from "./dom.js";
import { link } from "./address.js";
import { ask, mine, seconds, title, what } from "./approval.js";

const MOST = 5; // lines of a kind

// show begins the page with what needs a person.
export function show(all, own) {
  const groups = [waiting(own), unready(own), stuck(all)].filter(Boolean);
  set($("attention"), groups.length > 0 ? groups : h("p", { class: "empty" }, "Nothing waits for a person here."));
  $("attention").classList.toggle("alert", groups.length > 0);
}

function group(heading, lines, rest) {
  if (lines.length === 0) return null;
  return h("div", {}, h("h3", {}, heading), h("ul", {}, lines.slice(0, MOST), lines.length > MOST && h("li", {}, rest)));
}

// waiting has the changes that somebody must approve.
function waiting({ policies, waiting }) {
  const holds = policies.flatMap((p) => (p.holds ?? []).map((hold) => ({ p, hold })));
  const unlisted = policies.reduce((sum, p) => sum + (p.unlistedHolds ?? 0), 0);
  const n = holds.length + unlisted;
  return group(`${plural(n, "change")} ${n === 1 ? "waits" : "wait"} for approval`, holds.map(({ p, hold }) => h("li", {},
    h("span", {}, h("strong", {}, `${what(hold)} in ${hold.namespace || "all namespaces"}`), `, by ${title(p)}, `, past(seconds(hold.since))),
    mine(p).includes(hold)
      ? h("button", { type: "button", "aria-label": `Review ${what(hold)} of ${title(p)}`, click: () => ask(p) }, "Review")
      : h("span", {}, `Another policy must approve: ${hold.approver}`))),
  h("a", { href: "#policies" }, `All of ${plural(waiting, "policy", "policies")}`));
}

// unready has the policies that delete nothing until somebody acts.
function unready({ policies }) {
  const lines = policies.flatMap((p) => {
    const ready = (p.conditions ?? []).find((c) => c.type === "Ready");
    if (ready?.status !== "False" || p.holds?.length > 0) return [];
    return h("li", {}, h("span", {}, h("strong", {}, `${title(p)}${p.namespace ? ` in ${p.namespace}` : ""}`), `: ${ready.message || ready.reason}`));
  });
  return group(`${plural(lines.length, "policy is", "policies are")} not ready`, lines, h("a", { href: "#policies" }, "All policies"));
}

// stuck has the objects that stay until somebody acts.
function stuck(all) {
  const reasons = all.stuck ?? [];
  const objects = reasons.reduce((sum, r) => sum + r.objects, 0);
  return group(`${plural(objects, "object is", "objects are")} held until somebody acts`, reasons.map((r) => h("li", {}, h("span", {},
    h("a", { href: link("candidates", { state: "Held", reason: r.reason }) }, number(r.objects)), ` because of ${r.reason}`))),
  h("a", { href: link("candidates", { when: "held" }) }, "All held objects"));
}
