// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"fmt"

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
type strategy[P Policy, S any] struct {
	rest.DeclarativeValidation
	names.NameGenerator
	kind Kind[P, S]
}

type (
	anyStrategy       = strategy[*gc.CleanupPolicy, gc.CleanupPolicySpec]
	anyStatusStrategy = statusStrategy[*gc.CleanupPolicy, gc.CleanupPolicySpec]
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

func newStrategy[P Policy, S any](kind Kind[P, S], scheme *runtime.Scheme) strategy[P, S] {
	return strategy[P, S]{rest.DeclarativeValidation{Scheme: scheme}, names.SimpleNameGenerator, kind}
}

// NamespaceScoped reports whether the kind is namespaced.
func (s strategy[P, S]) NamespaceScoped() bool { return s.kind.Namespaced }

// AllowCreateOnUpdate is false: PUT does not create policies.
func (strategy[P, S]) AllowCreateOnUpdate(context.Context) bool { return false }

// AllowUnconditionalUpdate is true: an update without resourceVersion overwrites, as with built-in kinds.
func (strategy[P, S]) AllowUnconditionalUpdate(context.Context) bool { return true }

// DefaultGarbageCollectionPolicy prevents a deletion from adding the finalizers orphan or foregroundDeletion. Policies have no finalizers,
// because the deletion of a namespace would not wait for them.
func (strategy[P, S]) DefaultGarbageCollectionPolicy(context.Context) rest.GarbageCollectionPolicy {
	return rest.Unsupported
}

// GetResetFields returns the fields that a write of the spec cannot own.
func (strategy[P, S]) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return resetFields("status")
}

// PrepareForCreate sets the generation, and clears the status.
func (s strategy[P, S]) PrepareForCreate(_ context.Context, obj runtime.Object) {
	policy := obj.(P)
	policy.SetGeneration(1)
	*s.kind.Status(policy) = gc.CleanupPolicyStatus{}
}

// PrepareForUpdate keeps the status, and increments the generation if the spec changes.
func (s strategy[P, S]) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	policy, before := obj.(P), old.(P)
	*s.kind.Status(policy) = *s.kind.Status(before)
	if !apiequality.Semantic.DeepEqual(s.kind.Spec(policy), s.kind.Spec(before)) {
		policy.SetGeneration(before.GetGeneration() + 1)
	}
}

// Validate has the checks that declarative validation cannot express.
func (s strategy[P, S]) Validate(_ context.Context, obj runtime.Object) field.ErrorList {
	return append(validation.ValidateReadable(obj.(P), nil), s.kind.Validate(obj.(P))...)
}

// ValidateUpdate is Validate for an update. If the stored policy is not fully understood, this is the only error.
func (s strategy[P, S]) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	if errs := validation.ValidateReadable(obj.(P), old.(P)); len(errs) > 0 {
		return errs
	}
	return s.kind.ValidateUpdate(obj.(P), old.(P))
}

// ValidateDeclaratively adds the errors of declarative validation.
func (s strategy[P, S]) ValidateDeclaratively(ctx context.Context, obj, old runtime.Object, byHand field.ErrorList,
	op operation.Type, config rest.DeclarativeValidationConfig,
) field.ErrorList {
	if before, ok := old.(P); ok && gc.Unreadable(before) != "" {
		return byHand
	}
	errs := s.DeclarativeValidation.ValidateDeclaratively(ctx, obj, old, byHand, op, config)
	return validation.DidYouMean(validation.OneErrorForEachField(errs))
}

// WarningsOnCreate is empty: see forecastWarnings, which warns first of what a policy deletes.
func (strategy[P, S]) WarningsOnCreate(context.Context, runtime.Object) []string { return nil }

// WarningsOnUpdate is empty for the same reason as WarningsOnCreate.
func (strategy[P, S]) WarningsOnUpdate(context.Context, runtime.Object, runtime.Object) []string {
	return nil
}

// Canonicalize changes nothing.
func (strategy[P, S]) Canonicalize(runtime.Object) {}

// match selects by labels and by metadata.name, metadata.namespace and spec.mode.
func (s strategy[P, S]) match(label labels.Selector, field fields.Selector) storage.SelectionPredicate {
	return storage.SelectionPredicate{Label: label, Field: field, GetAttrs: s.attributes}
}

func (s strategy[P, S]) attributes(obj runtime.Object) (labels.Set, fields.Set, error) {
	policy, ok := obj.(P)
	if !ok {
		return nil, nil, fmt.Errorf("not a %s but %T", s.kind.Singular, obj)
	}
	selectable := fields.Set{"metadata.name": policy.GetName(), "spec.mode": string(s.kind.Defaults(policy).Mode)}
	if s.kind.Namespaced {
		selectable["metadata.namespace"] = policy.GetNamespace()
	}
	return policy.GetLabels(), selectable, nil
}

// statusStrategy is the strategy for updates of the status.
type statusStrategy[P Policy, S any] struct {
	strategy[P, S]
}

// GetResetFields returns the fields that a write of the status cannot own.
func (statusStrategy[P, S]) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return resetFields("spec", "metadata")
}

// PrepareForUpdate keeps everything except the status and its field ownership.
func (s statusStrategy[P, S]) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	policy, before := obj.(P), old.(P)
	*s.kind.Spec(policy) = *s.kind.Spec(before)
	metav1.ResetObjectMetaForStatus(policy, before)
}

// ValidateUpdate checks the status.
func (s statusStrategy[P, S]) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	if errs := validation.ValidateReadable(obj.(P), old.(P)); len(errs) > 0 {
		return errs
	}
	return validation.ValidateStatus(s.kind.Status(obj.(P)))
}

func resetFields(paths ...string) map[fieldpath.APIVersion]*fieldpath.Set {
	set := fieldpath.NewSet()
	for _, path := range paths {
		set.Insert(fieldpath.MakePathOrDie(path))
	}
	return map[fieldpath.APIVersion]*fieldpath.Set{fieldpath.APIVersion(v1alpha1.SchemeGroupVersion.String()): set}
}
