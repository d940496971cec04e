// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

import { $, badge, h, set } from "./dom.js";
import { aborted, get, post } from "./api.js";

const durations = { "1d": "for a day", "7d": "for a week", "30d": "for 30 days", forever: "forever" };

export const kinds = { Due: "warn", Held: "attention", Terminating: "warn", Waiting: "info", Notified: "info", Kept: "plain" };

let page;
let object; // that is explained
let explaining;

export function prepare(given) {
  page = given;
  $("release-cancel").addEventListener("click", () => $("release").close());
  $("release-confirm").addEventListener("click", () => {
    $("release").close();
    change("release", {}, "The policies decide again.");
  });
  describe();
}

// explain shows why an object is kept or deleted.
export async function explain(of) {
  object = of;
  explaining?.abort();
  const { signal } = (explaining = new AbortController());
  $("explanation").setAttribute("aria-busy", "true");
  try {
    describe(await get("explanation", named(of), signal));
  } catch (error) {
    if (!aborted(error)) set($("explanation"), h("h3", {}, of.name), h("p", { class: "failure" }, error.message));
  } finally {
    if (!signal.aborted) $("explanation").setAttribute("aria-busy", "false");
  }
}

const named = ({ resource, namespace, name }) => ({ resource, namespace, name });

// describe shows an explanation, or how to get one.
export function describe(e) {
  if (!e) {
    set($("explanation"), h("h3", {}, "Why"),
      h("p", { class: "empty" }, "Choose an object to see when it is deleted, by what, and what would keep it."));
    return;
  }
  set($("explanation"),
    h("h3", {}, e.title),
    e.state && h("p", {}, badge(e.state, kinds[e.state]), " ", h("span", { class: "reason" }, e.reason)),
    e.message && h("p", { class: "message" }, e.message),
    e.mayKeep && actions(e),
    h("dl", { class: "facts" }, (e.facts ?? []).map((f) => [
      h("dt", {}, f.name), h("dd", {}, f.text, (f.details ?? []).map((d) => h("p", {}, d))),
    ])),
    (e.lines ?? []).map((line) => h("p", {}, line)));
}

// actions has the buttons that do what kubectl winnow keep and release do.
function actions(e) {
  return h("div", { class: "actions keep" },
    e.state && [
      h("label", { for: "keep-for", class: "hidden" }, "How long to keep it"),
      h("select", { id: "keep-for" }, Object.entries(durations).map(([value, text]) => h("option", { value }, text))),
      h("button", { type: "button", id: "keep", click: () => change("keep", { for: $("keep-for").value }, "It is kept.") }, "Keep"),
    ],
    e.kept && h("button", { type: "button", id: "release-ask", click: () => ask(e) }, "Release …"));
}

// ask shows which annotations go, and asks: the object may be deleted at once.
function ask(e) {
  set($("release-title"), `Release ${object.name}?`);
  set($("release-annotations"), Object.entries(e.kept).map(([name, value]) => h("li", {}, h("code", {}, `${name}: ${value}`))));
  $("release").showModal();
  $("release-cancel").focus();
}

// change keeps or releases the object, and explains it again.
async function change(action, more, done) {
  const of = object;
  set($("done"), "");
  try {
    await post(action, { ...named(of), ...more });
    if (object === of) await explain(of);
    set($("done"), `${of.resource}/${of.name}: ${done}`);
    page.refresh();
  } catch (error) {
    set($("done"), `${of.resource}/${of.name}: ${error.message}`);
  }
}
