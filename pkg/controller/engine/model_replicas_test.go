// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"pgregory.net/rapid"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/approval"
	"github.com/winnow-dev/winnow/pkg/controller/freshness"
	"github.com/winnow-dev/winnow/pkg/controller/internal/model"
	"github.com/winnow-dev/winnow/pkg/controller/kinds"
	"github.com/winnow-dev/winnow/pkg/controller/lifecycle"
)

// Replicas of TestEngine: how they start, follow and become leader.

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
	return e.startWith(Config{HoldAbove: holdAboveByDefault, HoldAboveTotal: holdAboveTotalByDefault})
}

func (e *simulation) startWith(c Config) *driver {
	t := newDriver(c)
	if e.usages == nil {
		e.usages = map[types.UID]lifecycle.Usage{}
	}
	for _, f := range e.Objects {
		e.usages[f.UID] = f.Usage
	}
	t.copiedUsages = e.usages
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
	var quotas []*Quota
	for _, q := range e.Quotas {
		quotas = append(quotas, QuotaOf(q))
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
	e.follower.Follow()
	e.date()
	e.caughtUp = e.sameClearances() // And the same dates; see checkFollower.
	e.heldNotDue = sets.KeySet(e.under)
	for _, uids := range e.DueBy() {
		e.heldNotDue.Delete(uids...)
	}
	e.follower.recent = approval.Recent{}
	for uid, w := range e.leader.recent {
		e.follower.recent[uid] = new(w.Clone())
	} // A new replica would not know these counts, but the test compares everything else.
	for name, ns := range e.leader.namespaces {
		if other := e.follower.namespaces[name]; other != nil {
			other.recent = ns.recent.Clone()
		}
	}
}

// changeLeader makes another replica the leader: either the follower, which has seen everything that the leader has, or a new one, which
// knows only what is stored, and of holds only what the status of policies says. Then a new follower starts.
func (e *simulation) changeLeader(t *rapid.T) {
	e.writeStatus()
	fresh := rapid.Bool().Draw(t, "a new one")
	if e.leader = e.follower; fresh {
		e.leader = e.start()
	}
	e.date()
	caughtUp := e.caughtUp         // follow sets it for the next follower.
	e.recent = e.windows(e.leader) // The follower may have started after some of these changes.
	e.leader.Lead()
	e.resetPaces(true)
	if fresh || !caughtUp {
		e.adoptAll(t, fresh)
		e.cleared = map[types.UID]types.UID{}
		for rec := range e.leader.records.all() {
			if rec.clearance == cleared {
				e.cleared[rec.UID()] = rec.policy.UID
			}
		}
		e.clearDue()
	}
	e.writeStatus()
	e.follow()
	for _, name := range model.DrawnNamespaces {
		e.rules[name] = e.rulesOf(name)
		if fresh || !caughtUp || !e.known(name) { // A replica that has started since does not know former guardrails.
			e.limitsBefore[name] = limitsOf(e.leader.namespaces[name])
		}
	}
}

// limitsOf returns the limits by which an engine assesses the next change of a namespace.
func limitsOf(ns *namespace) simLimits {
	if ns == nil {
		return simLimits{}
	}
	known := func(n int) *int {
		if n < 0 {
			return nil
		}
		return &n
	}
	above := ns.bounds.HoldAbove.Stricter(ns.formerHoldAbove)
	return simLimits{known(above.Objects), known(above.Total)}
}

// writeStatus writes the status of all policies, as a leader does now and then.
func (e *simulation) writeStatus() {
	e.both(e.stepAll)
	holds := map[types.UID][]gc.PolicyHold{}
	for _, name := range append([]string{""}, model.DrawnNamespaces...) {
		for _, r := range e.leader.Reports(name) {
			holds[r.UID] = r.Holds
		}
	}
	for i, p := range e.Policies {
		e.Policies[i] = p.DeepCopy()
		e.Policies[i].ResourceVersion = e.next()
		e.Policies[i].Status = gc.CleanupPolicyStatus{ObservedGeneration: p.Generation, Holds: holds[p.UID]}
		e.both(func(t *driver) { t.SetPolicy(e.Policies[i], e.Now) })
	}
	for i, p := range e.ClusterPolicies {
		e.ClusterPolicies[i] = p.DeepCopy()
		e.ClusterPolicies[i].ResourceVersion = e.next()
		e.ClusterPolicies[i].Status = gc.CleanupPolicyStatus{ObservedGeneration: p.Generation, Holds: holds[p.UID]}
		e.both(func(t *driver) { t.SetClusterPolicy(e.ClusterPolicies[i], e.Now) })
	}
}

// windows returns what recent changes made due according to an engine, as far as it still counts.
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
	for name, ns := range t.namespaces {
		add(name, &ns.recent)
	}
	for uid, w := range t.recent {
		add(string(uid), w)
	}
	return out
}

// listedHolds returns the policies whose status lists a hold, each with the owner of the hold. A status lists the holds of its policy, and
// the holds of others that have objects which its policy would delete.
func (e *simulation) listedHolds() map[string]bool {
	out := map[string]bool{}
	for _, h := range e.holds {
		out[fmt.Sprint(h.Owner, h.Owner)] = true
	}
	for key, uids := range e.DueBy() {
		for _, uid := range uids {
			if h := e.under[uid]; h != nil {
				out[fmt.Sprint(e.uidOf(key.Policy), h.Owner)] = true
			}
		}
	}
	return out
}

