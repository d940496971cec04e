// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package resourcelifecycle

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/expressions"
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

// warnings returns what is valid but probably not meant. Schemas change, so expressions that do not fit one are no errors.
func (r *REST) warnings(l *gc.ResourceLifecycle) []string {
	switch served := r.cluster.Served(l.Name); {
	case served.Refusal != "":
		return []string{fmt.Sprintf("the lifecycle has no effect: %s %s", l.Name, served.Refusal)}
	case served.Missing:
		return []string{served.Unserved(l.Name)}
	}
	types, err := r.types(l.Name)
	switch {
	case err != nil:
		return []string{fmt.Sprintf("the expressions could not be checked against the schema of %s: %v", l.Name, err)}
	case types == nil:
		return nil
	}
	var out []string
	at := field.NewPath("spec")
	for _, e := range []struct {
		field *field.Path
		text  string
	}{
		{at.Child("finished", "when"), l.Spec.Finished.When},
		{at.Child("finished", "succeeded"), l.Spec.Finished.Succeeded},
		{at.Child("finished", "at"), l.Spec.Finished.At},
		{at.Child("nativeTTL"), l.Spec.NativeTTL},
	} {
		if e.text == "" {
			continue
		}
		if err := types.Check(e.text); err != nil {
			first, _, _ := strings.Cut(err.Error(), "\n") // The next lines draw where it is.
			out = append(out, fmt.Sprintf("%s does not fit the schema of %s: %s. Objects for which it fails are kept", e.field, l.Name,
				strings.TrimPrefix(first, "ERROR: <input>:")))
		}
	}
	return out
}

// types returns what the schema of a resource says of expressions; nil if no schema is known.
func (r *REST) types(resource string) (*expressions.Types, error) {
	schema, err := r.cluster.Schema(resource)
	if err != nil || schema == nil {
		return nil, err
	}
	return expressions.NewTypes(schema)
}
