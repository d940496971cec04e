// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package deleter

import (
	"net/http"
	"strings"
	"testing"
	"time"

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
		"no right":            {status(403, metav1.Status{Reason: metav1.StatusReasonForbidden, Message: "no role"}), "", "no role"},
		"no object":           {text("null"), "", "object"},
		"no JSON":             {text("k8s\x00"), "", "invalid character"},
		"without an end":      {endless, "", "a copy may have no more"},
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

// endless sends more than can be copied, and goes on until the caller does not read any more.
func endless(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	for block, sent := make([]byte, 1<<20), 0; sent < 1<<30; sent += len(block) {
		if _, err := w.Write(block); err != nil {
			return
		}
	}
	panic("all of it was read")
}

// TestReadFailed: an order whose object cannot be read ends without a DELETE, and says which right is missing.
func TestReadFailed(t *testing.T) {
	for name, c := range map[string]struct {
		answer  http.HandlerFunc
		allowed bool
		want    Answer
	}{
		"no right":          {status(403, metav1.Status{}), false, Answer{Result: deletion.Result{Outcome: deletion.Unauthorized}}},
		"refused":           {status(403, metav1.Status{}), true, Answer{Result: deletion.Result{Outcome: deletion.Unknown}}},
		"too many requests": {plain(429, "busy", "Retry-After", "7"), true, Answer{Result: deletion.Result{Outcome: deletion.RetryLater, RetryAfter: 7 * time.Second, Overloaded: true}}},
		"an error":          {status(500, metav1.Status{}), true, Answer{Result: deletion.Result{Outcome: deletion.Unknown, ServerError: true}}},
		"no answer":         {cut, true, Answer{Result: deletion.Result{Outcome: deletion.Unknown}}},
		"too large":         {endless, true, Answer{Result: deletion.Result{Outcome: deletion.CopyTooLarge}}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t)
			s.answer, s.allowed = c.answer, c.allowed
			d := newDeleter(s, fixedClock())
			o := &deletion.Order{Kind: testkinds.Run(t, false), Fact: &lifecycle.Fact{
				Resource: "runs.example.com", Namespace: "team-a", Name: "a", UID: "uid-a",
			}}
			_, _, err := d.ReadWhole(t.Context(), o)
			if err == nil {
				t.Fatal("it was read")
			}
			got := d.ReadFailed(t.Context(), o, err)
			if c.want.NotSent = true; got.Outcome == deletion.Unauthorized {
				c.want.Right = deletion.Right{Verb: "get", Resource: "runs.example.com", Namespace: "team-a"}
			}
			if got.Detail = ""; got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
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
