// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// MatchID identifies a rule with after: Matched, its policy, and what decides which objects the rule matches.
type MatchID uint64

// Matched says since when a rule with after: Matched matches an object.
type Matched struct {
	Policy types.UID
	Rule   MatchID
	Since  time.Time
	// Seen is set if this process has seen that the rule did not match the object before, so that no earlier time can be true.
	Seen bool
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
