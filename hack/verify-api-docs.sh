#!/usr/bin/env bash
# Copyright 2026 The Winnow Authors.
# SPDX-License-Identifier: Apache-2.0

# Fails when docs/reference/api.md is not what hack/update-api-docs.sh makes from pkg/apis/gc/v1alpha1.
set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

page="$(mktemp -t winnow-api.XXXXXX)"
trap 'rm -f "${page}"' EXIT
hack/update-api-docs.sh "${page}"
diff -u docs/reference/api.md "${page}" || {
  echo 'verify-api-docs: docs/reference/api.md differs as above; run hack/update-api-docs.sh' >&2
  exit 1
}
