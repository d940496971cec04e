// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package references

import (
	"fmt"
	"os"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"
)

// TestFalsePositives: what other tools took for unused although it is used.
func TestFalsePositives(t *testing.T) {
	text, err := os.ReadFile("testdata/falsepositives.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Source    string `json:"source"`
		Why       string `json:"why"`
		Referrers []struct {
			Resource string         `json:"resource"`
			Object   map[string]any `json:"object"`
		} `json:"referrers"`
		Object struct {
			Kind     string            `json:"kind"`
			Type     string            `json:"type"`
			Metadata metav1.ObjectMeta `json:"metadata"`
		} `json:"object"`
		Want string `json:"want"`
	}
	if err := yaml.UnmarshalStrict(text, &cases); err != nil {
		t.Fatal(err)
	}
	for _, tc := range cases {
		t.Run(tc.Source+" "+tc.Why, func(t *testing.T) {
			x := NewIndex(MaxKeys)
			for i, r := range tc.Referrers {
				refs, err := readerOf(t, r.Resource).References(r.Object)
				if err != nil {
					t.Fatal(err)
				}
				x.Source(r.Resource).Set(Referrer{UID: types.UID(fmt.Sprint(i))}, Keys(refs))
			}
			x.Finish()
			m := &tc.Object.Metadata
			to := map[string]To{"Secret": Secrets, "ConfigMap": ConfigMaps}[tc.Object.Kind]
			uses := map[Use]string{Used: "used", Unknown: "unknown", Unused: "unused"}
			got := uses[x.Used(to, m.Namespace, m.Name)]
			if why := Exempt(schema.GroupKind{Kind: tc.Object.Kind}, m, tc.Object.Type); why != "" {
				got = "exempt: " + why
			}
			want := tc.Want
			if use, protection, _ := strings.Cut(want, ": "); use == "unused" && protection != "" {
				want = use
			}
			if got != want {
				t.Errorf("got %s, want %s", got, want)
			}
			// The referrers do not simply use everything.
			if other := x.Used(to, m.Namespace, "other-"+m.Name); other != Unused && want != "unknown" {
				t.Errorf("another object is %s", uses[other])
			}
		})
	}
}

// readerOf returns the Reader that a resource has.
func readerOf(t *testing.T, resource string) *Reader {
	t.Helper()
	if r := Builtin(resource); r != nil {
		return r
	}
	all, err := BuiltinDeclarations()
	if err != nil {
		t.Fatal(err)
	}
	if len(all[resource]) == 0 {
		return Undeclared()
	}
	r, err := Declared(all[resource])
	if err != nil {
		t.Fatal(err)
	}
	return r
}
