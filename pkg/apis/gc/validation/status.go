// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
)

// ValidateStatus checks the status of a policy of either kind.
func ValidateStatus(s *gc.CleanupPolicyStatus) field.ErrorList {
	status := field.NewPath("status")
	errs := metav1validation.ValidateConditions(s.Conditions, status.Child("conditions"))
	for _, count := range []struct {
		field string
		value int64
	}{
		{"observedGeneration", s.ObservedGeneration},
		{"candidates", s.Candidates},
		{"due", s.Due},
		{"held", s.Held},
		{"waiting", s.Waiting},
		{"waitingForWindow", s.WaitingForWindow},
		{"unlistedHolds", s.UnlistedHolds},
		{"unlistedNamespaces", s.UnlistedNamespaces},
		{"deleted", s.Deleted},
	} {
		errs = append(errs, apivalidation.ValidateNonnegativeField(count.value, status.Child(count.field))...)
	}
	errs = append(errs, validateHolds(s.Holds, status.Child("holds"))...)
	errs = append(errs, validateCeilingStatuses(s.Ceilings, status.Child("ceilings"))...)
	return append(errs, validateNamespaceStatuses(s.Namespaces, status.Child("namespaces"))...)
}

func validateNamespaceStatuses(namespaces []gc.NamespaceStatus, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	names := sets.New[string]()
	for i, n := range namespaces {
		path := path.Index(i)
		switch {
		case n.Namespace == "":
			errs = append(errs, field.Required(path.Child("namespace"), "is where the objects are"))
		case names.Has(n.Namespace):
			errs = append(errs, field.Duplicate(path.Child("namespace"), n.Namespace))
		}
		names.Insert(n.Namespace)
		errs = append(errs, apivalidation.ValidateNonnegativeField(n.Candidates, path.Child("candidates"))...)
		errs = append(errs, apivalidation.ValidateNonnegativeField(n.Due, path.Child("due"))...)
		errs = append(errs, apivalidation.ValidateNonnegativeField(n.Held, path.Child("held"))...)
	}
	return errs
}

func validateCeilingStatuses(ceilings []gc.CeilingStatus, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	resources := sets.New[string]()
	for i, c := range ceilings {
		path := path.Index(i)
		switch {
		case c.Resource == "":
			errs = append(errs, field.Required(path.Child("resource"), "is the resource that the ceiling counts"))
		case resources.Has(c.Resource):
			errs = append(errs, field.Duplicate(path.Child("resource"), c.Resource))
		}
		resources.Insert(c.Resource)
		errs = append(errs, apivalidation.ValidateNonnegativeField(c.Objects, path.Child("objects"))...)
		errs = append(errs, apivalidation.ValidateNonnegativeField(c.MaxObjects, path.Child("maxObjects"))...)
		errs = append(errs, apivalidation.ValidateNonnegativeField(c.Over, path.Child("over"))...)
	}
	return errs
}

func validateHolds(holds []gc.PolicyHold, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	ids := sets.New[string]()
	for i := range holds {
		hold, path := &holds[i], path.Index(i)
		switch {
		case hold.ID == "":
			errs = append(errs, field.Required(path.Child("id"), "is what "+gc.AnnotationApprovedHold+" must say to release the hold"))
		case ids.Has(hold.ID):
			err := field.Duplicate(path.Child("id"), hold.ID)
			err.Detail = "every hold needs its own ID, so that no other is released with it"
			errs = append(errs, err)
		}
		ids.Insert(hold.ID)
		errs = append(errs, apivalidation.ValidateNonnegativeField(hold.Objects, path.Child("objects"))...)
	}
	return errs
}
