// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

import { $, h, number, set } from "./dom.js";
import { aborted, get } from "./api.js";
import * as overview from "./overview.js";
import * as candidates from "./candidates.js";
import * as policies from "./policies.js";
import * as history from "./history.js";
import * as editor from "./editor.js";

const views = { overview, candidates, policies, history, editor };
let place;
let namespace = "";
let again = 30; // seconds until the page reads again
let readAt = 0;
let reading; // the AbortController of what is under way

function fail(error) {
  set($("failure"), error ? error.message : "");
  $("failure").hidden = !error;
}

function showNotes(notes) {
  set($("notes"), notes.map((note) => h("li", {}, note)));
  $("notes").hidden = notes.length === 0;
}

function noteMode() {
  if (place.drafts) return ["The policies of the files given with -f count, each as if its mode were Enforce."];
  return place.winnow ? [] : ["There is no Winnow in this cluster, so nothing is deleted. The editor shows what a policy would delete."];
}

// refresh shows what is at most so many seconds old.
async function refresh(age) {
  reading?.abort();
  const mine = (reading = new AbortController());
  set($("updated"), "Reading the cluster …");
  history.show(namespace);
  try {
    const [all, own] = await Promise.all([
      get("overview", { namespace, age }, mine.signal),
      get("policies", { namespace }, mine.signal),
    ]);
    again = all.again;
    show(all, own);
    fail();
  } catch (error) {
    if (aborted(error)) return;
    set($("updated"), "Not up to date");
    fail(error);
  } finally {
    if (reading === mine) {
      reading = undefined;
      readAt = Date.now();
    }
  }
}

function show(all, own) {
  showNotes([...noteMode(), ...(all.notes ?? []), ...(own.notes ?? [])].filter((n, i, list) => list.indexOf(n) === i));
  overview.show(all);
  candidates.show(all, namespace);
  policies.show(own);
  set($("count-candidates"), number(all.total));
  set($("count-policies"), own.waiting ? `${number(own.waiting)} waiting` : number(own.total));
  $("count-policies").classList.toggle("attention", own.waiting > 0);
  set($("updated"), `Read at ${new Date(all.time).toLocaleTimeString()}`);
}

// route shows the section that the address names.
function route(moveFocus) {
  const name = location.hash.slice(1);
  if (location.hash && !(name in views)) return;
  const current = name || "overview";
  for (const other of Object.keys(views)) {
    $(other).hidden = other !== current;
    const link = document.querySelector(`nav a[href="#${other}"]`);
    if (other === current) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  const title = $(`${current}-title`);
  document.title = `${title.textContent} – Winnow`;
  views[current].enter?.();
  if (moveFocus) {
    scrollTo(0, 0);
    title.focus({ preventScroll: true });
  }
}

// tick reads again once the page is old, unless nobody looks at it or a dialog is open.
function tick() {
  const old = Date.now() - readAt > again * 1000;
  if (old && !reading && !document.hidden && !$("approve").open) refresh(again);
}

async function start() {
  policies.prepare({ refresh: () => refresh(0), edit: (text) => { editor.load(text); location.hash = "#editor"; } });
  candidates.prepare();
  overview.prepare();
  history.prepare();
  try {
    place = await get("place", {});
  } catch (error) {
    set($("updated"), "Not connected");
    fail(error);
    return;
  }
  namespace = place.namespace;
  set($("context"), place.context || "(none)");
  $("namespace").value = namespace;
  set($("namespaces"), (place.namespaces ?? []).map((name) => h("option", { value: name })));
  editor.prepare(() => namespace || place.default);
  $("namespace").addEventListener("change", () => {
    namespace = $("namespace").value.trim();
    refresh(again);
  });
  $("refresh").addEventListener("click", () => refresh(0));
  document.addEventListener("visibilitychange", tick);
  setInterval(tick, 1000);
  await refresh(again);
}

addEventListener("hashchange", () => route(true));
route(false);
start();
