// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"bytes"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/winnow-dev/winnow/pkg/controller/lifecycle"
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

// NewPartial returns a decoder of the fields that expressions read, of what facts and reflectors need of the metadata, and of the kind of
// the object. The fields of several expressions may be given one after the other.
func NewPartial(fields ...[][]string) *Partial {
	p := &Partial{fields: fieldSet{}, withManagers: fieldSet{}}
	others := [][]string{{"apiVersion"}, {"kind"}, {"metadata", "annotations", metav1.InitialEventsAnnotationKey}}
	for _, paths := range append(fields, lifecycle.MetadataFields(), others) {
		for _, path := range paths {
			p.fields, p.withManagers = p.fields.add(path), p.withManagers.add(path)
		}
	}
	p.withManagers = p.withManagers.add([]string{"metadata", "managedFields", elements, "manager"})
	return p
}

// add adds a path to the fields. An empty path is the whole object.
func (fields fieldSet) add(path []string) fieldSet {
	if len(path) == 0 {
		return nil
	}
	at := fields
	for i, key := range path {
		below, ok := at[key]
		switch {
		case at == nil || ok && below == nil:
			return fields // All of it is decoded already.
		case i == len(path)-1:
			at[key] = nil
			return fields
		case !ok:
			below = fieldSet{}
			at[key] = below
		}
		at = below
	}
	return fields
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

// scanner finds values in JSON.
type scanner struct {
	data []byte
	at   int
}

var errEnds = errors.New("the JSON ends too early")

func (s *scanner) errorf(format string, args ...any) error {
	return fmt.Errorf("at byte %d: "+format, append([]any{s.at}, args...)...)
}

// next returns the first byte after white space; 0 at the end.
func (s *scanner) next() byte {
	for ; s.at < len(s.data); s.at++ {
		switch c := s.data[s.at]; c {
		case ' ', '\t', '\r', '\n':
		default:
			return c
		}
	}
	return 0
}

// end fails unless nothing follows.
func (s *scanner) end() error {
	if s.next() != 0 {
		return s.errorf("the object is followed by something else")
	}
	return nil
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

// object calls field after each key of the object that follows. field must read the value.
func (s *scanner) object(field func(key []byte) error) error {
	if s.next() != '{' {
		return s.errorf("an object was expected")
	}
	return s.each('}', func() error {
		key, err := s.key()
		if err != nil {
			return err
		}
		return field(key)
	})
}

// array calls element before each element of the array that follows. element must read it. A null is an empty array.
func (s *scanner) array(element func() error) error {
	if s.next() != '[' {
		raw, err := s.skip()
		if err == nil && string(raw) != "null" {
			err = s.errorf("an array was expected")
		}
		return err
	}
	return s.each(']', element)
}

// each calls read for each of the parts, with commas between, of the object or array that follows and ends with this bracket.
func (s *scanner) each(end byte, read func() error) error {
	s.at++ // the other bracket
	if s.next() == end {
		s.at++
		return nil
	}
	for {
		if err := read(); err != nil {
			return err
		}
		switch s.next() {
		case ',':
			s.at++
		case end:
			s.at++
			return nil
		default:
			return s.errorf("a comma or %q was expected", end)
		}
	}
}

// key returns the key that follows, with its colon.
func (s *scanner) key() ([]byte, error) {
	if s.next() != '"' {
		return nil, s.errorf("a key was expected")
	}
	raw, err := s.skip()
	if err != nil {
		return nil, err
	}
	key := raw[1 : len(raw)-1]
	if bytes.IndexByte(key, '\\') >= 0 {
		var unescaped string
		if err := json.Unmarshal(raw, &unescaped); err != nil {
			return nil, err
		}
		key = []byte(unescaped)
	}
	if s.next() != ':' {
		return nil, s.errorf("a colon was expected after a key")
	}
	s.at++
	return key, nil
}

// skip returns the value that follows.
func (s *scanner) skip() ([]byte, error) {
	first := s.next()
	start, depth := s.at, 0
	switch first {
	case '"':
		return s.text()
	case '{', '[':
	default:
		return s.scalar()
	}
	for s.at < len(s.data) {
		switch s.data[s.at] {
		case '"':
			if _, err := s.text(); err != nil {
				return nil, err
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		s.at++
		if depth == 0 {
			return s.data[start:s.at], nil
		}
	}
	return nil, errEnds
}

// text returns the string that follows, with its quotes.
func (s *scanner) text() ([]byte, error) {
	start := s.at
	s.at++
	for {
		length := bytes.IndexByte(s.data[s.at:], '"')
		if length < 0 {
			return nil, errEnds
		}
		s.at += length + 1
		// A quote is escaped if an odd number of backslashes stands before it.
		before := s.data[start+1 : s.at-1]
		if (len(before)-len(bytes.TrimRight(before, `\`)))%2 == 0 {
			return s.data[start:s.at], nil
		}
	}
}

// scalar returns the number, the boolean or the null that follows.
func (s *scanner) scalar() ([]byte, error) {
	length := bytes.IndexAny(s.data[s.at:], ",:]} \t\r\n")
	if length < 0 {
		length = len(s.data) - s.at
	}
	if length == 0 {
		return nil, s.errorf("a value was expected")
	}
	s.at += length
	return s.data[s.at-length : s.at], nil
}
