// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
)

// afterMatched deletes objects some time after the selector and the match conditions of the rule began to hold for them.
var afterMatched = trigger{
	Trigger: gc.TriggerOf(gc.AfterMatched),
	since: func(f *lifecycle.Fact, r *Rule, ownerFinished time.Time) time.Time {
		return notBefore(f.MatchedSince(r.matchID), ownerFinished)
	},
	excluded: excludeNone,
	unclear:  holdNone, // See notNoted.
	hold:     holdNone,
	note:     noteNothing,
	marked:   true,
}

// notNoted returns a cause if a rule counts from the match, and it is not noted since when it matches. No other rule may decide then.
func (e *Effective) notNoted(r *Rule) cause {
	if r.trigger != &afterMatched || !e.MatchedSince(r.matchID).IsZero() {
		return cause{}
	}
	return cause{ReasonFinishTimeUnknown, "Winnow has not noted yet since when its rule matches"}
}

// identify sets the ID by which marks say since when the rule matches objects. It is another one if anything changes that decides which
// objects match, so that the time starts anew: nobody looked for objects that match before.
func (r *Rule) identify(p types.UID) {
	if r.trigger != &afterMatched {
		return
	}
	h := sha256.New()
	fmt.Fprintf(h, "%q %q %q", p, r.Name, r.selector.String())
	for i := range r.conditions {
		fmt.Fprintf(h, " %q", r.conditions[i].expression.String())
	}
	r.matchID = lifecycle.MatchID(binary.BigEndian.Uint64(h.Sum(nil)))
}

// MatchID returns the ID of the rule if it counts from the match; false otherwise.
func (r *Rule) MatchID() (lifecycle.MatchID, bool) { return r.matchID, r.trigger == &afterMatched }

// MatchID returns the ID of the rule if it counts from the match, and the object matches for certain; false otherwise.
func (m *Match) MatchID() (lifecycle.MatchID, bool) {
	id, ok := m.Rule.MatchID()
	return id, ok && m.doubt.reason == ""
}

// Unevaluated reports whether it is not known yet whether the rule matches, because match conditions have not been evaluated.
func (m *Match) Unevaluated() bool { return m.doubt.reason == ReasonUnobserved }

// MatchIDs returns the IDs of the rules that count from the match.
func (p *Policy) MatchIDs() []lifecycle.MatchID {
	var out []lifecycle.MatchID
	for _, r := range p.rules {
		if r.trigger == &afterMatched {
			out = append(out, r.matchID)
		}
	}
	return out
}

// DeletesUnfinished reports whether a rule deletes objects that can finish and have not.
func (p *Policy) DeletesUnfinished() bool {
	return slices.ContainsFunc(p.rules, func(r *Rule) bool { return r.deletesUnfinished })
}

// DeletesCounted reports whether a rule deletes counted Pods of Jobs that run.
func (p *Policy) DeletesCounted() bool {
	return slices.ContainsFunc(p.rules, func(r *Rule) bool { return r.onceCounted })
}
