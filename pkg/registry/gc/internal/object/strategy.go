// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package object

import (
	"context"
	"fmt"
	"maps"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/operation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/names"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/pkg/apis/gc/validation"
)

// strategy is the strategy for create, update and delete.
type strategy[O Object, Spec, Status any] struct {
	rest.DeclarativeValidation
	names.NameGenerator
	kind Kind[O, Spec, Status]
}

type (
	anyStrategy       = strategy[*gc.CleanupPolicy, gc.CleanupPolicySpec, gc.CleanupPolicyStatus]
	anyStatusStrategy = statusStrategy[*gc.CleanupPolicy, gc.CleanupPolicySpec, gc.CleanupPolicyStatus]
)

var (
	_ rest.RESTCreateStrategy              = anyStrategy{}
	_ rest.RESTUpdateStrategy              = anyStrategy{}
	_ rest.GarbageCollectionDeleteStrategy = anyStrategy{}
	_ rest.DeclarativeValidationStrategy   = anyStrategy{}
	_ rest.ResetFieldsStrategy             = anyStrategy{}
	_ rest.RESTUpdateStrategy              = anyStatusStrategy{}
	_ rest.ResetFieldsStrategy             = anyStatusStrategy{}
)

func newStrategy[O Object, Spec, Status any](kind Kind[O, Spec, Status], scheme *runtime.Scheme) strategy[O, Spec, Status] {
	return strategy[O, Spec, Status]{rest.DeclarativeValidation{Scheme: scheme}, names.SimpleNameGenerator, kind}
}

// NamespaceScoped reports whether the kind is namespaced.
func (s strategy[O, Spec, Status]) NamespaceScoped() bool { return s.kind.Namespaced }

// AllowCreateOnUpdate is false: PUT does not create objects.
func (strategy[O, Spec, Status]) AllowCreateOnUpdate(context.Context) bool { return false }

// AllowUnconditionalUpdate is true: an update without resourceVersion overwrites, as with built-in kinds.
func (strategy[O, Spec, Status]) AllowUnconditionalUpdate(context.Context) bool { return true }

// DefaultGarbageCollectionPolicy prevents a deletion from adding the finalizers orphan or foregroundDeletion. Served objects have no
// finalizers, because the deletion of a namespace would not wait for them.
func (strategy[O, Spec, Status]) DefaultGarbageCollectionPolicy(context.Context) rest.GarbageCollectionPolicy {
	return rest.Unsupported
}

// GetResetFields returns the fields that a write of the spec cannot own.
func (strategy[O, Spec, Status]) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return resetFields("status")
}

// PrepareForCreate sets the generation, and clears the status.
func (s strategy[O, Spec, Status]) PrepareForCreate(_ context.Context, obj runtime.Object) {
	object := obj.(O)
	object.SetGeneration(1)
	*s.kind.Status(object) = *new(Status)
}

// PrepareForUpdate keeps the status, and increments the generation if the spec changes.
func (s strategy[O, Spec, Status]) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	object, before := obj.(O), old.(O)
	*s.kind.Status(object) = *s.kind.Status(before)
	if !apiequality.Semantic.DeepEqual(s.kind.Spec(object), s.kind.Spec(before)) {
		object.SetGeneration(before.GetGeneration() + 1)
	}
}

// Validate has the checks that declarative validation cannot express.
func (s strategy[O, Spec, Status]) Validate(_ context.Context, obj runtime.Object) field.ErrorList {
	return append(validation.ValidateReadable(obj.(O), nil), s.kind.Validate(obj.(O))...)
}

// ValidateUpdate is Validate for an update. If the stored object is not fully understood, this is the only error.
func (s strategy[O, Spec, Status]) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	if errs := validation.ValidateReadable(obj.(O), old.(O)); len(errs) > 0 {
		return errs
	}
	return s.kind.ValidateUpdate(obj.(O), old.(O))
}

// ValidateDeclaratively adds the errors of declarative validation.
func (s strategy[O, Spec, Status]) ValidateDeclaratively(ctx context.Context, obj, old runtime.Object, byHand field.ErrorList,
	op operation.Type, config rest.DeclarativeValidationConfig,
) field.ErrorList {
	if before, ok := old.(O); ok && gc.Unreadable(before) != "" {
		return byHand
	}
	errs := s.DeclarativeValidation.ValidateDeclaratively(ctx, obj, old, byHand, op, config)
	return validation.DidYouMean(validation.OneErrorForEachField(errs))
}

// WarningsOnCreate is empty: policies warn by forecastWarnings, first of what they delete.
func (strategy[O, Spec, Status]) WarningsOnCreate(context.Context, runtime.Object) []string {
	return nil
}

// WarningsOnUpdate is empty for the same reason as WarningsOnCreate.
func (strategy[O, Spec, Status]) WarningsOnUpdate(context.Context, runtime.Object, runtime.Object) []string {
	return nil
}

// Canonicalize changes nothing.
func (strategy[O, Spec, Status]) Canonicalize(runtime.Object) {}

// match selects by labels and fields.
func (s strategy[O, Spec, Status]) match(label labels.Selector, field fields.Selector) storage.SelectionPredicate {
	return storage.SelectionPredicate{Label: label, Field: field, GetAttrs: s.attributes}
}

func (s strategy[O, Spec, Status]) attributes(obj runtime.Object) (labels.Set, fields.Set, error) {
	object, ok := obj.(O)
	if !ok {
		return nil, nil, fmt.Errorf("not a %s but %T", s.kind.Singular, obj)
	}
	selectable := fields.Set{"metadata.name": object.GetName()}
	if s.kind.Namespaced {
		selectable["metadata.namespace"] = object.GetNamespace()
	}
	if s.kind.Selectable != nil {
		maps.Copy(selectable, s.kind.Selectable(object))
	}
	return object.GetLabels(), selectable, nil
}

// statusStrategy is the strategy for updates of the status.
type statusStrategy[O Object, Spec, Status any] struct {
	strategy[O, Spec, Status]
}

// GetResetFields returns the fields that a write of the status cannot own.
func (statusStrategy[O, Spec, Status]) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return resetFields("spec", "metadata")
}

// PrepareForUpdate keeps everything except the status and its field ownership.
func (s statusStrategy[O, Spec, Status]) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	object, before := obj.(O), old.(O)
	*s.kind.Spec(object) = *s.kind.Spec(before)
	metav1.ResetObjectMetaForStatus(object, before)
}

// ValidateUpdate checks the status.
func (s statusStrategy[O, Spec, Status]) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	if errs := validation.ValidateReadable(obj.(O), old.(O)); len(errs) > 0 {
		return errs
	}
	return s.kind.ValidateStatus(s.kind.Status(obj.(O)))
}

func resetFields(paths ...string) map[fieldpath.APIVersion]*fieldpath.Set {
	set := fieldpath.NewSet()
	for _, path := range paths {
		set.Insert(fieldpath.MakePathOrDie(path))
	}
	return map[fieldpath.APIVersion]*fieldpath.Set{fieldpath.APIVersion(v1alpha1.SchemeGroupVersion.String()): set}
}
