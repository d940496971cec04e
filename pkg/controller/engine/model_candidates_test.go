// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"pgregory.net/rapid"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/engine/view"
	"github.com/winnow-dev/winnow/pkg/controller/internal/model"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

var stateNames = map[string]gc.CandidateState{
	model.Ignore: gc.CandidateNone, model.SetDeadline: gc.CandidateNone, model.HoldDeadline: gc.CandidateNone, model.Keep: gc.CandidateKept,
	model.Wait: gc.CandidateWaiting, model.Hold: gc.CandidateHeld, model.Delete: gc.CandidateDue, model.Await: gc.CandidateTerminating,
}

// candidates lists the candidates. Each has the state, the reason and the due time that the model expects, and no other object is among
// them. The pages of a list are the same as the list in one piece.
func (e *simulation) candidates(t *rapid.T) {
	q := allCandidates()
	q.Resources = sets.KeySet(e.leader.Resources(""))
	whole := e.leader.find(q)
	found := map[types.UID]*gc.CleanupCandidate{}
	for i := range whole.Items {
		found[types.UID(whole.Items[i].Name)] = &whole.Items[i]
	}
	if len(found) != len(whole.Items) || whole.Hidden != 0 || whole.Next != nil {
		t.Fatalf("%d candidates for %d objects, %d hidden, next %v", len(whole.Items), len(found), whole.Hidden, whole.Next)
	}
	wants := e.wants()
	for _, f := range e.Objects {
		e.checkCandidate(t, f.UID, found[f.UID], wants[f.UID])
		delete(found, f.UID)
	}
	if len(found) > 0 {
		t.Fatalf("there are candidates for objects that do not exist: %v", found)
	}
	q.Limit = rapid.IntRange(1, 5).Draw(t, "limit")
	var paged []gc.CleanupCandidate
	for {
		page := e.leader.find(q)
		paged = append(paged, page.Items...)
		if page.Next == nil {
			break
		}
		q.After = *page.Next
	}
	if diff := cmp.Diff(whole.Items, paged); diff != "" {
		t.Fatalf("the pages differ (-list +pages):\n%s", diff)
	}
}

// checkCandidate compares the candidate of an object, nil if there is none, with the answer of the model. If only Preview policies decide,
// checkPreviews has compared their decisions, and the candidate must have the same decision.
func (e *simulation) checkCandidate(t *rapid.T, uid types.UID, c *gc.CleanupCandidate, want model.Answer) {
	state, reason, at, by := stateNames[want.Action], want.Reason, want.At, want.By
	if _, told := e.Notices[uid]; told && (want.Action == model.Wait || want.Reason == string(policy.ReasonNotified)) {
		state = gc.CandidateNotified
	}
	if rec := e.leader.Records.Get(uid); rec != nil && rec.Policy == nil && len(rec.Previews()) > 0 {
		d := rec.Previews()[0].Decision()
		state, reason, at, by = view.States[d.Action], string(d.Reason), d.At, ""
	}
	switch {
	case c == nil && state == gc.CandidateNone:
		return
	case c == nil:
		t.Fatalf("%s is no candidate, want %s (%s)", uid, state, reason)
	}
	var due time.Time
	if c.Status.DueTime != nil && !at.IsZero() {
		due = c.Status.DueTime.Time
	}
	if c.Status.State != state || c.Status.Reason != reason || !due.Equal(gc.WholeSecond(at)) {
		t.Fatalf("%s is %s (%s) at %v, want %s (%s) at %v", uid, c.Status.State, c.Status.Reason, due, state, reason, at)
	}
	if by != "" && c.Status.DecidedBy == nil {
		t.Fatalf("%s is decided by %+v, want %s", uid, c.Status.DecidedBy, by)
	}
	e.checkConsidered(t, c)
}

// checkConsidered: the policy that decides is among the considered policies, with that result, unless one of its ceilings decides. No other
// policy has the result.
func (e *simulation) checkConsidered(t *rapid.T, c *gc.CleanupCandidate) {
	decider, deciding := c.Status.DecidedBy, 0
	for _, p := range c.Status.Policies {
		if p.Result == gc.ConsideredDecides {
			deciding++
		}
		if decider == nil || decider.Rule == "" || p.CandidatePolicy != *decider {
			continue // No policy decides, or a ceiling of one.
		}
		want := gc.ConsideredDecides
		if p.Mode == gc.ModePreview {
			want = gc.ConsideredPreview
		}
		if p.Result != want {
			t.Fatalf("%s: the policy that decides has the result %s: %+v", c.Name, p.Result, p)
		}
	}
	if deciding > 1 {
		t.Fatalf("%s: %d policies decide: %+v", c.Name, deciding, c.Status.Policies)
	}
}
