// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package forecast tells users which objects a change of a policy or of a lifecycle makes due at once, before the change is stored. It
// makes no decisions itself: it makes the change on a copy of the engine, and compares which objects are due before and after it.
package forecast

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/engine"
	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/engine/scope"
	"github.com/winnow-dev/winnow/pkg/controller/engine/trial"
	"github.com/winnow-dev/winnow/pkg/controller/engine/view"
	"github.com/winnow-dev/winnow/pkg/controller/objects/facts"
	"github.com/winnow-dev/winnow/pkg/controller/objects/kinds"
	"github.com/winnow-dev/winnow/pkg/controller/observe"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
	"github.com/winnow-dev/winnow/pkg/controller/rules/report"
)

const (
	// timeout limits how long a write waits for its forecast, and listTimeout the part of this time for listing objects.
	listTimeout, timeout = time.Second, 2 * time.Second
	// knownMost and listedMost limit how many objects a forecast evaluates: objects that the engine knows, and objects that are listed.
	knownMost, listedMost = 50_000, 20_000
	// atOnce is how many forecasts run concurrently. Each may use a whole processor.
	atOnce = 2
	// pagesAtOnce is how many pages all forecasts and reviews together read at the same time, so that their memory is bounded.
	pagesAtOnce = 2
)

const (
	// reviewTimeout limits how long a review takes, and reviewListTimeout the part of this time for listing objects.
	reviewTimeout, reviewListTimeout = 10 * time.Second, 3 * time.Second
	// reviewKnownMost is how many known objects a review evaluates.
	reviewKnownMost = 200_000
	// sampleMost is how many objects a review names.
	sampleMost = 20
)

// Config configures a Forecaster.
type Config struct {
	Tracker Tracker
	// Client lists objects that are not observed, because no policy covers them yet.
	Client *observe.Client
	Clock  clock.PassiveClock
}

// Forecaster is safe for concurrent use.
type Forecaster struct {
	Config
	knownMost, listedMost, reviewKnownMost int
	questionsMost                          int
	questionsTimeout                       time.Duration
	reviewTimeout, reviewListTimeout       time.Duration
	slots                                  chan struct{} // for forecasts
}

// New returns a Forecaster.
func New(c Config) *Forecaster {
	c.Client = c.Client.Separate(pagesAtOnce)
	return &Forecaster{
		Config: c, knownMost: knownMost, listedMost: listedMost, reviewKnownMost: reviewKnownMost,
		questionsMost: questionsMost, questionsTimeout: questionsTimeout,
		reviewTimeout: reviewTimeout, reviewListTimeout: reviewListTimeout, slots: make(chan struct{}, atOnce),
	}
}

// NewPatient returns a Forecaster that makes reviews without limits on time, objects and namespaces. It is for a program that serves nobody
// else.
func NewPatient(c Config) *Forecaster {
	f := New(c)
	f.listedMost, f.reviewKnownMost, f.questionsMost = math.MaxInt, math.MaxInt, math.MaxInt
	f.reviewTimeout, f.reviewListTimeout, f.questionsTimeout = math.MaxInt64, math.MaxInt64, math.MaxInt64
	return f
}

// Forecast returns which objects a change makes due at once. It takes at most about two seconds, and says if that was not enough.
func (f *Forecaster) Forecast(ctx context.Context, change gc.PolicyChange) gc.PolicyForecast {
	forecast := f.forecast(ctx, f.account(change))
	forecast.Elsewhere = f.elsewhere(change)
	return forecast
}

// ForecastLifecycle returns which objects become due at once by a change of a lifecycle that gives the resource this kind. It takes as long
// as a Forecast.
func (f *Forecaster) ForecastLifecycle(ctx context.Context, change gc.LifecycleChange, kind *kinds.Kind) []string {
	return f.forecast(ctx, account{
		PolicyChange: gc.PolicyChange{DryRun: change.DryRun}, lifecycle: &lifecycleChange{change, kind},
	}).Lines
}

