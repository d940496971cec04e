// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kinds is the one table of the resources that Winnow observes: those that policies can name, their owners, and ResourceQuotas. A
// resource that is not in the table is an error. The package is pure.
package kinds

import (
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/lifecycle"
)

const (
	// CronJobs are observed as owners of Jobs. Policies cannot name them.
	CronJobs = "cronjobs.batch"
	// ResourceQuotas are observed while a policy has percentOfQuota. Policies cannot name them.
	ResourceQuotas = "resourcequotas"
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

	// fact reduces an object; ok is false for another Go type. It is nil for a resource that policies cannot name.
	fact func(object any) (f *lifecycle.Fact, ok bool, err error)
}

var table = []*Kind{{
	Resource: gc.ResourceJobs, GroupVersionKind: batchv1.SchemeGroupVersion.WithKind("Job"), Plural: "jobs",
	Owners: []string{CronJobs},
	New:    func() runtime.Object { return &batchv1.Job{} }, fact: from(lifecycle.FromJob),
}, {
	Resource: gc.ResourcePods, GroupVersionKind: corev1.SchemeGroupVersion.WithKind("Pod"), Plural: "pods",
	Owners: []string{gc.ResourceJobs},
	Ended:  "status.phase!=Pending,status.phase!=Running,status.phase!=Unknown",
	New:    func() runtime.Object { return &corev1.Pod{} }, fact: from(lifecycle.FromPod),
}, {
	Resource: CronJobs, GroupVersionKind: batchv1.SchemeGroupVersion.WithKind("CronJob"), Plural: "cronjobs",
	New: func() runtime.Object { return &batchv1.CronJob{} },
}, {
	Resource: ResourceQuotas, GroupVersionKind: corev1.SchemeGroupVersion.WithKind("ResourceQuota"), Plural: "resourcequotas",
	New: func() runtime.Object { return &corev1.ResourceQuota{} },
}}

func from[O any](reduce func(*O) (*lifecycle.Fact, error)) func(any) (*lifecycle.Fact, bool, error) {
	return func(object any) (*lifecycle.Fact, bool, error) {
		o, ok := object.(*O)
		if !ok {
			return nil, false, nil
		}
		f, err := reduce(o)
		return f, true, err
	}
}

// For returns the kind of a resource.
func For(resource string) (*Kind, error) {
	if i := slices.IndexFunc(table, func(k *Kind) bool { return k.Resource == resource }); i >= 0 {
		return table[i], nil
	}
	return nil, fmt.Errorf("resource %q is not known", resource)
}

// ForOwner returns the resource of an owner; empty if owners of this kind are not observed.
func ForOwner(owner schema.GroupKind) string {
	if i := slices.IndexFunc(table, func(k *Kind) bool { return k.GroupVersionKind.GroupKind() == owner }); i >= 0 {
		return table[i].Resource
	}
	return ""
}

// Fact reduces an object of any kind that policies can name.
func Fact(object any) (*lifecycle.Fact, error) {
	for _, k := range table {
		if !k.Deletable() {
			continue
		}
		if f, ok, err := k.fact(object); ok {
			return f, err
		}
	}
	return nil, fmt.Errorf("objects of type %T are not known", object)
}

// Deletable reports whether policies can name the resource.
func (k *Kind) Deletable() bool { return k.fact != nil }

// Path returns the URL path of an object. Without a name it is that of all objects of the namespace; without a namespace, of all objects.
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

// Deletable returns the resources that policies can name.
func Deletable() []string {
	var out []string
	for _, k := range table {
		if k.Deletable() {
			out = append(out, k.Resource)
		}
	}
	return out
}

// WithOwners adds to resources their owners that policies can name, and the owners of these.
func WithOwners(resources ...string) []string {
	out := slices.Clone(resources)
	for i := 0; i < len(out); i++ {
		for _, owner := range ownersOf(out[i], true) {
			if !slices.Contains(out, owner) {
				out = append(out, owner)
			}
		}
	}
	return out
}

// ObservedOwners returns the owners of a resource that policies cannot name.
func ObservedOwners(resource string) []string { return ownersOf(resource, false) }

// ownersOf returns the owners of a resource that policies can name, or those that policies cannot name.
func ownersOf(resource string, deletable bool) []string {
	k, err := For(resource)
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(k.Owners), func(owner string) bool {
		o, err := For(owner)
		return err != nil || o.Deletable() != deletable
	})
}
