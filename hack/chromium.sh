#!/usr/bin/env bash
# Copyright 2026 The Winnow Authors.
# SPDX-License-Identifier: Apache-2.0

# Prints the path of a Chromium for the tests of the page of kubectl winnow ui: $CHROMIUM, or one in PATH. With --install, and as root with
# apt-get, installs the package chromium if there is none.
set -o errexit -o nounset -o pipefail

find_chromium() {
  local name
  for name in ${CHROMIUM:+"${CHROMIUM}"} chromium chromium-browser google-chrome google-chrome-stable; do
    command -v "${name}" && return
  done
  return 1
}

find_chromium && exit
if [[ "${1:-}" == --install && "$(id -u)" == 0 ]] && command -v apt-get >/dev/null; then
  echo "installing the package chromium" >&2
  { apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends chromium; } >&2
  find_chromium && exit
fi
echo "There is no Chromium: install the package chromium or google-chrome, or set CHROMIUM to the path of one." >&2
exit 1
