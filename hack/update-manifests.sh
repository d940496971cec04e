#!/usr/bin/env bash
# Copyright 2026 The Winnow Authors.
# SPDX-License-Identifier: Apache-2.0

# Makes the manifests in artifacts from the chart in artifacts/chart/winnow, and the README of the chart from its values.
set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

go run ./hack/manifests -o artifacts
go -C hack/tools/helm-docs tool helm-docs --chart-search-root "${PWD}/artifacts/chart" --log-level warning
