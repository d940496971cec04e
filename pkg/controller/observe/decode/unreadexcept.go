// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/winnow-dev/winnow/pkg/controller/objects/kinds"
)

// unreadExcept returns what is unread of the objects of a kind, and of its lists, if its fields and the metadata are read.
func unreadExcept(k *kinds.Kind) map[string]unread {
	name, object := k.GroupVersionKind.Kind, messageExcept(reflect.TypeOf(k.New()), k.Fields)
	if len(object) > 0 {
		object[rawMetadata] = unreadMetadata
	}
	return map[string]unread{name: object, name + "List": {listItems: object}}
}

// messageExcept returns what is unread of a message if these fields are read, which are named as in JSON. The tags of the Go type say which
// numbers they have.
func messageExcept(t reflect.Type, fields [][]string) unread {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	whole := slices.ContainsFunc(fields, func(path []string) bool { return len(path) == 0 })
	if whole || t.Kind() != reflect.Struct || reflect.PointerTo(t).Implements(marshaler) { // That has other fields in JSON.
		return read
	}
	out := unread{others: nil}
	for i := range t.NumField() {
		f := t.Field(i)
		number, ok := protobufNumber(f)
		if below := fieldsOf(f, fields); ok && len(below) > 0 {
			out[number] = messageExcept(f.Type, below)
		}
	}
	return out
}

// fieldsOf returns which fields of one field are read. If it has no name, JSON inlines its fields into the message.
func fieldsOf(f reflect.StructField, fields [][]string) (below [][]string) {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	if name == "" {
		return fields
	}
	for _, path := range fields {
		if path[0] == name {
			below = append(below, path[1:])
		}
	}
	return below
}

var marshaler = reflect.TypeFor[json.Marshaler]()

// protobufNumber returns the number of a field; false if it is not encoded by itself.
func protobufNumber(f reflect.StructField) (protowire.Number, bool) {
	parts := strings.Split(f.Tag.Get("protobuf"), ",")
	if len(parts) < 2 {
		return 0, false
	}
	number, err := strconv.ParseInt(parts[1], 10, 32)
	return protowire.Number(number), err == nil
}
