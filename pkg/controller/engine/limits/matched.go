// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package limits

import (
	"time"

	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

// asked is the last question to the policies, which rules match a record, and their answer. Only one is kept, because there may be a
// million records. Methods that work with "the matched record" read the answer here, so Match must be called first.
type asked struct {
	Rec     *memory.Record // nil if policies must be asked again
	fact    lifecycle.Fact
	Matches policy.Matches
	Count   int // how often policies were asked
}

// Match asks the policies which rules match a record, unless this was the last question, and nothing has changed since. From the moment
// when Winnow's delete is accepted, an object counts as terminating.
func (l *Limits) Match(rec *memory.Record) {
	if l.Asked.Rec == rec {
		return
	}
	ns := rec.NS
	rec.Unpack(&l.Asked.fact)
	l.Asked.fact.Terminating = l.Asked.fact.Terminating || rec.Deleted()
	l.Asked.fact.Finishes = rec.Finished && !ns.NamesAll || l.Table.Finishes(rec.Resource)
	l.Asked.fact.Usage, l.Asked.fact.Matched = l.UsageOf(rec), rec.Matching().Rules
	l.Asked.Matches.Ask(&l.Asked.fact, ns.Enforcing, ns.Previews, ns.ClusterEnforcing, ns.ClusterPreviews)
	l.Asked.Rec = rec
	l.Asked.Count++
}

// noteMatching notes since when rules with after: Matched match a record. A rule matches if it decides in its policy, so an earlier rule of
// the same policy, or a policy of the namespace before a cluster policy, ends the time.
func (l *Limits) noteMatching(rec *memory.Record, now time.Time) {
	former := rec.Matching()
	if len(rec.NS.MatchIDs) == 0 && len(former.Rules) == 0 && !former.Unknown {
		return
	}
	l.Match(rec)
	var next memory.Matching
	for _, matches := range [][]policy.Match{l.Asked.Matches.Enforced, l.Asked.Matches.Previews} {
		for i := range matches {
			m := &matches[i]
			if m.Unevaluated() {
				next.Unknown, next.Rules = true, append(next.Rules, former.Of(m.Policy.UID)...)
				continue
			}
			id, ok := m.MatchID()
			if !ok {
				continue
			}
			r, matched := former.Since(id)
			if !matched {
				r = l.BeginMatch(rec, lifecycle.Matched{Policy: m.Policy.UID, Rule: id}, now)
			}
			next.Rules = append(next.Rules, r)
		}
	}
	l.SetMatching(rec, &next)
	l.Asked.fact.Matched = next.Rules
}

// Object returns what policies must know about the matched record.
func (l *Limits) Object(rec *memory.Record) policy.Object {
	return policy.Object{
		Fact: &l.Asked.fact, Owner: lifecycle.OwnershipOf(&l.Asked.fact, l), Recreated: rec.Flags.Has(memory.Recreated),
		Announced: rec.Announced(),
	}
}
