// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

import { $, h, number, past, plural, set, time } from "./dom.js";
import { get, post } from "./api.js";
import { link } from "./address.js";
import { table } from "./table.js";

const SAMPLE = 10;

let page; // what the dialog needs of the page
let asked; // the policy that the dialog is about

export const seconds = (text) => (text ? Date.parse(text) / 1000 : 0);
export const title = (p) => (p.cluster ? `ccup/${p.name}` : `cup/${p.name}`);
export const mine = (p) => (p.holds ?? []).filter((hold) => !hold.approver);

const kinds = new Map([["jobs.batch", ["Job", "Jobs"]], ["pods", ["Pod", "Pods"]]]);

// what says how many objects of which kinds a hold is about.
export function what({ objects, resources = [] }) {
  const [one, many] = (resources.length === 1 && kinds.get(resources[0])) || ["object", "objects"];
  const names = one === "object" && resources.length > 0 ? ` (${resources.join(", ")})` : "";
  return plural(objects, one, many) + names;
}

// heldBy selects the candidates that wait for approval by a policy; without a namespace, in all that the page shows.
const heldBy = (p, namespace) => ({ namespace: p.namespace || namespace || undefined, state: "Held", reason: "Held", policy: title(p) });

export const holdTable = (p, all) => table(`What waits for approval by ${title(p)}`, ["Namespace", "#Objects", "Resources", "Since", "Why", "Hold"],
  all.map((hold) => [
    hold.namespace || "All", h("a", { href: link("candidates", heldBy(p, hold.namespace)) }, number(hold.objects)), (hold.resources ?? []).join(", "), past(seconds(hold.since)), hold.why ?? "", hold.id,
  ]));

export function prepare(given) {
  page = given;
  $("approve-cancel").addEventListener("click", () => $("approve").close());
  $("approve-confirm").addEventListener("click", approve);
  addEventListener("hashchange", () => $("approve").close());
}

// ask shows what waits, and asks.
export function ask(p) {
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
  sample(p, all);
}

// sample shows some of the objects that would go.
async function sample(p, all) {
  const into = $("approve-sample");
  const namespaces = new Set(all.map((hold) => hold.namespace));
  const held = heldBy(p, namespaces.size === 1 && [...namespaces][0]);
  set(into, h("p", { class: "hint" }, "Reading which objects …"));
  try {
    const { rows, total } = await get("candidates", { ...held, namespace: page.namespace(), in: held.namespace ?? "", limit: SAMPLE });
    if (asked !== p) return;
    set(into, total === 0
      ? h("p", { class: "hint" }, "The page cannot show which objects: you may not list them, or they are among too many candidates.")
      : [
        h("p", {}, rows.length < total ? `The first ${rows.length} of ` : "All of them: ",
          h("a", { href: link("candidates", held) }, plural(total, "object")), ":"),
        h("div", { class: "scroll" }, table("Objects that would go", ["Object", "Namespace", "Due", "Rule"],
          rows.map((r) => [`${r.resource}/${r.name}`, r.namespace, time(r.due), r.rule ?? ""]))),
      ]);
  } catch (error) {
    if (asked === p) set(into, h("p", { class: "hint" }, `The page cannot show which objects: ${error.message}`));
  }
}

async function approve() {
  const policy = asked; // A person may close the dialog and open another policy before the answer is there.
  $("approve-confirm").disabled = true;
  try {
    await post("approve", { namespace: policy.namespace ?? "", name: policy.name, holds: mine(policy).map((hold) => hold.id) });
    const here = asked === policy && $("approve").open;
    if (here) $("approve").close();
    await page.refresh();
    say(`${title(policy)} is approved.`);
    if (here) document.querySelector("section:not([hidden]) > h2").focus();
  } catch (error) {
    if (asked !== policy || !$("approve").open) {
      say(`${title(policy)} is not approved: ${error.message}`);
      return;
    }
    set($("approve-failure"), error.message);
    $("approve-failure").hidden = false;
    $("approve-confirm").disabled = false;
  }
}

const say = (text) => set($("done"), text);
