// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package knowledge

import (
	"iter"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
)

// A rule with after: Matched counts from when this process has seen it begin to match. Only at its start may the process inherit an earlier
// time from the stored marks: for the first state that it knows of an object, and for a rule that has applied from the start. Wherever it
// is not certain that the rule has matched without interruption, the time starts anew, because later is safe.

const (
	// maxMatchMarks is how many marks of rules with after: Matched are stored for a namespace. The times of more objects start again when
	// Winnow restarts.
	maxMatchMarks = 10 * MaxMarks
	// youngMatch is how long a match must have lasted before it is stored, so that objects that match only for a moment cost no writes.
	youngMatch = time.Minute
)

// inherit takes over the stored matches, when the marks are first listed. Objects that have changed meanwhile inherit nothing.
func (k *Knowledge) inherit() {
	for _, ns := range k.Namespaces {
		changed := ns.Inherited
		ns.Inherited = nil
		for _, m := range ns.Marks {
			for key, mark := range m.Matched {
				if _, has := changed[key.UID]; !has {
					ns.Inherit(key, mark)
				}
			}
		}
		if len(ns.MatchIDs) > 0 {
			k.TouchNamespaces([]*memory.Namespace{ns})
		}
	}
}

// Disinherit is called when an object is gone, or has changed: this process has missed something of the rules that have not judged it yet.
func (k *Knowledge) Disinherit(rec *memory.Record) {
	ns := rec.NS
	switch {
	case !k.marksListed && !k.NoMarks:
		if ns.Inherited == nil {
			ns.Inherited = map[types.UID]map[lifecycle.MatchID]memory.MatchMark{}
		}
		ns.Inherited[rec.UID()] = nil
	case ns.Inherited[rec.UID()] != nil:
		delete(ns.Inherited, rec.UID())
		k.MarksChanged(ns)
	}
}

// Supersede is called before a newer state replaces the state of a record. What was not known of the former state never will be, so the
// rules start anew.
func (k *Knowledge) Supersede(rec *memory.Record) {
	k.Disinherit(rec)
	m := rec.Matching()
	switch {
	case rec.Flags.Has(memory.MustCount), len(rec.NS.Changes) > 0 && k.Recounts(rec):
		k.SetMatching(rec, &memory.Matching{}) // The present rules have not judged the former state.
	case len(m.Unknown) > 0:
		k.SetMatching(rec, m.Known())
	}
}

// BeginMatch returns since when a rule matches that did not match before, as far as this process knows; zero until that can be noted.
func (k *Knowledge) BeginMatch(rec *memory.Record, m lifecycle.Matched, now time.Time) lifecycle.Matched {
	if m.Since.IsZero() {
		mark, inherits := rec.NS.Inherited[rec.UID()][m.Rule]
		switch {
		case inherits && m.Period == 0:
			m.Since, m.ByChange = k.believable(mark.Since, rec, now), mark.ByChange
		case (k.marksListed || k.NoMarks) && k.Fresh.ClockDoubt() == "":
			m.Since = k.believable(now, rec, now)
		}
	}
	return m
}

// believable is believable for times since when rules match. While clocks are in doubt, now says nothing about what is in the future.
func (k *Knowledge) believable(at time.Time, rec *memory.Record, now time.Time) time.Time {
	if k.Fresh.ClockDoubt() != "" && at.After(now) {
		now = at
	}
	return believable(at.Round(0).UTC(), rec.Created(), now.Round(0).UTC())
}

// JudgeMatches stores which rules match a record. What it has inherited of rules that have judged it does not count any more.
func (k *Knowledge) JudgeMatches(rec *memory.Record, m *memory.Matching) {
	k.SetMatching(rec, m)
	ns := rec.NS
	inherited := ns.Inherited[rec.UID()]
	for rule := range inherited {
		if _, applies := ns.MatchIDs[rule]; applies && !slices.Contains(m.Unknown, rule) {
			delete(inherited, rule)
			k.MarksChanged(ns)
		}
	}
	if inherited != nil && len(inherited) == 0 {
		delete(ns.Inherited, rec.UID())
	}
}

// SetMatching sets since when rules match a record.
func (k *Knowledge) SetMatching(rec *memory.Record, m *memory.Matching) {
	if !rec.Matching().Equal(m) {
		rec.SetMatching(m)
		k.MarksChanged(rec.NS)
	}
}

// AdoptMatches counts records from the times of new stored marks, if these are later: the replica that stored them may have seen a match
// end that this one has not.
func (k *Knowledge) AdoptMatches(ns *memory.Namespace, marks map[memory.MatchKey]memory.MatchMark, now time.Time) {
	for key, mark := range marks {
		rec := k.Records.Get(key.UID)
		if rec == nil || rec.NS != ns {
			continue
		}
		before := rec.Matching()
		m := &memory.Matching{Rules: slices.Clone(before.Rules), Unknown: before.Unknown}
		for i := range m.Rules {
			r := &m.Rules[i]
			if at := k.believable(mark.Since, rec, now); r.Rule == key.Rule && !r.Since.IsZero() && at.After(r.Since) {
				r.Since, r.ByChange = at, r.ByChange || mark.ByChange
			}
		}
		if !before.Equal(m) {
			k.SetMatching(rec, m)
			k.Touch(rec)
		}
	}
}

