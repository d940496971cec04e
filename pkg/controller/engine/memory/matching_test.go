// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"testing"
	"unsafe"

	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/objects/facts"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
)

// TestMatchingIsSmall: a million objects may each match many rules.
func TestMatchingIsSmall(t *testing.T) {
	for _, n := range []int{1, 3, 5, 17, 33, 50, 65} {
		var m Matching
		for i := range n { // Grows as it does where policies are asked.
			m.Rules = append(m.Rules, lifecycle.Matched{Rule: lifecycle.MatchID(i), Since: testbuilders.Now})
			m.Unknown = append(m.Unknown, lifecycle.MatchID(i))
		}
		rec := NewRecord(&Namespace{}, &facts.Compact{})
		rec.SetMatching(&m)
		kept := rec.Matching()
		if !kept.Equal(&m) {
			t.Errorf("%d rules: kept %v, want %v", n, kept, m)
		}
		rules, unknown := cap(kept.Rules)*int(unsafe.Sizeof(kept.Rules[0])), cap(kept.Unknown)*int(unsafe.Sizeof(kept.Unknown[0]))
		if most := 48 * n; rules > most {
			t.Errorf("%d rules take %d bytes, want at most %d", n, rules, most)
		}
		if most := 12 * n; unknown > most {
			t.Errorf("%d unknown rules take %d bytes, want at most %d", n, unknown, most)
		}
		rec.SetMatching(&Matching{})
		if kept = rec.Matching(); len(kept.Rules)+len(kept.Unknown)+len(rec.NS.Matching) > 0 {
			t.Errorf("%d rules: kept %v after all ended", n, kept)
		}
	}
}
