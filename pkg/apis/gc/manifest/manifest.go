// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package manifest compares what users write with the types of the API, and says what is wrong in the words of users. The decoders of
// Kubernetes name Go types, and report one error at a time.
package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
)

// Checker compares values that were decoded without types with Go types.
type Checker struct {
	// Directives is set if fields that begin with $ are directives of a strategic merge patch.
	Directives bool
	// Wrong are the errors about values of a wrong type.
	Wrong field.ErrorList
	// Unknown are the errors about unknown fields, each with the name that was probably meant.
	Unknown []error
}

// renamed has the new names of fields that were renamed, by their paths without indices.
var renamed = map[string]string{
	"spec.guardrails.capacity":   "spec.guardrails.ceilings",
	"spec.rules[].gitOpsManaged": "managedElsewhere",
}

var indices = regexp.MustCompile(`\[\d+\]`)

// NewName returns the new name of the field at a path such as "spec.rules[0].name"; empty if it was not renamed.
func NewName(path string) string { return renamed[indices.ReplaceAllString(path, "[]")] }

// Decode decodes JSON without types, and keeps numbers as written.
func Decode(encoded []byte) (content any, err error) {
	decoder := json.NewDecoder(bytes.NewReader(encoded))
	decoder.UseNumber()
	if err := decoder.Decode(&content); err != nil {
		return nil, err
	}
	if decoder.More() {
		return nil, errors.New("more than one value")
	}
	return content, nil
}

// Object compares an object.
func (c *Checker) Object(content map[string]any, t reflect.Type) { c.value(content, t, nil) }

// Patch compares the values of a JSON patch.
func (c *Checker) Patch(operations []any, t reflect.Type) {
	for _, one := range operations {
		operation, _ := one.(map[string]any)
		pointer, _ := operation["path"].(string)
		if at, path := resolve(t, strings.Split(pointer, "/")); path != nil && operation["op"] != "test" {
			c.value(operation["value"], at, path)
		}
	}
}

var (
	unmarshaler = reflect.TypeFor[json.Unmarshaler]()
	ttlType     = reflect.TypeFor[v1alpha1.TTL]()
	timeType    = reflect.TypeFor[metav1.Time]()
)

// value compares a value. Null matches every type.
func (c *Checker) value(v any, t reflect.Type, path *field.Path) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case v == nil:
		return
	case reflect.PointerTo(t).Implements(unmarshaler):
		c.check(unmarshals(v, t), v, t, path)
		return
	}
	switch t.Kind() {
	case reflect.Struct:
		object, ok := v.(map[string]any)
		c.check(ok, v, t, path)
		c.fields(object, t, path)
	case reflect.Map:
		object, ok := v.(map[string]any)
		c.check(ok, v, t, path)
		for _, key := range slices.Sorted(maps.Keys(object)) {
			c.value(object[key], t.Elem(), path.Key(key))
		}
	case reflect.Slice:
		list, ok := v.([]any)
		c.check(ok, v, t, path)
		for i, item := range list {
			c.value(item, t.Elem(), path.Index(i))
		}
	default:
		c.check(isScalar(v, t), v, t, path)
	}
}

func (c *Checker) fields(object map[string]any, t reflect.Type, path *field.Path) {
	for _, name := range slices.Sorted(maps.Keys(object)) {
		f, ok := fieldOf(t, name)
		switch {
		case ok:
			c.value(object[name], f, path.Child(name))
		case !c.Directives || !strings.HasPrefix(name, "$"):
			c.Unknown = append(c.Unknown, unknownField(t, path.Child(name), name))
		}
	}
}

// resolve returns the type and path that a JSON pointer points to; a nil path if there is none.
func resolve(t reflect.Type, tokens []string) (reflect.Type, *field.Path) {
	var path *field.Path
	for _, token := range tokens[1:] {
		for t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		token = strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")
		switch t.Kind() {
		case reflect.Struct:
			f, ok := fieldOf(t, token)
			if !ok {
				return nil, nil
			}
			t, path = f, path.Child(token)
		case reflect.Map:
			t, path = t.Elem(), path.Key(token)
		case reflect.Slice:
			t, path = t.Elem(), path.Key(token) // "-" means after the last.
		default:
			return nil, nil
		}
	}
	return t, path
}

