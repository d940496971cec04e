// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/objects/kinds"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/rules/deletion"
	"github.com/winnow-dev/winnow/pkg/controller/rules/freshness"
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
	w.upsert(w.run("a"))
	w.confirmFresh()
	return w
}

// run returns a run that has finished two hours ago.
func (w *world) run(name string) *lifecycle.Fact {
	return &lifecycle.Fact{
		Resource: runs, Namespace: testbuilders.Home, Name: name, UID: testbuilders.UID(name), Labels: labels.Set{}, Finishes: true, Finished: true,
		Created: w.now.Add(-3 * time.Hour), FinishedAt: w.now.Add(-2 * time.Hour), Outcome: gc.OutcomeSucceeded,
	}
}

// TestCopiesAtOnce: only so many objects are copied at once. Objects of other namespaces whose rule keeps no copies do not wait for them.
func TestCopiesAtOnce(t *testing.T) {
	w := newCopying(t, "7d")
	w.upsert(w.run("b"), w.run("c"), w.run("d"), w.run("e"), w.run("f"))
	const other = "team-b"
	w.namespace(other)
	p := testbuilders.Policy("q").Default("0s").Obj()
	p.Namespace, p.ResourceVersion = other, w.next()
	w.policies[types.NamespacedName{Namespace: other, Name: p.Name}] = freshness.SpecRevision(p.UID, p.Generation)
	w.SetPolicy(p, w.now)
	w.listCovered()
	elsewhere := job(time.Hour, "elsewhere")
	elsewhere.Namespace = other
	w.upsert(elsewhere)
	w.confirmFresh()
	w.takes("c", "d", "e", "elsewhere", "f") // Those of the same age have no particular order, which does not change between runs.
	w.takes()
	w.done("f", deletion.Accepted)
	w.takes("b")
	w.Release(w.orders["e"], w.now)
	w.takes("e")
	w.done("e", deletion.Refused)
	w.takes("a")
	w.done("elsewhere", deletion.Accepted)
	w.takes()
}

// TestCopiesThatAreNotNeededAnyMore: an object is not held for its copy once its rule keeps none.
func TestCopiesThatAreNotNeededAnyMore(t *testing.T) {
	for _, outcome := range []deletion.Outcome{deletion.CopyTooLarge, deletion.CopyQuotaExceeded} {
		w := newCopying(t, "7d")
		w.takes("a")
		w.result("a", deletion.Result{Outcome: outcome, NotSent: true, Detail: "the detail"})
		w.takes()
		w.policy(testbuilders.Policy("p").Generation(2).Rules(testbuilders.Rule("r", "1h").For(runs)))
		w.confirmFresh()
		w.takes("a")
	}
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

// TestCopiesThatCannotBeKept: the object is held, and counts as due, also when it has changed.
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
		w.upsert(w.run("a"))
		w.now = w.now.Add(59 * time.Second)
		w.confirmFresh()
		w.takes()
		w.now = w.now.Add(time.Second)
		w.expireAll()
		w.confirmFresh()
		w.takes("a")
	}
}
