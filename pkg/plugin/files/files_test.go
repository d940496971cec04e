// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
)

const somePolicies = `# A comment alone.
---
{apiVersion: gc.winnow.dev/v1alpha1, kind: CleanupPolicy, metadata: {name: a}, spec: {ttlAfterFinished: 1h}}
---
apiVersion: gc.winnow.dev/v1alpha1
kind: CleanupPolicy
metadata: {name: b, namespace: team-b}
---
apiVersion: gc.winnow.dev/v1alpha1
kind: ClusterCleanupPolicy
metadata: {name: c}
spec: {mode: Preview, namespaceSelector: {}}
`

func TestDrafts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policies.yaml")
	if err := os.WriteFile(path, []byte(somePolicies), 0o600); err != nil {
		t.Fatal(err)
	}
	f := Flag{Names: []string{path, "-"}}
	third := `{"apiVersion":"gc.winnow.dev/v1alpha1","kind":"CleanupPolicy","metadata":{"name":"d"}}`
	got, err := f.Read(t.Context(), strings.NewReader(third), "team-a")
	if err != nil || len(got.Policies) != 3 || len(got.ClusterPolicies) != 1 {
		t.Fatalf("%+v, %v", got, err)
	}
	for i, want := range []string{"team-a/a", "team-b/b", "team-a/d"} {
		if p := got.Policies[i]; p.Namespace+"/"+p.Name != want || p.Spec.AnnotationTTL != gc.AnnotationExtendOnly {
			t.Errorf("policy %d is %s/%s with %q, want %s", i, p.Namespace, p.Name, p.Spec.AnnotationTTL, want)
		}
	}
}

func TestWrongDrafts(t *testing.T) {
	policy := func(spec string) string {
		return "{apiVersion: gc.winnow.dev/v1alpha1, kind: CleanupPolicy, metadata: {name: a}, spec: {" + spec + "}}"
	}
	for content, want := range map[string]string{
		"":                            "the file has no policy",
		"# nothing":                   "the file has no policy",
		"{kind: Job, apiVersion: v1}": "Job of v1 is no policy; write apiVersion: gc.winnow.dev/v1alpha1, and kind: CleanupPolicy or",
		"{kind: CleanupPolicy, apiVersion: gc.winnow.dev/v1}": "CleanupPolicy of gc.winnow.dev/v1 is no policy; write",
		policy("ttlAfterFinishd: 1h"):                         `unknown field "spec.ttlAfterFinishd"; did you mean "ttlAfterFinished"?`,
		policy("ttlAfterFinished: 1"):                         `spec.ttlAfterFinished: Invalid value: 1: must be a string with a unit, for example "1s" or "1h"`,
		policy("rules: [{named: a, tll: 1h}]"):                `unknown field "spec.rules[0].named"; did you mean "name"?, unknown field "spec.rules[0].tll"; did you mean "ttl"?`,
		policy("rules: [{selector: {app: a}}]"):               `unknown field "spec.rules[0].selector.app"; did you mean matchLabels: {app: ...}?`,
		policy("guardrails: {maxTTL: 1h}"):                    `unknown field "spec.guardrails"; it is a field of the spec of a ClusterCleanupPolicy`,
		policy("ttlSecondsAfterFinished: 60, mode: enforce"):  `"ttlAfterFinished", with a unit, such as "1h"?, spec.mode: Unsupported value: "enforce"`,
		policy("ttlAfterFinished: 1 h"):                       `CleanupPolicy.gc.winnow.dev "a" is invalid: spec.ttlAfterFinished`,
		policy("mode: enforce"):                               `did you mean "Enforce"?`,
		policy("mode: Enforce, mode: Enforce"):                `key "mode" already set`,
		"{apiVersion: gc.winnow.dev/v1alpha1, kind: ClusterCleanupPolicy, metadata: {name: a}, spec: {guardrails: {capacity: []}}}": `it was renamed to "spec.guardrails.ceilings"`,
		"{apiVersion: gc.winnow.dev/v1alpha1, kind: CleanupReview, metadata: {name: a}}":                                            "a CleanupReview is no policy",
		"{apiVersion: gc.winnow.dev/v1alpha1, kind: ClusterCleanupPolicy, metadata: {}}\n":                                          "is invalid",
	} {
		f := Flag{Names: []string{"-"}}
		if _, err := f.Read(t.Context(), strings.NewReader(content), "team-a"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", content, err, want)
		}
	}
}

// TestOneErrorForEachField: of two checks of a field, the one that says what to write reports it.
func TestOneErrorForEachField(t *testing.T) {
	const content = "{apiVersion: gc.winnow.dev/v1alpha1, kind: ClusterCleanupPolicy, metadata: {name: a}, spec: {guardrails: {windows: [{}]}}}"
	f := Flag{Names: []string{"-"}}
	_, err := f.Read(t.Context(), strings.NewReader(content), "team-a")
	for _, path := range []string{"spec.mode", "spec.namespaceSelector", "spec.guardrails.windows[0].schedule"} {
		if err == nil || strings.Count(err.Error(), path+": Required value") != 1 || !strings.Contains(err.Error(), path+": Required value: ") {
			t.Errorf("got %v, want one error about %s, with what to write", err, path)
		}
	}
}
