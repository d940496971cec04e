// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"bytes"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/util/json"
)

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
