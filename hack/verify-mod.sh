#!/usr/bin/env bash
# Copyright 2026 The Winnow Authors.
# SPDX-License-Identifier: Apache-2.0

# Fails when go.mod or go.sum, of Winnow or of a module beside it, is not as "go mod tidy" leaves it.
set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

git ls-files '*go.mod' | while read -r mod; do
  module="$(dirname "${mod}")"
  go -C "${module}" mod tidy -diff || {
    echo "verify-mod: differs as above; run \"go -C ${module} mod tidy\"" >&2
    exit 1
  }
done
