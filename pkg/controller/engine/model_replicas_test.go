// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/internal/model"
	"github.com/winnow-dev/winnow/pkg/controller/objects/kinds"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/rules/approval"
)

// These are the replicas of TestEngine: how they start, follow and become leader.

// drawnKinds has the kinds of all objects that the model draws.
var drawnKinds = func() *kinds.Table {
	catalog, err := kinds.NewCatalog()
	if err != nil {
		panic(err)
	}
	return catalog.Table([]kinds.Served{
		{GroupVersionKind: schema.GroupVersionKind{Group: "argoproj.io", Version: "v1alpha1", Kind: "Workflow"}, Plural: "workflows"},
		{GroupVersionKind: schema.GroupVersionKind{Group: "argoproj.io", Version: "v1alpha1", Kind: "CronWorkflow"}, Plural: "cronworkflows"},
		{GroupVersionKind: schema.GroupVersionKind{Group: "keda.sh", Version: "v1alpha1", Kind: "ScaledJob"}, Plural: "scaledjobs"},
		{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Plural: "configmaps"},
	}, nil, kinds.Builtin())
}()

// start returns an engine that has listed the whole cluster.
func (e *simulation) start() *driver {
	e.started++
	return e.startWith(memory.Config{Identity: fmt.Sprint("replica-", e.started), HoldAbove: holdAboveByDefault, HoldAboveTotal: holdAboveTotalByDefault})
}

func (e *simulation) startWith(c memory.Config) *driver {
	t := newDriver(c)
	if c.Identity != "" {
		t.Follow()
		e.store.list(t, e.Now)
	}
	if e.usages == nil {
		e.usages = map[types.UID]lifecycle.Usage{}
	}
	for _, f := range e.Objects {
		e.usages[f.UID] = f.Usage
	}
	t.CopiedUsages = e.usages
	if e.budget > 0 {
		t.setBudget(e.budget)
	}
	e.compareClocks(t)
	t.SetKinds(drawnKinds, e.Now)
	for _, resource := range drawnKinds.Deletable() {
		k, _ := drawnKinds.For(resource)
		t.StartObserving(k)
	}
	e.listNamespaces(t)
	e.version += len(e.Objects) + 1
	t.ReplacePolicies(e.Policies, e.next(), e.Now)
	t.ReplaceClusterPolicies(e.ClusterPolicies, e.next(), e.Now)
	t.ReplaceCronJobs(e.CronJobs, e.Now)
	e.listMarks(t)
	var quotas []*memory.Quota
	for _, q := range e.Quotas {
		quotas = append(quotas, memory.QuotaOf(q))
	}
	t.ReplaceQuotas(quotas, e.Now)
	for _, f := range e.Objects {
		e.setRecreated(t, f)
	}
	for _, resource := range drawnKinds.Deletable() {
		e.list(t, resource)
	}
	e.stepAll(t)
	return t
}

// follow starts the follower.
func (e *simulation) follow() {
	e.follower = e.start()
	e.date()
	e.caughtUp = e.sameClearances() // The dates must be the same too; see checkFollower.
}

// lead makes a replica the leader, which then stores that it leads.
func (e *simulation) lead() {
	e.leader.Lead()
	e.stepAll(e.leader)
}

// changeLeader makes another replica the leader: either the follower, which has seen everything that the leader has, or a new one, which
// knows only what is stored. Either holds the same objects. Then a new follower starts.
func (e *simulation) changeLeader(t *rapid.T) {
	e.both(e.stepAll)
	e.store.drivers.Delete(e.leader)
	fresh := rapid.Bool().Draw(t, "a new one")
	if e.leader = e.follower; fresh {
		e.store.drivers.Delete(e.follower)
		e.leader = e.start()
	}
	e.date()
	caughtUp := e.caughtUp // follow sets it for the next follower.
	e.lead()
	e.recent = e.windows(e.leader) // It knows how many objects count, and not which.
	e.resetPaces(true)
	if fresh || !caughtUp {
		e.cleared = map[types.UID]types.UID{}
		for rec := range e.leader.Records.All() {
			if rec.Clearance == memory.Cleared && rec.Policy != nil { // There is none if nobody wants its deadline any more.
				e.cleared[rec.UID()] = rec.Policy.UID
			}
		}
		e.clearDue()
	}
	e.follow()
	for _, name := range model.DrawnNamespaces {
		e.rules[name] = e.rulesOf(name)
		if fresh && !e.known(name) { // A replica that has started since does not know former guardrails of a namespace that is not there.
			e.limitsBefore[name] = limitsOf(e.leader.Namespaces[name])
		}
	}
}