// lifecycleChange is a change of a lifecycle that gives the resource a kind.
type lifecycleChange struct {
	gc.LifecycleChange
	kind *kinds.Kind
}

func (f *Forecaster) forecast(ctx context.Context, a account) gc.PolicyForecast {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	listCtx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	select {
	case f.slots <- struct{}{}:
	case <-listCtx.Done():
		return a.uncounted("the server is busy with other changes of policies")
	}
	done, panicked := make(chan gc.PolicyForecast, 1), make(chan any, 1)
	go func() { // It checks ctx only from time to time, and Forecast does not wait for the check.
		defer func() {
			<-f.slots
			if r := recover(); r != nil { // It must fail only this request, as a panic in its own goroutine would.
				panicked <- r
			}
		}()
		done <- f.count(ctx, listCtx, a)
	}()
	select {
	case forecast := <-done:
		return forecast
	case r := <-panicked:
		panic(r)
	case <-ctx.Done():
		return a.uncounted(tooMuch)
	}
}

// elsewhere returns the owners of the holds that the change tries to approve but its policy does not own.
func (f *Forecaster) elsewhere(change gc.PolicyChange) map[string]types.NamespacedName {
	if change.After == nil {
		return nil
	}
	out := map[string]types.NamespacedName{}
	for _, id := range gc.NewlyApproved(change.After, change.Before) {
		if owner, ok := f.Tracker.OwnerOfHold(id); ok && owner != nameOf(change.After) {
			out[id] = owner
		}
	}
	return out
}

// account returns an account with the holds before the change, if the change approves any.
func (f *Forecaster) account(change gc.PolicyChange) account {
	a := account{PolicyChange: change, leading: f.Tracker.Leading()}
	if change.Before != nil && change.After != nil && len(gc.NewlyApproved(change.After, change.Before)) > 0 {
		a.holds, a.complete = f.Tracker.Holds(change.Before)
		a.complete = a.complete && change.Before.GetGeneration() == change.After.GetGeneration() // A new generation may lead to more holds.
	}
	return a
}

var tooMuch = fmt.Sprintf("there are too many objects, policies or rules to evaluate within %s", timeout)

// count makes the forecast. Objects are listed until listCtx ends.
func (f *Forecaster) count(ctx, listCtx context.Context, a account) gc.PolicyForecast {
	if err := f.try(ctx, listCtx, &a, f.knownMost); err != nil {
		return a.uncounted(tooMuch)
	}
	return gc.PolicyForecast{Lines: a.lines(), Holds: a.holds, Complete: a.complete, Leading: a.leading}
}

// try makes the change on a copy of the engine with at most knownMost known objects, and completes the account. Objects are listed until
// listCtx ends. It fails if ctx ends first.
func (f *Forecaster) try(ctx, listCtx context.Context, a *account, knownMost int) error {
	now := f.Clock.Now()
	snapshot := f.Tracker.Snapshot(ctx, a.propose(), knownMost, now)
	a.kinds = snapshot.Engine.Kinds()
	if snapshot.Kind != nil {
		a.kinds = a.kinds.With(snapshot.Kind)
	}
	listed := f.list(listCtx, a, snapshot)
	f.Tracker.AddUsages(snapshot, listed.kept, now)
	a.counted, a.incomplete, a.errs = len(snapshot.Facts)+listed.counted, snapshot.Cut || listed.incomplete, listed.errs
	if a.lifecycle != nil {
		a.counted = listed.counted // The facts are about the same objects.
	}
	t := attempt{Engine: snapshot.Engine, now: now, review: a.review}
	run := func() error { return t.run(ctx, snapshot, listed, a.PolicyChange) }
	if a.lifecycle != nil {
		run = func() error { return t.runLifecycle(ctx, snapshot, listed, a.lifecycle.kind) }
	}
	if err := run(); err != nil {
		return err
	}
	a.fresh, a.still, a.report, a.controlled = t.fresh, t.still, t.report, t.controlled
	if t.complete && !a.incomplete {
		a.holds, a.complete = t.holds, true
	} else {
		a.holds = append(a.holds, t.holds...)
	}
	return nil
}

