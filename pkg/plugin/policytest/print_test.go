// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package policytest

import (
	"bytes"
	"encoding/xml"
	"strings"
	"testing"

	"github.com/winnow-dev/winnow/pkg/plugin/internal/plugintest"
)

func summary() *Summary {
	s := &Summary{}
	s.Add(Result{File: "a.test.yaml", Objects: []ObjectResult{{Object: "jobs.batch/a", Namespace: "team-a", State: "Due"}}})
	s.Add(Result{File: "b.test.yaml", Objects: []ObjectResult{
		{Object: "jobs.batch/a", Namespace: "team-a", State: "Due"},
		{
			Object: "jobs.batch/" + plugintest.Hostile, Namespace: "team-a", State: "Due", Message: "its TTL has ended",
			Failures: []string{"state is Due, want Held", "rule is not set, want x"}, Add: "- {}",
			Hint: "its owner is not in the files",
		},
	}})
	s.Add(Result{File: "c.test.yaml", Error: `unknown field "<x>"`})
	return s
}

func TestPrint(t *testing.T) {
	var out bytes.Buffer
	summary().Print(&out)
	plugintest.Lines(t, out.String(),
		"ok     a.test.yaml",
		"FAIL   b.test.yaml",
		`       jobs.batch/x\x1b[2J\ny in namespace team-a: state is Due, want Held; rule is not set, want x`,
		"         Its TTL has ended.",
		"         Its owner is not in the files.",
		"         If that is right, add to expect: - {}",
		`ERROR  c.test.yaml: unknown field "<x>"`,
		"",
		"1 passed, 1 failed, 1 could not run")
}

// TestPrintJUnit: a reader of JUnit's XML finds each object, and counts as many failures as there are.
func TestPrintJUnit(t *testing.T) {
	var out bytes.Buffer
	if err := summary().PrintJUnit(&out); err != nil {
		t.Fatal(err)
	}
	var got junitSuites
	if err := xml.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatalf("%v:\n%s", err, &out)
	}
	if got.Tests != 4 || got.Failures != 1 || got.Errors != 1 || len(got.Suites) != 3 {
		t.Errorf("%+v", got)
	}
	const wantText = "Its TTL has ended.\nIts owner is not in the files.\nIf that is right, add to expect: - {}"
	failed, unreadable := got.Suites[1].Cases[1], got.Suites[2].Cases[0]
	const message = "state is Due, want Held; rule is not set, want x"
	if failed.Failure == nil || failed.Failure.Message != message || failed.Failure.Text != wantText {
		t.Errorf("%+v", failed.Failure)
	}
	if unreadable.Error == nil || unreadable.Error.Message != `unknown field "<x>"` || unreadable.Failure != nil {
		t.Errorf("%+v", unreadable)
	}
	if strings.ContainsRune(out.String(), '\x1b') {
		t.Error("a control character is in the XML")
	}
}