// limitsOf returns the limits by which an engine assesses the next change of a namespace.
func limitsOf(ns *memory.Namespace) simLimits {
	if ns == nil {
		return simLimits{}
	}
	known := func(n int) *int {
		if n < 0 {
			return nil
		}
		return &n
	}
	above := ns.Bounds.HoldAbove.Stricter(ns.FormerHoldAbove)
	return simLimits{known(above.Objects), known(above.Total)}
}

// windows returns the objects that recent changes made due according to an engine and that still count.
func (e *simulation) windows(t *driver) map[string][]simAssessed {
	out := map[string][]simAssessed{}
	add := func(key string, w *approval.Window) {
		for _, of := range w.Counts {
			if of.Objects == 0 || !e.Now.Before(of.At.Add(approval.WindowLength)) {
				continue
			}
			a := simAssessed{at: of.At, others: of.Objects}
			for uid, at := range w.Counted {
				if at.Equal(of.At) {
					a.uids, a.others = append(a.uids, uid), a.others-1
				}
			}
			out[key] = append(out[key], a)
		}
	}
	for name, ns := range t.Namespaces {
		add(name, &ns.Recent)
	}
	for uid, w := range t.Recent {
		add(string(uid), w)
	}
	return out
}

// checkFollower compares the decisions of the follower with the decisions of the leader, because the follower may become leader at any
// time.
func (e *simulation) checkFollower(t *rapid.T) {
	if e.caughtUp = e.sameDates(t) && (e.caughtUp || e.sameClearances()); !e.caughtUp {
		return
	}
	for _, f := range e.Objects {
		rec, other := e.leader.Records.Get(f.UID), e.follower.Records.Get(f.UID)
		if (rec == nil) != (other == nil) && e.bothCover(f) {
			t.Fatalf("only one replica knows %s", f.UID)
		}
		if rec == nil || other == nil {
			continue
		}
		got, want := answerOf(other.Resolution(), other.Decision()), answerOf(rec.Resolution(), rec.Decision())
		if got.At = want.At; got != want {
			t.Fatalf("%s: a follower has decided %+v, the leader %+v", f.UID, got, want)
		}
		if got, want := other.Hold(), rec.Hold(); (got == nil) != (want == nil) ||
			got != nil && (got.Owner != want.Owner || got.ID != want.ID) {
			t.Fatalf("%s waits under %+v on the follower, under %+v on the leader", f.UID, got, want)
		}
	}
}

// bothCover reports whether both replicas must know an object. A replica that has seen an unknown namespace keeps its objects, and a
// replica that has seen an owner goes on observing other objects of its kind.
func (e *simulation) bothCover(f *lifecycle.Fact) bool {
	return e.known(f.Namespace) && e.leader.Namespaces[f.Namespace].Covers(f.Resource) && e.follower.Namespaces[f.Namespace].Covers(f.Resource)
}

// sameClearances reports whether both replicas have the same clearances. A replica that starts while a namespace is suspended does not know
// which objects were approved there.
func (e *simulation) sameClearances() bool {
	for rec := range e.leader.Records.All() {
		other := e.follower.Records.Get(rec.UID())
		if other == nil || (other.Clearance == memory.Cleared) != (rec.Clearance == memory.Cleared) {
			return false
		}
	}
	return true
}
