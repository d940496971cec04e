// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"pgregory.net/rapid"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/freshness"
	"github.com/winnow-dev/winnow/pkg/controller/internal/model"
	"github.com/winnow-dev/winnow/pkg/controller/policy"
)

// The engine's idea of what waits for approval, beside the model: which changes make what due, and what ends a hold.

// simHold is a hold: of a policy, in a namespace.
type simHold struct {
	Owner     types.UID // empty while nobody decides for what waits under it
	namespace string
	Since     time.Time
	// ID is the same for the holds of several namespaces that one approval releases.
	ID string
	// was is what it had while it had an owner.
	was string
	// ListedBy are the policies for which a replica that took it over did not know what waits under it; Searched says that it has looked.
	ListedBy sets.Set[types.UID]
	Searched bool
}

// simAssessed is what a change made due that needed no approval.
type simAssessed struct {
	at      time.Time
	objects int
}

// simChange is what people changed: wide is the UID of a cluster policy, empty for anything else. At the start it is all of them.
type simChange struct {
	wide  types.UID
	start bool
}

// in are the cluster policies that changed, as they concern a namespace.
func (c simChange) in(e *simulation, namespace string) []types.UID {
	var out []types.UID
	if c.wide != "" {
		out = append(out, c.wide)
	}
	for _, p := range e.ClusterPolicies {
		if c.start && strings.Contains(e.rulesOf(namespace), fmt.Sprint(" ", p.UID, "/")) {
			out = append(out, p.UID)
		}
	}
	return out
}

// changed is after a change that people made: what it made due is assessed.
func (e *simulation) changed(c simChange) {
	e.cover()
	e.assess(c)
}

// simFresh are the objects of a namespace that one policy would delete since a change.
type simFresh struct {
	decider   model.PolicyRef
	uid       types.UID   // of that
	wide      []types.UID // the cluster policies that changed
	namespace string
	uids      []types.UID
}

// reach are the cluster policies by which this counts together in all namespaces.
func (f *simFresh) reach() []types.UID {
	out := slices.Clone(f.wide)
	if f.decider.Namespace == "" && !slices.Contains(out, f.uid) {
		out = append(out, f.uid)
	}
	return out
}

// assess finds what is due and was not before, and has what is too much of it wait: in a namespace, or in all together.
func (e *simulation) assess(c simChange) {
	due := e.DueBy()
	e.forgetUndue(due)
	affected := e.affected(due)
	var all []*simFresh
	skipped := map[string]bool{}
	inNamespace, inAll := map[string]int{}, map[types.UID]int{}
	most := map[types.UID]int{}
	for _, key := range sortedPolicies(due) {
		uids := due[key]
		if !affected[key.Namespace] { // But a hold elsewhere may have let go of some.
			e.settleDue(uids)
			continue
		}
		f := &simFresh{decider: key.Policy, uid: e.uidOf(key.Policy), namespace: key.Namespace, wide: c.in(e, key.Namespace)}
		for _, uid := range uids {
			if !e.cleared[uid] && e.under[uid] == nil {
				f.uids = append(f.uids, uid)
			}
		}
		if len(f.uids) > 0 && e.stopped(f.uids) { // It is assessed when that ends, by the limits of today.
			skipped[f.namespace] = true
			continue
		}
		all = append(all, f)
		inNamespace[f.namespace] += len(f.uids)
		for _, uid := range f.reach() {
			inAll[uid] += len(f.uids)
			total := e.limits(f.namespace).total
			if before, ok := most[uid]; len(f.uids) > 0 && (!ok || total < before) {
				most[uid] = total
			}
		}
	}
	for namespace, n := range inNamespace {
		inNamespace[namespace] = n + e.sum(namespace)
	}
	for uid, n := range inAll {
		inAll[uid] = n + e.sum(string(uid))
	}
	for _, f := range all {
		if len(f.uids) == 0 {
			continue
		}
		total := slices.ContainsFunc(f.reach(), func(uid types.UID) bool { return inAll[uid] > most[uid] })
		switch {
		case total || inNamespace[f.namespace] > e.limits(f.namespace).objects:
			e.hold(f, total && len(f.wide) > 0 && f.decider.Namespace == "")
		case e.clear(f.uids):
			counts := append(f.reach(), types.UID(f.namespace))
			for _, key := range counts {
				e.recent[string(key)] = append(e.recent[string(key)], simAssessed{e.Now, len(f.uids)})
			}
		}
	}
	for _, name := range model.DrawnNamespaces {
		switch {
		case !e.known(name), !affected[name]: // Guardrails guard their end while it is not known, too.
		case skipped[name]:
			e.limitsBefore[name] = e.limitsBefore[name].stricter(e.limitsNow(name))
		default:
			e.limitsBefore[name] = e.limitsNow(name)
		}
	}
}

