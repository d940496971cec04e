// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package limits

import (
	"slices"
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
	former, ns := rec.Matching(), rec.NS
	if len(ns.MatchIDs) == 0 && len(former.Rules)+len(former.Unknown) == 0 {
		return
	}
	l.Match(rec)
	next := memory.Matching{Unknown: l.unjudged(ns)}
	for i := range former.Rules {
		if r := former.Rules[i]; slices.Contains(next.Unknown, r.Rule) && goesOn(ns, r) {
			next.Rules = append(next.Rules, r)
		}
	}
	for _, matches := range [][]policy.Match{l.Asked.Matches.Enforced, l.Asked.Matches.Previews} {
		for i := range matches {
			id, matched := matches[i].MatchID()
			if !matched {
				continue
			}
			r, before := former.Of(id)
			if !before || !goesOn(ns, r) {
				r = lifecycle.Matched{Rule: id, Period: ns.MatchIDs[id], ByChange: ns.Changes.MayMakeDue()}
			}
			next.Rules = append(next.Rules, l.BeginMatch(rec, r, now))
		}
	}
	l.JudgeMatches(rec, &next)
	l.Asked.fact.Matched = next.Rules
}

// goesOn reports whether a rule has applied without interruption since it began to match.
func goesOn(ns *memory.Namespace, r lifecycle.Matched) bool {
	period, applies := ns.MatchIDs[r.Rule]
	return applies && period == r.Period
}

// unjudged returns the rules with after: Matched of which it is not known whether they match the matched record, because match conditions
// have not been evaluated. Which cluster policies apply depends on the policies of the namespace.
func (l *Limits) unjudged(ns *memory.Namespace) []lifecycle.MatchID {
	var out []lifecycle.MatchID
	enforced := l.Asked.Matches.Enforced
	known := len(enforced) == 0 || enforced[0].Policy.Cluster != nil
	for _, matches := range [][]policy.Match{enforced, l.Asked.Matches.Previews} {
		for i := range matches {
			if matches[i].Unevaluated() {
				out = append(out, matches[i].Policy.MatchIDs()...)
			}
		}
	}
	for i := range enforced {
		known = known || !enforced[i].Unevaluated()
	}
	if !known {
		for _, p := range slices.Concat(ns.ClusterEnforcing, ns.ClusterPreviews) {
			out = append(out, p.MatchIDs()...)
		}
	}
	return out
}

// Object returns what policies must know about the matched record.
func (l *Limits) Object(rec *memory.Record) policy.Object {
	return policy.Object{
		Fact: &l.Asked.fact, Owner: lifecycle.OwnershipOf(&l.Asked.fact, l), Recreated: rec.Flags.Has(memory.Recreated),
		Announced: rec.Announced(),
	}
}
