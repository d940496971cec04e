#!/usr/bin/env bash
# Copyright 2026 The Winnow Authors.
# SPDX-License-Identifier: Apache-2.0

# Fails when go.mod or go.sum, ours or that of test/browser, test/informer or test/monitoring, is not as "go mod tidy" leaves it. The modules
# below test/programs, hack/tools and hack/api-docs only pin programs and are not held to it.
set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

for module in . test/browser test/informer test/monitoring; do
  go -C "${module}" mod tidy -diff || {
    echo "verify-mod: differs as above; run \"go -C ${module} mod tidy\"" >&2
    exit 1
  }
done
