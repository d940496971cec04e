#!/usr/bin/env bash
# Copyright 2026 The Winnow Authors.
# SPDX-License-Identifier: Apache-2.0

# Fails when golangci-lint finds fault in any module of this repository that has Go code; .golangci.yml holds the rules.
set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
root="${PWD}"

git ls-files --cached --others --exclude-standard go.mod '*/go.mod' | while read -r file; do
  cd "${root}/$(dirname "${file}")"
  if [[ -n "$(go list ./... 2>/dev/null)" ]]; then
    "${root}/hack/golangci-lint.sh" run ./... </dev/null
  fi
done
