// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package resourcelifecycle

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/warning"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/registry/gc/schemas"
)

// Served returns what the cluster says of a resource.
type Served func(resource string) gc.ServedResource

// warn adds warnings about a lifecycle that was written to the response.
func (r *REST) warn(ctx context.Context, object runtime.Object) {
	if l, ok := object.(*gc.ResourceLifecycle); ok {
		for _, line := range r.warnings(ctx, l) {
			warning.AddWarning(ctx, "", line)
		}
	}
}

// warnings returns what is valid but probably not meant.
func (r *REST) warnings(ctx context.Context, l *gc.ResourceLifecycle) []string {
	served := r.served(l.Name)
	ineffective, wholly := served.Ineffective(l.Name, l.Spec.Finished != nil, len(l.Spec.References) > 0)
	switch {
	case wholly:
		return []string{ineffective}
	case served.Missing:
		return []string{served.Unserved(l.Name)}
	}
	at := field.NewPath("spec")
	var written []schemas.Expression
	if f := l.Spec.Finished; f != nil {
		written = append(written,
			schemas.Expression{Field: at.Child("finished", "when"), Text: f.When},
			schemas.Expression{Field: at.Child("finished", "succeeded"), Text: f.Succeeded},
			schemas.Expression{Field: at.Child("finished", "at"), Text: f.At},
		)
	}
	for i, r := range l.Spec.References {
		written = append(written, schemas.Expression{Field: at.Child("references").Index(i).Child("names"), Text: r.Names})
	}
	if l.Spec.Needs != "" {
		written = append(written, schemas.Expression{Field: at.Child("needs"), Text: l.Spec.Needs})
	}
	if l.Spec.NativeTTL != "" {
		written = append(written, schemas.Expression{Field: at.Child("nativeTTL"), Text: l.Spec.NativeTTL})
	}
	out := r.schemas.Misfits(ctx, schemas.Use{Resources: []string{l.Name}, Expressions: written})
	if loss := served.DataLoss(l.Name); loss != "" && l.Spec.Finished != nil {
		out = slices.Insert(out, 0, loss)
	}
	if ineffective != "" {
		out = slices.Insert(out, 0, ineffective)
	}
	return out
}
