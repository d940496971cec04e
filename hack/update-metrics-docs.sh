#!/usr/bin/env bash
# Copyright 2026 The Winnow Authors.
# SPDX-License-Identifier: Apache-2.0

# Makes docs/metrics.md, or the file that is given, from the definitions of pkg/controller/metrics.
set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

made="$(mktemp -t winnow-metrics.XXXXXX)"
trap 'rm -f "${made}"' EXIT
go run ./hack/metrics-docs > "${made}"
cat "${made}" > "${1:-docs/metrics.md}"
