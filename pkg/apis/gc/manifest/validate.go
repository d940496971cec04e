// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/apis/gc/validation"
)

// Validate returns a policy or lifecycle of a served version as the internal version, with defaults, and what is wrong with its values.
func Validate(ctx context.Context, scheme *runtime.Scheme, object runtime.Object) (runtime.Object, field.ErrorList, error) {
	scheme.Default(object)
	errs := scheme.Validate(ctx, nil, object)
	converted, err := scheme.ConvertToVersion(object, gc.SchemeGroupVersion)
	if err != nil {
		return nil, nil, err
	}
	var byHand field.ErrorList
	switch converted := converted.(type) {
	case *gc.CleanupPolicy:
		byHand = validation.ValidateCleanupPolicy(converted)
	case *gc.ClusterCleanupPolicy:
		byHand = validation.ValidateClusterCleanupPolicy(converted)
	case *gc.ResourceLifecycle:
		byHand = validation.ValidateResourceLifecycle(converted)
	default:
		return nil, nil, fmt.Errorf("a %T cannot be validated", object)
	}
	return converted, validation.DidYouMean(validation.OneErrorForEachField(append(errs, byHand.MarkFromImperative()...))), nil
}

// Refusals are the errors about unknown fields, and with them the errors about values, so that one answer names all. content is the whole
// object; nil if it is not known.
func (c *Checker) Refusals(ctx context.Context, scheme *runtime.Scheme, kind schema.GroupVersionKind, content map[string]any) []error {
	wrong := c.Wrong
	if len(wrong) == 0 && content != nil {
		wrong = wrongValues(ctx, scheme, kind, content)
	}
	out := c.Unknown
	for _, err := range wrong {
		out = append(out, err)
	}
	return out
}

// wrongValues returns what is wrong with the values in the spec of an object, except in unknown fields. Where the request has the name and
// the namespace, its body need not have them, so metadata is left to later checks.
func wrongValues(ctx context.Context, scheme *runtime.Scheme, kind schema.GroupVersionKind, content map[string]any) field.ErrorList {
	object, err := scheme.New(kind)
	if err != nil {
		return nil
	}
	encoded, err := json.Marshal(content)
	if err != nil || json.Unmarshal(encoded, object) != nil {
		return nil
	}
	_, errs, err := Validate(ctx, scheme, object)
	if err != nil {
		return nil // It is neither a policy nor a lifecycle.
	}
	var out field.ErrorList
	for _, e := range errs {
		if strings.HasPrefix(e.Field, "spec.") {
			out = append(out, e)
		}
	}
	return out
}
