// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package deleter

import (
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testkinds"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/rules/deletion"
)

// TestReadWhole: the object is read as JSON, and returned as the API server sent it, with fields that Winnow does not know.
func TestReadWhole(t *testing.T) {
	const object = `{"kind":"Run","apiVersion":"example.com/v1","metadata":{"name":"a","namespace":"team-a","uid":"uid-a","resourceVersion":"9",` +
		`"managedFields":[{"manager":"x"}]},"spec":{"unknown":[1.50,"\u2028"]}}  `
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		whole  string
		fails  string
	}{
		"it is there":         {text(object), object, ""},
		"another of its name": {text(strings.Replace(object, "uid-a", "uid-b", 1)), "", ""},
		"none":                {status(404, metav1.Status{Reason: metav1.StatusReasonNotFound}), "", ""},
		"no right":            {status(403, metav1.Status{Reason: metav1.StatusReasonForbidden}), "", "unknown"},
		"no object":           {text("null"), "", "object"},
		"no JSON":             {text("k8s\x00"), "", "invalid character"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t)
			accepts := ""
			s.answer = func(w http.ResponseWriter, r *http.Request) {
				accepts = r.Header.Get("Accept")
				c.answer(w, r)
			}
			for _, finishes := range []bool{false, true} {
				o := &deletion.Order{Kind: testkinds.Run(t, finishes), Fact: &lifecycle.Fact{
					Resource: "runs.example.com", Namespace: "team-a", Name: "a", UID: "uid-a",
				}}
				read, whole, err := newDeleter(s, fixedClock()).ReadWhole(t.Context(), o)
				switch {
				case c.fails != "":
					if err == nil || !strings.Contains(strings.ToLower(err.Error()), c.fails) || whole != nil {
						t.Errorf("got %+v, %q, %v", read, whole, err)
					}
				case err != nil || (read != nil) != (c.whole != "") || string(whole) != c.whole || read != nil && read.ResourceVersion != 9:
					t.Errorf("got %+v, %q, %v", read, whole, err)
				}
				if accepts != "application/json" {
					t.Errorf("it accepts %q", accepts)
				}
			}
		})
	}
}

// TestSecretsAreNotReadWhole: whatever an order says, their data is not even requested.
func TestSecretsAreNotReadWhole(t *testing.T) {
	for _, resource := range []string{gc.ResourceSecrets, gc.ResourcePods, gc.ResourceJobs, "deployments.apps"} {
		s := newServer(t)
		o := &deletion.Order{Kind: testkinds.Run(t, false), Fact: &lifecycle.Fact{Resource: resource, Namespace: "team-a", Name: "a", UID: "uid-a"}}
		if _, whole, err := newDeleter(s, fixedClock()).ReadWhole(t.Context(), o); err == nil || whole != nil {
			t.Errorf("%s: got %q", resource, whole)
		}
		if n := len(s.requests()); n > 0 {
			t.Errorf("%s: %d requests", resource, n)
		}
	}
}

func text(answer string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(answer))
	}
}
