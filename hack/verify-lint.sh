#!/usr/bin/env bash
# Copyright 2026 The Winnow Authors.
# SPDX-License-Identifier: Apache-2.0

# Fails when golangci-lint finds fault, in test/browser, test/informer and test/monitoring too, which are modules of their own;
# .golangci.yml holds the rules.
set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

hack/golangci-lint.sh run ./...
for module in test/browser test/informer test/monitoring; do
  (cd "${module}" && ../../hack/golangci-lint.sh run ./...)
done
