// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"fmt"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
)

// Partial decodes some fields of an object from JSON, and skips the others without building anything of them: an object may have a
// megabyte, and few of its fields are read.
type Partial struct {
	fields fieldSet
	// withManagers are the fields of what may have a mark that needs them: see lifecycle.NeedsManagers.
	withManagers fieldSet
}

// fieldSet are the fields of a JSON object that are decoded. If the value is nil, the whole field is. The fields of each element of an
// array stand under elements.
type fieldSet map[string]fieldSet

const elements = "[]"

// always are the fields that are decoded of each object: what facts and reflectors need of the metadata, and the kind. Decoders share them.
var always = func() Partial {
	fields := fieldSet{}
	for _, path := range append(lifecycle.MetadataFields(),
		[]string{"metadata", "annotations", metav1.InitialEventsAnnotationKey}, []string{"apiVersion"}, []string{"kind"}) {
		fields = fields.with(path)
	}
	return Partial{fields: fields, withManagers: fields.with([]string{"metadata", "managedFields", elements, "manager"})}
}()

// NewPartial returns a decoder of the fields that expressions read, of what facts and reflectors need of the metadata, and of the kind of
// the object. The fields of several expressions may be given one after the other.
func NewPartial(fields ...[][]string) *Partial {
	p := always
	for _, paths := range fields {
		for _, path := range paths {
			p.fields, p.withManagers = p.fields.with(path), p.withManagers.with(path)
		}
	}
	return &p
}

// with returns the fields and those of a path. An empty path is the whole object.
func (fields fieldSet) with(path []string) fieldSet {
	if fields == nil || len(path) == 0 {
		return nil
	}
	below, ok := fields[path[0]]
	if ok && below == nil {
		return fields // All of it is decoded already.
	}
	if !ok {
		below = fieldSet{}
	}
	out := maps.Clone(fields) // Others may share it.
	out[path[0]] = below.with(path[1:])
	return out
}

// of returns the fields of what is encoded.
func (p *Partial) of(data []byte) fieldSet {
	if lifecycle.NeedsManagers(data) {
		return p.withManagers
	}
	return p.fields
}

// Decode decodes an object. The syntax of what it skips is not checked.
func (p *Partial) Decode(data []byte) (*unstructured.Unstructured, error) {
	s := &scanner{data: data}
	object, err := s.decode(p.of(data))
	if err != nil {
		return nil, err
	}
	return object, s.end()
}

// DecodeList decodes the objects of a list in the same way, and its other fields whole.
func (p *Partial) DecodeList(data []byte) (*unstructured.UnstructuredList, error) {
	fields := p.of(data)
	s, list := &scanner{data: data}, &unstructured.UnstructuredList{Object: map[string]any{}}
	err := s.object(func(key []byte) (err error) {
		if string(key) != "items" {
			list.Object[string(key)], err = s.value(nil)
			return err
		}
		return s.array(func() error {
			object, err := s.decode(fields)
			if err == nil {
				list.Items = append(list.Items, *object)
			}
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	return list, s.end()
}

// decode decodes the fields of the object that follows, and adds the digest of its spec.
func (s *scanner) decode(fields fieldSet) (*unstructured.Unstructured, error) {
	content, err := s.content(fields)
	if err != nil {
		return nil, err
	}
	object, ok := content.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("a JSON object was expected, not %T", content)
	}
	return &unstructured.Unstructured{Object: object}, nil
}

// content is value for an object. If all of it is decoded, its digest is unknown.
func (s *scanner) content(fields fieldSet) (any, error) {
	if fields == nil || s.next() != '{' {
		return s.value(fields)
	}
	out, spec := map[string]any{}, lifecycle.Digest(0)
	err := s.object(func(key []byte) (err error) {
		s.next()
		start := s.at
		if below, ok := fields[string(key)]; ok {
			out[string(key)], err = s.value(below)
		} else {
			_, err = s.skip()
		}
		if string(key) == "spec" && err == nil {
			spec = digest(s.data[start:s.at])
		}
		return err
	})
	if _, ok := out["metadata"].(map[string]any); ok && spec != 0 {
		lifecycle.SetContent(&unstructured.Unstructured{Object: out}, spec)
	}
	return out, err
}

// value decodes the fields of the value that follows. A value that is no object is decoded whole, as expressions fail for it. Of two fields
// with the same key the last one counts.
func (s *scanner) value(fields fieldSet) (any, error) {
	if each, ok := fields[elements]; ok && s.next() == '[' {
		all := []any{}
		err := s.array(func() error {
			element, err := s.value(each)
			all = append(all, element)
			return err
		})
		return all, err
	}
	if fields != nil && s.next() == '{' {
		out := map[string]any{}
		return out, s.object(func(key []byte) (err error) {
			below, ok := fields[string(key)]
			if !ok {
				_, err := s.skip()
				return err
			}
			out[string(key)], err = s.value(below)
			return err
		})
	}
	raw, err := s.skip()
	if err != nil {
		return nil, err
	}
	var v any
	return v, json.Unmarshal(raw, &v)
}
