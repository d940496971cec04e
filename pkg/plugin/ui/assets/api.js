// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Requests go to the folder of the page, whose name is the token.

async function answer(response) {
  const kind = response.headers.get("Content-Type") ?? "";
  if (!kind.startsWith("application/json")) throw new Error((await response.text()).trim() || response.statusText);
  const value = await response.json();
  if (!response.ok) throw new Error(value.error ?? response.statusText);
  return value;
}

async function send(path, options) {
  try {
    return await answer(await fetch(path, { ...options, cache: "no-store", credentials: "omit", redirect: "error" }));
  } catch (error) {
    if (error instanceof TypeError) throw new Error("kubectl winnow ui does not answer. Is it still running?");
    throw error;
  }
}

export const get = (name, parameters, signal) => send(`api/${name}?${new URLSearchParams(parameters)}`, { signal });

export const post = (name, body, signal) =>
  send(`api/${name}`, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body), signal });

export const aborted = (error) => error.name === "AbortError";