// simLimits are how many objects one change may make due in a namespace, and in all; nil where no guardrail says.
type simLimits struct{ objects, total *int }

func (e *simulation) limitsNow(namespace string) simLimits {
	if ns := e.Namespaces[namespace]; ns.Protected || gc.Protects(ns.Labels) {
		return simLimits{} // No cluster policy selects it.
	}
	of := func(n int, ok bool) *int {
		if !ok {
			return nil
		}
		return &n
	}
	return simLimits{of(e.HoldAbove(namespace)), of(e.HoldAboveTotal(namespace))}
}

// stricter has the smaller numbers of both.
func (l simLimits) stricter(o simLimits) simLimits {
	smaller := func(a, b *int) *int {
		if a == nil || b != nil && *b < *a {
			return b
		}
		return a
	}
	return simLimits{smaller(l.objects, o.objects), smaller(l.total, o.total)}
}

// stopped reports whether somebody stops what one policy would delete in a namespace.
func (e *simulation) stopped(uids []types.UID) bool {
	answers := e.Answers()
	return slices.ContainsFunc(uids, func(uid types.UID) bool {
		r := answers[uid].Reason
		return r == string(policy.ReasonSuspended) || r == string(policy.ReasonPolicyUnreadable)
	})
}

// limits are the smaller of those before the change and after it: guardrails guard their own end.
func (e *simulation) limits(namespace string) struct{ objects, total int } {
	l := e.limitsBefore[namespace].stricter(e.limitsNow(namespace))
	or := func(n *int, byDefault int) int {
		if n == nil {
			return byDefault
		}
		return *n
	}
	return struct{ objects, total int }{or(l.objects, holdAboveByDefault), or(l.total, holdAboveTotalByDefault)}
}

