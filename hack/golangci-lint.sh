#!/usr/bin/env bash
# Copyright 2026 The Winnow Authors.
# SPDX-License-Identifier: Apache-2.0

# Runs the golangci-lint that hack/tools/go.mod pins, here and with the arguments given. It is built from source, once for each
# version and Go release, and kept in $WINNOW_CACHE or winnow below the user's cache folder.
set -o errexit -o nounset -o pipefail

tools="$(dirname "${BASH_SOURCE[0]}")/tools"

version="$(go -C "${tools}" list -m -f '{{.Version}}' github.com/golangci/golangci-lint/v2)"
cache="${WINNOW_CACHE:-${XDG_CACHE_HOME:-${HOME}/.cache}/winnow}/tools"
# A linter reads export data of its own Go release alone, hence the release in the name.
program="${cache}/golangci-lint-${version}-$(go env GOVERSION)"

if [[ ! -x "${program}" ]]; then
  echo "building golangci-lint ${version}; this takes some minutes the first time" >&2
  mkdir -p "${cache}"
  unfinished="$(mktemp "${program}.XXXXXX")"
  trap 'rm -f "${unfinished}"' EXIT
  CGO_ENABLED=0 go -C "${tools}" build -trimpath -ldflags "-s -w" -o "${unfinished}" \
    github.com/golangci/golangci-lint/v2/cmd/golangci-lint
  mv "${unfinished}" "${program}"
  trap - EXIT
fi
exec "${program}" "$@"
