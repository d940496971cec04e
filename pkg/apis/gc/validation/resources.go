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

// refusalsAfter returns what refuses the resources of a rule.
func refusalsAfter(after gc.After) func(string, *field.Path) *field.Error {
	switch after {
	case gc.AfterUnused:
		return refuseUnlessUnused
	case gc.AfterCreated:
		return refuseResource
	case gc.AfterFinished:
	}
	return refuseUnlessFinishing("set after: Created in the rule")
}

// refuseUnlessFinishing refuses Events too, and says what to do instead.
func refuseUnlessFinishing(instead string) func(string, *field.Path) *field.Error {
	return func(resource string, path *field.Path) *field.Error {
		if resource == gc.ResourceEvents {
			return field.Invalid(path, resource, "Events never finish; "+instead)
		}
		return refuseResource(resource, path)
	}
}

var refuseInCeiling = refuseUnlessFinishing("a ceiling counts finished objects only")

// refuseResource returns why no policy can name a resource; nil if one can.
func refuseResource(resource string, path *field.Path) *field.Error {
	if reason := gc.ResourceRefusal(resource); reason != "" {
		return field.Invalid(path, resource, reason)
	}
	return nil
}

// refuseUnlessUnused returns why a rule with after: Unused cannot name a resource; nil if it can.
func refuseUnlessUnused(resource string, path *field.Path) *field.Error {
	if gc.CanBeUnused(resource) {
		return nil
	}
	err := field.NotSupported(path, resource, []string{gc.ResourceConfigMaps, gc.ResourceSecrets})
	err.Detail += "; only these can be unused; for other resources, leave out after"
	return err
}

// validateResources checks the resources of a rule or a ceiling. refuse checks one that is not gc.ResourceAll. If noWildcard is not empty,
// it is why gc.ResourceAll is refused.
func validateResources(
	resources []string, refuse func(string, *field.Path) *field.Error, noWildcard string, path *field.Path,
) field.ErrorList {
	var errs field.ErrorList
	for i, r := range resources {
		path, refusal := path.Index(i), (*field.Error)(nil)
		switch {
		case r != gc.ResourceAll:
			refusal = refuse(r, path)
		case noWildcard != "":
			refusal = field.Invalid(path, r, noWildcard)
		case len(resources) > 1:
			refusal = field.Invalid(path, r, allAndOthers)
		}
		switch {
		case refusal != nil:
			errs = append(errs, refusal)
		case slices.Contains(resources[:i], r):
			err := field.Duplicate(path, r)
			err.Detail = "name each resource once"
			errs = append(errs, err)
		}
	}
	return errs
}
