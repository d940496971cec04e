// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/engine"
	"github.com/winnow-dev/winnow/pkg/controller/engine/limits"
	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/engine/trial"
	"github.com/winnow-dev/winnow/pkg/controller/engine/view"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
	"github.com/winnow-dev/winnow/pkg/controller/rules/report"
)

// Review returns which objects a draft would delete, and when. For a CleanupPolicy, only the part of the answer that is the same for both
// kinds of policies is set. It fails with Timeout if there are too many objects, policies or rules. It may use a whole processor, so
// callers should make one review at a time.
func (f *Forecaster) Review(ctx context.Context, draft gc.Draft) (gc.ClusterCleanupReviewStatus, error) {
	ctx, cancel := context.WithTimeout(ctx, f.reviewTimeout)
	defer cancel()
	r := newReview(draft)
	a := account{PolicyChange: draft.PolicyChange, review: r}
	if err := r.look(ctx, f); err != nil {
		return r.status, r.failed(ctx, f, err)
	}
	listCtx, cancel := context.WithTimeout(ctx, f.reviewListTimeout)
	defer cancel()
	if err := f.try(ctx, listCtx, &a, f.reviewKnownMost); err != nil {
		return r.status, r.failed(ctx, f, err)
	}
	own := func(due *view.Due) bool { return r.own() == "" || due.Namespace == r.own() }
	a.fresh, a.still = only(a.fresh, own), only(a.still, own)
	return r.answer(&a), nil
}

// failed returns the error of a review that has no answer.
func (r *review) failed(ctx context.Context, f *Forecaster, err error) error {
	if ctx.Err() == nil {
		return err
	}
	return apierrors.NewTimeoutError("there are too many objects, policies or rules to evaluate within "+f.reviewTimeout.String(), 0)
}

// review counts the objects that a draft would delete.
type review struct {
	gc.Draft
	status gc.ClusterCleanupReviewStatus
	// proposal is the draft, limited to what the caller may see.
	proposal trial.Proposal
	// hidden are resources that the caller may not list: in the namespace of the draft, or for a cluster policy in all namespaces. partial
	// says that there may be objects in other namespaces that the caller may not see.
	hidden     sets.Set[string]
	partial    bool
	rules      map[reviewedRule]*gc.ReviewedCount
	heldBy     map[string]int64 // by reason
	sample     []view.Verdict
	namespaces map[string]*gc.ReviewedNamespace
	// selected are the namespaces that the draft selects, or that the policy whose place it takes selects.
	selected sets.Set[string]
}

func newReview(draft gc.Draft) *review {
	return &review{
		Draft: draft, proposal: trial.Propose(draft.PolicyChange).Exactly(),
		rules: map[reviewedRule]*gc.ReviewedCount{}, heldBy: map[string]int64{}, namespaces: map[string]*gc.ReviewedNamespace{},
		selected: sets.New[string](),
	}
}

// own returns the namespace of the draft; empty for a cluster policy.
func (r *review) own() string { return r.After.GetNamespace() }

// kind returns the kind of the draft.
func (r *review) kind() string {
	if r.own() == "" {
		return gc.KindClusterCleanupPolicy
	}
	return gc.KindCleanupPolicy
}

// reviewedRule is a rule of the draft with one of its resources.
type reviewedRule struct{ resource, rule string }

// without counts the objects that the present policies would delete. It fails if ctx ends first.
func (r *review) without(ctx context.Context, e *engine.Engine, now time.Time) error {
	if r.Before != nil {
		r.selectBy(e, r.Before)
	}
	for name := range e.Namespaces {
		if r.own() != "" && r.own() != name {
			continue // It shares a ceiling.
		}
		err := eachDeleted(ctx, e, name, now, func(v view.Verdict, in time.Duration) { Add(&r.in(name).WithoutDraft, v, in) })
		if err != nil {
			return err
		}
	}
	return nil
}

// with counts the objects that all policies would delete, including the draft. It fails if ctx ends first.
func (r *review) with(ctx context.Context, e *engine.Engine, now time.Time) error {
	draft := r.selectBy(e, r.After)
	for name := range r.selected {
		err := eachDeleted(ctx, e, name, now, func(v view.Verdict, in time.Duration) {
			Add(&r.in(name).WithDraft, v, in)
			if v.State == gc.CandidateHeld {
				r.heldBy[string(v.Reason)]++
			}
			if v.By.Kind == r.kind() && v.By.Name == r.After.GetName() {
				r.addDeletion(v, in)
			}
		})
		if err != nil {
			return err
		}
	}
	r.cutSample()
	if r.own() == "" && draft != nil {
		r.addCeilings(draft)
	}
	return nil
}

// selectBy adds the namespaces that a policy applies to, and returns the policy of the engine; nil if it has none.
func (r *review) selectBy(e *engine.Engine, p metav1.Object) *memory.PolicyState {
	ps := e.PolicyState(nameOf(p))
	if ps == nil {
		return nil
	}
	for ns := range e.Affected(ps, p.GetNamespace()) {
		r.selected.Insert(ns.Name)
	}
	return ps
}

// in returns the counts of a namespace.
func (r *review) in(namespace string) *gc.ReviewedNamespace {
	if r.namespaces[namespace] == nil {
		r.namespaces[namespace] = &gc.ReviewedNamespace{Namespace: namespace}
	}
	return r.namespaces[namespace]
}

