// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package resourcelifecycle is the registry of ResourceLifecycles.
package resourcelifecycle

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/utils/clock"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/apis/gc/validation"
	"github.com/winnow-dev/winnow/pkg/registry/gc/internal/object"
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
				Name: "Dependents", Type: "string", Priority: 1, Description: "When to delete a finished object whose controller is of the resource.",
			},
			Cell: func(l *gc.ResourceLifecycle, _ time.Time) any { return string(l.Spec.Dependents) },
		},
		{
			TableColumnDefinition: metav1.TableColumnDefinition{
				Name: "Finished", Type: "string", Priority: 1, Description: "Expression for whether an object has finished.",
			},
			Cell: func(l *gc.ResourceLifecycle, _ time.Time) any { return l.Spec.Finished.When },
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
	Lifecycles *object.REST
	Status     *object.StatusREST
}

// NewStorage serves resourcelifecycles and their status.
func NewStorage(scheme *runtime.Scheme, options generic.RESTOptionsGetter, clock clock.PassiveClock) (*Storage, error) {
	lifecycles, status, err := object.NewStorage(kind, scheme, options, clock)
	if err != nil {
		return nil, err
	}
	return &Storage{lifecycles, status}, nil
}
