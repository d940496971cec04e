// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"pgregory.net/rapid"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/approval"
	"github.com/winnow-dev/winnow/pkg/controller/freshness"
	"github.com/winnow-dev/winnow/pkg/controller/internal/model"
)

// Replicas of TestEngine: how they start, follow and take over.

// start makes an engine that has read the world as it is.
func (e *simulation) start() *driver {
	return e.startWith(Config{HoldAbove: holdAboveByDefault, HoldAboveTotal: holdAboveTotalByDefault})
}

func (e *simulation) startWith(c Config) *driver {
	t := newDriver(c)
	if e.slice > 0 {
		t.inSlices(e.slice)
	}
	e.listNamespaces(t)
	e.version += len(e.Objects) + 1
	t.ReplacePolicies(e.Policies, e.next(), e.Now)
	t.ReplaceClusterPolicies(e.ClusterPolicies, e.next(), e.Now)
	t.ReplaceCronJobs(e.CronJobs, e.Now)
	var quotas []*Quota
	for _, q := range e.Quotas {
		quotas = append(quotas, QuotaOf(q))
	}
	t.ReplaceQuotas(quotas, e.Now)
	for _, f := range e.Objects {
		e.remember(t, f)
	}
	e.list(t, gc.ResourceJobs)
	e.list(t, gc.ResourcePods)
	e.rest(t)
	return t
}

// follow starts a replica that does not lead.
func (e *simulation) follow() {
	e.follower = e.start()
	e.follower.Follow()
	e.alike = e.sameClearances()
	e.undue = sets.KeySet(e.under)
	for _, uids := range e.DueBy() {
		e.undue.Delete(uids...)
	}
	e.follower.recent = approval.Recent{}
	for uid, w := range e.leader.recent {
		e.follower.recent[uid] = new(slices.Clone(*w))
	} // It would not know them, but this is about all else.
	for name, ns := range e.leader.namespaces {
		if other := e.follower.namespaces[name]; other != nil {
			other.recent = slices.Clone(ns.recent)
		}
	}
}

// succeed has another replica take over: the one that followed, which knows all that the leader did, or a new one, which knows what is
// stored, and of holds what the status of policies says. Another new one follows.
func (e *simulation) succeed(t *rapid.T) {
	e.writeStatus()
	fresh := rapid.Bool().Draw(t, "a new one")
	if e.leader = e.follower; fresh {
		e.leader = e.start()
	}
	alike := e.alike               // follow() is about the next one.
	e.recent = e.windows(e.leader) // One that followed may have started later than what it counts.
	e.leader.Lead()
	e.repace(true)
	if fresh || !alike {
		e.takesOver(t, fresh)
		e.cleared = map[types.UID]bool{}
		for rec := range e.leader.records.all() {
			if rec.clearance == cleared {
				e.cleared[rec.UID()] = true
			}
		}
		e.settle()
	}
	e.writeStatus()
	e.follow()
	if e.clockLies {
		e.read()
	}
	for _, name := range model.DrawnNamespaces {
		e.rules[name] = e.rulesOf(name)
		if fresh || !alike || !e.known(name) { // One that has started since knows no guardrails of before, or covers them longer.
			e.limitsBefore[name] = limitsOf(e.leader.namespaces[name])
		}
	}
}

// limitsOf are those by which an engine assesses the next change of a namespace.
func limitsOf(ns *namespace) simLimits {
	if ns == nil {
		return simLimits{}
	}
	said := func(n int) *int {
		if n < 0 {
			return nil
		}
		return &n
	}
	above := ns.bounds.HoldAbove.Stricter(ns.formerHoldAbove)
	return simLimits{said(above.Objects), said(above.Total)}
}

