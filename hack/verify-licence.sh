#!/usr/bin/env bash
# Copyright 2026 The Winnow Authors.
# SPDX-License-Identifier: Apache-2.0

# Fails when a source file, script or manifest does not begin with the licence header.
set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

missing=0
while IFS= read -r file; do
  # A build constraint or "#!" may stand before the header.
  if ! head -n 5 "${file}" | grep -qE '^(//|#) Copyright [0-9]{4} The Winnow Authors\.$' ||
    ! head -n 6 "${file}" | grep -qE '^(//|#) SPDX-License-Identifier: Apache-2\.0$'; then
    echo "${file}: the licence header is missing; hack/boilerplate.go.txt has it" >&2
    missing=1
  fi
done < <(find . \( -path ./.git -o -path ./bin -o -path ./_output -o -name testdata \) -prune -o -type f   \( -name '*.go' -o -name '*.sh' -o -name '*.yaml' -o -name '*.yml' -o -name Makefile -o -path ./.ci/run \) -print)
exit "${missing}"
