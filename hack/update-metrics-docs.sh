#!/usr/bin/env bash
# Copyright 2026 The Winnow Authors.
# SPDX-License-Identifier: Apache-2.0

# Makes docs/metrics.md from the definitions of pkg/controller/metrics.
set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

page="$(mktemp -t winnow-metrics.XXXXXX)"
trap 'rm -f "${page}"' EXIT
go run ./hack/metrics-docs > "${page}"
cat "${page}" > docs/metrics.md