// writeStatus does what a leader does now and then.
func (e *simulation) writeStatus() {
	e.each(e.rest)
	holds := map[types.UID][]gc.PolicyHold{}
	for _, name := range append([]string{""}, model.DrawnNamespaces...) {
		for _, r := range e.leader.Reports(name) {
			holds[r.UID] = r.Holds
		}
	}
	for i, p := range e.Policies {
		e.Policies[i] = p.DeepCopy()
		e.Policies[i].Status = gc.CleanupPolicyStatus{ObservedGeneration: p.Generation, Holds: holds[p.UID]}
		e.each(func(t *driver) { t.SetPolicy(e.Policies[i], e.Now) })
	}
	for i, p := range e.ClusterPolicies {
		e.ClusterPolicies[i] = p.DeepCopy()
		e.ClusterPolicies[i].Status = gc.CleanupPolicyStatus{ObservedGeneration: p.Generation, Holds: holds[p.UID]}
		e.each(func(t *driver) { t.SetClusterPolicy(e.ClusterPolicies[i], e.Now) })
	}
}

// windows are those of an engine, as far as they still count.
func (e *simulation) windows(t *driver) map[string][]simAssessed {
	out := map[string][]simAssessed{}
	add := func(key string, w approval.Window) {
		for _, of := range w {
			if e.Now.Before(of.At.Add(approval.WindowLength)) {
				out[key] = append(out[key], simAssessed{of.At, of.Objects})
			}
		}
	}
	for name, ns := range t.namespaces {
		add(name, ns.recent)
	}
	for uid, w := range t.recent {
		add(string(uid), *w)
	}
	return out
}

// told are the policies whose status tells of holds, each with the owner of one: its own, and that of another which objects wait under that
// it would delete. One for all namespaces together is taken over in each.
func (e *simulation) told() map[string]bool {
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

// takesOver is after a replica has started that never saw what made objects due. From the status it knows holds, and not what waits under
// them: all that did must be kept, and more may that the same policies would delete and that had finished when the hold was found.
func (e *simulation) takesOver(t *rapid.T, fresh bool) {
	told := e.told()
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
			// One that has finished anew since looks like one that the change did not make due.
			known := before[uid] != nil && before[uid].Owner != "" && (fresh || !e.undue.Has(uid)) &&
				!e.Objects[e.indexOf(uid)].FinishedAt.After(before[uid].Since.Add(freshness.ClockSkew))
			switch {
			case known && e.leader.records.get(uid).heldBy(e.uidOf(key.Policy)) == nil:
				t.Fatalf("%s waited under a hold of %s in %s, and does not after a restart", uid, before[uid].Owner, before[uid].namespace)
			case h == nil, before[uid] != nil, !fresh: // One that followed may have found more by itself.
			case !told[fmt.Sprint(e.uidOf(key.Policy), h.Owner)]:
				t.Fatalf("%s of %v waits under %+v after a restart", uid, key, h)
			case e.Objects[e.indexOf(uid)].FinishedAt.After(h.Since.Add(freshness.ClockSkew)):
				t.Fatalf("%s waits under %+v after a restart, and finished later", uid, h)
			}
		}
	}
}

// followerAgrees holds what a replica that does not lead has decided against the leader: it could take over at once.
func (e *simulation) followerAgrees(t *rapid.T) {
	if e.alike = e.alike || e.sameClearances(); !e.alike {
		return
	}
	for _, f := range e.Objects {
		rec, other := e.leader.records.get(f.UID), e.follower.records.get(f.UID)
		if (rec == nil) != (other == nil) && e.known(f.Namespace) { // In others, one that saw the namespace covers its objects.
			t.Fatalf("%s is known to one replica alone", f.UID)
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
			t.Fatalf("%s waits under %+v with a follower, under %+v with the leader", f.UID, got, want)
		}
	}
}

// sameClearances reports whether nothing is held, and both replicas assess by the same limits and know of all objects alike whether they
// need approval, and how many did not lately. One that starts while a namespace is suspended does not know what was approved there.
func (e *simulation) sameClearances() bool {
	sums := func(all map[string][]simAssessed) map[string]int {
		out := map[string]int{}
		for key, weighings := range all {
			for _, of := range weighings {
				out[fmt.Sprint(key, of.at)] += of.objects
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
