// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Searches the sections in index.js: each word must occur, and counts more in a heading or in the title of a page.
"use strict";

const most = 20;
const root = document.currentScript.src; // It is beside the home page.
const input = document.querySelector("input[type=search]");
const list = document.getElementById("found");

const inText = sections.map((s) => [s.heading, s.page, s.text].map((text) => text.toLowerCase()));

function score([heading, page, text], words) {
  let sum = 0;
  for (const word of words) {
    const points = 8 * heading.includes(word) + 4 * page.includes(word) + Math.min(2, text.split(word).length - 1);
    if (points === 0) return 0;
    sum += points;
  }
  return sum;
}

function search() {
  const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
  const found = words.length === 0 ? [] : sections
    .map((section, i) => ({ section, points: score(inText[i], words) }))
    .filter((one) => one.points > 0)
    .sort((a, b) => b.points - a.points || a.section.text.length - b.section.text.length)
    .slice(0, most);
  list.replaceChildren(...found.map(({ section }) => {
    const link = document.createElement("a");
    link.href = new URL("." + section.url, root);
    link.textContent = section.heading === section.page ? section.page : `${section.page}: ${section.heading}`;
    const item = document.createElement("li");
    item.append(link);
    return item;
  }));
  if (words.length > 0 && found.length === 0) list.textContent = "Nothing found.";
}

input.addEventListener("input", search);