// addDeletion adds an object that the draft would delete, or that something holds. in is the time until the object is due.
func (r *review) addDeletion(v view.Verdict, in time.Duration) {
	key := reviewedRule{v.Resource, v.By.Rule}
	if r.rules[key] == nil {
		r.rules[key] = &gc.ReviewedCount{}
	}
	Add(r.rules[key], v, in)
	if v.State != gc.CandidateHeld {
		r.addSample(v)
	}
}

// addCeilings adds what the ceilings of the draft count, in all namespaces and in each that has too many objects.
func (r *review) addCeilings(draft *memory.PolicyState) {
	r.status.Ceilings = limits.CeilingStatus(draft)
	for _, c := range draft.Ceilings {
		for name := range r.selected {
			if objects, share := c.Share(name); objects > share {
				ns := r.in(name)
				ns.Ceilings = append(ns.Ceilings, gc.CeilingStatus{
					Resource: c.Resource, Objects: int64(objects), MaxObjects: int64(share), Over: int64(objects - share),
				})
			}
		}
	}
	for _, ns := range r.namespaces {
		slices.SortFunc(ns.Ceilings, func(a, b gc.CeilingStatus) int { return cmp.Compare(a.Resource, b.Resource) })
	}
}

const day = 24 * time.Hour

// Week is how far reviews look ahead.
const Week = 7 * day

// eachDeleted calls add for each object of a namespace that is held, or due within a week, with the time until then. It fails if ctx ends
// first, which it checks for each object: with many windows, it takes long to find when an object is deleted.
func eachDeleted(ctx context.Context, e *engine.Engine, namespace string, now time.Time, add func(view.Verdict, time.Duration)) error {
	for v := range e.Verdicts(namespace, now, now.Add(Week)) {
		if err := ctx.Err(); err != nil {
			return err
		}
		if in, ok := DueIn(v, now); ok {
			add(v, in)
		}
	}
	return nil
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
		return cmp.Or(
			a.At.Compare(b.At), cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name(), b.Name()),
		)
	})
	r.sample = r.sample[:min(len(r.sample), sampleMost)]
}

// answer completes the status.
func (r *review) answer(a *account) gc.ClusterCleanupReviewStatus {
	s := &r.status
	s.Messages, s.HiddenResources = a.lines(), slices.Sorted(maps.Keys(r.hidden))
	s.Complete = !a.incomplete && !r.partial && len(r.hidden) == 0 && a.report.Excluded != policy.ReasonNamespaceUnknown
	for _, key := range slices.SortedFunc(maps.Keys(r.rules), func(a, b reviewedRule) int {
		return cmp.Or(cmp.Compare(a.resource, b.resource), cmp.Compare(a.rule, b.rule))
	}) {
		s.Deletions = append(s.Deletions, gc.ReviewedRule{Resource: key.resource, Rule: key.rule, ReviewedCount: *r.rules[key]})
	}
	if len(r.heldBy) > 0 {
		s.HeldBy = r.heldBy
	}
	for _, v := range r.sample {
		o := gc.ReviewedObject{Resource: v.Resource, Name: v.Name(), Rule: v.By.Rule, Reason: string(v.Reason)}
		if r.own() == "" {
			o.Namespace = v.Namespace
		}
		if v.State == gc.CandidateWaiting {
			o.DueTime = new(metav1.NewTime(gc.WholeSecond(v.At)))
		}
		s.Sample = append(s.Sample, o)
	}
	for name := range r.selected {
		if ns := r.namespaces[name]; ns != nil {
			sum(&s.WithDraft, ns.WithDraft)
			sum(&s.WithoutDraft, ns.WithoutDraft)
		}
	}
	if r.own() == "" {
		r.listNamespaces()
		r.listHolds(a.holds)
	}
	return *s
}

// sum adds one count to another.
func sum(to *gc.ReviewedCount, c gc.ReviewedCount) {
	to.Now += c.Now
	to.Hour += c.Hour
	to.Day += c.Day
	to.Week += c.Week
	to.Held += c.Held
}

// listNamespaces lists the namespaces with the most objects.
func (r *review) listNamespaces() {
	var all []gc.ReviewedNamespace
	for name := range r.selected {
		if ns := r.namespaces[name]; ns != nil {
			all = append(all, *ns)
		}
	}
	most := func(ns gc.ReviewedNamespace) int64 {
		return max(ns.WithDraft.Week+ns.WithDraft.Held, ns.WithoutDraft.Week+ns.WithoutDraft.Held)
	}
	slices.SortFunc(all, func(a, b gc.ReviewedNamespace) int {
		return cmp.Or(cmp.Compare(most(b), most(a)), cmp.Compare(a.Namespace, b.Namespace))
	})
	listed := min(len(all), report.NamespacesListed)
	r.status.Namespaces, r.status.UnlistedNamespaces = all[:listed], int64(len(all)-listed)
}

// listHolds lists the holds that objects of the draft would wait under.
func (r *review) listHolds(all []gc.PolicyHold) {
	for _, h := range all {
		switch {
		case h.Objects == 0:
		case len(r.status.Holds) == report.HoldsListed:
			r.status.UnlistedHolds++
		default:
			r.status.Holds = append(r.status.Holds, gc.ReviewedHold{Namespace: h.Namespace, Objects: h.Objects, Why: h.Why})
		}
	}
}
