// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
)

// Why gc.ResourceAll is refused.
const (
	allWithoutAccount = "is allowed only in a policy with spec.serviceAccountName, or in a ClusterCleanupPolicy, because it also names " +
		"resources that are installed later; name each resource, or an account that may delete them"
	allInCeiling = "is not allowed in a ceiling, which counts each resource separately; name each resource"
	allAndOthers = "must be the only entry, because it names all resources that have a lifecycle"
)

// noWildcard returns why the rules of a CleanupPolicy must not name gc.ResourceAll; empty if they may. With an account, the API server
// asks at each DELETE whether the account may delete this resource.
func noWildcard(spec *gc.CleanupPolicySpec) string {
	if spec.ServiceAccountName != "" {
		return ""
	}
	return allWithoutAccount
}

// resources returns the resources that a rule or a ceiling names, or the default. gc.ResourceAll names at least the default.
func resources(named []string) sets.Set[string] {
	out := sets.New(named...)
	if len(named) == 0 || out.Has(gc.ResourceAll) {
		out.Insert(gc.DefaultResources()...)
	}
	return out
}

// refusalsBy returns what refuses the resources of a rule with a trigger.
func refusalsBy(t *gc.Trigger) func(string, *field.Path) *field.Error {
	return func(resource string, path *field.Path) *field.Error {
		switch {
		case t.CanName(resource):
			return refuseResource(resource, path)
		case t.NeedsFinish():
			return field.Invalid(path, resource, neverFinish+"set after: Created in the rule")
		case len(t.Resources) == 0:
			return field.Invalid(path, resource, "Events can be counted only from their creation; set after: Created in the rule")
		}
		err := field.NotSupported(path, resource, t.Resources)
		err.Detail += fmt.Sprintf("; only these %s; for other resources, set after: Created or after: Matched, "+
			"or leave out after if they finish", t.OnlyThese)
		return err
	}
}

const neverFinish = "Events never finish; "

// refuseInCeiling refuses what never finishes too.
func refuseInCeiling(resource string, path *field.Path) *field.Error {
	if !gc.TriggerOf(gc.AfterFinished).CanName(resource) {
		return field.Invalid(path, resource, neverFinish+"a ceiling counts finished objects only")
	}
	return refuseResource(resource, path)
}

// refuseResource returns why no policy can name a resource; nil if one can.
func refuseResource(resource string, path *field.Path) *field.Error {
	if reason := gc.ResourceRefusal(resource); reason != "" {
		return field.Invalid(path, resource, reason)
	}
	return nil
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
