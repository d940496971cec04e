// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

import { $, badge, h, number, set, table, when } from "./dom.js";
import { aborted, post } from "./api.js";

const QUIET = 600; // milliseconds without a key until the preview is asked for

const head = (namespace) => `apiVersion: gc.winnow.dev/v1alpha1
kind: CleanupPolicy
metadata:
  name: defaults
  namespace: ${namespace}
spec:
`;

const templates = {
  "Keep finished Jobs and Pods for a day": "  ttlAfterFinished: 1d\n",
  "Keep failures for a week, the rest for an hour": `  ttlAfterFinished: 1h
  rules:
  - name: failures
    outcome: Failed
    ttl: 7d
`,
  "Keep the last 10 Jobs of each controller": `  rules:
  - name: last-ten
    resources: [jobs.batch]
    capacity:
      maxObjects: 10
      per: Owner
`,
  "Keep objects with a label forever": `  ttlAfterFinished: 1d
  rules:
  - name: keep
    selector:
      matchLabels:
        keep: "true"
    ttl: never
`,
};

let home; // returns the namespace of a new policy
let typing;
let asking;
let previewed;

export function prepare(namespace) {
  home = namespace;
  set($("template"), h("option", { value: "" }, "Start from an example …"),
    Object.keys(templates).map((name) => h("option", { value: name }, name)));
  $("template").addEventListener("change", () => {
    const name = $("template").value;
    $("template").value = "";
    if (name) load(head(home()) + templates[name]);
  });
  $("yaml").addEventListener("input", () => {
    clearTimeout(typing);
    typing = setTimeout(preview, QUIET);
  });
  $("copy").addEventListener("click", copy);
  $("yaml").value = head(home()) + Object.values(templates)[0];
  if (!$("editor").hidden) enter();
}

// load puts a policy into the editor.
export function load(text) {
  $("yaml").value = text;
  preview();
}

export function enter() {
  if (home && previewed === undefined) preview();
}

async function copy() {
  try {
    await navigator.clipboard.writeText($("yaml").value);
  } catch { // Not every browser lets a page do that.
    $("yaml").select();
    set($("copied"), "Press Ctrl-C to copy the selected text.");
    return;
  }
  set($("copied"), "Copied. To apply it, save it as policy.yaml: kubectl apply -f policy.yaml");
}

async function preview() {
  clearTimeout(typing);
  asking?.abort();
  const { signal } = (asking = new AbortController());
  previewed = $("yaml").value;
  $("preview").setAttribute("aria-busy", "true");
  try {
    const answer = await post("preview", { namespace: home(), text: previewed }, signal);
    set($("preview"), answer.errors ? wrong(answer.errors) : said(answer));
    $("yaml").setAttribute("aria-invalid", answer.errors ? "true" : "false");
  } catch (error) {
    if (!aborted(error)) set($("preview"), h("p", { class: "failure" }, error.message));
  } finally {
    if (!signal.aborted) $("preview").setAttribute("aria-busy", "false");
  }
}

const wrong = (errors) => [
  h("p", {}, badge("Not valid", "attention"), " The server would refuse this policy:"),
  h("ul", { class: "errors" }, errors.map((e) => h("li", {}, e.field && h("code", {}, e.field), e.field && ": ", e.message))),
];

function said({ namespace, name, review, warnings }) {
  const deletions = review.deletions ?? [], sample = review.sample ?? [];
  const columns = ["now", "hour", "day", "week", "held"];
  return [
    h("p", { class: "lead" },
      `Policy ${name} in namespace ${namespace} would delete${deletions.length === 0 ? " nothing within a week." : ":"}`),
    deletions.length > 0 && h("div", { class: "scroll" },
      table("Deletions by rule", ["Resource", "Rule", "#Now", "#Hour", "#Day", "#Week", "#Held"],
        deletions.map((d) => [d.resource, d.rule, ...columns.map((c) => number(d[c]))]))),
    h("p", {}, `All policies together delete ${number(review.withDraft.now)} now and ${number(review.withDraft.week)} within a week. ` +
      `Without this policy: ${number(review.withoutDraft.now)} and ${number(review.withoutDraft.week)}.`),
    review.withDraft.held > 0 && h("p", {}, `Due within a week, but something keeps them: ${number(review.withDraft.held)}.`),
    (warnings ?? []).length > 0 && h("ul", { class: "warnings" }, warnings.map((w) => h("li", {}, w))),
    review.hiddenResources?.length > 0 && h("p", {}, `Not counted, because you may not list them: ${review.hiddenResources.join(", ")}`),
    !review.complete && h("p", {}, "There are more objects than were counted, so every number is a minimum."),
    sample.length > 0 && [h("h4", {}, "The first of them"), h("div", { class: "scroll" },
      table("The first of them", ["Object", "Rule", "Due", "Reason"], sample.map((o) => [
        `${o.resource}/${o.name}`, o.rule, o.dueTime ? when(Date.parse(o.dueTime) / 1000) : "now", o.reason ?? "",
      ])))],
  ];
}
