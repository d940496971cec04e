// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"strings"
	"time"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/oracle"
)

// looks is how often the judge looks for what is late, and late after how long something is.
const looks, late = time.Minute, 30 * time.Second

// lookForLate judges from time to time whether what became due while nothing was wrong has gone, and what replicas say.
func (s *simulation) lookForLate() {
	now, calm := time.Now(), s.calmSince()
	if now.Before(s.look) {
		return
	}
	s.look = now.Add(looks)
	steady := now.Sub(calm) >= quiet && now.Sub(s.judge.ruled) >= 2*late
	s.lookForHolds(steady)
	if !steady {
		return
	}
	if out := s.judge.late(calm); len(out) > 0 {
		s.judge.fault("late: %s", strings.Join(out, "; "))
	}
	s.explain(later(calm, s.judge.ruled))
}

// lookForHolds judges whether something waits for approval that did not when nothing had gone wrong for a while, although no policy,
// namespace or quota has changed since. Replicas may have been killed since, and clocks may have been wrong.
func (s *simulation) lookForHolds(steady bool) {
	j := s.judge
	if j.ruled.After(s.heldAt) || j.wentBack.After(s.heldAt) {
		s.held = nil
	}
	if s.held == nil && !steady {
		return
	}
	w := j.present()
	holds := listedHolds(w)
	if s.held != nil {
		s.newlyHeld(w, s.held, holds)
	}
	if steady {
		s.held, s.heldAt = holds, time.Now()
	}
}

// newlyHeld judges holds that were not there before.
func (s *simulation) newlyHeld(w *oracle.World, before, after map[string]gc.PolicyHold) {
	forgotten := s.judge.returns.namespaces(w.Objects)
	for id, h := range after {
		// Nobody knows any more since when objects match that were created while the clocks were in doubt, and what has come back too often.
		if _, ok := before[id]; !ok && !strings.Contains(h.Why, "began to match") && !forgotten.Has(h.Namespace) {
			s.judge.fault("nobody has changed anything, but %d objects in %q of %s wait for approval now because %s",
				h.Objects, h.Namespace, h.Policy, h.Why)
		}
	}
}

// calmSince is since when nothing has gone wrong.
func (s *simulation) calmSince() time.Time {
	calm := later(later(s.skewUntil, s.disturbed), s.judge.wentBack)
	for _, r := range s.replicas {
		calm = later(later(calm, r.started), s.behind[r.host].until)
	}
	return calm
}

// late returns what became due since a time, and has been due for so long that it must have gone, if no policy, namespace or quota has
// changed lately. Everything may wait in a namespace in which something waits for approval, or may have come back too often.
func (j *judge) late(calm time.Time) (out []string) {
	now := time.Now()
	w := j.settled(now, calm)
	before, answers, others := j.settled(now.Add(-late), calm).Answers(), w.Answers(), j.returns.mayLoop(w).Answers()
	waits := j.returns.namespaces(w.Objects)
	for _, h := range listedHolds(w) {
		waits.Insert(h.Namespace)
	}
	for _, f := range w.Objects {
		if _, paced := w.MaxDeletionsPerMinute(f.Namespace); paced {
			waits.Insert(f.Namespace)
		}
	}
	goes := func(a oracle.Answer) bool { return a.Action == oracle.Delete && a.At.After(calm) }
	for _, f := range w.Objects {
		a := answers[f.UID]
		if !waits.Has(f.Namespace) && goes(a) && goes(before[f.UID]) && goes(others[f.UID]) && !j.forgotten(f, j.store.Revision())() {
			out = append(out, fmt.Sprintf("%s %s/%s: %+v", f.Resource, f.Namespace, f.Name, a))
		}
	}
	return out
}

// left returns what is due, and may go, and was and might a moment ago. Since a time, nothing has gone wrong: a replica that was killed
// before may have forgotten since when rules match.
func (j *judge) left(since time.Time) (out []string) {
	w := j.settled(time.Now(), since)
	before, answers, again := j.settled(time.Now().Add(-controlled), since).Answers(), w.Answers(), j.returns.mayLoop(w).Answers()
	goes := func(a oracle.Answer, paced bool) bool {
		return !paced && (a.Action == oracle.Delete || a.Action == oracle.SetDeadline)
	}
	for _, f := range w.Objects {
		_, paced := w.MaxDeletionsPerMinute(f.Namespace) // It may take long.
		if a := answers[f.UID]; goes(a, paced) && goes(before[f.UID], paced) && goes(again[f.UID], paced) {
			out = append(out, fmt.Sprintf("%s %s/%s: %+v", f.Resource, f.Namespace, f.Name, a))
		}
	}
	return append(out, j.untold(since)...)
}

// settled is the world of a moment as replicas know it that have begun to count at a time what objects do not say.
func (j *judge) settled(at, since time.Time) *oracle.World {
	j.follow()
	w := j.world(j.store.RevisionAt(at), at)
	if w.Matched = j.matched.times(); !since.IsZero() {
		w.Matched = j.matched.timesSince(since)
	}
	for _, f := range w.Objects {
		if f.Usage.State == lifecycle.Unused {
			f.Usage = j.uses.usage(f, at, 0, true)
			f.Usage.Since = later(f.Usage.Since, since)
		}
	}
	return w
}
