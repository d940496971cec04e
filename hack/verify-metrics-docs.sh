#!/usr/bin/env bash
# Copyright 2026 The Winnow Authors.
# SPDX-License-Identifier: Apache-2.0

# Fails when docs/metrics.md is not what hack/update-metrics-docs.sh makes from pkg/controller/metrics.
set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

page="$(mktemp -t winnow-metrics.XXXXXX)"
trap 'rm -f "${page}"' EXIT
go run ./hack/metrics-docs > "${page}"
diff -u docs/metrics.md "${page}" || {
  echo 'verify-metrics-docs: docs/metrics.md differs as above; run hack/update-metrics-docs.sh' >&2
  exit 1
}