func sortedPolicies[V any](of map[model.PolicyInNamespace]V) []model.PolicyInNamespace {
	return slices.SortedFunc(maps.Keys(of), func(a, b model.PolicyInNamespace) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
}

// sum is how many objects changes of the last ten minutes made due.
func (e *simulation) sum(key string) int {
	n := 0
	for _, w := range e.recent[key] {
		if e.Now.Before(w.at.Add(10 * time.Minute)) {
			n += w.objects
		}
	}
	return n
}

// hold has objects wait. What else waits for the same policy there waits with them, for one approval of both.
func (e *simulation) hold(f *simFresh, total bool) {
	h := e.holdOf(f.uid, f.namespace)
	if h == nil {
		h = &simHold{Owner: f.uid, namespace: f.namespace}
		e.holds = append(e.holds, h)
	}
	h.Since, h.ID = e.Now, fmt.Sprint(f.uid, " ", f.namespace, " ", e.version)
	if total {
		h.ID = fmt.Sprint(f.uid, " ", f.wide[len(f.wide)-1], " ", e.version)
	}
	for _, uid := range f.uids {
		e.under[uid] = h
	}
}

func (e *simulation) holdOf(owner types.UID, namespace string) *simHold {
	for _, h := range e.holds {
		if h.Owner == owner && h.namespace == namespace {
			return h
		}
	}
	return nil
}

// clear takes objects for assessed, unless somebody stops them now: then they are made due by whoever ends that.
func (e *simulation) clear(uids []types.UID) bool {
	answers := e.Answers()
	stopped := true
	for _, uid := range uids {
		if r := answers[uid].Reason; r != string(policy.ReasonSuspended) && r != string(policy.ReasonPolicyUnreadable) {
			e.cleared[uid], stopped = true, false
		}
	}
	return !stopped
}

// affected are the namespaces that are ruled by something else than when they were last assessed, and those where that put an object
// beyond a ceiling.
func (e *simulation) affected(due map[model.PolicyInNamespace][]types.UID) map[string]bool {
	out := map[string]bool{}
	for _, name := range model.DrawnNamespaces {
		before := e.rules[name]
		e.rules[name] = e.rulesOf(name)
		if !e.known(name) { // Once it is, all that is due there is assessed.
			e.rules[name] = "unknown"
			continue
		}
		out[name] = before != e.rules[name]
	}
	answers := e.Answers()
	for key, uids := range due {
		for _, uid := range uids {
			a := answers[uid]
			stopped := a.Reason == string(policy.ReasonSuspended) || a.Reason == string(policy.ReasonPolicyUnreadable)
			if strings.HasPrefix(a.By, "ceiling=") && !e.cleared[uid] && e.under[uid] == nil && !stopped {
				out[key.Namespace] = true
			}
		}
	}
	return out
}

func (e *simulation) uidOf(ref model.PolicyRef) types.UID {
	for _, p := range e.Policies {
		if p.Namespace == ref.Namespace && p.Name == ref.Name {
			return p.UID
		}
	}
	for _, p := range e.ClusterPolicies {
		if ref.Namespace == "" && p.Name == ref.Name {
			return p.UID
		}
	}
	return "none"
}

// rulesOf names the policies that rule a namespace, and the quotas if they matter.
func (e *simulation) rulesOf(name string) string {
	ns, known := e.Namespaces[name]
	out := fmt.Sprint(known, ns.Terminating, ns.Protected || gc.Protects(ns.Labels))
	quota := false
	add := func(m *metav1.ObjectMeta, spec *gc.CleanupPolicySpec, unreadable error) {
		out += fmt.Sprint(" ", m.UID, "/", m.Generation)
		if unreadable != nil {
			return
		}
		quota = quota || spec.Capacity != nil && spec.Capacity.PercentOfQuota != nil ||
			slices.ContainsFunc(spec.Rules, func(r gc.CleanupRule) bool { return r.Capacity != nil && r.Capacity.PercentOfQuota != nil })
	}
	for _, p := range e.Policies {
		if p.Namespace == name {
			_, err := policy.Compile(p)
			add(&p.ObjectMeta, &p.Spec, err)
		}
	}
	for _, p := range e.ClusterPolicies {
		selector, err := metav1.LabelSelectorAsSelector(p.Spec.NamespaceSelector)
		if known && !ns.Protected && !gc.Protects(ns.Labels) && (err != nil || selector.Matches(labels.Set(ns.Labels))) {
			_, err := policy.CompileCluster(p)
			add(&p.ObjectMeta, p.Spec.Defaults(), err)
		}
	}
	for _, q := range e.Quotas {
		if quota && q.Namespace == name {
			out += fmt.Sprint(" ", q.Name, QuotaOf(q).Counts)
		}
	}
	return out
}

// settle is after anything else: what comes due needs no approval.
func (e *simulation) settle() {
	due := e.DueBy()
	e.forgetUndue(due)
	for _, uids := range due {
		e.settleDue(uids)
	}
}

func (e *simulation) settleDue(uids []types.UID) {
	for _, uid := range uids {
		if e.under[uid] == nil {
			e.clear([]types.UID{uid})
		}
	}
}

// forgetUndue: what is not due any more is assessed again when it is, and a hold under which nothing waits is none. While the clock is in
// doubt, or a namespace is not known, nothing is known not to be due.
func (e *simulation) forgetUndue(due map[model.PolicyInNamespace][]types.UID) {
	e.each(e.rest)
	still := map[types.UID]bool{}
	for _, uids := range due {
		for _, uid := range uids {
			still[uid] = true
		}
	}
	e.find(due)
	maps.DeleteFunc(e.cleared, func(uid types.UID, _ bool) bool { return !still[uid] })
	maps.DeleteFunc(e.under, func(uid types.UID, _ *simHold) bool {
		rec := e.leader.records.get(uid)
		return !still[uid] && (rec == nil || !e.clockLies && e.known(rec.Namespace))
	})
	e.reassignHolds(due)
	if !e.clockLies {
		e.holds = slices.DeleteFunc(e.holds, func(h *simHold) bool {
			return e.known(h.namespace) && e.members(h) == 0 && !e.mayWait(h, due)
		})
	}
}

func (e *simulation) known(namespace string) bool {
	_, known := e.Namespaces[namespace]
	return known
}

// mayWait reports whether something waits under another hold that may wait under this one, too.
func (e *simulation) mayWait(h *simHold, due map[model.PolicyInNamespace][]types.UID) bool {
	for key, uids := range due {
		for _, uid := range uids {
			if e.under[uid] != nil && e.candidate(uid, key, func(of *simHold) bool { return of == h }) != nil {
				return true
			}
		}
	}
	return false
}

// find has what is due wait under the holds that were adopted.
func (e *simulation) find(due map[model.PolicyInNamespace][]types.UID) {
	if e.clockLies {
		return
	}
	for key, uids := range due {
		for _, uid := range uids {
			if h := e.candidate(uid, key, func(h *simHold) bool { return !h.Searched }); h != nil && e.under[uid] == nil {
				e.under[uid] = h
				delete(e.cleared, uid)
			}
		}
	}
	for _, h := range e.holds {
		h.Searched = h.Searched || e.known(h.namespace)
	}
}

// candidate is a hold of those which that an object may wait under.
func (e *simulation) candidate(uid types.UID, key model.PolicyInNamespace, which func(*simHold) bool) *simHold {
	finished := e.Objects[e.indexOf(uid)].FinishedAt
	var first *simHold
	for _, h := range e.holds {
		before := first == nil || h.Since.Before(first.Since) || h.Since.Equal(first.Since) && h.Owner < first.Owner
		if before && h.namespace == key.Namespace && which(h) && h.ListedBy.Has(e.uidOf(key.Policy)) &&
			(h.Since.IsZero() || !finished.After(h.Since.Add(freshness.ClockSkew))) {
			first = h
		}
	}
	return first
}

func (e *simulation) members(h *simHold) int {
	n := 0
	for _, of := range e.under {
		if of == h {
			n++
		}
	}
	return n
}

// reassignHolds gives the holds of policies that have left a namespace to those that decide now, to the first by name.
func (e *simulation) reassignHolds(due map[model.PolicyInNamespace][]types.UID) {
	for _, h := range slices.Clone(e.holds) {
		if !e.known(h.namespace) || h.Owner != "" && strings.Contains(e.rulesOf(h.namespace), fmt.Sprint(" ", h.Owner, "/")) {
			continue
		}
		if h.Owner != "" { // No approval elsewhere is one of it.
			h.Owner, h.was, h.ID = "", h.ID, fmt.Sprint(h.ID, " in ", h.namespace)
		}
		newOwner, found := model.PolicyRef{}, false
		for key, uids := range due {
			waits := slices.ContainsFunc(uids, func(uid types.UID) bool { return e.under[uid] == h })
			if waits && (!found || key.Policy.Namespace+"/"+key.Policy.Name < newOwner.Namespace+"/"+newOwner.Name) {
				newOwner, found = key.Policy, true
			}
		}
		if !found {
			continue
		}
		if own := e.holdOf(e.uidOf(newOwner), h.namespace); own != nil {
			own.ID += " and " + h.ID
			own.ListedBy, own.Searched = own.ListedBy.Union(h.ListedBy), own.Searched && h.Searched
			if h.Since.IsZero() || !own.Since.IsZero() && own.Since.Before(h.Since) {
				own.Since = h.Since
			}
			for uid, of := range e.under {
				if of == h {
					e.under[uid] = own
				}
			}
			e.holds = slices.DeleteFunc(e.holds, func(of *simHold) bool { return of == h })
			continue
		}
		h.Owner = e.uidOf(newOwner)
		h.ID = fmt.Sprint(h.was, " of ", h.Owner) // What it was one with may have another newOwner.
	}
}

// waiting are the holds that can be approved.
func (e *simulation) waiting() []*simHold {
	return slices.DeleteFunc(slices.Clone(e.holds), func(h *simHold) bool { return !e.exists(h.Owner) })
}

// exists reports whether there is a policy with this UID.
func (e *simulation) exists(uid types.UID) bool {
	return e.isCluster(uid) || slices.ContainsFunc(e.Policies, func(p *gc.CleanupPolicy) bool { return p.UID == uid })
}

// adopt takes over what the leader has found in statuses as policies came to select a namespace: what it must find is told by named
// tests.
func (e *simulation) adopt(namespace string) {
	for h := range e.leader.namespaces[namespace].holds.All() {
		if h.ListedBy == nil {
			continue
		}
		sim := e.holdOf(h.Owner, namespace)
		if sim == nil {
			sim = &simHold{Owner: h.Owner, namespace: namespace, ID: h.ID, was: h.ID}
			e.holds = append(e.holds, sim)
		}
		sim.Since, sim.ListedBy, sim.Searched = h.Since, maps.Clone(h.ListedBy), sim.Searched && h.Searched
	}
}

// approve releases a hold by its id.
func (e *simulation) approve(t *rapid.T) {
	all := e.waiting()
	if len(all) == 0 {
		t.Skip()
	}
	h := rapid.SampledFrom(all).Draw(t, "hold")
	id := e.leader.namespaces[h.namespace].holds.Of(h.Owner).ID
	for i, p := range e.Policies {
		if p.UID == h.Owner {
			e.Policies[i] = p.DeepCopy()
			e.annotate(&e.Policies[i].ObjectMeta, id)
			e.each(func(t *driver) { t.SetPolicy(e.Policies[i], e.Now) })
		}
	}
	for i, p := range e.ClusterPolicies {
		if p.UID == h.Owner {
			e.ClusterPolicies[i] = p.DeepCopy()
			e.annotate(&e.ClusterPolicies[i].ObjectMeta, id)
			e.each(func(t *driver) { t.SetClusterPolicy(e.ClusterPolicies[i], e.Now) })
		}
	}
	for key, uids := range e.DueBy() {
		for _, uid := range uids {
			if of := e.under[uid]; of == nil || of.ID != h.ID {
				continue
			}
			delete(e.under, uid)
			other := e.candidate(uid, key, func(of *simHold) bool { return of.ID != h.ID })
			if e.cleared[uid] = other == nil; other != nil {
				e.under[uid] = other
			}
		}
	}
	maps.DeleteFunc(e.under, func(_ types.UID, of *simHold) bool { return of.ID == h.ID }) // Not due, as far as is known.
	e.holds = slices.DeleteFunc(e.holds, func(of *simHold) bool { return of.ID == h.ID })
	e.settle()
}

func (e *simulation) annotate(m *metav1.ObjectMeta, id string) {
	m.ResourceVersion = e.next()
	m.Annotations = map[string]string{gc.AnnotationApprovedHold: id}
}
