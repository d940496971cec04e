// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/registry/gc/internal/permission"
)

// verbApprove is the verb that releasing the holds of a policy requires. Operators can remove it from a role.
const verbApprove = "approve"

var annotationApprovedHold = field.NewPath("metadata", "annotations").Key(gc.AnnotationApprovedHold)

// rightsToApprove returns the permissions that a write needs for the holds that it releases, as far as the status lists them.
func (a author) rightsToApprove(p, old Policy) sets.Set[permission.Permission] {
	ids := gc.NewlyApproved(p, old)
	if len(ids) == 0 {
		return nil
	}
	rights := sets.New(permission.Permission{
		Verb: verbApprove, Resource: a.Resource.String(), Namespace: p.GetNamespace(), Name: p.GetName(),
	})
	for _, h := range a.waiting(old) {
		if slices.Contains(ids, h.ID) {
			rights = rights.Union(rightsOf(&h))
		}
	}
	return rights
}

// rightsOf returns the permissions on the objects that wait under a hold, whatever the current spec says.
func rightsOf(h *gc.PolicyHold) sets.Set[permission.Permission] {
	resources := h.Resources
	if len(resources) == 0 { // An older version did not write them.
		resources = gc.DefaultResources()
	}
	return permission.ToDelete(sets.New(resources...), h.Namespace)
}

// waiting returns the holds in the status of a policy.
func (a author) waiting(p Policy) []gc.PolicyHold {
	if p == nil {
		return nil
	}
	return a.status(p).Holds
}

// checkApproved refuses an id that belongs to no hold: neither to one that the policy has, nor to one that this write makes. The
// forecast knows both. Ids can be computed ahead, and nobody may approve a hold that nobody has seen. The status counts only where the
// leading replica was not asked, or had no time: others than Winnow may write the status, so it never reduces the rights that are
// needed.
func (a author) checkApproved(ctx context.Context, p, old Policy, forecast gc.PolicyForecast) error {
	var errs field.ErrorList
	rights := sets.New[permission.Permission]()
	all := forecast.Holds
	if !forecast.Complete || !forecast.Leading {
		all = slices.Concat(a.waiting(old), all)
	}
	for _, id := range gc.NewlyApproved(p, old) {
		found := slices.DeleteFunc(slices.Clone(all), func(h gc.PolicyHold) bool { return h.ID != id })
		if len(found) == 0 {
			unknown, err := a.unknown(ctx, id, forecast, all)
			if err != nil {
				return err
			}
			errs = append(errs, unknown)
		}
		for i := range found {
			if h := &found[i]; h.Policy != "" {
				errs = append(errs, ofAnother(id, h.Owner(types.NamespacedName{})))
				break
			}
			rights = rights.Union(rightsOf(&found[i]))
			if forecast.Complete && !has(forecast.Holds, id) { // Only the status lists the hold, and perhaps not all of its resources.
				rights = rights.Union(rightsOf(&gc.PolicyHold{Namespace: found[i].Namespace}))
			}
		}
	}
	if len(errs) > 0 {
		return apierrors.NewInvalid(gc.Kind(a.kind), p.GetName(), errs)
	}
	return a.demand(ctx, p, rights)
}

// unknown returns the error about an ID that belongs to no hold of the policy, or about not being able to find out.
func (a author) unknown(ctx context.Context, id string, forecast gc.PolicyForecast, all []gc.PolicyHold) (*field.Error, error) {
	if owner, ok := forecast.Elsewhere[id]; ok && a.mayRead(ctx, owner) {
		return ofAnother(id, owner), nil
	}
	if !forecast.Complete {
		return nil, apierrors.NewServiceUnavailable(fmt.Sprintf("%s: cannot tell in time whether %q is the ID of a hold; "+
			"try again, or write the change without the annotation and approve once status.holds lists the hold",
			annotationApprovedHold, id))
	}
	return field.Invalid(annotationApprovedHold, id, "is not the ID of a hold of this policy; "+waitingText(all)), nil
}

// ofAnother returns the error about a hold of another policy.
func ofAnother(id string, owner types.NamespacedName) *field.Error {
	return field.Invalid(annotationApprovedHold, id, fmt.Sprintf("is the ID of a hold of %s; approve it there: %s",
		gc.PolicyTitle(owner.Namespace, owner.Name), gc.ApproveCommand(owner.Namespace, owner.Name, id)))
}

// mayRead reports whether the user may get a policy.
func (a author) mayRead(ctx context.Context, policy types.NamespacedName) bool {
	who, ok := genericapirequest.UserFrom(ctx)
	if !ok {
		return false
	}
	resource, _, _ := strings.Cut(gc.PolicyTitle(policy.Namespace, policy.Name), "/")
	missing, err := a.Missing(ctx, who, []permission.Permission{
		{Verb: "get", Resource: resource, Namespace: policy.Namespace, Name: policy.Name},
	})
	return err == nil && len(missing) == 0
}

func has(holds []gc.PolicyHold, id string) bool {
	return slices.ContainsFunc(holds, func(h gc.PolicyHold) bool { return h.ID == id })
}

// waitingMost is how many holds a message names.
const waitingMost = 10

// waitingText lists the holds that can be approved.
func waitingText(all []gc.PolicyHold) string {
	var ids []string
	for i := range all {
		h := &all[i]
		name := fmt.Sprintf("%s (%d in %s)", h.ID, h.Objects, cmp.Or(h.Namespace, "all namespaces"))
		known := slices.ContainsFunc(ids, func(id string) bool { return strings.HasPrefix(id, h.ID+" ") })
		if h.Policy == "" && !known {
			ids = append(ids, name)
		}
	}
	unlisted := max(0, len(ids)-waitingMost)
	ids = ids[:len(ids)-unlisted]
	switch {
	case unlisted > 0:
		return fmt.Sprintf("these wait for approval: %s, and %d more in status.holds", strings.Join(ids, ", "), unlisted)
	case len(ids) > 0:
		return "these wait for approval: " + strings.Join(ids, ", ")
	}
	return "nothing of this policy waits for approval"
}
