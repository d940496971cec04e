// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

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

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/internal/model"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

// This part of the model computes which objects must wait for approval, without the engine: which objects a change made due, and when a hold ends.

// simAssessed are the objects that a change made due and that needed no approval. others counts objects that are not remembered.
type simAssessed struct {
	at     time.Time
	uids   []types.UID
	others int
}

// simChange is what people changed. wide is the UID of a cluster policy, and empty for any other change. start stands for all cluster
// policies, when the first engine starts.
type simChange struct {
	wide  types.UID
	start bool
	// matches are the namespaces with objects that match since an earlier change, and have become due.
	matches map[string]bool
}

// in returns the cluster policies that changed and apply to a namespace.
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

// changed is called after people changed something, and assesses what the change made due.
func (e *simulation) changed(c simChange) {
	e.cover()
	e.assess(c)
}

// simBatch has the objects of a namespace that one policy would delete since a change.
type simBatch struct {
	decider   model.PolicyRef
	uid       types.UID   // of decider
	wide      []types.UID // the cluster policies that changed
	namespace string
	uids      []types.UID
}

// reach returns the cluster policies whose changes count together with the batch in all namespaces.
func (f *simBatch) reach() []types.UID {
	out := slices.Clone(f.wide)
	if f.decider.Namespace == "" && !slices.Contains(out, f.uid) {
		out = append(out, f.uid)
	}
	return out
}

// assess finds the objects that are due and not cleared, and holds them if they exceed the limit of a namespace or of all namespaces.
func (e *simulation) assess(c simChange) {
	e.date()
	due := e.DueBy()
	e.forgetNotDue(due)
	affected := e.affected(due)
	maps.Copy(affected, c.matches)
	e.forgetEndedWaits(affected)
	e.noteFormer(affected)
	defer func() { e.waited = e.Waiting() }()
	defer e.remember()
	var all []*simBatch
	skipped := map[string]bool{}
	inNamespace, inAll := map[string][]types.UID{}, map[types.UID][]types.UID{}
	most := map[types.UID]int{}
	for _, key := range sortedPolicies(due) {
		uids := due[key]
		if !affected[key.Namespace] { // But a hold elsewhere may have ended for some of them.
			e.clearUnheld(key.Policy, uids)
			continue
		}
		f := &simBatch{decider: key.Policy, uid: e.uidOf(key.Policy), namespace: key.Namespace, wide: c.in(e, key.Namespace)}
		if c.matches != nil && key.Policy.Namespace == "" {
			f.wide = []types.UID{f.uid}
		}
		for _, uid := range uids {
			if e.cleared[uid] == "" && e.under[uid] == nil {
				f.uids = append(f.uids, uid)
			}
		}
		if len(f.uids) > 0 && e.stopped(f.uids) { // They are assessed when that ends, with the present limits.
			skipped[f.namespace] = true
			continue
		}
		all = append(all, f)
		inNamespace[f.namespace] = append(inNamespace[f.namespace], f.uids...)
		for _, uid := range f.reach() {
			inAll[uid] = append(inAll[uid], f.uids...)
			total := e.limits(f.namespace).total
			if before, ok := most[uid]; len(f.uids) > 0 && (!ok || total < before) {
				most[uid] = total
			}
		}
	}
	sums := map[string]int{}
	for namespace, uids := range inNamespace {
		sums[namespace] = e.sum(namespace, uids)
	}
	for uid, uids := range inAll {
		sums[string(uid)] = e.sum(string(uid), uids)
	}
	shares, tooLarge := e.tooLargeShares(all)
	for i, f := range all {
		if len(f.uids) == 0 {
			continue
		}
		total := slices.ContainsFunc(f.reach(), func(uid types.UID) bool { return sums[string(uid)] > most[uid] })
		switch {
		case total || sums[f.namespace] > e.limits(f.namespace).objects || tooLarge[i]:
			e.hold(f, total && len(f.wide) > 0 && f.decider.Namespace == "")
		case e.clear(f.decider, f.uids):
			counts := append(f.reach(), types.UID(f.namespace))
			for _, key := range counts {
				e.recent[string(key)] = append(e.recent[string(key)], simAssessed{at: e.Now, uids: f.uids})
			}
			for rule, uids := range shares[i] {
				key := f.namespace + " " + rule
				e.recent[key] = append(e.recent[key], simAssessed{at: e.Now, uids: uids})
			}
		}
	}
	for _, name := range model.DrawnNamespaces {
		switch {
		case !e.known(name), !affected[name]: // A removed limit still applies to an unknown namespace.
		case skipped[name]:
			e.limitsBefore[name] = e.limitsBefore[name].stricter(e.limitsNow(name))
		default:
			e.limitsBefore[name] = e.limitsNow(name)
			e.forgetFormer(name)
		}
	}
}

