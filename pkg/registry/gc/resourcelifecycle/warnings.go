// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package resourcelifecycle

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/registry/gc/internal/schemas"
)

// Cluster tells of resources.
type Cluster interface {
	// Served returns what the cluster says of a resource.
	Served(resource string) gc.ServedResource
	// Schema returns the schema of a resource, without references; nil if none is known.
	Schema(resource string) (*spec.Schema, error)
}

// warn adds warnings about a lifecycle that was written to the response.
func (r *REST) warn(ctx context.Context, object runtime.Object) {
	if l, ok := object.(*gc.ResourceLifecycle); ok {
		for _, line := range r.warnings(l) {
			warning.AddWarning(ctx, "", line)
		}
	}
}

// warnings returns what is valid but probably not meant.
func (r *REST) warnings(l *gc.ResourceLifecycle) []string {
	switch served := r.cluster.Served(l.Name); {
	case served.Refusal != "":
		return []string{fmt.Sprintf("the lifecycle has no effect: %s %s", l.Name, served.Refusal)}
	case served.Missing:
		return []string{served.Unserved(l.Name)}
	}
	at := field.NewPath("spec")
	written := []schemas.Expression{
		{Field: at.Child("finished", "when"), Text: l.Spec.Finished.When},
		{Field: at.Child("finished", "succeeded"), Text: l.Spec.Finished.Succeeded},
		{Field: at.Child("finished", "at"), Text: l.Spec.Finished.At},
	}
	if l.Spec.NativeTTL != "" {
		written = append(written, schemas.Expression{Field: at.Child("nativeTTL"), Text: l.Spec.NativeTTL})
	}
	return schemas.Source(r.cluster.Schema).Misfits(l.Name, written)
}
