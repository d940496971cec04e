#!/usr/bin/env bash
# Copyright 2026 The Winnow Authors.
# SPDX-License-Identifier: Apache-2.0

# Fails when Go code is not formatted, or when a script does not parse.
set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

hack/golangci-lint.sh fmt --diff || {
  echo 'verify-fmt: not formatted as above; run "make update-fmt"' >&2
  exit 1
}
find . -path ./.git -prune -o \( -name '*.sh' -o -path ./.ci/run \) -type f -print | while IFS= read -r script; do
  bash -n "${script}"
done
