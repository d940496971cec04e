#!/usr/bin/env bash
# Copyright 2026 The Winnow Authors.
# SPDX-License-Identifier: Apache-2.0

# Fails when the generated code is not what hack/update-codegen.sh makes of pkg/apis. It generates in a copy, so the checkout
# stays as it is.
set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

copy="$(mktemp -d -t winnow-verify-codegen.XXXXXX)"
trap 'rm -rf "${copy}"' EXIT
cp -R go.mod go.sum hack pkg "${copy}/"

# What has no source any more must go too, hence nothing generated is copied along.
find "${copy}/pkg" -name 'zz_generated.*.go' -not -path '*/generated/*' -delete
find "${copy}/pkg/generated" -name '*.go' -not -path '*/openapi/*' -delete

log="${copy}/log"
"${copy}/hack/update-codegen.sh" > "${log}" 2>&1 || {
  cat "${log}" >&2
  echo 'verify-codegen: hack/update-codegen.sh failed as above' >&2
  exit 1
}
diff -Naur pkg "${copy}/pkg" || {
  echo 'verify-codegen: the generated code differs as above; run "make update"' >&2
  exit 1
}
