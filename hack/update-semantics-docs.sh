#!/usr/bin/env bash
# Copyright 2026 The Winnow Authors.
# SPDX-License-Identifier: Apache-2.0

# Makes docs/semantics.md, or the file that is given, from the named cases of pkg/controller/internal/model.
set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

made="$(mktemp -t winnow-semantics.XXXXXX)"
trap 'rm -f "${made}"' EXIT
go run ./hack/semantics-docs > "${made}"
cat "${made}" > "${1:-docs/semantics.md}"
