#!/usr/bin/env bash
# Copyright 2026 The Winnow Authors.
# SPDX-License-Identifier: Apache-2.0

# Fails when a generated page of docs is not what its update script makes.
set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

page="$(mktemp -t winnow-page.XXXXXX)"
trap 'rm -f "${page}"' EXIT

failed=0
verify() { # PAGE SCRIPT
  "$2" "${page}"
  diff -u "$1" "${page}" || {
    echo "verify-generated-docs: $1 differs as above; run $2" >&2
    failed=1
  }
}
verify docs/reference/api.md hack/update-api-docs.sh
verify docs/metrics.md hack/update-metrics-docs.sh
verify docs/semantics.md hack/update-semantics-docs.sh
exit "${failed}"
