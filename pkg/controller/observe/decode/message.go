// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package decode

import (
	stdjson "encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"
)

// message are the fields of a message in protobuf that are decoded, by their numbers.
type message map[int]messageField

// messageField is a field of a message.
type messageField struct {
	name string // in JSON; empty if JSON inlines its fields into the message
	// list says that the field is one element of a list, and omitted that JSON does not have its zero value.
	list, omitted bool
	wire          protowire.Type
	below         message // the fields that are decoded of this one, if it is a message of which not all are
	// value returns what JSON would have. A message or map that was begun before goes on.
	value func(v encodedValue, before any) (any, error)
}

// encodedValue is the value of a field.
type encodedValue struct {
	wire   protowire.Type
	data   []byte // nil unless it has a length
	varint uint64 // 0 unless it is one
}

// object decodes one object.
func (m message) object(data []byte) (runtime.Object, error) {
	content := map[string]any{}
	return &unstructured.Unstructured{Object: content}, m.decode(data, content)
}

// objects decodes a list of objects.
func (m message) objects(data []byte) (runtime.Object, error) {
	list, of := &unstructured.UnstructuredList{Object: map[string]any{}}, metav1.ListMeta{}
	err := eachField(data, func(number int, v encodedValue) error {
		switch number {
		case listMetadata:
			return of.Unmarshal(v.data)
		case listItems:
			content := map[string]any{}
			list.Items = append(list.Items, unstructured.Unstructured{Object: content})
			return m.decode(v.data, content)
		}
		return nil
	})
	list.SetResourceVersion(of.ResourceVersion)
	list.SetContinue(of.Continue)
	list.SetRemainingItemCount(of.RemainingItemCount)
	return list, err
}

// decode adds the fields of a message to an object.
func (m message) decode(data []byte, into map[string]any) error {
	return eachField(data, func(number int, v encodedValue) error { return m.decodeField(number, v, into) })
}

// decodeField adds one field of a message to an object.
func (m message) decodeField(number int, v encodedValue, into map[string]any) error {
	f, ok := m[number]
	if !ok {
		return nil
	}
	if err := f.decode(v, into); err != nil {
		return fmt.Errorf("%s: %w", f.name, err)
	}
	return nil
}

func (f *messageField) decode(v encodedValue, into map[string]any) error {
	switch before := into[f.name]; {
	case v.wire != f.wire:
		return errors.New("it has another type in protobuf")
	case f.name == "":
		_, err := f.value(v, into)
		return err
	case f.list:
		all, _ := before.([]any)
		value, err := f.value(v, nil)
		into[f.name] = append(all, value)
		return err
	default:
		value, err := f.value(v, before)
		if !f.omitted || value != "" && value != false && value != int64(0) {
			into[f.name] = value
		}
		return err
	}
}

// eachField calls do with each field of a message, by its number.
func eachField(message []byte, do func(number int, v encodedValue) error) error {
	return eachRawField(message, func(number int, v encodedValue, _ []byte) error { return do(number, v) })
}

// eachRawField is eachField that also passes the field as it is encoded, with its number.
func eachRawField(message []byte, do func(number int, v encodedValue, raw []byte) error) error {
	for len(message) > 0 {
		number, wire, tag := protowire.ConsumeTag(message)
		if tag < 0 {
			return protowire.ParseError(tag)
		}
		n := protowire.ConsumeFieldValue(number, wire, message[tag:])
		if n < 0 {
			return protowire.ParseError(n)
		}
		v := encodedValue{wire: wire}
		if wire == protowire.BytesType {
			v.data, _ = protowire.ConsumeBytes(message[tag:])
		}
		if wire == protowire.VarintType {
			v.varint, _ = protowire.ConsumeVarint(message[tag:])
		}
		if err := do(int(number), v, message[:tag+n]); err != nil {
			return err
		}
		message = message[tag+n:]
	}
	return nil
}

// messageOf returns the decoder of some fields of a Go type, which are named as in JSON. The tags of the type say which numbers they have.
func messageOf(t reflect.Type, fields [][]string) message {
	out := message{}
	for i := range t.NumField() {
		f := t.Field(i)
		number, ok := protobufNumber(f)
		if below := fieldsOf(f, fields); ok && len(below) > 0 {
			out[number] = newMessageField(f, below)
		}
	}
	return out
}

