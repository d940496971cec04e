#!/usr/bin/env bash
# Copyright 2026 The Winnow Authors.
# SPDX-License-Identifier: Apache-2.0

# Fails when golangci-lint finds fault, in test/informer too, which is a module of its own; .golangci.yml holds the rules.
set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

hack/golangci-lint.sh run ./...
(cd test/informer && ../../hack/golangci-lint.sh run ./...)
