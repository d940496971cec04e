#!/usr/bin/env bash
# Copyright 2026 The Winnow Authors.
# SPDX-License-Identifier: Apache-2.0

# Draws docs/monitoring/board.svg: the panels of artifacts/monitoring/dashboard.json with what a real cluster shows for eight minutes.
set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

go test ./test/artifacts -count=1 -timeout 30m -run 'TestMonitoring$' -scrape-for=8m -draw="${PWD}/docs/monitoring/board.svg"
