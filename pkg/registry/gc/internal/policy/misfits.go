// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/registry/gc/internal/schemas"
)

// misfits returns a line for each match condition that does not fit the schema of a resource of its rule.
func misfits(spec *gc.CleanupPolicySpec, schema schemas.Source) []string {
	var out []string
	for i := range spec.Rules {
		r, at := &spec.Rules[i], field.NewPath("spec", "rules").Index(i).Child("matchConditions")
		var written []schemas.Expression
		for j, c := range r.MatchConditions {
			written = append(written, schemas.Expression{Field: at.Index(j).Child("expression"), Text: c.Expression})
		}
		resources := r.Resources
		if len(resources) == 0 {
			resources = gc.DefaultResources()
		}
		for _, resource := range resources {
			if len(written) > 0 && resource != gc.ResourceAll {
				out = append(out, schema.Misfits(resource, written)...)
			}
		}
	}
	return out
}
