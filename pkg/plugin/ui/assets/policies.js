// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

import { $, badge, h, number, plural, set, time } from "./dom.js";
import { link } from "./address.js";
import { ask, holdTable, mine, seconds, title } from "./approval.js";

let actions;

export function prepare(given) { actions = given; }

export function show({ policies, total }) {
  set($("policies-said"), total === 0
    ? ["There are no policies here, so nothing is deleted. ", h("a", { href: "#editor" }, "Write a policy")]
    : plural(total, "policy", "policies"));
  const focused = document.activeElement?.id;
  const opened = [...document.querySelectorAll("#policy-list details[open]")].map((e) => e.id);
  set($("policy-list"), policies.map(card));
  for (const id of opened) $(id)?.setAttribute("open", "");
  if (focused) $(focused)?.focus({ preventScroll: true });
}

function card(p) {
  const id = `policy/${p.namespace ?? ""}/${p.name}`; // A slash stands in no name, so no other policy has this ID.
  const ready = (p.conditions ?? []).find((c) => c.type === "Ready");
  return h("article", { class: "card policy", "aria-labelledby": id },
    h("div", { class: "card-head" },
      h("h3", { id }, title(p), h("small", {}, p.cluster ? "cluster policy" : `in ${p.namespace}`)),
      h("div", { class: "badges" },
        p.holds?.length && badge("Waits for approval", "attention"),
        badge(p.mode, p.mode === "Preview" ? "info" : "plain"), p.suspended && badge("Suspended", "attention"),
        ready && badge(ready.status === "True" ? "Ready" : `Not ready: ${ready.reason}`, ready.status === "True" ? "good" : "warn"))),
    p.holds?.length && holds(p, id),
    counts(p, id),
    (p.conditions ?? []).length > 0 && h("ul", { class: "conditions" }, p.conditions.filter((c) => c.message).map((c) =>
      h("li", {}, h("strong", {}, `${c.type} ${c.status}`), ` (${c.reason}): ${c.message}`))),
    h("details", { id: id + "/yaml" }, h("summary", { id: id + "/summary" }, "YAML"), h("pre", { tabindex: 0 }, ...lines(p.yaml)),
      h("button", { type: "button", id: id + "/edit", click: () => actions.edit(p.yaml) }, "Open in the editor")));
}

// counts has the numbers of the status, with links to the objects behind them.
function counts(p, id) {
  const of = { namespace: p.namespace, policy: title(p) };
  const count = (name, n, href) =>
    h("div", {}, h("dt", {}, name), h("dd", {}, n && href ? h("a", { href, id: `${id}/${name}` }, number(n)) : number(n)));
  return h("dl", { class: "counts" },
    count("Candidates", p.candidates, link("candidates", of)),
    count("Due", Math.max(0, p.due - p.held), link("candidates", { ...of, state: "Due" })), // The status counts what is held as due, too.
    count("Held", p.held, link("candidates", { ...of, state: "Held" })),
    count("Deleted", p.deleted, link("history", { namespace: p.namespace, search: title(p), within: 30 * 86400 })),
    h("div", {}, h("dt", {}, "Next"), h("dd", {}, time(seconds(p.next)))));
}

// lines returns a text line by line, since a line break in one text is escaped.
const lines = (text) => text.split("\n").flatMap((line) => [h("span", {}, line), h("br")]);

function holds(p, id) {
  const objects = mine(p).reduce((sum, hold) => sum + hold.objects, 0);
  const others = (p.holds ?? []).filter((hold) => hold.approver);
  return h("div", { class: "hold" },
    h("p", {}, "A change made too many objects due at once. Until somebody approves it, this policy deletes nothing where it is held."),
    h("div", { class: "scroll" }, holdTable(p, p.holds)),
    p.unlistedHolds > 0 && h("p", {}, `${plural(p.unlistedHolds, "more hold")} will be listed as others end.`),
    [...new Set(others.map((hold) => hold.approver))].map((name) => h("p", {}, `Another policy must approve: ${name}`)),
    mine(p).length > 0 && h("button", { type: "button", class: "primary", id: id + "/approve", click: () => ask(p) },
      `Approve ${plural(objects, "deletion")} …`));
}
