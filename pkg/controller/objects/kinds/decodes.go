// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"encoding/json"
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Decodes reports whether a field of an object of the kind is decoded. An object that is decoded into a Go type lacks the fields that a
// newer version of Kubernetes has added, so an expression would see them as absent. A path leads through a list into its elements.
func (k *Kind) Decodes(path []string) bool {
	switch object := k.New().(type) {
	case *unstructured.Unstructured, *metav1.PartialObjectMetadata: // Expressions read these from JSON.
		return true
	default:
		return hasField(reflect.TypeOf(object), path)
	}
}

var marshaler = reflect.TypeFor[json.Marshaler]()

// hasField reports whether a Go type has a field, by the names in JSON.
func hasField(t reflect.Type, path []string) bool {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	switch {
	case len(path) == 0:
		return true
	case t.Kind() == reflect.Map:
		return hasField(t.Elem(), path[1:])
	case t.Kind() != reflect.Struct, t.Implements(marshaler), reflect.PointerTo(t).Implements(marshaler):
		return true // Its JSON does not have the fields of the type.
	}
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == path[0]:
			return hasField(f.Type, path[1:])
		case name == "" && f.Anonymous && hasField(f.Type, path):
			return true
		}
	}
	return false
}
