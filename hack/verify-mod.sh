#!/usr/bin/env bash
# Copyright 2026 The Winnow Authors.
# SPDX-License-Identifier: Apache-2.0

# Fails when go.mod or go.sum, of Winnow or of a module beside it, is not as "go mod tidy" leaves it, or sums of the workspace are missing.
set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

git ls-files '*go.mod' | while read -r mod; do
  module="$(dirname "${mod}")"
  go -C "${module}" mod tidy -diff || {
    echo "verify-mod: differs as above; run \"go -C ${module} mod tidy\"" >&2
    exit 1
  }
done

# Commands in the workspace add to its sums what is missing.
sums=test/programs/programs.work.sum
before="$(sha256sum "${sums}")"
GOWORK="${PWD}/test/programs/programs.work" go list -m all >/dev/null
if [[ "$(sha256sum "${sums}")" != "${before}" ]]; then
  echo "verify-mod: ${sums} was not complete, and is now" >&2
  exit 1
fi