// attempt makes a change on a copy of the engine.
type attempt struct {
	*engine.Engine
	now    time.Time
	byKind map[string][]*facts.Compact
	// fresh becomes due because of the change.
	fresh []*view.Due
	// still waits for approval by its policy, before the change and after it.
	still []*view.Due
	// holds are the holds of the policy before the change approves any.
	holds []gc.PolicyHold
	// complete is set if the policy has no other holds.
	complete bool
	// report is the report on the policy after the change; empty if the change deletes it.
	report report.Report
	// controlled is set if a change of a lifecycle makes objects of other resources due.
	controlled bool
	review     *review // nil for a forecast
}

// run makes the change of a policy. It fails if ctx ends first.
func (t *attempt) run(ctx context.Context, snapshot *trial.Snapshot, listed *listing, change gc.PolicyChange) error {
	t.prepare(snapshot, listed, slices.Concat(snapshot.Facts, listed.kept))
	if change.Before != nil {
		t.SetPolicy(scope.Observe(change.Before), t.now) // The watch of the policy may lag.
	}
	before, err := t.dueBefore(ctx)
	if err != nil {
		return err
	}
	if t.review != nil {
		if err := t.review.without(ctx, t.Engine, t.now); err != nil {
			return err
		}
	}
	if change.After == nil {
		t.RemovePolicy(policy.StoredOf(change.Before), t.now)
	} else {
		t.SetPolicy(scope.Observe(unapproved(change)), t.now)
	}
	if err := t.addObjects(ctx); err != nil {
		return err
	}
	if change.After != nil {
		var holds view.Holds
		if err := read(ctx, t.HoldsOf(change.After, &holds)); err != nil {
			return err
		}
		t.holds, t.complete = holds.All, holds.Complete
		t.SetPolicy(scope.Observe(change.After), t.now)
		if err := t.catchUp(ctx); err != nil {
			return err
		}
	}
	if t.review != nil {
		if err := t.review.with(ctx, t.Engine, t.now); err != nil {
			return err
		}
	}
	t.fresh, t.still = compare(before, t.Due(), nameOf(change.Policy()))
	return t.reportOn(ctx, change.After)
}

// runLifecycle makes the change of a lifecycle. listed has the objects of its resource, as objects of the new kind. It fails if ctx ends
// first.
func (t *attempt) runLifecycle(ctx context.Context, snapshot *trial.Snapshot, listed *listing, kind *kinds.Kind) error {
	t.prepare(snapshot, listed, snapshot.Facts)
	before, err := t.dueBefore(ctx)
	if err != nil {
		return err
	}
	t.SetKinds(t.Kinds().With(kind), t.now)
	t.StartObserving(kind)
	t.byKind[kind.Resource] = listed.kept
	if err := t.addObjects(ctx); err != nil {
		return err
	}
	fresh, _ := compare(before, t.Due(), types.NamespacedName{})
	t.fresh = only(fresh, func(due *view.Due) bool { return due.Resource == kind.Resource })
	t.controlled = len(t.fresh) < len(fresh)
	return nil
}

// prepare sets the state before the change.
func (t *attempt) prepare(snapshot *trial.Snapshot, listed *listing, objects []*facts.Compact) {
	t.ReplaceCronJobs(append(snapshot.CronJobs, listed.cronJobs...))
	t.ReplaceQuotas(append(snapshot.Quotas, listed.quotas...), t.now)
	t.byKind = map[string][]*facts.Compact{}
	for _, resource := range t.Kinds().Deletable() {
		t.byKind[resource] = nil
	}
	for _, k := range objects {
		t.byKind[k.Resource] = append(t.byKind[k.Resource], k)
	}
}

