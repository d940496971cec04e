// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"bytes"
	"encoding/binary"
	"hash/maphash"

	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Encoded is an object in protobuf of which only the metadata is decoded that client-go reads. Most events of a Pod change its status and
// nothing that it refers to, and to compare costs much less than to decode.
type Encoded struct {
	metav1.ObjectMeta // without everything but the namespace, name, UID and resourceVersion

	fields message
	read   []encodedField // what fields are in the object, except the resourceVersion
}

// encodedField is one occurrence of a field.
type encodedField struct {
	number int
	encodedValue
}

// GetObjectKind implements runtime.Object.
func (e *Encoded) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject implements runtime.Object.
func (e *Encoded) DeepCopyObject() runtime.Object {
	return &Encoded{*e.ObjectMeta.DeepCopy(), e.fields, e.read} // What is encoded does not change.
}

// Unstructured decodes the object.
func (e *Encoded) Unstructured() (*unstructured.Unstructured, error) {
	content := map[string]any{}
	for i := range e.read {
		if err := e.fields.decodeField(e.read[i].number, e.read[i].encodedValue, content); err != nil {
			return nil, err
		}
	}
	return &unstructured.Unstructured{Object: content}, nil
}

// Digest returns a hash of all that is read of the object but its resourceVersion.
func (e *Encoded) Digest(seed maphash.Seed) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	var header [24]byte // The length tells where the next field begins.
	for i := range e.read {
		f := &e.read[i]
		binary.NativeEndian.PutUint64(header[0:], protowire.EncodeTag(protowire.Number(f.number), f.wire)) //nolint:gosec // As it was read.
		binary.NativeEndian.PutUint64(header[8:], f.varint)
		binary.NativeEndian.PutUint64(header[16:], uint64(len(f.data)))
		_, _ = h.Write(header[:])
		_, _ = h.Write(f.data)
	}
	return h.Sum64()
}

// encoded returns an object of which only the fields of m are left. What has no UID, such as a bookmark, is decoded.
func (m message) encoded(data []byte) (runtime.Object, error) {
	e := &Encoded{fields: m}
	err := eachField(data, func(number int, v encodedValue) (err error) {
		f, ok := m[number]
		switch {
		case !ok:
			return nil
		case f.below == nil:
			v.data = bytes.Clone(v.data) // The next event is read into the same memory.
		default:
			v.data, err = e.part(&f, v.data)
		}
		e.read = append(e.read, encodedField{number, v})
		return err
	})
	if e.UID == "" || err != nil {
		return m.object(data)
	}
	return e, nil
}

// part returns a copy of what is decoded of a field.
func (e *Encoded) part(f *messageField, data []byte) ([]byte, error) {
	out := make([]byte, 0, len(data))
	err := eachRawField(data, func(number int, v encodedValue, raw []byte) error {
		below, ok := f.below[number]
		if ok && (f.name != "metadata" || v.data == nil || !e.identify(below.name, v.data)) {
			out = append(out, raw...)
		}
		return nil
	})
	return out, err
}

// identify takes in a field of the metadata, and reports whether it is the resourceVersion.
func (e *Encoded) identify(name string, value []byte) bool {
	switch name {
	case "namespace":
		e.Namespace = string(value)
	case "name":
		e.Name = string(value)
	case "uid":
		e.UID = types.UID(value)
	case "resourceVersion":
		e.ResourceVersion = string(value)
		return true
	}
	return false
}
