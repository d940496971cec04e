// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
)

// Why gc.ResourceAll is refused.
const (
	allOfNamespace = "is allowed only in a rule of a ClusterCleanupPolicy, because it also names resources that are installed later; " +
		"name each resource"
	allInCeiling = "is not allowed in a ceiling, which counts each resource separately; name each resource"
	allAndOthers = "must be the only entry, because it names all resources that have a lifecycle"
)

// resources returns the resources that a rule or a ceiling names, or the default. gc.ResourceAll names at least the default.
func resources(named []string) sets.Set[string] {
	out := sets.New(named...)
	if len(named) == 0 || out.Has(gc.ResourceAll) {
		out.Insert(gc.DefaultResources()...)
	}
	return out
}

// validateResources checks the resources of a rule or a ceiling. If noWildcard is not empty, it is why gc.ResourceAll is refused.
func validateResources(resources []string, noWildcard string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, r := range resources {
		path, reason := path.Index(i), ""
		switch {
		case r != gc.ResourceAll:
			reason = gc.ResourceRefusal(r)
		case noWildcard != "":
			reason = noWildcard
		case len(resources) > 1:
			reason = allAndOthers
		}
		switch {
		case reason != "":
			errs = append(errs, field.Invalid(path, r, reason))
		case slices.Contains(resources[:i], r):
			err := field.Duplicate(path, r)
			err.Detail = "name each resource once"
			errs = append(errs, err)
		}
	}
	return errs
}
