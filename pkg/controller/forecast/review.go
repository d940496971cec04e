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
	"github.com/winnow-dev/winnow/pkg/controller/engine/trial"
	"github.com/winnow-dev/winnow/pkg/controller/engine/view"
	"github.com/winnow-dev/winnow/pkg/controller/objects/facts"
	"github.com/winnow-dev/winnow/pkg/controller/objects/kinds"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

// Review returns which objects a draft would delete, and when. It fails with Timeout if there are too many objects, policies or rules. It
// may use a whole processor, so callers should make one review at a time.
func (f *Forecaster) Review(ctx context.Context, draft gc.Draft) (gc.CleanupReviewStatus, error) {
	ctx, cancel := context.WithTimeout(ctx, f.reviewTimeout)
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
			"there are too many objects, policies or rules to evaluate within "+f.reviewTimeout.String(), 0)
	}
	own := func(due *view.Due) bool { return due.Namespace == draft.After.Namespace }
	a.fresh, a.still = only(a.fresh, own), only(a.still, own)
	return r.answer(&a), nil
}

// review counts the objects that a draft would delete.
type review struct {
	gc.Draft
	status gc.CleanupReviewStatus
	kinds  *kinds.Table
	rules  map[reviewedRule]*gc.ReviewedCount
	sample []view.Verdict
	// hidden are resources that the caller may not list. It depends on the resources that policies name, and never on their objects: otherwise
	// a draft could find out whether there are objects with a label, or of an age.
	hidden sets.Set[string]
}

// reviewedRule is a rule of the draft with one of its resources.
type reviewedRule struct{ resource, rule string }

// hide removes the objects of hidden resources from a snapshot, and the namespaces where they must be listed.
func (r *review) hide(s *trial.Snapshot) {
	r.kinds = s.Engine.Kinds()
	for resource := range s.Missing {
		r.hides(resource)
	}
	for resource := range s.Engine.Resources(r.After.Namespace) {
		r.hides(resource)
	}
	s.Facts = slices.DeleteFunc(s.Facts, func(k *facts.Compact) bool { return r.hides(k.Resource) })
}

// hides reports whether the answer must not include the objects of a resource, and notes the resource as hidden.
func (r *review) hides(resource string) bool {
	if k, err := r.kinds.For(resource); err != nil || !k.Deletable() || r.MayList(resource) {
		return false
	}
	r.hidden.Insert(resource)
	return true
}

// without counts the objects that the present policies would delete.
func (r *review) without(e *engine.Engine, now time.Time) {
	for v, in := range r.deleted(e, now) {
		Add(&r.status.WithoutDraft, v, in)
	}
}

// with counts the objects that all policies would delete, including the draft.
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

// deleted returns the verdicts on objects that are held, or due within a week, each with the time until then.
func (r *review) deleted(e *engine.Engine, now time.Time) iter.Seq2[view.Verdict, time.Duration] {
	return func(yield func(view.Verdict, time.Duration) bool) {
		for v := range e.Verdicts(r.After.Namespace, now, now.Add(Week)) {
			if in, ok := DueIn(v, now); ok && !yield(v, in) {
				return
			}
		}
	}
}

// DueIn returns the time until an object is due; false if it is more than a week, or the object is never due. Held objects count as due.
func DueIn(v view.Verdict, now time.Time) (in time.Duration, ok bool) {
	if v.State == gc.CandidateWaiting {
		in = v.At.Sub(now)
		return in, in <= Week
	}
	return 0, v.State == gc.CandidateDue || v.State == gc.CandidateHeld
}

// Add adds an object to a count. in is the time until the object is due.
func Add(c *gc.ReviewedCount, v view.Verdict, in time.Duration) {
	if v.State == gc.CandidateHeld {
		c.Held++
		return
	}
	AddDue(c, in)
}

// AddDue adds an object that is due within a week, and not held, to a count.
func AddDue(c *gc.ReviewedCount, in time.Duration) {
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
func (r *review) addSample(v view.Verdict) {
	if r.sample = append(r.sample, v); len(r.sample) > 100*sampleMost {
		r.cutSample()
	}
}

// cutSample keeps the first objects of the sample.
func (r *review) cutSample() {
	slices.SortFunc(r.sample, func(a, b view.Verdict) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Name(), b.Name()))
	})
	r.sample = r.sample[:min(len(r.sample), sampleMost)]
}

// answer completes the status.
func (r *review) answer(a *account) gc.CleanupReviewStatus {
	s := r.status
	s.Messages, s.HiddenResources = a.lines(), slices.Sorted(maps.Keys(r.hidden))
	s.Complete = !a.incomplete && len(r.hidden) == 0 && a.report.Excluded != policy.ReasonNamespaceUnknown
	for _, key := range slices.SortedFunc(maps.Keys(r.rules), func(a, b reviewedRule) int {
		return cmp.Or(cmp.Compare(a.resource, b.resource), cmp.Compare(a.rule, b.rule))
	}) {
		s.Deletions = append(s.Deletions, gc.ReviewedRule{Resource: key.resource, Rule: key.rule, ReviewedCount: *r.rules[key]})
	}
	for _, v := range r.sample {
		o := gc.ReviewedObject{Resource: v.Resource, Name: v.Name(), Rule: v.By.Rule, Reason: string(v.Reason)}
		if v.State == gc.CandidateWaiting {
			o.DueTime = new(metav1.NewTime(gc.WholeSecond(v.At)))
		}
		s.Sample = append(s.Sample, o)
	}
	return s
}
