// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"strings"
	"testing"
)

const printed = `{"Action":"start"}
{"Action":"output","Test":"TestA","Output":"=== RUN TestA\n"}
{"Action":"pass","Test":"TestA/one","Elapsed":1}
{"Action":"pass","Test":"TestA","Elapsed":1}
{"Action":"fail","Test":"TestB/one","Elapsed":1}
{"Action":"fail","Test":"TestB","Elapsed":1}
{"Action":"skip","Test":"TestC","Elapsed":0}
{"Action":"fail","Elapsed":83.4}
`

func TestReadCountsTests(t *testing.T) {
	r, log := result{Patch: "1.34.4"}, bytes.Buffer{}
	if err := r.read(strings.NewReader(printed), &log); err != nil {
		t.Fatal(err)
	}
	want := result{Patch: "1.34.4", Passed: 1, Failed: []string{"TestB"}, Skipped: []string{"TestC"}, Seconds: 83.4}
	if !reflect.DeepEqual(r, want) || log.String() != "=== RUN TestA\n" {
		t.Errorf("got %+v and %q, want %+v", r, &log, want)
	}
	if err := r.read(strings.NewReader("no JSON\n"), &log); err == nil {
		t.Error("took what is no JSON")
	}
}

func TestTable(t *testing.T) {
	r := results{
		{"test/e2e", "1.37"}:     {Patch: "1.37.2", Passed: 84, Seconds: 1200},
		{"test/e2e", "1.34"}:     {Patch: "1.34.4", Passed: 12, Selected: true, Seconds: 83.4},
		{"test/cluster", "1.34"}: {Patch: "1.34.4", Passed: 3, Failed: []string{"TestB"}, Skipped: []string{"TestC"}, Seconds: 5},
	}
	const want = "| suite | 1.34.4 | 1.37.2 |\n" +
		"| --- | --- | --- |\n" +
		"| `test/cluster` | 3 passed, 1 failed, 1 skipped, 5s | not run |\n" +
		"| `test/e2e` | 12 selected tests passed, 1m23s | 84 passed, 20m0s |\n" +
		"\n" +
		"- `TestB` failed on 1.34.4.\n" +
		"- `TestC` was skipped on 1.34.4.\n"
	if got := table(r); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	content, err := json.Marshal(r)
	again := results{}
	if err != nil || json.Unmarshal(content, &again) != nil || !maps.EqualFunc(again, r, func(a, b result) bool { return reflect.DeepEqual(a, b) }) {
		t.Errorf("kept as %s, %v", content, err)
	}
}