// dueBefore adds the objects before the change, and returns the objects that are due by enforcing policies. It fails if ctx ends first.
func (t *attempt) dueBefore(ctx context.Context) (map[types.UID]*view.Due, error) {
	if err := t.addObjects(ctx); err != nil {
		return nil, err
	}
	before := map[types.UID]*view.Due{}
	for _, due := range t.Due() {
		if !due.Preview {
			before[due.UID()] = due
		}
	}
	return before, nil
}

// reportOn makes the report on a CleanupPolicy. It fails if ctx ends first.
func (t *attempt) reportOn(ctx context.Context, p metav1.Object) error {
	if p == nil || p.GetNamespace() == "" {
		return nil
	}
	var reports []report.Report
	if err := read(ctx, t.ReportOn(p.GetNamespace(), &reports)); err != nil {
		return err
	}
	for _, r := range reports {
		if r.Name == p.GetName() {
			t.report = r
		}
	}
	return nil
}

// addObjects adds all objects that policies cover now, and settles them. It fails if ctx ends first.
func (t *attempt) addObjects(ctx context.Context) error {
	if err := t.catchUp(ctx); err != nil {
		return err
	}
	for _, resource := range slices.Sorted(maps.Keys(t.byKind)) {
		list, all := t.BeginList(resource), t.byKind[resource]
		if err := finish(ctx, func() bool { all = list.Add(all, t.now); return len(all) > 0 }); err != nil {
			return err
		}
		if err := finish(ctx, func() bool { return list.End(0, t.now) }); err != nil {
			return err
		}
	}
	return t.catchUp(ctx)
}

// catchUp finishes the work of the engine. It fails if ctx ends first.
func (t *attempt) catchUp(ctx context.Context) error {
	return finish(ctx, func() bool { return t.Step(t.now) })
}

// read waits until a reading has ended. It fails if ctx ends first.
func read(ctx context.Context, r memory.Reading) error {
	for range r {
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}

// finish calls step until there is no more to do. It fails if ctx ends first.
func finish(ctx context.Context, step func() (more bool)) error {
	for more := true; more; {
		more = step()
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}

// unapproved returns the policy after the change, without the approvals that the change adds.
func unapproved(change gc.PolicyChange) metav1.Object {
	ids := gc.ApprovedHolds(change.After.GetAnnotations()[gc.AnnotationApprovedHold])
	added := gc.NewlyApproved(change.After, change.Before)
	ids = slices.DeleteFunc(ids, func(id string) bool { return slices.Contains(added, id) })
	p := change.After.(runtime.Object).DeepCopyObject().(metav1.Object)
	p.SetAnnotations(map[string]string{gc.AnnotationApprovedHold: strings.Join(ids, ",")})
	return p
}

// compare returns the objects that the change makes due, or that now wait for another approval (fresh), and the objects of the changed
// policy that wait for the same approval as before (still). It ignores Preview policies except the changed one. For a CleanupPolicy, it
// returns nothing in other namespaces. changed is empty if no policy changes.
func compare(before map[types.UID]*view.Due, after []*view.Due, changed types.NamespacedName) (fresh, still []*view.Due) {
	for _, due := range after {
		was, ok := before[due.UID()]
		own := due.Policy == changed
		switch {
		case ok && notAffected(was, due):
			if own && was.Hold != "" {
				still = append(still, due)
			}
		case due.Preview && !own:
		case changed.Namespace != "" && changed.Namespace != due.Namespace:
		default:
			fresh = append(fresh, due)
		}
	}
	return fresh, still
}

// notAffected reports whether an object was about to be deleted before the change too, or waits for the same approval. If the change ends a
// wait, the object is affected.
func notAffected(was, is *view.Due) bool {
	if was.Hold != "" {
		return was.Hold == is.Hold && was.Policy == is.Policy
	}
	return was.Ends == is.Ends && (is.Waits || !was.Waits)
}

func nameOf(p metav1.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: p.GetNamespace(), Name: p.GetName()}
}
