// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package cleanuppolicy

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
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/names"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/pkg/apis/gc/validation"
)

// strategy is what happens to a policy that is created, updated or deleted.
type strategy struct {
	rest.DeclarativeValidation
	names.NameGenerator
}

var (
	_ rest.RESTCreateStrategy              = strategy{}
	_ rest.RESTUpdateStrategy              = strategy{}
	_ rest.GarbageCollectionDeleteStrategy = strategy{}
	_ rest.DeclarativeValidationStrategy   = strategy{}
	_ rest.ResetFieldsStrategy             = strategy{}
	_ rest.RESTUpdateStrategy              = statusStrategy{}
	_ rest.ResetFieldsStrategy             = statusStrategy{}
)

func newStrategy(scheme *runtime.Scheme) strategy {
	return strategy{rest.DeclarativeValidation{Scheme: scheme}, names.SimpleNameGenerator}
}

// NamespaceScoped is true: a policy acts in its own namespace.
func (strategy) NamespaceScoped() bool { return true }

// AllowCreateOnUpdate is false: what is not there is created by POST or by apply.
func (strategy) AllowCreateOnUpdate(context.Context) bool { return false }

// AllowUnconditionalUpdate is true: an update without resourceVersion overwrites, as with built-in kinds.
func (strategy) AllowUnconditionalUpdate(context.Context) bool { return true }

// DefaultGarbageCollectionPolicy keeps a deletion from putting the finalizers orphan or foregroundDeletion on a policy: it
// takes none, since the deletion of a namespace would not wait for them.
func (strategy) DefaultGarbageCollectionPolicy(context.Context) rest.GarbageCollectionPolicy {
	return rest.Unsupported
}

// GetResetFields names what a writer of the spec cannot own.
func (strategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return resetFields("status")
}

// PrepareForCreate starts the generation, and drops a status that came along.
func (strategy) PrepareForCreate(_ context.Context, obj runtime.Object) {
	policy := obj.(*gc.CleanupPolicy)
	policy.Generation = 1
	policy.Status = gc.CleanupPolicyStatus{}
}

// PrepareForUpdate keeps the status, and moves the generation when the spec changes.
func (strategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	policy, before := obj.(*gc.CleanupPolicy), old.(*gc.CleanupPolicy)
	policy.Status = before.Status
	if !apiequality.Semantic.DeepEqual(policy.Spec, before.Spec) {
		policy.Generation = before.Generation + 1
	}
}

// Validate checks what the declarative validation does not reach.
func (strategy) Validate(_ context.Context, obj runtime.Object) field.ErrorList {
	return validation.ValidateCleanupPolicy(obj.(*gc.CleanupPolicy))
}

// ValidateUpdate does so for an update.
func (strategy) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	return validation.ValidateCleanupPolicyUpdate(obj.(*gc.CleanupPolicy), old.(*gc.CleanupPolicy))
}

// ValidateDeclaratively adds the errors that the tags of the type find.
func (s strategy) ValidateDeclaratively(ctx context.Context, obj, old runtime.Object, byHand field.ErrorList,
	op operation.Type, config rest.DeclarativeValidationConfig,
) field.ErrorList {
	return validation.OneErrorForEachField(s.DeclarativeValidation.ValidateDeclaratively(ctx, obj, old, byHand, op, config))
}

// WarningsOnCreate tells what is valid and yet probably not meant.
func (strategy) WarningsOnCreate(_ context.Context, obj runtime.Object) []string {
	return validation.Warnings(obj.(*gc.CleanupPolicy))
}

// WarningsOnUpdate does so when the spec changed.
func (strategy) WarningsOnUpdate(_ context.Context, obj, old runtime.Object) []string {
	policy := obj.(*gc.CleanupPolicy)
	if policy.Generation == old.(*gc.CleanupPolicy).Generation {
		return nil
	}
	return validation.Warnings(policy)
}

// Canonicalize changes nothing: what was written is kept as written.
func (strategy) Canonicalize(runtime.Object) {}

// statusStrategy is what happens to a policy whose status is written.
type statusStrategy struct {
	strategy
}

// GetResetFields names what a writer of the status cannot own.
func (statusStrategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return resetFields("spec", "metadata")
}

// PrepareForUpdate keeps all but the status and its field ownership.
func (statusStrategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	policy, before := obj.(*gc.CleanupPolicy), old.(*gc.CleanupPolicy)
	policy.Spec = before.Spec
	metav1.ResetObjectMetaForStatus(policy, before)
}

// ValidateUpdate checks the status.
func (statusStrategy) ValidateUpdate(_ context.Context, obj, _ runtime.Object) field.ErrorList {
	return validation.ValidateStatus(&obj.(*gc.CleanupPolicy).Status)
}

// WarningsOnUpdate is empty: the writer of a status can do nothing about the spec.
func (statusStrategy) WarningsOnUpdate(context.Context, runtime.Object, runtime.Object) []string {
	return nil
}

func resetFields(paths ...string) map[fieldpath.APIVersion]*fieldpath.Set {
	set := fieldpath.NewSet()
	for _, path := range paths {
		set.Insert(fieldpath.MakePathOrDie(path))
	}
	return map[fieldpath.APIVersion]*fieldpath.Set{fieldpath.APIVersion(v1alpha1.SchemeGroupVersion.String()): set}
}

// matchPolicy selects by labels and by metadata.name, metadata.namespace and spec.mode.
func matchPolicy(label labels.Selector, field fields.Selector) storage.SelectionPredicate {
	return storage.SelectionPredicate{Label: label, Field: field, GetAttrs: getAttrs}
}

func getAttrs(obj runtime.Object) (labels.Set, fields.Set, error) {
	policy, ok := obj.(*gc.CleanupPolicy)
	if !ok {
		return nil, nil, fmt.Errorf("not a CleanupPolicy but %T", obj)
	}
	selectable := generic.AddObjectMetaFieldsSet(fields.Set{"spec.mode": string(policy.Spec.Mode)}, &policy.ObjectMeta, true)
	return policy.Labels, selectable, nil
}