// simLimits are how many objects one change may make due in a namespace, and in all namespaces, and which share of the candidates of a rule
// in a namespace; nil if no guardrail sets the limit.
type simLimits struct{ objects, total, percent *int }

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
	return simLimits{of(e.HoldAbove(namespace)), of(e.HoldAboveTotal(namespace)), of(e.Percent(namespace))}
}

// stricter returns the smaller number for each limit.
func (l simLimits) stricter(o simLimits) simLimits {
	smaller := func(a, b *int) *int {
		if a == nil || b != nil && *b < *a {
			return b
		}
		return a
	}
	return simLimits{smaller(l.objects, o.objects), smaller(l.total, o.total), smaller(l.percent, o.percent)}
}

// stopped reports whether the deletion of some of the objects is suspended, or an unreadable policy prevents it.
func (e *simulation) stopped(uids []types.UID) bool {
	answers := e.Answers()
	return slices.ContainsFunc(uids, func(uid types.UID) bool {
		r := answers[uid].Reason
		return r == string(policy.ReasonSuspended) || r == string(policy.ReasonPolicyUnreadable)
	})
}

// limits returns the smaller limits, of the limits before and after a change: a limit still applies to the change that removes it.
func (e *simulation) limits(namespace string) (out struct {
	objects, total int
	percent        *int
}) {
	l := e.limitsBefore[namespace].stricter(e.limitsNow(namespace))
	or := func(n *int, byDefault int) int {
		if n == nil {
			return byDefault
		}
		return *n
	}
	out.objects, out.total, out.percent = or(l.objects, holdAboveByDefault), or(l.total, holdAboveTotalByDefault), l.percent
	return out
}

