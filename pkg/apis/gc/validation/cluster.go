// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"strings"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
)

// ValidateClusterCleanupPolicy checks a cluster policy that is created.
func ValidateClusterCleanupPolicy(p *gc.ClusterCleanupPolicy) field.ErrorList {
	meta := field.NewPath("metadata")
	errs := apivalidation.ValidateObjectMeta(&p.ObjectMeta, false, apivalidation.NameIsDNSSubdomain, meta)
	errs = append(errs, validateTies("policies", p.ObjectMeta, metav1.ObjectMeta{}, meta)...)
	return append(errs, validateClusterSpec(&p.Spec, nil, field.NewPath("spec"))...)
}

// ValidateClusterCleanupPolicyUpdate checks a cluster policy that replaces another; the generic registry checks its
// metadata.
func ValidateClusterCleanupPolicyUpdate(p, old *gc.ClusterCleanupPolicy) field.ErrorList {
	errs := validateTies("policies", p.ObjectMeta, old.ObjectMeta, field.NewPath("metadata"))
	return append(errs, validateClusterSpec(&p.Spec, old.Spec.Defaults(), field.NewPath("spec"))...)
}

func validateClusterSpec(spec *gc.ClusterCleanupPolicySpec, old *gc.CleanupPolicySpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if spec.Mode == "" {
		errs = append(
			errs,
			field.Required(
				path.Child("mode"),
				`must be set for a cluster policy: "Preview" shows what would be deleted, "Enforce" deletes it`,
			),
		)
	}
	if selector := path.Child("namespaceSelector"); spec.NamespaceSelector == nil {
		errs = append(
			errs,
			field.Required(selector, "select the namespaces that the policy applies to; {} selects all except protected ones"),
		)
	} else {
		errs = append(errs, validateSelector(spec.NamespaceSelector, selector)...)
	}
	errs = append(errs, validateSpec(spec.Defaults(), old, "", path)...)
	if spec.Guardrails != nil {
		errs = append(errs, validateGuardrails(spec.Guardrails, path.Child("guardrails"))...)
	}
	return errs
}

// validateGuardrails does not check the ranges of numbers, because the tags of the type do.
func validateGuardrails(g *gc.Guardrails, path *field.Path) field.ErrorList {
	maxTTL := path.Child("maxTTL")
	errs := validateDuration(g.MinTTL, path.Child("minTTL"))
	errs = append(errs, validateDuration(g.MaxTTL, maxTTL)...)
	errs = append(errs, validateMinNotice(g.MinNotice, path.Child("minNotice"))...)
	if g.MaxTTL == nil && g.AllowNever != nil && !*g.AllowNever {
		errs = append(
			errs,
			field.Required(
				maxTTL,
				`must be set when allowNever is false: the longest time that "never" keeps an object, for example "30d"`,
			),
		)
	}
	if h := g.HoldAbove; h != nil && h.Objects == nil && h.Percent == nil && h.Total == nil {
		errs = append(errs, field.Required(
			path.Child("holdAbove"),
			"set objects (how many objects one change may make due in a namespace, for example 1000), "+
				"percent (which share of what a rule decides for there, for example 50), or total (in all namespaces, for example 5000)",
		))
	}
	errs = append(errs, validateWindows(g.Windows, path.Child("windows"))...)
	return append(errs, validateCeilings(g.Ceilings, path.Child("ceilings"))...)
}

func validateCeilings(ceilings []gc.Ceiling, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	bounded := sets.New[string]()
	for i := range ceilings {
		path, named := path.Index(i), resources(ceilings[i].Resources)
		errs = append(errs, validateResources(ceilings[i].Resources, refuseInCeiling, allInCeiling, path.Child("resources"))...)
		if twice := sets.List(named.Intersection(bounded)); len(twice) > 0 {
			err := field.Duplicate(path.Child("resources"), strings.Join(twice, ", "))
			err.Detail = "another ceiling of this policy names the same resource; name it in only one of them"
			errs = append(errs, err)
		}
		bounded = bounded.Union(named)
		if ceilings[i].MaxObjects == nil {
			errs = append(errs, field.Required(path.Child("maxObjects"),
				"set how many finished objects all selected namespaces keep together, for example 12500"))
		}
	}
	return errs
}