// adoptAll is called after a replica has started that did not see what made objects due. It knows the holds from the status, but not their
// members. It must hold all members, and it may also hold objects that the same policies would delete and that had finished when the hold
// began.
func (e *simulation) adoptAll(t *rapid.T, fresh bool) {
	told := e.listedHolds()
	before := e.under
	e.under, e.holds = map[types.UID]*simHold{}, nil
	for _, name := range model.DrawnNamespaces {
		ns := e.leader.namespaces[name]
		if ns == nil {
			continue
		}
		for h := range ns.holds.All() {
			sim := &simHold{
				Owner:     h.Owner,
				namespace: name,
				Since:     h.Since,
				ID:        h.ID,
				was:       h.ID,
				ListedBy:  maps.Clone(h.ListedBy),
				Searched:  h.Searched,
			}
			e.holds = append(e.holds, sim)
			for _, rec := range ns.records {
				if rec.hold() == h {
					e.under[rec.UID()] = sim
				}
			}
		}
	}
	for key, uids := range e.DueBy() {
		for _, uid := range uids {
			h := e.under[uid]
			// An object that has finished again since looks like one that the change did not make due.
			known := before[uid] != nil && before[uid].Owner != "" && (fresh || !e.heldNotDue.Has(uid)) &&
				!e.Objects[e.indexOf(uid)].FinishedAt.After(before[uid].Since.Add(freshness.ClockSkew))
			switch {
			case known && e.leader.records.get(uid).heldBy(e.uidOf(key.Policy)) == nil:
				t.Fatalf("%s waited under a hold of %s in %s, and does not after a restart", uid, before[uid].Owner, before[uid].namespace)
			case h == nil, before[uid] != nil, !fresh: // The follower may have found more holds itself.
			case !told[fmt.Sprint(e.uidOf(key.Policy), h.Owner)]:
				t.Fatalf("%s of %v waits under %+v after a restart", uid, key, h)
			case e.Objects[e.indexOf(uid)].FinishedAt.After(h.Since.Add(freshness.ClockSkew)):
				t.Fatalf("%s waits under %+v after a restart, and finished later", uid, h)
			}
		}
	}
}

// checkFollower compares the decisions of the follower with those of the leader, because the follower may become leader at any time.
func (e *simulation) checkFollower(t *rapid.T) {
	if e.caughtUp = e.sameDates(t) && (e.caughtUp || e.sameClearances()); !e.caughtUp {
		return
	}
	for _, f := range e.Objects {
		rec, other := e.leader.records.get(f.UID), e.follower.records.get(f.UID)
		if (rec == nil) != (other == nil) && e.bothCover(f) {
			t.Fatalf("only one replica knows %s", f.UID)
		}
		if rec == nil || other == nil {
			continue
		}
		got, want := answerOf(other.resolution(), other.decision()), answerOf(rec.resolution(), rec.decision())
		if got.At = want.At; got != want {
			t.Fatalf("%s: a follower has decided %+v, the leader %+v", f.UID, got, want)
		}
		if got, want := other.hold(), rec.hold(); (got == nil) != (want == nil) ||
			got != nil && (got.Owner != want.Owner || got.ID != want.ID) {
			t.Fatalf("%s waits under %+v on the follower, under %+v on the leader", f.UID, got, want)
		}
	}
}

// bothCover reports whether both replicas must know an object. A replica that has seen an unknown namespace keeps its objects, and one that
// has seen an owner goes on observing others of its kind.
func (e *simulation) bothCover(f *lifecycle.Fact) bool {
	return e.known(f.Namespace) && e.leader.namespaces[f.Namespace].covers(f.Resource) && e.follower.namespaces[f.Namespace].covers(f.Resource)
}

// sameClearances reports whether nothing is held, and both replicas have the same limits, clearances, and counts of recent changes. A
// replica that starts while a namespace is suspended does not know what was approved there.
func (e *simulation) sameClearances() bool {
	sums := func(all map[string][]simAssessed) map[string]int {
		out := map[string]int{}
		for key, assessments := range all {
			for _, of := range assessments {
				out[fmt.Sprint(key, of.at)] += len(of.uids) + of.others
			}
		}
		return out
	}
	if !maps.Equal(sums(e.windows(e.leader)), sums(e.windows(e.follower))) {
		return false
	}
	for name, ns := range e.leader.namespaces {
		if other := e.follower.namespaces[name]; other == nil || other.bounds.HoldAbove.Stricter(other.formerHoldAbove) != ns.bounds.HoldAbove.Stricter(ns.formerHoldAbove) {
			return false
		}
	}
	for rec := range e.leader.records.all() {
		other := e.follower.records.get(rec.UID())
		if rec.hold() != nil || other == nil || other.clearance != rec.clearance {
			return false
		}
	}
	return len(e.holds) == 0 && !slices.ContainsFunc(slices.Collect(maps.Values(e.follower.namespaces)), func(ns *namespace) bool {
		return ns.holds.Find(func(*approval.Hold) bool { return true }) != nil
	})
}
