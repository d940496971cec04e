// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package resourcelifecycle is the registry of ResourceLifecycles.
package resourcelifecycle

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/clock"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/apis/gc/validation"
	"github.com/winnow-dev/winnow/pkg/registry/gc/internal/object"
	"github.com/winnow-dev/winnow/pkg/registry/gc/internal/permission"
	"github.com/winnow-dev/winnow/pkg/registry/gc/schemas"
)

var kind = object.Kind[*gc.ResourceLifecycle, gc.ResourceLifecycleSpec, gc.ResourceLifecycleStatus]{
	Name: "ResourceLifecycle", Resource: "resourcelifecycles", Singular: "resourcelifecycle", ShortName: "rlc", Namespaced: false,

	NewFunc:     func() runtime.Object { return &gc.ResourceLifecycle{} },
	NewListFunc: func() runtime.Object { return &gc.ResourceLifecycleList{} },

	Spec:   func(l *gc.ResourceLifecycle) *gc.ResourceLifecycleSpec { return &l.Spec },
	Status: func(l *gc.ResourceLifecycle) *gc.ResourceLifecycleStatus { return &l.Status },

	Validate:       validation.ValidateResourceLifecycle,
	ValidateUpdate: validation.ValidateResourceLifecycleUpdate,
	ValidateStatus: validation.ValidateResourceLifecycleStatus,

	Columns: []object.Column[*gc.ResourceLifecycle]{
		condition("Accepted", gc.ConditionAccepted, "Whether Winnow uses the lifecycle, and if not, why."),
		condition("Established", gc.ConditionEstablished, "Whether the cluster serves the resource, and if not, why."),
		{
			TableColumnDefinition: metav1.TableColumnDefinition{
				Name: "Objects", Type: "integer", Description: "Objects of the resource in all namespaces, counted every five minutes.",
			},
			Cell: func(l *gc.ResourceLifecycle, _ time.Time) any {
				if l.Status.Objects == nil {
					return nil
				}
				return *l.Status.Objects
			},
		},
		{
			TableColumnDefinition: metav1.TableColumnDefinition{
				Name: "Unused", Type: "string", Description: "How long the resource has had no objects.",
			},
			Cell: func(l *gc.ResourceLifecycle, now time.Time) any {
				if l.Status.UnusedSince == nil {
					return nil
				}
				return duration.HumanDuration(now.Sub(l.Status.UnusedSince.Time))
			},
		},
		{
			TableColumnDefinition: metav1.TableColumnDefinition{
				Name: "Dependents", Type: "string", Priority: 1, Description: "When to delete a finished object whose controller is of the resource.",
			},
			Cell: func(l *gc.ResourceLifecycle, _ time.Time) any { return string(l.Spec.Dependents) },
		},
		{
			TableColumnDefinition: metav1.TableColumnDefinition{
				Name: "Finished", Type: "string", Priority: 1, Description: "Expression for whether an object has finished.",
			},
			Cell: func(l *gc.ResourceLifecycle, _ time.Time) any {
				if l.Spec.Finished == nil {
					return nil
				}
				return l.Spec.Finished.When
			},
		},
	},
}

func condition(name, conditionType, description string) object.Column[*gc.ResourceLifecycle] {
	return object.Column[*gc.ResourceLifecycle]{
		TableColumnDefinition: metav1.TableColumnDefinition{Name: name, Type: "string", Description: description},
		Cell: func(l *gc.ResourceLifecycle, _ time.Time) any {
			return object.Condition(l.Status.Conditions, conditionType)
		},
	}
}

// Storage serves the lifecycles and their status.
type Storage struct {
	Lifecycles *REST
	Status     *object.StatusREST
}

// NewStorage serves resourcelifecycles and their status. The authorizer answers what authors may delete themselves. The forecast
// may be nil.
func NewStorage(scheme *runtime.Scheme, options generic.RESTOptionsGetter, authorizer authorizer.Authorizer, clock clock.PassiveClock,
	forecast Forecast, served Served, checker *schemas.Checker,
) (*Storage, error) {
	lifecycles, status, err := object.NewStorage(kind, scheme, options, clock)
	if err != nil {
		return nil, err
	}
	permissions := permission.Checker{Authorizer: authorizer, Resource: gc.Resource(kind.Resource), Noun: "lifecycle"}
	return &Storage{&REST{REST: lifecycles, permissions: permissions, forecast: forecast, served: served, schemas: checker}, status}, nil
}

