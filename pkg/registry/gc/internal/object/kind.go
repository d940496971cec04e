// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package object has what the registries of all served kinds share: strategies, storage with a status, and the columns of kubectl.
package object

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Object is a pointer to an object of a served kind.
type Object interface {
	runtime.Object
	metav1.Object
}

// Kind describes a served kind. O is a pointer to it; Spec and Status are the types of its fields.
type Kind[O Object, Spec, Status any] struct {
	// Name is the name of the kind. kubectl accepts Resource, Singular and ShortName.
	Name, Resource, Singular, ShortName string
	// Namespaced is set if objects of the kind have a namespace.
	Namespaced bool

	NewFunc, NewListFunc func() runtime.Object

	Spec   func(O) *Spec
	Status func(O) *Status

	Validate       func(O) field.ErrorList
	ValidateUpdate func(o, old O) field.ErrorList
	ValidateStatus func(*Status) field.ErrorList

	// Selectable returns the fields that can be selected, beside name and namespace; nil if there are none.
	Selectable func(O) fields.Set
	// Columns are those between name and age, and those that are shown only with "-o wide".
	Columns []Column[O]
}

// Column is a column of "kubectl get". Columns of priority 1 are shown only with "-o wide".
type Column[O Object] struct {
	metav1.TableColumnDefinition
	Cell func(o O, now time.Time) any
}