func sortedPolicies[V any](of map[model.PolicyInNamespace]V) []model.PolicyInNamespace {
	return slices.SortedFunc(maps.Keys(of), func(a, b model.PolicyInNamespace) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
}

// sum returns how many objects the changes of the last ten minutes made due, together with a change that makes these objects due now. Each
// object counts once.
func (e *simulation) sum(key string, uids []types.UID) int {
	n, all := 0, sets.New(uids...)
	for _, w := range e.recent[key] {
		if e.Now.Before(w.at.Add(10 * time.Minute)) {
			n += w.others
			all.Insert(w.uids...)
		}
	}
	return n + all.Len()
}

// forgetCounted forgets that changes made an object due that is gone now. It still counts, as an object that is not remembered.
func (e *simulation) forgetCounted(uid types.UID) {
	for _, all := range e.recent {
		last := -1
		for i := range all {
			if slices.Contains(all[i].uids, uid) {
				last, all[i].uids = i, slices.DeleteFunc(slices.Clone(all[i].uids), func(other types.UID) bool { return other == uid })
			}
		}
		if last >= 0 {
			all[last].others++
		}
	}
}

// clear marks objects that a policy decides for as cleared, unless their deletion is stopped: then the change that ends the stop makes them
// due. It reports whether it cleared any.
func (e *simulation) clear(decider model.PolicyRef, uids []types.UID) bool {
	answers := e.Answers()
	stopped := true
	for _, uid := range uids {
		if r := answers[uid].Reason; r != string(policy.ReasonSuspended) && r != string(policy.ReasonPolicyUnreadable) {
			if e.cleared[uid] == "" {
				e.matchAssessed(uid, decider)
			}
			e.cleared[uid], stopped = e.uidOf(decider), false
		}
	}
	return !stopped
}

// affected returns the namespaces whose rules have changed since they were last assessed, and the namespaces where this put an object above
// a ceiling.
func (e *simulation) affected(due map[model.PolicyInNamespace][]types.UID) map[string]bool {
	out := map[string]bool{}
	for _, name := range model.DrawnNamespaces {
		before := e.rules[name]
		e.rules[name] = e.rulesOf(name)
		if !e.known(name) { // Once it is known, all objects that are due there are assessed.
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
			if strings.HasPrefix(a.By, "ceiling=") && e.cleared[uid] == "" && e.under[uid] == nil && !stopped {
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

// selects reports whether a cluster policy applies to a namespace. One whose selector cannot be read does.
func (e *simulation) selects(p *gc.ClusterCleanupPolicy, name string) bool {
	ns, known := e.Namespaces[name]
	selector, err := metav1.LabelSelectorAsSelector(p.Spec.NamespaceSelector)
	return known && !ns.Protected && !gc.Protects(ns.Labels) && (err != nil || selector.Matches(labels.Set(ns.Labels)))
}

// rulesOf lists the policies that apply to a namespace, and the quotas if they matter.
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
		if e.selects(p, name) {
			_, err := policy.CompileCluster(p)
			add(&p.ObjectMeta, p.Spec.Defaults(), err)
		}
	}
	for _, q := range e.Quotas {
		if quota && q.Namespace == name {
			out += fmt.Sprint(" ", q.Name, memory.QuotaOf(q).Counts)
		}
	}
	return out
}

// forgetEndedWaits forgets the clearances of objects whose wait for something a change has ended, or made shorter. affected are the namespaces with changes.
func (e *simulation) forgetEndedWaits(affected map[string]bool) {
	waiting, ready := e.Waiting(), e.WaitsForNothingElse()
	for _, f := range e.Objects {
		if affected[f.Namespace] && (e.waited[f.UID] && !waiting[f.UID] || ready[f.UID] && e.opensSooner(f.Namespace)) {
			delete(e.cleared, f.UID)
		}
	}
}

// clearDue is called after anything but a change by people: objects that become due need no approval.
func (e *simulation) clearDue() {
	e.waited = e.Waiting()
	defer e.remember()
	e.cover()
	e.date()
	due := e.DueBy()
	e.forgetNotDue(due)
	matches := simChange{matches: map[string]bool{}}
	for key, uids := range due {
		var others []types.UID
		for _, uid := range uids {
			switch {
			case e.cleared[uid] != "" || e.under[uid] != nil || !e.byChange(uid, key.Policy):
				others = append(others, uid)
			case !e.stopped([]types.UID{uid}):
				matches.matches[key.Namespace] = true
			}
		}
		e.clearUnheld(key.Policy, others)
	}
	if len(matches.matches) > 0 {
		e.assess(matches)
	}
}

// clearUnheld clears the objects that a policy decides for and that are not held.
func (e *simulation) clearUnheld(decider model.PolicyRef, uids []types.UID) {
	for _, uid := range uids {
		if e.under[uid] == nil {
			e.clear(decider, []types.UID{uid})
		}
	}
}

// forgetNotDue forgets the clearances of objects that are no longer due, or for which another policy decides and is stopped, and ends holds
// without members. While the clock is in doubt, or a
// namespace is unknown, it is not known which objects are not due.
func (e *simulation) forgetNotDue(due map[model.PolicyInNamespace][]types.UID) {
	e.cover()
	still := map[types.UID]bool{}
	for key, uids := range due {
		for _, uid := range uids {
			still[uid] = true
			if by := e.uidOf(key.Policy); e.cleared[uid] != "" && e.cleared[uid] != by {
				if e.cleared[uid] = by; e.stopped([]types.UID{uid}) {
					delete(e.cleared, uid)
				}
			}
		}
	}
	e.searchAdopted(due)
	maps.DeleteFunc(e.cleared, func(uid, _ types.UID) bool { return !still[uid] })
	maps.DeleteFunc(e.under, func(uid types.UID, _ *simHold) bool {
		rec := e.leader.Records.Get(uid)
		return !still[uid] && (rec == nil || !e.clockInDoubt && e.known(rec.Namespace))
	})
	e.reassignHolds(due)
	if !e.clockInDoubt {
		e.holds = slices.DeleteFunc(e.holds, func(h *simHold) bool {
			return e.known(h.namespace) && e.members(h) == 0 && !e.mayWait(h, due)
		})
	}
}

func (e *simulation) known(namespace string) bool {
	_, known := e.Namespaces[namespace]
	return known
}
