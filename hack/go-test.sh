#!/usr/bin/env bash
# Copyright 2026 The Winnow Authors.
# SPDX-License-Identifier: Apache-2.0

# Runs "go test" with the arguments. If tests fail, the last lines repeat which and where: the logs of clusters bury them otherwise.
set -o errexit -o nounset -o pipefail

log="$(mktemp)"
trap 'rm -f "${log}"' EXIT

status=0
go test "$@" 2>&1 | tee "${log}" || status=$?
if ((status)); then
  echo "What failed:"
  grep -E '^ *--- FAIL|^FAIL|^panic:|^ +[A-Za-z0-9_]+_test\.go:[0-9]+: |WARNING: DATA RACE' "${log}" | cut -c1-300 | tail -n 60 || true
fi
exit "${status}"
