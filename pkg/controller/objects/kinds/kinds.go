// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kinds is the one table of the resources that Winnow observes: those that policies can name, their owners, and ResourceQuotas. A
// resource that is not in the table is an error. The table changes while Winnow runs, as custom resources come and go, so it is a value.
// The package is pure.
package kinds

import (
	"fmt"
	"maps"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
)

const (
	// CronJobs are observed as owners of Jobs. Policies cannot name them.
	CronJobs = "cronjobs.batch"
	// ResourceQuotas are observed while a policy has percentOfQuota. Policies cannot name them.
	ResourceQuotas = "resourcequotas"
	// UsageMarks are Winnow's own stored marks. Policies cannot name them.
	UsageMarks = "usagemarks.internal.gc.winnow.dev"
	// Referrers stands for all resources whose objects may refer to ConfigMaps and Secrets. They are observed while a policy has
	// after: Unused. Policies cannot name it, and it is not in the table.
	Referrers = "referrers of ConfigMaps and Secrets"
)

// Kind is one resource.
type Kind struct {
	// Resource is the name that policies use: "resource.group".
	Resource         string
	GroupVersionKind schema.GroupVersionKind
	Plural           string
	// Owners are the resources that may own objects of this kind, and must be observed before such an object is deleted.
	Owners []string
	// Ended is a field selector that every finished object matches; empty if there is none.
	Ended string
	// New returns an empty object.
	New func() runtime.Object

	// Finishes says that it is known when objects of the kind have finished. HasNeeds says that they may need some of what they control
	// although it is independent of them.
	Finishes, HasNeeds bool
	Independent        lifecycle.Independence
	// Fields are the paths of an object that its lifecycle reads besides the metadata, as expressions.Union returns them.
	Fields [][]string
	// Source is empty for the kinds of Builtin, which never change.
	Source Source

	// fact reduces an object. It is nil for a resource that policies cannot name.
	fact func(object any) (*lifecycle.Fact, error)
}

// Table has the resources that are known at a time. It never changes: when a resource comes, goes or gets another lifecycle, there is a new
// table. A Kind that has not changed is the same in both.
type Table struct {
	kinds     map[string]*Kind // by resource
	owners    map[schema.GroupKind]*Kind
	finishing []string // sorted

	// Referrers are sorted. Undiscovered is why others may be missing; empty if none is.
	Referrers    []*Referrer
	Undiscovered string
}

// Builtin returns the table of the resources that every cluster has.
func Builtin() *Table { return builtin }

var builtin = NewTable(&Kind{
	Resource: gc.ResourceJobs, GroupVersionKind: batchv1.SchemeGroupVersion.WithKind("Job"), Plural: "jobs",
	Owners: []string{CronJobs}, Finishes: true,
	New: func() runtime.Object { return &batchv1.Job{} }, fact: from(lifecycle.FromJob),
}, &Kind{
	Resource: gc.ResourcePods, GroupVersionKind: corev1.SchemeGroupVersion.WithKind("Pod"), Plural: "pods",
	Owners: []string{gc.ResourceJobs}, Finishes: true,
	Ended: "status.phase!=Pending,status.phase!=Running,status.phase!=Unknown",
	New:   func() runtime.Object { return &corev1.Pod{} }, fact: from(lifecycle.FromPod),
}, &Kind{
	Resource: CronJobs, GroupVersionKind: batchv1.SchemeGroupVersion.WithKind("CronJob"), Plural: "cronjobs",
	New: func() runtime.Object { return &batchv1.CronJob{} },
}, &Kind{
	Resource: ResourceQuotas, GroupVersionKind: corev1.SchemeGroupVersion.WithKind("ResourceQuota"), Plural: "resourcequotas",
	New: func() runtime.Object { return &corev1.ResourceQuota{} },
})

func from[O any](reduce func(*O) (*lifecycle.Fact, error)) func(any) (*lifecycle.Fact, error) {
	return func(object any) (*lifecycle.Fact, error) {
		o, ok := object.(*O)
		if !ok {
			return nil, unknownType(object)
		}
		return reduce(o)
	}
}

func unknownType(object any) error { return fmt.Errorf("objects of type %T are not known", object) }

// NewTable returns a table with some kinds. Of several with the same resource, the last counts.
func NewTable(all ...*Kind) *Table {
	kinds := make(map[string]*Kind, len(all))
	for _, k := range all {
		kinds[k.Resource] = k
	}
	return newTable(kinds)
}

// newTable returns a table with kinds by resource. Its referrers are not known, which is not the same as that there are none.
func newTable(kinds map[string]*Kind) *Table {
	t := &Table{
		kinds: kinds, owners: make(map[schema.GroupKind]*Kind, len(kinds)),
		Undiscovered: "Winnow has not found out yet which resources the cluster serves",
	}
	for _, k := range kinds {
		t.owners[k.GroupVersionKind.GroupKind()] = k
	}
	for resource := range t.kinds {
		if t.Finishes(resource) {
			t.finishing = append(t.finishing, resource)
		}
	}
	slices.Sort(t.finishing)
	return t
}

