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
  # A message goes on in lines that are indented further; of each, the first 20 are repeated.
  awk '/^ *--- FAIL|^FAIL|^panic:|WARNING: DATA RACE/ { print; more = 0; next }
    /^ +[A-Za-z0-9_]+_test\.go:[0-9]+: / { print; more = 20; next }
    /^        / && more-- > 0 { print; next }
    { more = 0 }' "${log}" | cut -c1-300 | tail -n 120
fi
exit "${status}"
