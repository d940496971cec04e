#!/usr/bin/env bash
# Copyright 2026 The Winnow Authors.
# SPDX-License-Identifier: Apache-2.0

# Fails when hack/update-manifests.sh would change a file.
set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

made="$(mktemp -d -t winnow-manifests.XXXXXX)"
trap 'rm -rf "${made}"' EXIT
go run ./hack/manifests -o "${made}"
mkdir -p "${made}/chart"
cp -r artifacts/chart/winnow "${made}/chart/"
go -C hack/tools/helm-docs tool helm-docs --chart-search-root "${made}/chart" --log-level warning

failed=0
while IFS= read -r file; do
  diff -u "artifacts/${file}" "${made}/${file}" || failed=1
done < <(cd "${made}" && find . -type f -printf '%P\n')
if ((failed)); then
  echo 'verify-manifests: differs as above; change the chart, and run "make update-manifests"' >&2
  exit 1
fi
