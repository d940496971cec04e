// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"bytes"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/winnow-dev/winnow/pkg/controller/lifecycle"
)

// Partial decodes some fields of an object from JSON, and skips the others without building anything of them: an object may have a
// megabyte, and few of its fields are read.
type Partial struct{ fields fieldSet }

// fieldSet are the fields of a JSON object that are decoded. If the value is nil, the whole field is.
type fieldSet map[string]fieldSet

// NewPartial returns a decoder of the fields that expressions read, of what facts need of the metadata, and of the kind of the object. The
// fields of several expressions may be given one after the other.
func NewPartial(fields ...[][]string) *Partial {
	p := &Partial{fields: fieldSet{}}
	for _, paths := range append(fields, lifecycle.MetadataFields(), [][]string{{"apiVersion"}, {"kind"}}) {
		for _, path := range paths {
			p.add(path)
		}
	}
	return p
}

// add adds a path to the fields. An empty path is the whole object.
func (p *Partial) add(path []string) {
	if len(path) == 0 {
		p.fields = nil
	}
	at := p.fields
	for i, key := range path {
		below, ok := at[key]
		switch {
		case at == nil || ok && below == nil:
			return // All of it is decoded already.
		case i == len(path)-1:
			at[key] = nil
			return
		case !ok:
			below = fieldSet{}
			at[key] = below
		}
		at = below
	}
}

// Decode decodes an object. The syntax of what it skips is not checked.
func (p *Partial) Decode(data []byte) (*unstructured.Unstructured, error) {
	s := &scanner{data: data}
	content, err := s.value(p.fields)
	if err != nil {
		return nil, err
	}
	if s.next() != 0 {
		return nil, s.errorf("the object is followed by something else")
	}
	object, ok := content.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("a JSON object was expected, not %T", content)
	}
	return &unstructured.Unstructured{Object: object}, nil
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

// value decodes the fields of the value that follows. A value that is no object is decoded whole, as expressions fail for it.
func (s *scanner) value(fields fieldSet) (any, error) {
	if fields != nil && s.next() == '{' {
		return s.object(fields)
	}
	raw, err := s.skip()
	if err != nil {
		return nil, err
	}
	var v any
	return v, json.Unmarshal(raw, &v)
}

// object decodes the fields of the object that follows.
func (s *scanner) object(fields fieldSet) (map[string]any, error) {
	out := map[string]any{}
	s.at++ // the brace
	if s.next() == '}' {
		s.at++
		return out, nil
	}
	for {
		if err := s.field(fields, out); err != nil {
			return nil, err
		}
		switch s.next() {
		case ',':
			s.at++
		case '}':
			s.at++
			return out, nil
		default:
			return nil, s.errorf("a comma or a brace was expected after a field")
		}
	}
}

// field decodes the field that follows, if it is one of fields. Of two fields with the same key the last one counts.
func (s *scanner) field(fields fieldSet, out map[string]any) error {
	if s.next() != '"' {
		return s.errorf("a key was expected")
	}
	raw, err := s.skip()
	if err != nil {
		return err
	}
	key := raw[1 : len(raw)-1]
	if bytes.IndexByte(key, '\\') >= 0 {
		var unescaped string
		if err := json.Unmarshal(raw, &unescaped); err != nil {
			return err
		}
		key = []byte(unescaped)
	}
	if s.next() != ':' {
		return s.errorf("a colon was expected after a key")
	}
	s.at++
	below, ok := fields[string(key)]
	if !ok {
		_, err := s.skip()
		return err
	}
	out[string(key)], err = s.value(below)
	return err
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
