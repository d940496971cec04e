// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Quota is the part of a ResourceQuota that matters. Counts has the number of objects that it allows, by "count/<resource>".
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
		if strings.HasPrefix(string(name), CountPrefix) {
			out.Counts[string(name)] = hard.Value()
		}
	}
	return out
}

// CountPrefix begins the names in a ResourceQuota that limit the number of objects of a resource.
const CountPrefix = "count/"

// Quotas are all ResourceQuotas of the cluster, while any policy needs them.
type Quotas struct {
	ByNamespace map[string]map[string]*Quota // by namespace and name
	Listed      bool                         // ByNamespace contains all of them
}

// NewQuotas returns no quotas.
func NewQuotas() Quotas { return Quotas{ByNamespace: map[string]map[string]*Quota{}} }

// Smallest returns the smallest number of objects of a resource that a quota of the namespace allows; false if no quota limits them.
func (q *Quotas) Smallest(namespace, resource string) (least int64, ok bool) {
	for _, quota := range q.ByNamespace[namespace] {
		if n, counts := quota.Counts[CountPrefix+resource]; counts && (!ok || n < least) {
			least, ok = n, true
		}
	}
	return least, ok
}

// Set stores a state of a quota unless it is older than memory, and reports whether it counts differently.
func (q *Quotas) Set(to *Quota) (changed bool) {
	before := q.ByNamespace[to.Namespace][to.Name]
	return (before == nil || !OlderVersion(to.ResourceVersion, before.ResourceVersion)) && q.SetListed(to)
}

// SetListed stores the state of a quota in a list, and reports whether it counts differently. The list is newer than memory even if this
// state is older, because a restored backup has brought it back.
func (q *Quotas) SetListed(to *Quota) (changed bool) {
	known := q.ByNamespace[to.Namespace]
	if known == nil {
		known = map[string]*Quota{}
		q.ByNamespace[to.Namespace] = known
	}
	before := known[to.Name]
	known[to.Name] = to
	return before == nil || !maps.Equal(before.Counts, to.Counts)
}

// Remove removes a quota, and reports whether it was there and is not newer.
func (q *Quotas) Remove(gone *Quota) (changed bool) {
	known := q.ByNamespace[gone.Namespace]
	if before := known[gone.Name]; before == nil || OlderVersion(gone.ResourceVersion, before.ResourceVersion) {
		return false
	}
	delete(known, gone.Name)
	if len(known) == 0 {
		delete(q.ByNamespace, gone.Namespace)
	}
	return true
}

// Except returns the quotas that a list does not contain.
func (q *Quotas) Except(listed map[types.NamespacedName]bool) []*Quota {
	var out []*Quota
	for _, known := range q.ByNamespace {
		for _, quota := range known {
			if !listed[quota.NamespacedName] {
				out = append(out, quota)
			}
		}
	}
	return out
}
