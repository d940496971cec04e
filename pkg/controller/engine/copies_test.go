// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/objects/kinds"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/rules/deletion"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

// newCopying returns a world with a policy that deletes runs after an hour, and keeps copies for a time.
func newCopying(t *testing.T, keep gc.TTL) *world {
	w := newWorld(t, testbuilders.Policy("p").Rules(testbuilders.Rule("r", "1h").For(runs).KeepCopy(keep)))
	k := kinds.Custom(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Run"}, "runs", nil, kinds.Source{})
	w.SetKinds(table(t, "", k), w.now)
	w.Coverage()
	w.StartObserving(k)
	w.Replace(runs, nil, w.version, w.now)
	w.listCovered()
	w.upsert(&lifecycle.Fact{
		Resource: runs, Namespace: testbuilders.Home, Name: "a", UID: testbuilders.UID("a"), Labels: labels.Set{}, Finishes: true, Finished: true,
		Created: w.now.Add(-3 * time.Hour), FinishedAt: w.now.Add(-2 * time.Hour), Outcome: gc.OutcomeSucceeded,
	})
	w.confirmFresh()
	return w
}

// TestOrdersKeepCopies: an order says for how long a copy must be kept, also after it is renewed.
func TestOrdersKeepCopies(t *testing.T) {
	w := newCopying(t, "7d")
	w.takes("a")
	renewed, ok := w.Renew(w.orders["a"], w.now)
	for _, o := range []*deletion.Order{w.orders["a"], renewed} {
		if !ok || o.KeepCopy != 7*24*time.Hour || !o.CopyUntil.IsZero() {
			t.Errorf("got %+v", o)
		}
	}
}

// TestCopiesThatCannotBeKept: the object is held, and counts as due. If it is too large, it is tried again when it has changed.
func TestCopiesThatCannotBeKept(t *testing.T) {
	for outcome, reason := range map[deletion.Outcome]policy.Reason{
		deletion.CopyTooLarge: policy.ReasonCopyTooLarge, deletion.CopyQuotaExceeded: policy.ReasonCopyQuotaExceeded,
	} {
		w := newCopying(t, "7d")
		w.takes("a")
		w.result("a", deletion.Result{Outcome: outcome, NotSent: true, Detail: "the detail"})
		w.decided("a", policy.Hold, reason)
		if r := w.report("p"); r.Due != 1 || r.Held != 1 {
			t.Errorf("%s: %d are due, and %d are held", reason, r.Due, r.Held)
		}
		w.now = w.now.Add(59 * time.Second)
		w.confirmFresh()
		w.takes()
		w.now = w.now.Add(time.Second)
		w.expireAll()
		w.confirmFresh()
		w.takes("a")
	}
}