// fieldsOf returns which fields of one field are read. With an empty path all are. If it has no name, JSON inlines its fields into the
// message.
func fieldsOf(f reflect.StructField, fields [][]string) (below [][]string) {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	if name == "" {
		return fields
	}
	for _, path := range fields {
		switch {
		case len(path) == 0:
			below = append(below, path)
		case path[0] == name:
			below = append(below, path[1:])
		}
	}
	return below
}

// newMessageField returns the decoder of a field, of which some fields are read.
func newMessageField(field reflect.StructField, below [][]string) messageField {
	name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
	t, f := field.Type, messageField{name: name, wire: protowire.BytesType}
	f.omitted = strings.Contains(options, "omitempty") && t.Kind() != reflect.Pointer
	if t.Kind() == reflect.Slice {
		f.list, t = true, t.Elem()
	}
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.String:
		f.value = func(v encodedValue, _ any) (any, error) { return string(v.data), nil }
	case reflect.Bool:
		f.wire = protowire.VarintType
		f.value = func(v encodedValue, _ any) (any, error) { return v.varint != 0, nil }
	case reflect.Int32, reflect.Int64:
		f.wire = protowire.VarintType
		f.value = func(v encodedValue, _ any) (any, error) { return int64(v.varint), nil } //nolint:gosec // Negative ones are so encoded.
	default:
		f.setValue(t, below)
	}
	return f
}

// setValue has a field decode a map of strings, some fields of a message, or another Go type.
func (f *messageField) setValue(t reflect.Type, below [][]string) {
	whole := slices.ContainsFunc(below, func(path []string) bool { return len(path) == 0 })
	switch {
	case t == reflect.TypeFor[map[string]string]():
		f.value = entry
	case t.Kind() == reflect.Struct && (!whole || flat(t)) && !reflect.PointerTo(t).Implements(marshaler):
		f.below = messageOf(t, below)
		f.value = f.below.value
	default:
		f.value = wholeValueOf(t)
	}
}

// flat reports whether a struct has no others below it.
func flat(t reflect.Type) bool {
	for i := range t.NumField() {
		field := t.Field(i).Type
		if field.Kind() == reflect.Pointer {
			field = field.Elem()
		}
		if k := field.Kind(); k != reflect.String && k != reflect.Bool && k != reflect.Int32 && k != reflect.Int64 {
			return false
		}
	}
	return true
}

var marshaler = reflect.TypeFor[stdjson.Marshaler]() // What implements it has other fields in JSON.

// value decodes a message; see messageField.
func (m message) value(v encodedValue, before any) (any, error) {
	into := begun(before)
	return into, m.decode(v.data, into)
}

// begun returns the message or map that goes on, or a new one.
func begun(before any) map[string]any {
	if into, ok := before.(map[string]any); ok {
		return into
	}
	return map[string]any{}
}

// entry decodes an entry of a map of strings; see messageField.
func entry(v encodedValue, before any) (any, error) {
	into := begun(before)
	var key, value string
	err := eachField(v.data, func(number int, v encodedValue) error {
		switch number {
		case entryKey:
			key = string(v.data)
		case entryValue:
			value = string(v.data)
		}
		return nil
	})
	into[key] = value
	return into, err
}

// wholeValueOf returns what decodes a Go type by its own methods; see messageField.
func wholeValueOf(t reflect.Type) func(encodedValue, any) (any, error) {
	return func(v encodedValue, _ any) (out any, err error) {
		value, ok := reflect.New(t).Interface().(interface{ Unmarshal(data []byte) error })
		if !ok {
			return nil, fmt.Errorf("%s cannot be decoded from protobuf", t)
		}
		if err := value.Unmarshal(v.data); err != nil {
			return nil, err
		}
		encoded, err := stdjson.Marshal(value)
		if err != nil {
			return nil, err
		}
		return out, json.Unmarshal(encoded, &out)
	}
}

// protobufNumber returns the number of a field; false if it is not encoded by itself.
func protobufNumber(f reflect.StructField) (int, bool) {
	parts := strings.Split(f.Tag.Get("protobuf"), ",")
	if len(parts) < 2 {
		return 0, false
	}
	number, err := strconv.Atoi(parts[1])
	return number, err == nil
}
