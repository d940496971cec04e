// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

import { $, badge, h, number, set, when } from "./dom.js";
import { aborted, post } from "./api.js";
import { table } from "./table.js";

const QUIET = 400; // milliseconds without a key until the preview is asked for

const policy = (spec) => (namespace) => `apiVersion: gc.winnow.dev/v1alpha1
kind: CleanupPolicy
metadata:
  name: defaults
  namespace: ${namespace}
spec:
${spec}`;

const templates = {
  "Keep finished Jobs and Pods for a day": policy("  ttlAfterFinished: 1d\n"),
  "Keep failures for a week, the rest for an hour": policy(`  ttlAfterFinished: 1h
  rules:
  - name: failures
    outcome: Failed
    ttl: 7d
`),
  "Keep the last 10 Jobs of each controller": policy(`  rules:
  - name: last-ten
    resources: [jobs.batch]
    capacity:
      maxObjects: 10
      per: Owner
`),
  "Keep objects with a label forever": policy(`  ttlAfterFinished: 1d
  rules:
  - name: keep
    selector:
      matchLabels:
        keep: "true"
    ttl: never
`),
  "Defaults of all namespaces": () => `apiVersion: gc.winnow.dev/v1alpha1
kind: ClusterCleanupPolicy
metadata:
  name: defaults
spec:
  mode: Preview
  namespaceSelector: {}
  ttlAfterFinished: 7d
`,
  "When custom resources have finished": () => `apiVersion: gc.winnow.dev/v1alpha1
kind: ResourceLifecycle
metadata:
  name: runs.example.com
spec:
  finished:
    when: "object.?status.phase.orValue('') in ['Succeeded', 'Failed']"
    succeeded: "object.status.phase == 'Succeeded'"
    at: "object.status.finishedAt"
`,
};

let home; // returns the namespace of a new policy
let text; // the CodeMirror
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
    if (name) load(templates[name](home()));
  });
  text = window.CodeMirror($("yaml"), {
    value: Object.values(templates)[0](home()), mode: "yaml", theme: "winnow", lineNumbers: true, lineWrapping: true, tabSize: 2,
    inputStyle: "contenteditable", extraKeys: { Tab: false, "Shift-Tab": false }, // Tab leads on, as everywhere.
    screenReaderLabel: "Policy as YAML", gutters: ["faults", "CodeMirror-linenumbers"],
  });
  const input = text.getInputField();
  for (const [name, value] of Object.entries({ role: "textbox", "aria-multiline": "true", "aria-describedby": "copied" })) {
    input.setAttribute(name, value);
  }
  text.on("change", () => {
    clearTimeout(typing);
    typing = setTimeout(preview, QUIET);
  });
  $("copy").addEventListener("click", copy);
  if (!$("editor").hidden) enter();
}

// load puts a policy into the editor.
export function load(yaml) {
  text.setValue(yaml);
  preview();
}

export function enter() {
  text?.refresh(); // It cannot measure its lines while it is hidden.
  if (home && previewed === undefined) preview();
}

async function copy() {
  try {
    await navigator.clipboard.writeText(text.getValue());
  } catch { // Not every browser lets a page do that.
    text.focus();
    text.execCommand("selectAll");
    set($("copied"), "Press Ctrl-C to copy the selected text.");
    return;
  }
  set($("copied"), "Copied. To apply it, save it as policy.yaml: kubectl apply -f policy.yaml");
}

async function preview() {
  clearTimeout(typing);
  asking?.abort();
  const { signal } = (asking = new AbortController());
  previewed = text.getValue();
  $("preview").setAttribute("aria-busy", "true");
  try {
    const answer = await post("preview", { namespace: home(), text: previewed }, signal);
    set($("preview"), answer.errors ? wrong(answer.errors) : said(answer));
    mark(answer.errors ?? []);
  } catch (error) {
    if (!aborted(error)) set($("preview"), h("p", { class: "failure" }, error.message));
  } finally {
    if (!signal.aborted) $("preview").setAttribute("aria-busy", "false");
  }
}

// mark marks the lines of errors.
function mark(errors) {
  text.getInputField().setAttribute("aria-invalid", errors.length > 0);
  text.clearGutter("faults");
  text.eachLine((line) => { text.removeLineClass(line, "background", "fault"); }); // What is returned would end the loop.
  for (const line of new Set(errors.map((e) => e.line).filter(Boolean))) {
    const messages = errors.filter((e) => e.line === line).map((e) => e.message);
    text.addLineClass(line - 1, "background", "fault");
    text.setGutterMarker(line - 1, "faults", h("span", { class: "fault-mark", title: messages.join("; ") }, "!"));
  }
}

// goTo leads the cursor to a line.
function goTo(line) {
  text.setCursor(line - 1, 0);
  text.focus();
}

const wrong = (errors) => [
  h("p", {}, badge("Not valid", "attention"), " The server would refuse this:"),
  h("ul", { class: "errors" }, errors.map((e) => h("li", {},
    e.line && [h("button", { type: "button", class: "line", click: () => goTo(e.line) }, `Line ${e.line}`), " "],
    e.field && h("code", {}, e.field), e.field && ": ", e.message))),
];

const warned = (warnings) => (warnings ?? []).length > 0 && h("ul", { class: "warnings" }, warnings.map((w) => h("li", {}, w)));

function said({ kind, namespace, name, review, warnings }) {
  if (!review) return [h("p", { class: "lead" }, badge("Valid", "good"), ` ${kind} ${name}`), warned(warnings)];
  const deletions = review.deletions ?? [], sample = review.sample ?? [];
  const columns = ["now", "hour", "day", "week", "held"];
  return [
    h("p", { class: "lead" },
      `Policy ${name}${namespace ? ` in namespace ${namespace}` : ""} would delete${deletions.length === 0 ? " nothing within a week." : ":"}`),
    deletions.length > 0 && h("div", { class: "scroll" },
      table("Deletions by rule", ["Resource", "Rule", "#Now", "#Hour", "#Day", "#Week", "#Held"],
        deletions.map((d) => [d.resource, d.rule, ...columns.map((c) => number(d[c]))]))),
    h("p", {}, `All policies together delete ${number(review.withDraft.now)} now and ${number(review.withDraft.week)} within a week. ` +
      `Without this policy: ${number(review.withoutDraft.now)} and ${number(review.withoutDraft.week)}.`),
    review.withDraft.held > 0 && h("p", {}, `Due within a week, but something keeps them: ${number(review.withDraft.held)}.`),
    warned(warnings),
    review.hiddenResources?.length > 0 && h("p", {}, `Not counted, because you may not list them: ${review.hiddenResources.join(", ")}`),
    !review.complete && h("p", {}, "There are more objects than were counted, so every number is a minimum."),
    sample.length > 0 && [h("h4", {}, "The first of them"), h("div", { class: "scroll" },
      table("The first of them", ["Object", "Rule", "Due", "Reason"], sample.map((o) => [
        `${o.namespace ? `${o.namespace} ` : ""}${o.resource}/${o.name}`, o.rule, o.dueTime ? when(Date.parse(o.dueTime) / 1000) : "now", o.reason ?? "",
      ])))],
  ];
}
