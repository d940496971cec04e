// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"testing"
)

// TestScript: no command of a script may fail, also if others follow, and later commands see its variables.
func TestScript(t *testing.T) {
	s, err := startShell(t.Context(), t.TempDir(), os.Environ())
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		script, output string
		status         int
	}{
		{"name=a\ntrue", "", 0},
		{"for i in 1 2; do\n  cat <<END\n$name$i\nEND\ndone\n", "a1\na2\n", 0},
		{"(exit 3)\ntrue", "", 3},
		{"for i in 1 2; do test $i = 2; done\necho b", "b\n", 1},
		{"if false; then true; fi\nfalse || true", "", 0},
	} {
		output, status, err := s.script(test.script)
		if output != test.output || status != test.status || err != nil {
			t.Errorf("%q: got %q, status %d and error %v, want %q and %d", test.script, output, status, err, test.output, test.status)
		}
	}
	if err := s.stop(); err != nil {
		t.Error(err)
	}
}
