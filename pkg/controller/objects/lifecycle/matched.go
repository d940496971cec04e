// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import "time"

// MatchID identifies a rule with after: Matched, its policy, and what decides which objects the rule matches.
type MatchID uint64

// MatchPeriod is a period in which a rule applies in a namespace without interruption. It is zero if the rule already applied when Winnow
// had first listed the policies.
type MatchPeriod uint32

// Matched says since when a rule with after: Matched matches an object.
type Matched struct {
	Rule   MatchID
	Period MatchPeriod
	// ByChange is set if the match began with a change by people that is still to be assessed.
	ByChange bool
	// Since is zero until it can be noted.
	Since time.Time
}

// MatchedSince returns since when a rule matches the object; zero if that is not known.
func (f *Fact) MatchedSince(rule MatchID) time.Time {
	for i := range f.Matched {
		if f.Matched[i].Rule == rule {
			return f.Matched[i].Since
		}
	}
	return time.Time{}
}
