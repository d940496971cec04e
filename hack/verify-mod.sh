#!/usr/bin/env bash
# Copyright 2026 The Winnow Authors.
# SPDX-License-Identifier: Apache-2.0

# Fails when go.mod or go.sum is not as "go mod tidy" leaves it.
set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

for module in . hack/tools; do
  go -C "${module}" mod tidy -diff || {
    echo "verify-mod: run \"go -C ${module} mod tidy\"" >&2
    exit 1
  }
done
