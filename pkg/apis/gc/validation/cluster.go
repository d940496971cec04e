// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"strings"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
)

// ValidateClusterCleanupPolicy checks a cluster policy that is created.
func ValidateClusterCleanupPolicy(p *gc.ClusterCleanupPolicy) field.ErrorList {
	meta := field.NewPath("metadata")
	errs := apivalidation.ValidateObjectMeta(&p.ObjectMeta, false, apivalidation.NameIsDNSSubdomain, meta)
	errs = append(errs, validateFinalizers(p.Finalizers, nil, meta.Child("finalizers"))...)
	return append(errs, validateClusterSpec(&p.Spec, field.NewPath("spec"))...)
}

// ValidateClusterCleanupPolicyUpdate checks a cluster policy that replaces another; the generic registry checks its
// metadata.
func ValidateClusterCleanupPolicyUpdate(p, old *gc.ClusterCleanupPolicy) field.ErrorList {
	errs := validateFinalizers(p.Finalizers, old.Finalizers, field.NewPath("metadata", "finalizers"))
	return append(errs, validateClusterSpec(&p.Spec, field.NewPath("spec"))...)
}

func validateClusterSpec(spec *gc.ClusterCleanupPolicySpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if spec.Mode == "" {
		errs = append(errs, field.Required(path.Child("mode"), `has no default for a whole cluster; write "Preview" to count and show, or "Enforce" to delete`))
	}
	if selector := path.Child("namespaceSelector"); spec.NamespaceSelector == nil {
		errs = append(errs, field.Required(selector, "says which namespaces are meant; {} selects all but protected namespaces"))
	} else {
		errs = append(errs, validateSelector(spec.NamespaceSelector, selector)...)
	}
	errs = append(errs, validateSpec(spec.Defaults(), path)...)
	if spec.Guardrails != nil {
		errs = append(errs, validateGuardrails(spec.Guardrails, path.Child("guardrails"))...)
	}
	return errs
}

// validateGuardrails leaves the bounds of the numbers to the tags of the type.
func validateGuardrails(g *gc.Guardrails, path *field.Path) field.ErrorList {
	maxTTL := path.Child("maxTTL")
	errs := validateDuration(g.MinTTL, path.Child("minTTL"))
	errs = append(errs, validateDuration(g.MaxTTL, maxTTL)...)
	if g.MaxTTL == nil && g.AllowNever != nil && !*g.AllowNever {
		errs = append(errs, field.Required(maxTTL, `"allowNever: false" needs what "never" is cut to, for example "30d"`))
	}
	if g.HoldAbove != nil && g.HoldAbove.Objects == nil && g.HoldAbove.Total == nil {
		errs = append(errs, field.Required(path.Child("holdAbove"),
			"needs objects, which one change may make due at once in a namespace, for example 1000, or total, in all that it reaches, for example 5000"))
	}
	return append(errs, validateCeilings(g.Capacity, path.Child("capacity"))...)
}

func validateCeilings(ceilings []gc.Ceiling, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	bounded := sets.New[string]()
	for i := range ceilings {
		path, named := path.Index(i), resources(ceilings[i].Resources)
		errs = append(errs, validateResources(ceilings[i].Resources, path.Child("resources"))...)
		if twice := sets.List(named.Intersection(bounded).Intersection(sets.New(supportedResources...))); len(twice) > 0 {
			err := field.Duplicate(path.Child("resources"), strings.Join(twice, ", "))
			err.Detail = "another ceiling of this policy bounds the same; name each resource in one of them"
			errs = append(errs, err)
		}
		bounded = bounded.Union(named)
		if ceilings[i].MaxObjects == nil {
			errs = append(errs, field.Required(path.Child("maxObjects"),
				"says how many finished objects all selected namespaces keep together, for example 12500"))
		}
	}
	return errs
}