// REST serves the lifecycles.
type REST struct {
	*object.REST
	permissions permission.Checker
	forecast    Forecast
	served      Served
	schemas     *schemas.Checker
}

// Create creates a lifecycle, if its author may delete the objects of the resource.
func (r *REST) Create(
	ctx context.Context, obj runtime.Object, validate rest.ValidateObjectFunc, options *metav1.CreateOptions,
) (runtime.Object, error) {
	f := r.newForecast(options.DryRun)
	created, err := r.Store.Create(ctx, obj, f.onCreate(permission.OnCreate(r.check, validate)), options)
	if err == nil {
		f.warn(ctx)
		r.warn(ctx, created)
	}
	return created, err
}

// Update changes a lifecycle, or creates it by server-side apply, if its author may delete the objects of the resource.
func (r *REST) Update(ctx context.Context, name string, objInfo rest.UpdatedObjectInfo,
	createValidation rest.ValidateObjectFunc, updateValidation rest.ValidateObjectUpdateFunc,
	forceAllowCreate bool, options *metav1.UpdateOptions,
) (runtime.Object, bool, error) {
	f := r.newForecast(options.DryRun)
	updated, created, err := r.Store.Update(ctx, name, objInfo, f.onCreate(permission.OnCreate(r.check, createValidation)),
		f.onUpdate(permission.OnUpdate(r.check, updateValidation)), forceAllowCreate, options)
	if err == nil {
		f.warn(ctx)
		r.warn(ctx, updated)
	}
	return updated, created, err
}

// Delete deletes a lifecycle, if the user may delete the objects of the resource. After it, the built-in lifecycle applies, or none, and
// what still runs by this one may have finished by that.
func (r *REST) Delete(
	ctx context.Context, name string, validate rest.ValidateObjectFunc, options *metav1.DeleteOptions,
) (runtime.Object, bool, error) {
	f := r.newForecast(options.DryRun)
	deleted, now, err := r.Store.Delete(ctx, name, f.onDelete(permission.OnDelete(r.checkDelete, validate)), options)
	if err == nil {
		f.warn(ctx)
	}
	return deleted, now, err
}

// DeleteCollection deletes lifecycles as Delete does, but without a forecast: a request waits for one forecast only.
func (r *REST) DeleteCollection(
	ctx context.Context, validate rest.ValidateObjectFunc, options *metav1.DeleteOptions, list *metainternalversion.ListOptions,
) (runtime.Object, error) {
	return r.Store.DeleteCollection(ctx, permission.OnDelete(r.checkDelete, validate), options, list)
}

// check requires the permissions to list and delete all objects of the resource, if the spec changes. Somebody who declares that running
// objects have finished makes the policies of others delete them. The same holds for ConfigMaps and Secrets, if the lifecycle says which of
// them are in use, or has said so.
func (r *REST) check(ctx context.Context, object, old runtime.Object) error {
	l := object.(*gc.ResourceLifecycle)
	if before, ok := old.(*gc.ResourceLifecycle); ok && before.Generation == l.Generation {
		return nil
	}
	return r.require(ctx, permission.Write, l, old)
}

// checkDelete requires the same permissions as check, because what still runs by this lifecycle may have finished by the built-in one.
func (r *REST) checkDelete(ctx context.Context, object runtime.Object) error {
	l, ok := object.(*gc.ResourceLifecycle)
	if !ok {
		return apierrors.NewInternalError(fmt.Errorf("cannot tell what the deletion of %T makes due", object))
	}
	return r.require(ctx, permission.Delete, l, nil)
}

func (r *REST) require(ctx context.Context, do string, l *gc.ResourceLifecycle, old runtime.Object) error {
	const anyNamespace = ""
	resources := sets.New(l.Name)
	if refers(l) || refers(old) {
		resources.Insert(gc.ResourceConfigMaps, gc.ResourceSecrets)
	}
	return r.permissions.Require(ctx, do, l.Name, permission.ToDelete(resources, anyNamespace), func(who string, _ []string) string {
		return fmt.Sprintf("it says when policies may delete objects that %q cannot list and delete", who)
	})
}

// refers reports whether a lifecycle says what objects refer to.
func refers(object runtime.Object) bool {
	l, ok := object.(*gc.ResourceLifecycle)
	return ok && len(l.Spec.References) > 0
}
