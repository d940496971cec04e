// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
)

// Served returns what the cluster says of a resource.
type Served func(resource string) gc.ServedResource

// NamedResources returns the resources that any policy names. It fails if not all policies are known.
type NamedResources func() (sets.Set[string], error)

// NamedResource is a resource that a field names.
type NamedResource struct {
	Resource string
	Field    *field.Path
	// Finished says that only finished objects of the resource matter. Kept says that none are deleted.
	Finished, Kept bool
}

// NamedIn returns the resources that the field of a rule or of a ceiling names.
func NamedIn(resources []string, at *field.Path) []NamedResource {
	var out []NamedResource
	for i, resource := range resources {
		if resource != gc.ResourceAll {
			out = append(out, NamedResource{Resource: resource, Field: at.Child("resources").Index(i), Finished: true})
		}
	}
	return out
}

// NamedByRules returns the resources that the rules of a policy name.
func NamedByRules(spec *gc.CleanupPolicySpec) []NamedResource {
	var out []NamedResource
	for i := range spec.Rules {
		named := NamedIn(spec.Rules[i].Resources, field.NewPath("spec", "rules").Index(i))
		for j := range named {
			named[j].Finished = spec.Rules[i].After == "" || spec.Rules[i].After == gc.AfterFinished
			named[j].Kept = keeps(&spec.Rules[i])
		}
		out = append(out, named...)
	}
	return out
}

// keeps reports whether a rule deletes nothing.
func keeps(r *gc.CleanupRule) bool {
	if r.Capacity != nil {
		return false
	}
	if r.TTL == nil {
		return true
	}
	_, never, err := r.TTL.Parse()
	return err == nil && never
}

// namesResources compares the resources that policies name with those that the cluster serves.
type namesResources struct {
	served Served
	kind   string
	in     func(Policy) []NamedResource
}

// check refuses a policy that names a resource whose objects Winnow cannot delete, unless it did so before: what a cluster serves changes.
func (n namesResources) check(_ context.Context, object, before runtime.Object) error {
	p := object.(Policy)
	old, _ := before.(Policy)
	if errs := n.refused(p, old); len(errs) > 0 {
		return apierrors.NewInvalid(gc.Kind(n.kind), p.GetName(), errs)
	}
	return nil
}

// refused returns an error for each resource whose objects Winnow cannot delete, and that the old policy does not name; see check.
func (n namesResources) refused(p, old Policy) field.ErrorList {
	before := sets.New[string]()
	if old != nil {
		for _, r := range n.in(old) {
			before.Insert(r.Resource)
		}
	}
	var errs field.ErrorList
	for _, r := range n.in(p) {
		if refusal := n.served(r.Resource).Refusal; refusal != "" && !before.Has(r.Resource) {
			errs = append(errs, field.Invalid(r.Field, r.Resource, refusal))
		}
	}
	return errs
}

// warnings returns a line for each resource that the cluster does not serve, or whose objects never finish although only finished ones
// matter, and one for each whose objects take data along when they are deleted.
func (n namesResources) warnings(p Policy) []string {
	var out []string
	for _, r := range n.in(p) {
		served := n.served(r.Resource)
		if loss := served.DataLoss(r.Resource); loss != "" && !r.Kept {
			out = append(out, fmt.Sprintf("%s: %s", r.Field, loss))
		}
		switch {
		case served.Missing:
			out = append(out, fmt.Sprintf("%s: %s", r.Field, served.Unserved(r.Resource)))
		case served.Endless && r.Finished:
			out = append(out, fmt.Sprintf("%s: %s have no lifecycle, so Winnow does not know when they have finished and deletes none; "+
				"write a ResourceLifecycle, or set after: Created or after: Matched", r.Field, r.Resource))
		}
	}
	return out
}
