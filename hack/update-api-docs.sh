#!/usr/bin/env bash
# Copyright 2026 The Winnow Authors.
# SPDX-License-Identifier: Apache-2.0

# Makes docs/reference/api.md, or the file that is given, from the types of pkg/apis/gc/v1alpha1.
set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

page="${1:-docs/reference/api.md}"
raw="$(mktemp -t winnow-api.XXXXXX)"
trap 'rm -f "${raw}"' EXIT
go -C hack/api-docs tool crd-ref-docs --log-level=ERROR --renderer=markdown --config=config.yaml --templates-dir=templates \
  --source-path="${PWD}/pkg/apis/gc/v1alpha1" --output-path="${raw}"
# A list of values in the description of a field becomes a table below the fields. A comment in Go begins with the name of its constant. Readers know the value instead.
sed -E 's/^(\| `[A-Za-z]+` \| )[A-Z][A-Za-z]+(:| )/\1/; s/ *<br \/>(.)/ \1/g; s/<br \/>//g; s/ If ([^:|]*):  - /<br><br>If \1:<br>- /g; s/  - ([A-Z])/<br>- \1/g; s/[[:space:]]+$//' "${raw}" |
  cat -s | awk -f hack/api-docs/reasons.awk > "${page}"
