// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package tracker

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/controller/policy"
)

// ResourceQuotas are observed while a policy limits objects by a share of them.
const ResourceQuotas = "resourcequotas"

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
func (t *Tracker) SetQuota(q *Quota, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.setQuota(q, now)
}

// RemoveQuota takes in that a quota is gone.
func (t *Tracker) RemoveQuota(q *Quota, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.removeQuota(q, now)
}

// ReplaceQuotas takes in all quotas.
func (t *Tracker) ReplaceQuotas(all []*Quota, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	listed := map[types.NamespacedName]bool{}
	for _, q := range all {
		listed[q.NamespacedName] = true
		t.setQuota(q, now)
	}
	for _, known := range slices.Collect(maps.Values(t.quotas.byNamespace)) {
		for _, q := range slices.Collect(maps.Values(known)) {
			if !listed[q.NamespacedName] {
				t.removeQuota(q, now)
			}
		}
	}
	t.quotas.listed = true
	t.weighPending(now)
}

// ForgetQuotas takes in that quotas are not observed any more.
func (t *Tracker) ForgetQuotas() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.quotas = newQuotas()
}

func (t *Tracker) setQuota(q *Quota, now time.Time) {
	known := t.quotas.byNamespace[q.Namespace]
	if known == nil {
		known = map[string]*Quota{}
		t.quotas.byNamespace[q.Namespace] = known
	}
	before := known[q.Name]
	known[q.Name] = q
	if before == nil || !maps.Equal(before.Counts, q.Counts) {
		t.quotaChanged(q, now)
	}
}

func (t *Tracker) removeQuota(q *Quota, now time.Time) {
	delete(t.quotas.byNamespace[q.Namespace], q.Name)
	if len(t.quotas.byNamespace[q.Namespace]) == 0 {
		delete(t.quotas.byNamespace, q.Namespace)
	}
	t.quotaChanged(q, now)
}

// quotaChanged moves the limits that follow from the quotas of a namespace, and judges whom that concerns.
func (t *Tracker) quotaChanged(q *Quota, now time.Time) {
	ns, ok := t.namespaces[q.Namespace]
	if !ok {
		return
	}
	for _, p := range ns.pools { // Some may be there still that no policy needs, or needs again before they are judged anew.
		if p.limit.PercentOfQuota != 0 {
			p.SetLimit(t.limit(ns, &p.limit, p.resource))
		}
	}
	if !ns.keeps(ResourceQuotas) {
		return
	}
	if t.quotas.listed { // Before, no quota has changed: it is read for the first time.
		t.blame(ns, cause{
			id: fmt.Sprint("quota ", q.UID, " ", q.ResourceVersion), text: fmt.Sprintf("a change of ResourceQuota %q", q.Name),
		})
	}
	t.change([]*namespace{ns}, now)
}

// withoutQuota are the "count/<resource>" that limits of a policy need and no quota of the namespace has.
func (t *Tracker) withoutQuota(ns *namespace, p *policy.Policy) []string {
	var out []string
	for _, resource := range p.QuotaResources() {
		if _, ok := t.quotas.smallest(ns.name, resource); !ok {
			out = append(out, countPrefix+resource)
		}
	}
	return out
}
