// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"pgregory.net/rapid"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/engine/gate"
	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/internal/model"
	"github.com/winnow-dev/winnow/pkg/controller/objects/kinds"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/rules/approval"
	"github.com/winnow-dev/winnow/pkg/controller/rules/freshness"
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
	return e.startWith(memory.Config{HoldAbove: holdAboveByDefault, HoldAboveTotal: holdAboveTotalByDefault})
}

func (e *simulation) startWith(c memory.Config) *driver {
	t := newDriver(c)
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
	e.coverOne(t)
	return t
}

// follow starts the follower.
func (e *simulation) follow() {
	e.follower = e.start()
	e.follower.Follow()
	e.date()
	e.startNotices(e.follower, true)
	e.caughtUp = e.sameClearances() // The dates must be the same too; see checkFollower.
	e.heldNotDue = sets.KeySet(e.under)
	for _, uids := range e.DueBy() {
		e.heldNotDue.Delete(uids...)
	}
	e.follower.Recent = approval.Recent{}
	for uid, w := range e.leader.Recent {
		e.follower.Recent[uid] = new(w.Clone())
	} // A new replica would not know these counts, but the test compares everything else.
	for name, ns := range e.leader.Namespaces {
		if other := e.follower.Namespaces[name]; other != nil {
			other.Recent = ns.Recent.Clone()
			other.RecentShares = ns.RecentShares.Clone()
		}
	}
}

// changeLeader makes another replica the leader: either the follower, which has seen everything that the leader has, or a new one, which
// knows only the stored objects, and holds only from the status of policies. Then a new follower starts.
func (e *simulation) changeLeader(t *rapid.T) {
	e.writeStatus()
	fresh := rapid.Bool().Draw(t, "a new one")
	if e.leader = e.follower; fresh {
		e.unmatched = nil // It believes what is stored, though the leader may have had no time to store that a match has ended.
		e.leader = e.start()
	}
	e.date()
	e.startNotices(e.leader, fresh)
	caughtUp := e.caughtUp         // follow sets it for the next follower.
	e.recent = e.windows(e.leader) // The follower may have started after some of these changes.
	e.leader.Lead()
	e.resetPaces(true)
	if fresh || !caughtUp {
		e.adoptAll(t, fresh)
		e.cleared = map[types.UID]types.UID{}
		for rec := range e.leader.Records.All() {
			if rec.Clearance == memory.Cleared && rec.Policy != nil { // There is none if nobody wants its deadline any more.
				e.cleared[rec.UID()] = rec.Policy.UID
			}
		}
		e.clearDue()
	}
	e.writeStatus()
	e.follow()
	for _, name := range model.DrawnNamespaces {
		e.rules[name] = e.rulesOf(name)
		if fresh || !caughtUp || !e.known(name) { // A replica that has started since does not know former guardrails.
			e.limitsBefore[name] = limitsOf(e.leader.Namespaces[name])
			e.forgetFormer(name)
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
	return simLimits{known(above.Objects), known(above.Total), known(above.Percent)}
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
		for rule, w := range ns.RecentShares.All() {
			add(shareKey(name, rule.Policy, rule.Rule), w)
		}
	}
	for uid, w := range t.Recent {
		add(string(uid), w)
	}
	return out
}

// listedHolds returns the policies whose status lists a hold, each with the owner of the hold. A status lists the holds of its policy, and
// the holds of other policies that have objects that its policy would delete.
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

// adoptAll is called after the start of a replica that did not see which changes made objects due. It knows the holds from the status, but
// not their members. It must hold all members, and it may also hold objects that the same policies would delete and that had finished when
// the hold began.
func (e *simulation) adoptAll(t *rapid.T, fresh bool) {
	told := e.listedHolds()
	before := e.under
	e.under, e.holds = map[types.UID]*simHold{}, nil
	for _, name := range model.DrawnNamespaces {
		ns := e.leader.Namespaces[name]
		if ns == nil {
			continue
		}
		for h := range ns.Holds.All() {
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
			for _, rec := range ns.Records {
				if rec.Hold() == h {
					e.under[rec.UID()] = sim
				}
			}
		}
	}
	for key, uids := range e.DueBy() {
		for _, uid := range uids {
			h := e.under[uid]
			// An object that has finished again since looks as if the change did not make it due.
			known := before[uid] != nil && before[uid].Owner != "" && (fresh || !e.heldNotDue.Has(uid)) &&
				!e.Objects[e.indexOf(uid)].FinishedAt.After(before[uid].Since.Add(freshness.ClockSkew))
			switch {
			case known && gate.HeldBy(e.leader.Records.Get(uid), e.uidOf(key.Policy)) == nil:
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

// checkFollower compares the decisions of the follower with the decisions of the leader, because the follower may become leader at any
// time.
func (e *simulation) checkFollower(t *rapid.T) {
	if e.caughtUp = e.sameDates(t) && e.sameMatches(t) && (e.caughtUp || e.sameClearances()); !e.caughtUp {
		return
	}
	for _, f := range e.Objects {
		rec, other := e.leader.Records.Get(f.UID), e.follower.Records.Get(f.UID)
		if (rec == nil) != (other == nil) && e.bothCover(f) {
			t.Fatalf("only one replica knows %s", f.UID)
		}
		if rec == nil || other == nil || !e.sameNotices(f.UID) {
			continue
		}
		got, want := answerOf(other.Resolution, other.Decision()), answerOf(rec.Resolution, rec.Decision())
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

// sameClearances reports whether nothing is held, and both replicas have the same limits, clearances, and counts of recent changes. A
// replica that starts while a namespace is suspended does not know which objects were approved there.
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
	for name, ns := range e.leader.Namespaces {
		if other := e.follower.Namespaces[name]; other == nil || other.Bounds.HoldAbove.Stricter(other.FormerHoldAbove) != ns.Bounds.HoldAbove.Stricter(ns.FormerHoldAbove) {
			return false
		}
	}
	for rec := range e.leader.Records.All() {
		other := e.follower.Records.Get(rec.UID())
		if rec.Hold() != nil || other == nil || other.Clearance != rec.Clearance {
			return false
		}
	}
	return len(e.holds) == 0 && !slices.ContainsFunc(slices.Collect(maps.Values(e.follower.Namespaces)), func(ns *memory.Namespace) bool {
		return ns.Holds.Find(func(*approval.Hold) bool { return true }) != nil
	})
}
