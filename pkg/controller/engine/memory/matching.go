// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
)

// MatchKey identifies an object and a rule with after: Matched in marks.
type MatchKey struct {
	UID  types.UID
	Rule lifecycle.MatchID
}

// Matching says since when rules with after: Matched match an object. It never changes; a newer state is a new Matching.
type Matching struct {
	// Rules are the rules that match.
	Rules []lifecycle.Matched
	// Unknown is set if it is not known of some policy which rule matches. Rules has what was known of it before, and stored marks of others
	// may still be needed.
	Unknown bool
}

// Of returns the rules of a policy.
func (m *Matching) Of(p types.UID) []lifecycle.Matched {
	var out []lifecycle.Matched
	for i := range m.Rules {
		if m.Rules[i].Policy == p {
			out = append(out, m.Rules[i])
		}
	}
	return out
}

// Since returns since when a rule matches; false if it is not known that it matches.
func (m *Matching) Since(rule lifecycle.MatchID) (lifecycle.Matched, bool) {
	i := slices.IndexFunc(m.Rules, func(r lifecycle.Matched) bool { return r.Rule == rule })
	if i < 0 {
		return lifecycle.Matched{}, false
	}
	return m.Rules[i], true
}

// Equal reports whether two states are the same.
func (m *Matching) Equal(o *Matching) bool {
	return m.Unknown == o.Unknown && slices.Equal(m.Rules, o.Rules)
}

// Matching returns since when rules with after: Matched match the object.
func (rec *Record) Matching() *Matching {
	if m := rec.NS.Matching[rec]; m != nil {
		return m
	}
	return &noMatching
}

var noMatching Matching

// SetMatching sets since when rules with after: Matched match the object.
func (rec *Record) SetMatching(m *Matching) {
	switch ns := rec.NS; {
	case len(m.Rules) == 0 && !m.Unknown:
		delete(ns.Matching, rec)
	case ns.Matching == nil:
		ns.Matching = map[*Record]*Matching{rec: m}
	default:
		ns.Matching[rec] = m
	}
}

// Settled reports whether the record was settled before.
func (rec *Record) Settled() bool { return rec.Reason != 0 }
