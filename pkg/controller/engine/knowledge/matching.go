// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package knowledge

import (
	"time"

	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/rules/freshness"
)

// maxMatchMarks is how many marks of rules with after: Matched are stored for a namespace. The times of more objects start again when
// Winnow restarts.
const maxMatchMarks = 10 * MaxMarks

// StoredMatch returns since when a rule matches an object according to the stored marks; zero if they do not have it. Like Mark, it makes no
// object due too early, whoever wrote the mark.
func (k *Knowledge) StoredMatch(rec *memory.Record, rule lifecycle.MatchID, now time.Time) time.Time {
	key := memory.MatchKey{UID: rec.UID(), Rule: rule}
	since := k.CopiedMatches[key]
	for _, m := range rec.NS.Marks {
		if at := m.Matched[key]; at.After(since) {
			since = at
		}
	}
	if since.IsZero() {
		return since
	}
	return believable(since, rec.Created(), now)
}

// BeginMatch returns since when a rule matches a record that it did not match before, as far as this process knows. If this process has seen
// that the rule did not match, the time begins now. Otherwise another replica, or this one before it started, may know an earlier time.
func (k *Knowledge) BeginMatch(rec *memory.Record, m lifecycle.Matched, now time.Time) lifecycle.Matched {
	ns := rec.NS
	counted := !k.Touched.Counting.Has(ns) || !ns.NewMatchIDs.Has(m.Rule)
	m.Since, m.Seen = now.Round(0).UTC(), rec.Settled() && counted && !rec.Matching().Unknown
	if at := k.StoredMatch(rec, m.Rule, now); !m.Seen && !at.IsZero() {
		m.Since = at
	}
	return m
}

// SetMatching sets since when rules match a record.
func (k *Knowledge) SetMatching(rec *memory.Record, m *memory.Matching) {
	if !rec.Matching().Equal(m) {
		rec.SetMatching(m)
		k.MarksChanged(rec.NS)
	}
}

// AdoptMatches counts records from the times of new stored marks. Of what this process has seen begin, only a later time counts.
func (k *Knowledge) AdoptMatches(ns *memory.Namespace, marks map[memory.MatchKey]time.Time, now time.Time) {
	for key := range marks {
		rec := k.Records.Get(key.UID)
		if rec == nil || rec.NS != ns {
			continue
		}
		m, at := &memory.Matching{Unknown: rec.Matching().Unknown}, k.StoredMatch(rec, key.Rule, now)
		for _, r := range rec.Matching().Rules {
			if r.Rule == key.Rule && (!r.Seen || at.After(r.Since)) {
				r.Since = at
			}
			m.Rules = append(m.Rules, r)
		}
		if !rec.Matching().Equal(m) {
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

// wantedMatches returns the marks of a namespace about rules with after: Matched, and reports whether it is known which rules match. Until
// it is, other stored marks stay.
func (k *Knowledge) wantedMatches(ns *memory.Namespace) (out map[memory.MatchKey]time.Time, known bool) {
	out, known = map[memory.MatchKey]time.Time{}, k.allListed(ns) && k.policiesKnown() && !k.Unsettled(ns)
	for _, m := range ns.Marks {
		for key, stored := range m.Matched {
			rec := k.Records.Get(key.UID)
			here := rec != nil && rec.NS == ns
			if here {
				if r, matches := rec.Matching().Since(key.Rule); matches {
					out[key] = r.Since
					continue
				}
			}
			if !known || here && rec.Matching().Unknown {
				if stored.After(out[key]) {
					out[key] = stored
				}
			}
		}
	}
	for rec, m := range ns.Matching {
		for _, r := range m.Rules {
			if len(out) >= maxMatchMarks {
				return out, known
			}
			out[memory.MatchKey{UID: rec.UID(), Rule: r.Rule}] = r.Since
		}
	}
	return out, known
}

// policiesKnown reports whether all policies are known, and which namespaces they select.
func (k *Knowledge) policiesKnown() bool {
	return k.Fresh.Listed(freshness.Policies) && k.Fresh.Listed(freshness.ClusterPolicies) && k.Fresh.Listed(freshness.Namespaces)
}
