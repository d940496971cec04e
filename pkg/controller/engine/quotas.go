// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/controller/approval"
	"github.com/winnow-dev/winnow/pkg/controller/kinds"
	"github.com/winnow-dev/winnow/pkg/controller/policy"
)

// Quota is what is remembered of a ResourceQuota. Counts has the number of objects that it allows, by "count/<resource>".
type Quota struct {
	types.NamespacedName
	UID             types.UID
	ResourceVersion string
	Counts          map[string]int64
}

// QuotaOf reduces a ResourceQuota to a Quota. A ResourceQuota with scopes counts only some objects, so it has no Counts.
func QuotaOf(q *corev1.ResourceQuota) *Quota {
	out := &Quota{
		NamespacedName: types.NamespacedName{Namespace: q.Namespace, Name: q.Name}, UID: q.UID, ResourceVersion: q.ResourceVersion,
		Counts: map[string]int64{},
	}
	if len(q.Spec.Scopes) > 0 || q.Spec.ScopeSelector != nil {
		return out
	}
	for name, hard := range q.Spec.Hard {
		if strings.HasPrefix(string(name), countPrefix) {
			out.Counts[string(name)] = hard.Value()
		}
	}
	return out
}

const countPrefix = "count/"

// quotas are all ResourceQuotas of the cluster, while any policy needs them.
type quotas struct {
	byNamespace map[string]map[string]*Quota // by namespace and name
	listed      bool                         // byNamespace contains all of them
}

func newQuotas() quotas { return quotas{byNamespace: map[string]map[string]*Quota{}} }

// smallest returns the smallest number of objects of a resource that a quota of the namespace allows; false if no quota limits them.
func (q *quotas) smallest(namespace, resource string) (least int64, ok bool) {
	for _, quota := range q.byNamespace[namespace] {
		if n, counts := quota.Counts[countPrefix+resource]; counts && (!ok || n < least) {
			least, ok = n, true
		}
	}
	return least, ok
}

// SetQuota handles a new state of a quota. It ignores states that are older than memory.
func (e *Engine) SetQuota(q *Quota, now time.Time) {
	if ns := e.setQuota(q); ns != nil {
		e.evaluateChanges([]*namespace{ns}, now)
	}
}

// RemoveQuota handles the removal of a quota.
func (e *Engine) RemoveQuota(q *Quota, now time.Time) {
	if ns := e.removeQuota(q); ns != nil {
		e.evaluateChanges([]*namespace{ns}, now)
	}
}

// ReplaceQuotas replaces all quotas by those of a list.
func (e *Engine) ReplaceQuotas(all []*Quota, now time.Time) {
	listed, changed := map[types.NamespacedName]bool{}, sets.New[*namespace]()
	for _, q := range all {
		listed[q.NamespacedName] = true
		changed.Insert(e.setQuota(q))
	}
	for _, quotas := range slices.Collect(maps.Values(e.quotas.byNamespace)) {
		for _, q := range slices.Collect(maps.Values(quotas)) {
			if !listed[q.NamespacedName] {
				changed.Insert(e.removeQuota(q))
			}
		}
	}
	e.quotas.listed = true
	changed.Delete(nil)
	e.evaluateChanges(changed.UnsortedList(), now)
}

// ForgetQuotas forgets all quotas, because they are no longer observed.
func (e *Engine) ForgetQuotas() {
	e.quotas = newQuotas()
	for _, ns := range e.namespaces {
		e.updateQuotaLimits(ns)
	}
}

// setQuota stores a state of a quota, and returns the namespace if its objects must be judged again; nil otherwise.
func (e *Engine) setQuota(q *Quota) *namespace {
	quotas := e.quotas.byNamespace[q.Namespace]
	if quotas == nil {
		quotas = map[string]*Quota{}
		e.quotas.byNamespace[q.Namespace] = quotas
	}
	before := quotas[q.Name]
	if before != nil && olderVersion(q.ResourceVersion, before.ResourceVersion) {
		return nil
	}
	quotas[q.Name] = q
	if before != nil && maps.Equal(before.Counts, q.Counts) {
		return nil
	}
	return e.quotaChanged(q)
}

// removeQuota removes a quota, and returns the namespace if its objects must be judged again; nil otherwise.
func (e *Engine) removeQuota(q *Quota) *namespace {
	if before := e.quotas.byNamespace[q.Namespace][q.Name]; before == nil || olderVersion(q.ResourceVersion, before.ResourceVersion) {
		return nil
	}
	delete(e.quotas.byNamespace[q.Namespace], q.Name)
	if len(e.quotas.byNamespace[q.Namespace]) == 0 {
		delete(e.quotas.byNamespace, q.Namespace)
	}
	return e.quotaChanged(q)
}

// quotaChanged updates the limits of a namespace after a change of its quotas, and returns the namespace if its objects must be judged
// again; nil otherwise.
func (e *Engine) quotaChanged(q *Quota) *namespace {
	ns, ok := e.namespaces[q.Namespace]
	if !ok {
		return nil
	}
	e.updateQuotaLimits(ns)
	if !ns.covers(kinds.ResourceQuotas) {
		return nil
	}
	if e.quotas.listed { // Until then quotas are only read for the first time, which is no change.
		e.recordChange(ns, approval.Change{
			ID: fmt.Sprint("quota ", q.UID, " ", q.ResourceVersion), Text: fmt.Sprintf("a change of ResourceQuota %q", q.Name), Write: e.writes + 1,
		})
	}
	return ns
}

// updateQuotaLimits updates the limits of all pools of a namespace that depend on quotas. Some of these pools may no longer be needed, but
// may be used again before they are removed.
func (e *Engine) updateQuotaLimits(ns *namespace) {
	for _, p := range ns.pools {
		if p.limit.PercentOfQuota != 0 {
			p.SetLimit(e.poolLimit(ns, &p.limit, p.resource))
		}
	}
}

// missingQuotas returns the "count/<resource>" that percentOfQuota of a policy needs, and that no quota of the namespace has.
func (e *Engine) missingQuotas(ns *namespace, p *policy.Policy) []string {
	var out []string
	for _, resource := range p.QuotaResources(e.kinds.Finishing) {
		if _, ok := e.quotas.smallest(ns.name, resource); !ok {
			out = append(out, countPrefix+resource)
		}
	}
	return out
}
