// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Elements are made here alone, and text enters them only as text. Names and messages come from everybody who writes to the cluster.

const SVG = "http://www.w3.org/2000/svg";

const escaped = (c) => {
  const code = c.codePointAt(0);
  if (c === "\n") return "\\n";
  if (c === "\t") return "\\t";
  return code < 0x80 ? "\\x" + code.toString(16).padStart(2, "0") : "\\u" + code.toString(16).padStart(4, "0");
};

// safe escapes control characters and invisible ones, such as a change of direction, as the commands do on a terminal.
export const safe = (text) => String(text).replace(/[\p{Cc}\p{Cf}]/gu, escaped);

// h makes an element. Children are elements and texts; what is null or false is left out.
export function h(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

// s makes an element of a picture.
export function s(tag, attributes, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, safe(value));
  }
  element.append(...texts(children));
  return element;
}

const texts = (children) => children.flat(Infinity).filter((c) => c != null && c !== false).map((c) => (c instanceof Node ? c : safe(c)));

// set replaces what an element contains. If a link or a button in it has the focus, the one in its place gets it.
export function set(element, ...children) {
  const before = focusable(element).indexOf(document.activeElement);
  element.replaceChildren(...texts(children));
  if (before >= 0) focusable(element)[before]?.focus({ preventScroll: true });
}

const focusable = (element) => [...element.querySelectorAll("a, button, summary")];

export const $ = (id) => document.getElementById(id);

const numbers = new Intl.NumberFormat("en");
export const number = (n) => numbers.format(n);

export const plural = (n, one, many = one + "s") => `${number(n)} ${n === 1 ? one : many}`;

// The units that kubectl shows of durations up to a number of seconds, as pkg/humantime does for the plugin and the server.
const day = ["d", 86400], hour = ["h", 3600], minute = ["m", 60], second = ["s", 1];
const units = [
  [120, [second]], [600, [minute, second]], [3 * 3600, [minute]], [8 * 3600, [hour, minute]], [48 * 3600, [hour]], [8 * 86400, [day, hour]],
  [Infinity, [day]],
];
const unitsOf = (seconds) => units.find(([end]) => seconds < end)[1];

// span formats seconds, rounded to the nearest of the smallest unit that it shows.
export function span(seconds) {
  const [, least] = unitsOf(seconds).at(-1);
  let rest = Math.round(seconds / least) * least, out = "";
  for (const [unit, size] of unitsOf(rest)) {
    const n = Math.floor(rest / size);
    if (n > 0) out += n + unit;
    rest -= n * size;
  }
  return out || "0s";
}

// when formats a time in seconds since 1970 with its distance from now.
export function when(seconds) {
  if (!seconds) return "–";
  const left = seconds - Date.now() / 1000;
  return left > 0 ? "in " + span(Math.max(left, 1)) : span(-left) + " ago";
}

// ago formats the time of something that has happened, which is never in the future, although clocks differ.
export const ago = (seconds) => when(seconds && Math.min(seconds, Date.now() / 1000));

// time is an element with a time in seconds since 1970, and past one with the time of something that has happened.
export const time = (seconds, distance = when) => (seconds ? h("time", { datetime: instant(seconds), title: instant(seconds) }, distance(seconds)) : "–");
export const past = (seconds) => time(seconds, ago);

export const instant = (seconds) => new Date(seconds * 1000).toISOString().replace(".000", "");

export function size(bytes) {
  let value = bytes;
  for (const unit of ["B", "KiB", "MiB", "GiB"]) {
    if (value < 1024 || unit === "GiB") return unit === "B" ? `${value} B` : `${value.toFixed(1)} ${unit}`;
    value /= 1024;
  }
  return "";
}

// badge shows a word that may stand out. Its meaning is the word, never the colour alone.
export const badge = (word, kind = "plain") => h("span", { class: "badge " + kind }, word);
