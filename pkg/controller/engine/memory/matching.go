// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
)

// MatchKey identifies an object and a rule with after: Matched in marks.
type MatchKey struct {
	UID  types.UID
	Rule lifecycle.MatchID
}

// MatchMark says since when a rule with after: Matched matches an object; see lifecycle.Matched.
type MatchMark struct {
	Since    time.Time
	ByChange bool
}

// Equal reports whether two marks are the same.
func (m MatchMark) Equal(o MatchMark) bool { return m.Since.Equal(o.Since) && m.ByChange == o.ByChange }

// Later returns the mark that keeps the object for longer if two are stored.
func (m MatchMark) Later(o MatchMark) MatchMark {
	if o.Since.After(m.Since) {
		m.Since = o.Since
	}
	m.ByChange = m.ByChange || o.ByChange
	return m
}

// Matching says since when rules with after: Matched match an object. It never changes; a newer state is a new Matching.
type Matching struct {
	// Rules are the rules that match.
	Rules []lifecycle.Matched
	// Unknown are the rules of which it is not known whether they match the present state of the object. Those that matched the state before
	// are in Rules too.
	Unknown []lifecycle.MatchID
}

// Of returns what is known of a rule; false if it is not known to match.
func (m *Matching) Of(rule lifecycle.MatchID) (lifecycle.Matched, bool) {
	i := slices.IndexFunc(m.Rules, func(r lifecycle.Matched) bool { return r.Rule == rule })
	if i < 0 {
		return lifecycle.Matched{}, false
	}
	return m.Rules[i], true
}

// Assessed returns the matching with a rule whose match began with a change that is assessed now.
func (m *Matching) Assessed(rule lifecycle.MatchID) *Matching {
	out := &Matching{Rules: slices.Clone(m.Rules), Unknown: m.Unknown}
	for i := range out.Rules {
		out.Rules[i].ByChange = out.Rules[i].ByChange && out.Rules[i].Rule != rule
	}
	return out
}

// Known returns the matching without the rules in Unknown.
func (m *Matching) Known() *Matching {
	return &Matching{Rules: slices.DeleteFunc(slices.Clone(m.Rules), func(r lifecycle.Matched) bool {
		return slices.Contains(m.Unknown, r.Rule)
	})}
}

// Equal reports whether two states are the same.
func (m *Matching) Equal(o *Matching) bool {
	return slices.Equal(m.Rules, o.Rules) && slices.Equal(m.Unknown, o.Unknown)
}

// Matching returns since when rules with after: Matched match the object.
func (rec *Record) Matching() *Matching {
	if m := rec.NS.Matching[rec]; m != nil {
		return m
	}
	return &noMatching
}

var noMatching Matching

// SetMatching sets since when rules with after: Matched match the object. It keeps a copy without the spare capacity of slices that grew:
// a million objects may each match many rules.
func (rec *Record) SetMatching(m *Matching) {
	ns := rec.NS
	if len(m.Rules)+len(m.Unknown) == 0 {
		delete(ns.Matching, rec)
		return
	}
	if ns.Matching == nil {
		ns.Matching = map[*Record]*Matching{}
	}
	ns.Matching[rec] = &Matching{Rules: slices.Clone(m.Rules), Unknown: slices.Clone(m.Unknown)}
}

// Inherit adds a stored match. Of several, the later time counts.
func (ns *Namespace) Inherit(key MatchKey, mark MatchMark) {
	if ns.Inherited == nil {
		ns.Inherited = map[types.UID]map[lifecycle.MatchID]MatchMark{}
	}
	rules := ns.Inherited[key.UID]
	if rules == nil {
		rules = map[lifecycle.MatchID]MatchMark{}
		ns.Inherited[key.UID] = rules
	}
	rules[key.Rule] = rules[key.Rule].Later(mark)
}
