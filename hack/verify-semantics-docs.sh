#!/usr/bin/env bash
# Copyright 2026 The Winnow Authors.
# SPDX-License-Identifier: Apache-2.0

# Fails when docs/semantics.md is not what hack/update-semantics-docs.sh makes of the named cases.
set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

page="$(mktemp -t winnow-semantics.XXXXXX)"
trap 'rm -f "${page}"' EXIT
go run ./hack/semantics-docs > "${page}"
diff -u docs/semantics.md "${page}" || {
  echo 'verify-semantics-docs: docs/semantics.md differs as above; run hack/update-semantics-docs.sh' >&2
  exit 1
}