// WithReferrers returns a table with other referrers.
func (t *Table) WithReferrers(all []*Referrer, undiscovered string) *Table {
	out := *t
	out.Referrers, out.Undiscovered = all, undiscovered
	return &out
}

// SameReferrers reports whether another table has the same referrers.
func (t *Table) SameReferrers(other *Table) bool {
	return slices.Equal(t.Referrers, other.Referrers) && t.Undiscovered == other.Undiscovered
}

// With returns a table with another kind of one resource.
func (t *Table) With(k *Kind) *Table {
	all := maps.Clone(t.kinds)
	all[k.Resource] = k
	return newTable(all).WithReferrers(t.Referrers, t.Undiscovered)
}

// For returns the kind of a resource.
func (t *Table) For(resource string) (*Kind, error) {
	if k, ok := t.kinds[resource]; ok {
		return k, nil
	}
	return nil, fmt.Errorf("the cluster does not serve %s", resource)
}

// Changed returns the resources whose kind is another one than in an earlier table, or is in only one of them.
func (t *Table) Changed(before *Table) sets.Set[string] {
	out := sets.New[string]()
	for resource, k := range t.kinds {
		if before.kinds[resource] != k {
			out.Insert(resource)
		}
	}
	for resource := range before.kinds {
		if t.kinds[resource] == nil {
			out.Insert(resource)
		}
	}
	return out
}

// ForOwner returns the kind of an owner; nil if it is not in the table.
func (t *Table) ForOwner(owner schema.GroupKind) *Kind { return t.owners[owner] }

// Fact reduces an object of the kind.
func (k *Kind) Fact(object any) (*lifecycle.Fact, error) {
	if !k.Deletable() {
		return nil, fmt.Errorf("%s have no facts", k.Resource)
	}
	return k.fact(object)
}

// DecidesAsOwner reports whether the state of an object of the kind decides what may happen to what it controls.
func (k *Kind) DecidesAsOwner() bool { return k.Finishes || k.HasNeeds }

// Deletable reports whether policies can name the resource.
func (k *Kind) Deletable() bool { return k.fact != nil }

// GroupVersionResource returns the resource in the version that is read.
func (k *Kind) GroupVersionResource() schema.GroupVersionResource {
	return k.GroupVersionKind.GroupVersion().WithResource(k.Plural)
}

// Path returns the URL path of an object. Without a name, it is the path of all objects in the namespace; without a namespace, of all
// objects.
func (k *Kind) Path(namespace, name string) []string {
	gv := k.GroupVersionKind.GroupVersion()
	path := []string{"/apis", gv.Group, gv.Version}
	if gv.Group == "" {
		path = []string{"/api", gv.Version}
	}
	if namespace != "" {
		path = append(path, "namespaces", namespace)
	}
	if path = append(path, k.Plural); name != "" {
		path = append(path, name)
	}
	return path
}

// Finishes reports whether policies can name a resource, and it is known when its objects have finished.
func (t *Table) Finishes(resource string) bool {
	k := t.kinds[resource]
	return k != nil && k.Finishes && k.Deletable()
}

// Finishing returns the resources that finish, sorted.
func (t *Table) Finishing() []string { return t.finishing }

// MayNeed reports whether objects of a resource may need some of what is independent of them.
func (t *Table) MayNeed(resource string) bool {
	k := t.kinds[resource]
	return k != nil && k.HasNeeds
}

// Needing returns the resources whose objects may need some of what is independent of them, sorted.
func (t *Table) Needing() []string {
	var out []string
	for resource, k := range t.kinds {
		if k.HasNeeds {
			out = append(out, resource)
		}
	}
	slices.Sort(out)
	return out
}

// Deletable returns the resources that policies can name, sorted.
func (t *Table) Deletable() []string {
	var out []string
	for resource, k := range t.kinds {
		if k.Deletable() {
			out = append(out, resource)
		}
	}
	slices.Sort(out)
	return out
}

// WithOwners adds to resources their owners that policies can name, and the owners of these.
func (t *Table) WithOwners(resources ...string) []string {
	out := slices.Clone(resources)
	for i := 0; i < len(out); i++ {
		for _, owner := range t.ownersOf(out[i], true) {
			if !slices.Contains(out, owner.Resource) {
				out = append(out, owner.Resource)
			}
		}
	}
	return out
}

// ObservedOwners returns the owners of a resource that policies cannot name.
func (t *Table) ObservedOwners(resource string) []*Kind { return t.ownersOf(resource, false) }

// ownersOf returns the owners of a resource that policies can name, or those that policies cannot name.
func (t *Table) ownersOf(resource string, deletable bool) []*Kind {
	var out []*Kind
	if k, ok := t.kinds[resource]; ok {
		for _, owner := range k.Owners {
			if o, ok := t.kinds[owner]; ok && o.Deletable() == deletable {
				out = append(out, o)
			}
		}
	}
	return out
}
