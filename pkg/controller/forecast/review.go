// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"cmp"
	"context"
	"iter"
	"maps"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/engine"
)

// Review returns what a draft would delete, and when. It fails with TooManyRequests while there are too many other reviews, and with
// Timeout if there is too much to look at.
func (f *Forecaster) Review(ctx context.Context, draft gc.Draft) (gc.CleanupReviewStatus, error) {
	busy := apierrors.NewTooManyRequests("the server is busy with other reviews; try again", 5)
	select {
	case f.reviews <- struct{}{}:
		defer func() { <-f.reviews }()
	default:
		return gc.CleanupReviewStatus{}, busy
	}
	waiting, cancel := context.WithTimeout(ctx, reviewWait)
	defer cancel()
	select {
	case f.reviewing <- struct{}{}:
		defer func() { <-f.reviewing }()
	case <-waiting.Done():
		return gc.CleanupReviewStatus{}, busy
	}
	ctx, cancel = context.WithTimeout(ctx, f.reviewTimeout)
	defer cancel()
	listCtx, cancel := context.WithTimeout(ctx, f.reviewListTimeout)
	defer cancel()
	change := gc.PolicyChange{After: draft.After, DryRun: true}
	if draft.Before != nil {
		change.Before = draft.Before
	}
	r := &review{Draft: draft, rules: map[reviewedRule]*gc.ReviewedCount{}, hidden: sets.New[string]()}
	a := account{PolicyChange: change, review: r}
	if err := f.try(ctx, listCtx, &a, f.reviewKnownMost); err != nil {
		return r.status, apierrors.NewTimeoutError(
			"there are too many objects, policies or rules to look at within "+f.reviewTimeout.String(), 0)
	}
	visible := func(due *engine.Due) bool { return r.shows(due.Resource) }
	a.fresh, a.still = only(a.fresh, visible), only(a.still, visible)
	return r.answer(&a), nil
}

// review counts what a draft would delete.
type review struct {
	gc.Draft
	status gc.CleanupReviewStatus
	rules  map[reviewedRule]*gc.ReviewedCount
	sample []engine.Verdict
	hidden sets.Set[string]
}

// reviewedRule is a rule of the draft with one of its resources.
type reviewedRule struct{ resource, rule string }

// without counts what the policies of today would delete.
func (r *review) without(e *engine.Engine, now time.Time) {
	for v, in := range r.deleted(e, now) {
		Add(&r.status.WithoutDraft, v, in)
	}
}

// with counts what all policies would delete, the draft included.
func (r *review) with(e *engine.Engine, now time.Time) {
	for v, in := range r.deleted(e, now) {
		Add(&r.status.WithDraft, v, in)
		if v.By.Kind != gc.KindCleanupPolicy || v.By.Name != r.After.Name {
			continue
		}
		key := reviewedRule{v.Resource, v.By.Rule}
		if r.rules[key] == nil {
			r.rules[key] = &gc.ReviewedCount{}
		}
		Add(r.rules[key], v, in)
		if v.State != gc.CandidateHeld {
			r.addSample(v)
		}
	}
	r.cutSample()
}

const day = 24 * time.Hour

// Week is how far reviews look ahead.
const Week = 7 * day

// deleted returns the verdicts on objects that may be shown, and that are or become due within a week, each with the time until then; or
// that are held.
func (r *review) deleted(e *engine.Engine, now time.Time) iter.Seq2[engine.Verdict, time.Duration] {
	return func(yield func(engine.Verdict, time.Duration) bool) {
		for v := range e.Verdicts(r.After.Namespace, now.Add(Week)) {
			in, ok := DueIn(v, now)
			if ok && r.shows(v.Resource) && !yield(v, in) {
				return
			}
		}
	}
}

// DueIn returns in how long an object is due; false if that is in more than a week or never. What is held counts as due.
func DueIn(v engine.Verdict, now time.Time) (in time.Duration, ok bool) {
	if v.State == gc.CandidateWaiting {
		in = v.At.Sub(now)
		return in, in <= Week
	}
	return 0, v.State == gc.CandidateDue || v.State == gc.CandidateHeld
}

// shows reports whether the answer may be about a resource, and notes it as hidden otherwise.
func (r *review) shows(resource string) bool {
	if r.MayList(resource) {
		return true
	}
	r.hidden.Insert(resource)
	return false
}

// Add adds an object that is due in so long to a count.
func Add(c *gc.ReviewedCount, v engine.Verdict, in time.Duration) {
	if v.State == gc.CandidateHeld {
		c.Held++
		return
	}
	c.Week++
	if in <= day {
		c.Day++
	}
	if in <= time.Hour {
		c.Hour++
	}
	if in <= 0 {
		c.Now++
	}
}

// addSample adds an object to the sample, which may become longer than wanted.
func (r *review) addSample(v engine.Verdict) {
	if r.sample = append(r.sample, v); len(r.sample) > 100*sampleMost {
		r.cutSample()
	}
}

// cutSample leaves the first objects in the sample.
func (r *review) cutSample() {
	slices.SortFunc(r.sample, func(a, b engine.Verdict) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Name(), b.Name()))
	})
	r.sample = r.sample[:min(len(r.sample), sampleMost)]
}

// answer completes the status.
func (r *review) answer(a *account) gc.CleanupReviewStatus {
	s := r.status
	s.Complete, s.Messages, s.HiddenResources = !a.incomplete, a.lines(), slices.Sorted(maps.Keys(r.hidden))
	for _, key := range slices.SortedFunc(maps.Keys(r.rules), func(a, b reviewedRule) int {
		return cmp.Or(cmp.Compare(a.resource, b.resource), cmp.Compare(a.rule, b.rule))
	}) {
		s.Deletions = append(s.Deletions, gc.ReviewedRule{Resource: key.resource, Rule: key.rule, ReviewedCount: *r.rules[key]})
	}
	for _, v := range r.sample {
		o := gc.ReviewedObject{Resource: v.Resource, Name: v.Name(), Rule: v.By.Rule, Reason: string(v.Reason)}
		if v.State == gc.CandidateWaiting {
			o.DueTime = new(metav1.NewTime(v.At))
		}
		s.Sample = append(s.Sample, o)
	}
	return s
}
