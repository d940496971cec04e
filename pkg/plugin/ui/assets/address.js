// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// The address has what a person has chosen, so that it can be shared: "#candidates?namespace=shop&state=Held". The part before "#" has the
// token, and is never shared.

// read returns the section of the address, and what is chosen there; undefined if the address says nothing about it.
export function read() {
  const [section, query] = location.hash.slice(1).split("?");
  return { section, chosen: query === undefined ? undefined : new URLSearchParams(query) };
}

// link returns the address of a section. What is empty is left out, except that an empty namespace stands for all of them.
export function link(section, chosen = {}) {
  const given = Object.entries(chosen).filter(([name, value]) => value != null && (value !== "" || name === "namespace"));
  return `#${section}?${new URLSearchParams(given)}`;
}
