// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

import { $, h, number, set } from "./dom.js";
import { aborted, get } from "./api.js";
import { link, read } from "./address.js";
import * as approval from "./approval.js";
import * as attention from "./attention.js";
import * as overview from "./overview.js";
import * as candidates from "./candidates.js";
import * as policies from "./policies.js";
import * as history from "./history.js";
import * as editor from "./editor.js";

// Sections may have enter, which is called when a person opens them; choose, which takes over what an address says; and chosen, which
// returns what it should say.
const views = { overview, candidates, policies, history, editor };
let current = "overview";
let place;
let namespace = "";
let shown; // the namespace of what the page shows
let again = 30; // seconds until the page reads again
let readAt = 0;
let reading; // the AbortController of what is under way

function fail(error) {
  set($("failure"), error ? error.message : "");
  $("failure").hidden = !error;
  $("main").classList.toggle("unread", Boolean(error) && shown !== namespace); // What is there is of another namespace.
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
    shown = namespace;
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
  attention.show(all, own);
  set($("count-candidates"), number(all.total));
  set($("count-policies"), own.waiting ? `${number(own.waiting)} waiting` : number(own.total));
  $("count-policies").classList.toggle("attention", own.waiting > 0);
  set($("updated"), `Read at ${new Date(all.time).toLocaleTimeString()}`);
}

// remember writes what a person has chosen into the address, unless that leads to another section already: route does it then.
function remember() {
  const { section } = read();
  const leaving = Object.hasOwn(views, section) && section !== current;
  if (place && !leaving) window.history.replaceState(null, "", link(current, { namespace, ...views[current].chosen?.() }));
}

function choose(name) {
  if (name === namespace) return;
  namespace = name;
  $("namespace").value = name;
  refresh(again);
}

// route shows the section that the address names, as the address says.
function route(moveFocus) {
  const { section, chosen } = read();
  if (section && !Object.hasOwn(views, section)) return;
  current = section || "overview";
  for (const other of Object.keys(views)) {
    $(other).hidden = other !== current;
    const tab = document.querySelector(`nav a[href="#${other}"]`);
    if (other === current) tab.setAttribute("aria-current", "page");
    else tab.removeAttribute("aria-current");
  }
  const title = $(`${current}-title`);
  document.title = `${title.textContent} – Winnow`;
  if (chosen && place) {
    if (chosen.has("namespace")) choose(chosen.get("namespace"));
    views[current].choose?.(chosen, namespace);
  }
  views[current].enter?.();
  remember();
  if (moveFocus) {
    set($("done"), "");
    scrollTo(0, 0);
    title.focus({ preventScroll: true });
  }
}

// tick reads again once the page is old, unless nobody looks at it or a dialog is open.
function tick() {
  const old = Date.now() - readAt > again * 1000;
  if (old && !reading && !document.hidden && !document.querySelector("dialog[open]")) refresh(again);
}

async function start() {
  const edit = (text) => { editor.load(text); location.hash = "#editor"; };
  const afresh = () => refresh(0);
  approval.prepare({ refresh: afresh, namespace: () => namespace });
  policies.prepare({ edit });
  candidates.prepare({ refresh: afresh, remember });
  overview.prepare({ remember });
  history.prepare({ remember });
  route(false);
  try {
    place = await get("place", {});
  } catch (error) {
    set($("updated"), "Not connected");
    fail(error);
    return;
  }
  const { chosen } = read();
  namespace = chosen?.get("namespace") ?? place.namespace;
  set($("context"), place.context || "(none)");
  $("namespace").value = namespace;
  set($("namespaces"), (place.namespaces ?? []).map((name) => h("option", { value: name })));
  editor.prepare(() => namespace || place.default);
  $("namespace").addEventListener("change", () => {
    choose($("namespace").value.trim());
    remember();
  });
  $("refresh").addEventListener("click", afresh);
  document.addEventListener("visibilitychange", tick);
  setInterval(tick, 1000);
  if (chosen) views[current].choose?.(chosen, namespace);
  remember();
  await refresh(again);
}

addEventListener("hashchange", () => route(true));
start();
