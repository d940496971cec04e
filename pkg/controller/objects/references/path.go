// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package references

import (
	"fmt"
	"strings"
)

// path leads to values in an object: "a.b" is the field b of the field a, "a[].b" is the field b of each element of the list a, and "a.*"
// is each value of the map a.
type path []step

type step struct {
	key  string // "*" for each value of a map
	list bool   // the field is a list, and the path goes on with each of its elements
}

func parse(text string) path {
	var p path
	for key := range strings.SplitSeq(text, ".") {
		key, list := strings.CutSuffix(key, "[]")
		p = append(p, step{key, list})
	}
	return p
}

// fixed returns the keys of the path before its first map.
func (p path) fixed() []string {
	var out []string
	for _, s := range p {
		if s.key == "*" {
			break
		}
		out = append(out, s.key)
	}
	return out
}

// walk calls visit for each value that the path leads to, with the object that it is a field of. Fields that are not there, or null, lead
// to nothing. It fails if a value has another type than the path says.
func (p path) walk(object map[string]any, visit func(parent map[string]any, value any) error) error {
	return p[0].each(object, func(value any) error {
		if len(p) == 1 {
			return visit(object, value)
		}
		below, err := p[0].enter(value)
		if err != nil {
			return err
		}
		return p[1:].walk(below, visit)
	})
}

// each calls do with each value that a step leads to.
func (s step) each(object map[string]any, do func(value any) error) error {
	if s.key != "*" {
		return s.eachIn(object[s.key], do)
	}
	for _, value := range object {
		if err := s.eachIn(value, do); err != nil {
			return err
		}
	}
	return nil
}

func (s step) eachIn(value any, do func(value any) error) error {
	if value == nil {
		return nil
	}
	if !s.list {
		return do(value)
	}
	list, ok := value.([]any)
	if !ok {
		return fmt.Errorf("%s is %T, not a list", s.key, value)
	}
	for _, value := range list {
		if value == nil {
			continue
		}
		if err := do(value); err != nil {
			return err
		}
	}
	return nil
}

// enter returns a value through which a path goes on.
func (s step) enter(value any) (map[string]any, error) {
	below, ok := value.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("%s is %T, not an object", s.key, value)
	}
	return below, nil
}
