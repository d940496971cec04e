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

// Quota is what is kept of a ResourceQuota: how many objects of each resource it allows, by "count/<resource>".
type Quota struct {
	types.NamespacedName
	UID             types.UID
	ResourceVersion string
	Counts          map[string]int64
}

// QuotaOf reduces a ResourceQuota. One with scopes counts only some objects, and so allows no total.
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

// quotas are all those of the cluster, by namespace and name, while any is needed.
type quotas struct {
	byNamespace map[string]map[string]*Quota
	// listed says that all are known.
	listed bool
}

func newQuotas() quotas { return quotas{byNamespace: map[string]map[string]*Quota{}} }

// smallest is the least number of objects of a resource that any quota of the namespace allows; false when none does.
func (q *quotas) smallest(namespace, resource string) (least int64, ok bool) {
	for _, quota := range q.byNamespace[namespace] {
		if n, counts := quota.Counts[countPrefix+resource]; counts && (!ok || n < least) {
			least, ok = n, true
		}
	}
	return least, ok
}

// SetQuota takes in a state of a quota.
func (e *Engine) SetQuota(q *Quota, now time.Time) {
	if ns := e.setQuota(q); ns != nil {
		e.evaluateChanges([]*namespace{ns}, now)
	}
}

// RemoveQuota takes in that a quota is gone.
func (e *Engine) RemoveQuota(q *Quota, now time.Time) {
	if ns := e.removeQuota(q); ns != nil {
		e.evaluateChanges([]*namespace{ns}, now)
	}
}

// ReplaceQuotas takes in all quotas.
func (e *Engine) ReplaceQuotas(all []*Quota, now time.Time) {
	listed, changed := map[types.NamespacedName]bool{}, sets.New[*namespace]()
	for _, q := range all {
		listed[q.NamespacedName] = true
		changed.Insert(e.setQuota(q))
	}
	for _, known := range slices.Collect(maps.Values(e.quotas.byNamespace)) {
		for _, q := range slices.Collect(maps.Values(known)) {
			if !listed[q.NamespacedName] {
				changed.Insert(e.removeQuota(q))
			}
		}
	}
	e.quotas.listed = true
	changed.Delete(nil)
	e.evaluateChanges(changed.UnsortedList(), now)
}

// ForgetQuotas takes in that quotas are not observed any more.
func (e *Engine) ForgetQuotas() {
	e.quotas = newQuotas()
	for _, ns := range e.namespaces {
		e.updateQuotaLimits(ns)
	}
}

// setQuota takes in a state of a quota, and returns the namespace whose objects are to be judged for that; nil if there is none.
func (e *Engine) setQuota(q *Quota) *namespace {
	known := e.quotas.byNamespace[q.Namespace]
	if known == nil {
		known = map[string]*Quota{}
		e.quotas.byNamespace[q.Namespace] = known
	}
	before := known[q.Name]
	known[q.Name] = q
	if before != nil && maps.Equal(before.Counts, q.Counts) {
		return nil
	}
	return e.quotaChanged(q)
}

func (e *Engine) removeQuota(q *Quota) *namespace {
	delete(e.quotas.byNamespace[q.Namespace], q.Name)
	if len(e.quotas.byNamespace[q.Namespace]) == 0 {
		delete(e.quotas.byNamespace, q.Namespace)
	}
	return e.quotaChanged(q)
}

// quotaChanged moves the limits that follow from the quotas of a namespace, and returns it if its objects are to be judged for that.
func (e *Engine) quotaChanged(q *Quota) *namespace {
	ns, ok := e.namespaces[q.Namespace]
	if !ok {
		return nil
	}
	e.updateQuotaLimits(ns)
	if !ns.covers(kinds.ResourceQuotas) {
		return nil
	}
	if e.quotas.listed { // Before, no quota has changed: it is read for the first time.
		e.recordChange(ns, approval.Change{
			ID: fmt.Sprint("quota ", q.UID, " ", q.ResourceVersion), Text: fmt.Sprintf("a change of ResourceQuota %q", q.Name), Write: e.writes + 1,
		})
	}
	return ns
}

// followQuotas moves the limits that follow from the quotas of a namespace. Some may be there still that no policy needs, or needs
// again before they are judged anew.
func (e *Engine) updateQuotaLimits(ns *namespace) {
	for _, p := range ns.pools {
		if p.limit.PercentOfQuota != 0 {
			p.SetLimit(e.limit(ns, &p.limit, p.resource))
		}
	}
}

// withoutQuota are the "count/<resource>" that limits of a policy need and no quota of the namespace has.
func (e *Engine) missingQuotas(ns *namespace, p *policy.Policy) []string {
	var out []string
	for _, resource := range p.QuotaResources() {
		if _, ok := e.quotas.smallest(ns.name, resource); !ok {
			out = append(out, countPrefix+resource)
		}
	}
	return out
}
