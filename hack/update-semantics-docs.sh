#!/usr/bin/env bash
# Copyright 2026 The Winnow Authors.
# SPDX-License-Identifier: Apache-2.0

# Makes docs/semantics.md of the named cases of pkg/controller/internal/model.
set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

page="$(mktemp -t winnow-semantics.XXXXXX)"
trap 'rm -f "${page}"' EXIT
go run ./hack/semantics-docs > "${page}"
cat "${page}" > docs/semantics.md
