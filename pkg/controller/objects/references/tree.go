// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package references

import "slices"

// tree are rules by the steps of their paths, so that what several paths go through is read once.
type tree struct {
	step
	ends  []rule // whose paths end with the step
	below []*tree
}

// ruleSet are rules that apply to an object together.
type ruleSet struct {
	unless path // see rule
	trees  []*tree
}

// arrange returns rules as sets.
func arrange(rules []rule) (all []*ruleSet) {
	for _, r := range rules {
		at := slices.IndexFunc(all, func(s *ruleSet) bool { return slices.Equal(s.unless, r.unless) })
		if at < 0 {
			at, all = len(all), append(all, &ruleSet{unless: r.unless})
		}
		all[at].trees = add(all[at].trees, r, r.path)
	}
	return all
}

// add adds a rule, of whose path so much remains.
func add(to []*tree, r rule, rest path) []*tree {
	at := slices.IndexFunc(to, func(t *tree) bool { return t.step == rest[0] })
	if at < 0 {
		at, to = len(to), append(to, &tree{step: rest[0]})
	}
	if t := to[at]; len(rest) == 1 {
		t.ends = append(t.ends, r)
	} else {
		t.below = add(t.below, r, rest[1:])
	}
	return to
}

// find adds what rules find in an object.
func (s *ruleSet) find(o *reading) error {
	if s.unless != nil {
		applies := true
		err := s.unless.walk(o.object, func(map[string]any, any) error { applies = false; return nil })
		if err != nil || !applies {
			return err
		}
	}
	return findBelow(o, s.trees, o.object)
}

func findBelow(o *reading, all []*tree, object map[string]any) error {
	for _, t := range all {
		err := t.each(object, func(value any) error {
			for _, r := range t.ends {
				if err := o.find(r, object, value); err != nil {
					return err
				}
			}
			if len(t.below) == 0 {
				return nil
			}
			below, err := t.enter(value)
			if err != nil {
				return err
			}
			return findBelow(o, t.below, below)
		})
		if err != nil {
			return err
		}
	}
	return nil
}
