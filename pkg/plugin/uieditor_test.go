// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/winnow-dev/winnow/pkg/plugin/files"
	"github.com/winnow-dev/winnow/pkg/plugin/ui"
)

// TestFieldErrors: the page shows every error, with its field and its line, in the order of the lines.
func TestFieldErrors(t *testing.T) {
	head := "apiVersion: gc.winnow.dev/v1alpha1\nkind: CleanupPolicy\nmetadata: {name: a}\nspec:\n"
	for text, want := range map[string][]ui.FieldError{
		head + "  ttlAfterFinished: 1 h\n  tll: 1h\n": {{Field: "spec.ttlAfterFinished", Line: 5}, {Field: "spec.tll", Line: 6}},
		head + "  rules:\n  - name: a\n":              {{Field: "spec.rules[0].ttl", Line: 6}},
		head + "  mode: [\n":                          {{Line: 5}},
		"":                                            {{}},
	} {
		_, faults := files.Faults(t.Context(), []byte(text), "team-a")
		got := fieldErrors(text, faults)
		if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(ui.FieldError{}, "Message")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
		for _, e := range got {
			if e.Message == "" {
				t.Errorf("%s: an error has no message", text)
			}
		}
	}
}
