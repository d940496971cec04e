// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/registry/gc/schemas"
)

// conditionsOf returns the match conditions of each rule and what it waits for, to be checked against the schemas of its resources.
func conditionsOf(spec *gc.CleanupPolicySpec) []schemas.Use {
	var out []schemas.Use
	for i := range spec.Rules {
		r, path := &spec.Rules[i], field.NewPath("spec", "rules").Index(i)
		use := schemas.Use{Resources: r.Resources}
		if len(use.Resources) == 0 {
			use.Resources = gc.DefaultResources()
		}
		if slices.Contains(use.Resources, gc.ResourceAll) {
			continue
		}
		for j, c := range r.MatchConditions {
			use.Expressions = append(use.Expressions, schemas.Expression{
				Field: path.Child("matchConditions").Index(j).Child("expression"), Text: c.Expression,
			})
		}
		if r.WaitFor != nil {
			use.Expressions = append(use.Expressions, schemas.Expression{
				Field: path.Child("waitFor", "expression"), Text: r.WaitFor.Expression,
			})
		}
		out = append(out, use)
	}
	return out
}