// fieldOf returns the type of a field by its JSON name.
func fieldOf(t reflect.Type, name string) (reflect.Type, bool) {
	for _, f := range fieldsOf(t) {
		if jsonName(f) == name {
			return f.Type, true
		}
	}
	return nil, false
}

// fieldsOf returns the fields of a struct, including the fields of inlined structs.
func fieldsOf(t reflect.Type) []reflect.StructField {
	var out []reflect.StructField
	for i := range t.NumField() {
		switch f := t.Field(i); {
		case jsonName(f) != "":
			out = append(out, f)
		case f.Anonymous:
			out = append(out, fieldsOf(f.Type)...)
		}
	}
	return out
}

func jsonName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

func unmarshals(v any, t reflect.Type) bool {
	encoded, err := json.Marshal(v)
	return err == nil && json.Unmarshal(encoded, reflect.New(t).Interface()) == nil
}

// isScalar reports whether a value is a scalar of this type.
func isScalar(v any, t reflect.Type) bool {
	switch t.Kind() {
	case reflect.String:
		_, ok := v.(string)
		return ok
	case reflect.Bool:
		_, ok := v.(bool)
		return ok
	case reflect.Int64, reflect.Int32:
		number, ok := v.(json.Number)
		_, err := strconv.ParseInt(string(number), 10, t.Bits())
		return ok && err == nil
	}
	return true // The decoders check it.
}

// check records an error about a value that is not ok, with what to write instead.
func (c *Checker) check(ok bool, v any, t reflect.Type, path *field.Path) {
	if ok || path == nil {
		return
	}
	bad := v
	switch v := v.(type) {
	case json.Number:
		if n, err := v.Int64(); err == nil {
			bad = n
		} else {
			bad, _ = v.Float64()
		}
	case map[string]any, []any:
		bad = field.OmitValueType{}
	}
	c.Wrong = append(c.Wrong, field.TypeInvalid(path, bad, wants(v, t)))
}

// wants describes a value of a type, for somebody who wrote another one.
func wants(v any, t reflect.Type) string {
	switch t.Kind() {
	case reflect.Slice:
		if example, ok := within(v, t.Elem()); ok {
			return fmt.Sprintf("must be a list, for example [%s]", example)
		}
		return "must be a list"
	case reflect.Bool:
		return "must be true or false, without quotes"
	case reflect.Int64, reflect.Int32:
		if text, ok := v.(string); ok && isScalar(json.Number(text), t) {
			return "must be a whole number, without quotes"
		}
		return "must be a whole number"
	case reflect.String:
		return wantsString(v, t)
	case reflect.Struct:
		return wantsObject(v, t)
	}
	return "must be an object"
}

func wantsString(v any, t reflect.Type) string {
	switch v.(type) {
	case json.Number:
		if t == ttlType {
			return fmt.Sprintf(`must be a string with a unit, for example "%vs" or "1h"`, v)
		}
		return fmt.Sprintf(`must be a string; put it in quotes: "%v"`, v)
	case bool:
		return fmt.Sprintf(`must be a string; put it in quotes: "%v"`, v)
	}
	return "must be a string"
}

func wantsObject(v any, t reflect.Type) string {
	if t == timeType {
		return `must be a time, for example "2026-01-02T15:04:05Z"`
	}
	for _, f := range fieldsOf(t) {
		if example, ok := within(v, f.Type); ok {
			return fmt.Sprintf("must be an object, for example {%s: %s}", jsonName(f), example)
		}
	}
	return "must be an object"
}

// within formats a scalar that would be valid for this type, and was probably meant as an item of a list or a value of a map.
func within(v any, t reflect.Type) (string, bool) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch v.(type) {
	case map[string]any, []any:
		return "", false
	}
	switch t.Kind() {
	case reflect.String, reflect.Bool, reflect.Int64, reflect.Int32:
		return fmt.Sprint(v), isScalar(v, t)
	}
	return "", false
}
