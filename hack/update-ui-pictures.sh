#!/usr/bin/env bash
# Copyright 2026 The Winnow Authors.
# SPDX-License-Identifier: Apache-2.0

# Draws docs/plugin/*.png: the page of kubectl winnow ui in both colour schemes, on a real cluster.
set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

all="$(mktemp -d)"
trap 'rm -rf "${all}"' EXIT
go -C test/browser test -count=1 -run 'TestSchemes$' -pictures="${all}" .
mkdir -p docs/plugin
for section in overview candidates policies editor; do
  for scheme in light dark; do
    cp "${all}/${section}-${scheme}.png" docs/plugin/
  done
done
