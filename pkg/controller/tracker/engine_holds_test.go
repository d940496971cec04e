// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package tracker

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/internal/model"
	"github.com/winnow-dev/winnow/pkg/controller/policy"
)

// The engine's idea of what waits for approval, beside the model: which changes make what due, and what ends a hold.

// changed is after a change that people made: what it made due is weighed.
func (e *engine) changed(policies ...model.PolicyRef) {
	e.cover()
	e.weigh(policies...)
}

// weigh finds what is due and was not before, and holds the policies by which there is too much of it. A hold stays, unless a new
// spec of its policy leaves little that is due.
func (e *engine) weigh(changed ...model.PolicyRef) {
	due := e.DueBy()
	e.forgetUndue(due)
	affected := e.affected(due)
	for key, uids := range due {
		if !affected[key.Namespace] { // But a hold elsewhere may have let go of some.
			e.settleDue(key, uids)
			continue
		}
		most, ok := e.HoldAbove(key.Namespace)
		if !ok {
			most = holdAboveByDefault
		}
		fresh := 0
		for _, uid := range uids {
			if !e.weighed[uid] {
				fresh++
			}
		}
		if e.held[key] {
			fresh = len(uids)
		}
		if fresh > most || e.held[key] && !slices.Contains(changed, key.Policy) {
			e.held[key] = true
			e.unweigh(uids)
			continue
		}
		delete(e.held, key)
		e.weighAll(uids)
	}
}

// weighAll takes objects for weighed, unless somebody stops them now: then they are made due by whoever ends that.
func (e *engine) weighAll(uids []types.UID) {
	answers := e.Answers()
	for _, uid := range uids {
		if r := answers[uid].Reason; r != string(policy.ReasonSuspended) && r != string(policy.ReasonPolicyUnreadable) {
			e.weighed[uid] = true
		}
	}
}

// affected are the namespaces that are ruled by something else than when they were last weighed, and those where that put an object
// beyond a ceiling.
func (e *engine) affected(due map[model.PolicyInNamespace][]types.UID) map[string]bool {
	out := map[string]bool{}
	for _, name := range model.DrawnNamespaces {
		before := e.rules[name]
		e.rules[name] = e.rulesOf(name)
		out[name] = before != e.rules[name]
	}
	answers := e.Answers()
	for key, uids := range due {
		for _, uid := range uids {
			a := answers[uid]
			stopped := a.Reason == string(policy.ReasonSuspended) || a.Reason == string(policy.ReasonPolicyUnreadable)
			if strings.HasPrefix(a.By, "ceiling=") && !e.weighed[uid] && !stopped && !e.held[key] {
				out[key.Namespace] = true
			}
		}
	}
	return out
}

func (e *engine) uidOf(ref model.PolicyRef) types.UID {
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
func (e *engine) rulesOf(name string) string {
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

// settle is after anything else: what comes due by a policy that is not held needs no approval.
func (e *engine) settle() {
	due := e.DueBy()
	e.forgetUndue(due)
	for key, uids := range due {
		e.settleDue(key, uids)
	}
}

func (e *engine) settleDue(key model.PolicyInNamespace, uids []types.UID) {
	if e.held[key] {
		e.unweigh(uids)
	} else {
		e.weighAll(uids)
	}
}

// unweigh: whatever a policy that is held would delete needs approval, whoever wanted it deleted before.
func (e *engine) unweigh(uids []types.UID) {
	for _, uid := range uids {
		delete(e.weighed, uid)
	}
}

// forgetUndue: what is not due any more is weighed anew when it is, and a hold without objects is none.
func (e *engine) forgetUndue(due map[model.PolicyInNamespace][]types.UID) {
	e.rest()
	still := map[types.UID]bool{}
	for _, uids := range due {
		for _, uid := range uids {
			still[uid] = true
		}
	}
	maps.DeleteFunc(e.weighed, func(uid types.UID, _ bool) bool { return !still[uid] })
	// While the clock is in doubt nothing is known not to be due.
	maps.DeleteFunc(e.held, func(key model.PolicyInNamespace, _ bool) bool {
		return len(due[key]) == 0 && !e.clockLies || !strings.Contains(e.rulesOf(key.Namespace), fmt.Sprint(" ", e.uidOf(key.Policy), "/"))
	})
	e.tracker.Reports("")
	for _, name := range model.DrawnNamespaces {
		e.tracker.Reports(name)
	}
}

// approve releases a hold by its id.
func (e *engine) approve(t *rapid.T) {
	keys := slices.SortedFunc(maps.Keys(e.held), func(a, b model.PolicyInNamespace) int {
		return cmp.Compare(fmt.Sprint(a), fmt.Sprint(b))
	})
	if len(keys) == 0 {
		t.Skip()
	}
	key := rapid.SampledFrom(keys).Draw(t, "hold")
	for i, p := range e.Policies {
		if p.Namespace == key.Policy.Namespace && p.Name == key.Policy.Name {
			e.Policies[i] = p.DeepCopy()
			e.annotate(&e.Policies[i].ObjectMeta, key.Namespace)
			e.tracker.SetPolicy(e.Policies[i], e.Now)
		}
	}
	for i, p := range e.ClusterPolicies {
		if key.Policy.Namespace == "" && p.Name == key.Policy.Name {
			e.ClusterPolicies[i] = p.DeepCopy()
			e.annotate(&e.ClusterPolicies[i].ObjectMeta, key.Namespace)
			e.tracker.SetClusterPolicy(e.ClusterPolicies[i], e.Now)
		}
	}
	delete(e.held, key)
	for _, uid := range e.DueBy()[key] {
		e.weighed[uid] = true
	}
	e.settle()
}

func (e *engine) annotate(m *metav1.ObjectMeta, namespace string) {
	m.ResourceVersion = e.next()
	m.Annotations = map[string]string{gc.AnnotationApprovedHold: e.tracker.namespaces[namespace].holds[m.UID].id}
}
