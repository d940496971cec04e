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
	s := p[0]
	if s.key != "*" {
		return p.enter(object, object[s.key], visit)
	}
	for _, value := range object {
		if err := p.enter(object, value, visit); err != nil {
			return err
		}
	}
	return nil
}

// enter follows the path from the value of its first step.
func (p path) enter(parent map[string]any, value any, visit func(parent map[string]any, value any) error) error {
	if value == nil {
		return nil
	}
	values := []any{value}
	if s := p[0]; s.list {
		list, ok := value.([]any)
		if !ok {
			return fmt.Errorf("%s is %T, not a list", s.key, value)
		}
		values = list
	}
	for _, value := range values {
		if err := p.follow(parent, value, visit); err != nil {
			return err
		}
	}
	return nil
}

func (p path) follow(parent map[string]any, value any, visit func(parent map[string]any, value any) error) error {
	switch below, ok := value.(map[string]any); {
	case value == nil:
		return nil
	case len(p) == 1:
		return visit(parent, value)
	case !ok:
		return fmt.Errorf("%s is %T, not an object", p[0].key, value)
	default:
		return p[1:].walk(below, visit)
	}
}
