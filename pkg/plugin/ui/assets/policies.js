// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

import { $, badge, h, number, plural, set, table, when } from "./dom.js";
import { post } from "./api.js";

let actions;
let asked; // the policy that the dialog is about

const seconds = (time) => (time ? Date.parse(time) / 1000 : 0);
const title = (p) => (p.cluster ? `ccup/${p.name}` : `cup/${p.name}`);
const mine = (p) => (p.holds ?? []).filter((hold) => !hold.approver);

export function prepare(given) {
  actions = given;
  $("approve-cancel").addEventListener("click", () => $("approve").close());
  $("approve-confirm").addEventListener("click", approve);
}

export function show({ policies, total }) {
  set($("policies-said"), total === 0 ? "There are no policies here." : plural(total, "policy", "policies"));
  const focused = document.activeElement?.id;
  const opened = [...document.querySelectorAll("#policy-list details[open]")].map((e) => e.id);
  set($("policy-list"), policies.map(card));
  for (const id of opened) $(id)?.setAttribute("open", "");
  if (focused) $(focused)?.focus({ preventScroll: true });
}

function card(p) {
  const id = `policy/${p.namespace ?? ""}/${p.name}`; // A slash stands in no name, so no other policy has this ID.
  const ready = (p.conditions ?? []).find((c) => c.type === "Ready");
  const count = (name, n, kind) => h("div", {}, h("dt", {}, name), h("dd", { class: kind }, n));
  return h("article", { class: "card policy", "aria-labelledby": id },
    h("div", { class: "card-head" },
      h("h3", { id }, title(p), h("small", {}, p.cluster ? "cluster policy" : `in ${p.namespace}`)),
      h("div", { class: "badges" },
        p.holds?.length && badge("Waits for approval", "attention"),
        badge(p.mode, p.mode === "Preview" ? "info" : "plain"), p.suspended && badge("Suspended", "attention"),
        ready && badge(ready.status === "True" ? "Ready" : `Not ready: ${ready.reason}`, ready.status === "True" ? "good" : "warn"))),
    p.holds?.length && holds(p, id),
    h("dl", { class: "counts" }, count("Candidates", number(p.candidates)), count("Due", number(p.due)), count("Held", number(p.held)),
      count("Deleted", number(p.deleted)), count("Next", when(seconds(p.next)))),
    (p.conditions ?? []).length > 0 && h("ul", { class: "conditions" }, p.conditions.filter((c) => c.message).map((c) =>
      h("li", {}, h("strong", {}, `${c.type} ${c.status}`), ` (${c.reason}): ${c.message}`))),
    h("details", { id: id + "/yaml" }, h("summary", { id: id + "/summary" }, "YAML"), h("pre", {}, ...lines(p.yaml)),
      !p.cluster && h("button", { type: "button", id: id + "/edit", click: () => actions.edit(p.yaml) }, "Open in the editor")));
}

// lines returns a text line by line, since a line break in one text is escaped.
const lines = (text) => text.split("\n").flatMap((line) => [h("span", {}, line), h("br")]);

function holdTable(p, all) {
  return table(`What waits for approval by ${title(p)}`, ["Namespace", "#Objects", "Resources", "Since", "Why", "Hold"],
    all.map((hold) => [
      hold.namespace || "All", number(hold.objects), (hold.resources ?? []).join(", "), when(seconds(hold.since)), hold.why ?? "", hold.id,
    ]));
}

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

// ask shows what waits, and asks.
function ask(p) {
  asked = p;
  const all = mine(p), objects = all.reduce((sum, hold) => sum + hold.objects, 0);
  set($("approve-title"), `Approve what ${title(p)} deletes?`);
  set($("approve-text"), `If you approve, Winnow deletes ${plural(objects, "object")}. Deleted objects do not come back.`);
  set($("approve-holds"), holdTable(p, all));
  set($("approve-confirm"), `Approve ${plural(objects, "deletion")}`);
  $("approve-failure").hidden = true;
  $("approve-confirm").disabled = false;
  $("approve").showModal();
  $("approve-cancel").focus();
}

async function approve() {
  const policy = asked; // A person may close the dialog and open another policy before the answer is there.
  $("approve-confirm").disabled = true;
  try {
    await post("approve", { namespace: policy.namespace ?? "", name: policy.name, holds: mine(policy).map((hold) => hold.id) });
    const here = asked === policy && $("approve").open;
    if (here) $("approve").close();
    await actions.refresh();
    set($("policies-said"), `${title(policy)} is approved.`);
    if (here) $("policies-title").focus();
  } catch (error) {
    if (asked !== policy || !$("approve").open) {
      set($("policies-said"), `${title(policy)} is not approved: ${error.message}`);
      return;
    }
    set($("approve-failure"), error.message);
    $("approve-failure").hidden = false;
    $("approve-confirm").disabled = false;
  }
}