// marksMatches reports whether marks of rules with after: Matched are stored, or must be stored.
func marksMatches(ns *memory.Namespace) bool {
	for _, m := range ns.Marks {
		if len(m.Matched) > 0 {
			return true
		}
	}
	return len(ns.Matching) > 0
}

// wantedMatches returns the marks of a namespace about rules with after: Matched. It reports false if more of them must be stored soon,
// even if nothing happens. Rules of enforcing policies come first, and of these, objects that are stored, so that the others do not take
// their places. It ends when proceed returns false.
func (k *Knowledge) wantedMatches(
	ns *memory.Namespace, now time.Time, proceed func() bool,
) (out map[memory.MatchKey]memory.MatchMark, known bool) {
	out, known = map[memory.MatchKey]memory.MatchMark{}, true
	complete, previews := k.matchesComplete(ns), sets.New[lifecycle.MatchID]()
	for _, p := range slices.Concat(ns.Previews, ns.ClusterPreviews) {
		previews.Insert(p.MatchIDs()...)
	}
	add := func(key memory.MatchKey) {
		if len(out) >= maxMatchMarks {
			return
		}
		mark, young := k.matchMark(ns, key, now, complete)
		if known = known && !young; !young && !mark.Since.IsZero() {
			out[key] = mark
		}
	}
	var ofPreviews []memory.MatchKey
	for key := range matchKeys(ns) {
		if !proceed() {
			return out, false
		}
		if complete = complete && k.matchesComplete(ns); previews.Has(key.Rule) {
			ofPreviews = append(ofPreviews, key)
		} else {
			add(key)
		}
	}
	for _, key := range ofPreviews {
		add(key)
	}
	return out, known
}

// matchKeys returns what may have to be marked: what is stored first, then what matches, then what other replicas have noted.
func matchKeys(ns *memory.Namespace) iter.Seq[memory.MatchKey] {
	return func(yield func(memory.MatchKey) bool) {
		for _, m := range ns.Marks {
			for key := range m.Matched {
				if !yield(key) {
					return
				}
			}
		}
		for rec, m := range ns.Matching {
			for i := range m.Rules {
				if !yield(memory.MatchKey{UID: rec.UID(), Rule: m.Rules[i].Rule}) {
					return
				}
			}
		}
		for uid, rules := range ns.Inherited {
			for rule := range rules {
				if !yield(memory.MatchKey{UID: uid, Rule: rule}) {
					return
				}
			}
		}
	}
}

// matchesComplete reports whether it is known which objects of a namespace match now, so that an object without a record is gone.
func (k *Knowledge) matchesComplete(ns *memory.Namespace) bool {
	return k.allListed(ns) && k.policiesKnown() && !k.Unsettled(ns)
}

// matchMark returns the mark to store for a rule and an object; zero if there must be none. young says that the match must last longer
// first. complete is what matchesComplete returns.
func (k *Knowledge) matchMark(
	ns *memory.Namespace, key memory.MatchKey, now time.Time, complete bool,
) (mark memory.MatchMark, young bool) {
	uid, rule := key.UID, key.Rule
	rec := k.Records.Get(uid)
	here := rec != nil && rec.NS == ns
	if here {
		if r, matches := rec.Matching().Of(rule); matches && !r.Since.IsZero() {
			return memory.MatchMark{Since: r.Since, ByChange: r.ByChange}, !r.ByChange && now.Before(r.Since.Add(youngMatch))
		}
	}
	period, applies := ns.MatchIDs[rule]
	if mayMatch := applies && period == 0 || !applies && !k.policiesKnown(); !mayMatch || !here && complete {
		return memory.MatchMark{}, false
	}
	return ns.Inherited[uid][rule], false
}

// policiesKnown reports whether all policies are known, and which namespaces they select.
func (k *Knowledge) policiesKnown() bool { return k.Fresh.AllListed() }

// NotePolicies notes when an event ends whether all policies are known, so that a rule that is new to a namespace is new to all.
func (k *Knowledge) NotePolicies() { k.rulesKnown = k.policiesKnown() }

// PeriodOf returns the period in which a rule applies in a namespace: the same as before if it has applied without interruption.
func (k *Knowledge) PeriodOf(ns *memory.Namespace, rule lifecycle.MatchID) lifecycle.MatchPeriod {
	period, applied := ns.MatchIDs[rule]
	if !applied && k.rulesKnown {
		k.matchPeriods++
		return k.matchPeriods
	}
	return period
}
