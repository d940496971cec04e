// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"strings"
	"testing"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
)

// TestFaults: everything that is wrong with a text is said, unknown fields and wrong values alike.
func TestFaults(t *testing.T) {
	head := "apiVersion: gc.winnow.dev/v1alpha1\nkind: CleanupPolicy\nmetadata: {name: a}\nspec:\n"
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"unknown fields and wrong values": {head + "  tll: 1h\n  ttlAfterFinished: 1 h\n", []string{`unknown field "spec.tll"`, "spec.ttlAfterFinished"}},
		"unknown fields alone":            {head + "  tll: 1h\n  more: 1\n", []string{`unknown field "spec.more"`, `unknown field "spec.tll"`}},
		"no YAML":                         {"spec: [", []string{"yaml"}},
		"nothing":                         {"# nothing\n", []string{"write one policy"}},
		"two policies":                    {head + "---\n" + head, []string{"write one policy"}},
		"a Job":                           {"apiVersion: batch/v1\nkind: Job\n", []string{"no policy"}},
	} {
		object, faults := Faults(t.Context(), []byte(c.text), "team-a")
		if object != nil || len(faults) != len(c.want) {
			t.Errorf("%s: %v, %v", name, object, faults)
			continue
		}
		for i, want := range c.want {
			if !strings.Contains(faults[i].Error(), want) {
				t.Errorf("%s: %v, want %q", name, faults[i], want)
			}
		}
	}
	object, faults := Faults(t.Context(), []byte("apiVersion: gc.winnow.dev/v1alpha1\nkind: ResourceLifecycle\nmetadata: {name: certificates.cert-manager.io}\n"+
		"spec: {dependents: Independent}\n"), "team-a")
	if _, ok := object.(*gc.ResourceLifecycle); !ok || len(faults) > 0 {
		t.Errorf("%T, %v", object, faults)
	}
}

// TestLines: the line of a field, or of what is around it.
func TestLines(t *testing.T) {
	lines := NewLines([]byte(`# A comment.
---
kind: CleanupPolicy
metadata:
  labels: {app.example.com/name: x}
spec:
  rules:
  - name: a
  - name: b
    selector:
      matchLabels:
        x: "y"
`))
	for field, want := range map[string]int{
		"kind": 3, "metadata": 4, "metadata.name": 4, "spec.rules": 7, "spec.rules[0].name": 8, "spec.rules[0].ttl": 8, "spec.rules[1]": 9, "spec.rules[1].name": 9,
		"spec.rules[1].selector.matchLabels[x]": 12, "metadata.labels[app.example.com/name]": 5, "spec.rules[7].ttl": 7, "nowhere": 0, "spec..": 6,
	} {
		if got := lines.Of(field, ""); got != want {
			t.Errorf("%s is on line %d, want %d", field, got, want)
		}
	}
	if got := NewLines([]byte("a: [")).Of("a", "yaml: line 7: did not find"); got != 7 {
		t.Errorf("the message names line 7, got %d", got)
	}
	if got := NewLines(nil).Of("", "nothing"); got != 0 {
		t.Errorf("got line %d", got)
	}
}
