// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package forecast tells people what the change of a policy makes due at once, before it is made. It decides nothing itself: a
// copy of what the tracker knows is asked before and after the change.
package forecast

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/engine"
	"github.com/winnow-dev/winnow/pkg/controller/facts"
	"github.com/winnow-dev/winnow/pkg/controller/kinds"
	"github.com/winnow-dev/winnow/pkg/controller/observe"
	"github.com/winnow-dev/winnow/pkg/controller/tracker"
)

const (
	// patience is for how long somebody who writes a policy is kept waiting for what is to be listed first, and longest for how long in all.
	patience, longest = time.Second, 2 * time.Second
	// knownMost and listedMost are how many objects are looked at: of those that are known, and of those that are not.
	knownMost, listedMost = 50_000, 20_000
	// atOnce is how many forecasts are made at a time; each may take a processor.
	atOnce = 2
)

// Config is what a Forecaster works with.
type Config struct {
	Tracker *tracker.Tracker
	// Client lists what the tracker does not know, since no policy covers it yet.
	Client *observe.Client
	Clock  clock.PassiveClock
}

// Forecaster is safe for concurrent use.
type Forecaster struct {
	Config
	knownMost, listedMost int
	slots                 chan struct{}
}

// New returns a Forecaster.
func New(c Config) *Forecaster {
	return &Forecaster{Config: c, knownMost: knownMost, listedMost: listedMost, slots: make(chan struct{}, atOnce)}
}

// Forecast returns what becomes due at once by a change. It takes about two seconds at the most, and says so where that was not enough.
func (f *Forecaster) Forecast(ctx context.Context, change gc.PolicyChange) gc.PolicyForecast {
	forecast := f.forecast(ctx, change)
	forecast.Elsewhere = f.elsewhere(change)
	return forecast
}

func (f *Forecaster) forecast(ctx context.Context, change gc.PolicyChange) gc.PolicyForecast {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	patient, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	a := f.account(change)
	select {
	case f.slots <- struct{}{}:
	case <-patient.Done():
		return a.uncounted("the server is busy with other changes of policies")
	}
	done, panicked := make(chan gc.PolicyForecast, 1), make(chan any, 1)
	go func() { // It looks at ctx now and then. Nobody waits until it does.
		defer func() {
			<-f.slots
			if r := recover(); r != nil { // It fails the request alone, as a panic there would.
				panicked <- r
			}
		}()
		done <- f.count(ctx, patient, a)
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

// elsewhere finds the other policies whose holds somebody approves here by mistake.
func (f *Forecaster) elsewhere(change gc.PolicyChange) map[string]types.NamespacedName {
	if change.After == nil {
		return nil
	}
	out := map[string]types.NamespacedName{}
	for _, id := range gc.NewlyApproved(change.After, change.Before) {
		if owner, ok := f.Tracker.HoldOf(id); ok && owner != nameOf(change.After) {
			out[id] = owner
		}
	}
	return out
}

// account begins with the holds that wait before the change, should it approve any.
func (f *Forecaster) account(change gc.PolicyChange) account {
	a := account{PolicyChange: change, leading: f.Tracker.Leading()}
	if change.Before != nil && change.After != nil && len(gc.NewlyApproved(change.After, change.Before)) > 0 {
		a.holds, a.complete = f.Tracker.Holds(change.Before)
		a.complete = a.complete && change.Before.GetGeneration() == change.After.GetGeneration() // Another may make more.
	}
	return a
}

var tooMuch = fmt.Sprintf("there are too many objects, policies or rules to look at within %s", longest)

// count makes the forecast. What is to be listed first is so until patient ends.
func (f *Forecaster) count(ctx, patient context.Context, a account) gc.PolicyForecast {
	now := f.Clock.Now()
	snapshot := f.Tracker.Snapshot(ctx, a.PolicyChange, f.knownMost, now)
	listed := f.list(patient, snapshot.Missing)
	a.looked, a.cut, a.errs = len(snapshot.Facts)+listed.looked, snapshot.Cut || listed.cut, listed.errs
	t := trial{Engine: snapshot.Engine, now: now}
	if err := t.run(ctx, snapshot, listed, a.PolicyChange); err != nil {
		return a.uncounted(tooMuch)
	}
	a.fresh, a.still, a.report = t.fresh, t.still, t.report
	if t.complete && !a.cut {
		a.holds, a.complete = t.holds, true
	} else {
		a.holds = append(a.holds, t.holds...)
	}
	return gc.PolicyForecast{Lines: a.lines(), Holds: a.holds, Complete: a.complete, Leading: a.leading}
}

// trial is a change that is made on a copy of what is known.
type trial struct {
	*engine.Engine
	now    time.Time
	byKind map[string][]*facts.Compact
	// fresh becomes due because of the change.
	fresh []engine.Due
	// still waits for approval by its policy, before the change and after it.
	still []engine.Due
	// holds are those of the policy before the change approves any, and complete says that the policy has no others.
	holds    []gc.PolicyHold
	complete bool
	// report is on the policy after the change; empty when it is deleted.
	report engine.Report
}

// run makes the change, and fails when ctx ends before that.
func (t *trial) run(ctx context.Context, snapshot *engine.Snapshot, listed *listing, change gc.PolicyChange) error {
	t.ReplaceCronJobs(append(snapshot.CronJobs, listed.cronJobs...), t.now)
	t.ReplaceQuotas(append(snapshot.Quotas, listed.quotas...), t.now)
	t.byKind = map[string][]*facts.Compact{}
	for _, resource := range kinds.Deletable() {
		t.byKind[resource] = nil
	}
	for _, k := range slices.Concat(snapshot.Facts, listed.kept) {
		t.byKind[k.Resource] = append(t.byKind[k.Resource], k)
	}
	if change.Before != nil {
		t.SetPolicy(engine.Observe(change.Before), t.now) // The watch of it may lag.
	}
	if err := t.fill(ctx); err != nil {
		return err
	}
	before := map[types.UID]engine.Due{}
	for _, due := range t.Due() {
		if !due.Preview {
			before[due.UID()] = due
		}
	}
	if change.After == nil {
		t.RemovePolicy(engine.StoredOf(change.Before), t.now)
	} else {
		t.SetPolicy(engine.Observe(unapproved(change)), t.now)
	}
	if err := t.fill(ctx); err != nil {
		return err
	}
	if change.After != nil {
		holding := t.HoldsOf(change.After)
		if err := finish(ctx, holding.Step); err != nil {
			return err
		}
		t.holds, t.complete = holding.Holds()
		t.SetPolicy(engine.Observe(change.After), t.now)
		if err := t.catchUp(ctx); err != nil {
			return err
		}
	}
	t.fresh, t.still = compare(before, t.Due(), change.Policy())
	return t.reportOn(ctx, change.After)
}

// reportOn makes the report on a policy of a namespace. It fails when ctx ends before that.
func (t *trial) reportOn(ctx context.Context, p metav1.Object) error {
	if p == nil || p.GetNamespace() == "" {
		return nil
	}
	reporting := t.ReportOn(p.GetNamespace())
	if err := finish(ctx, reporting.Step); err != nil {
		return err
	}
	for _, r := range reporting.Reports() {
		if r.Name == p.GetName() {
			t.report = r
		}
	}
	return nil
}

// fill takes in all objects that policies cover by now, one by one since each may take long to be judged.
func (t *trial) fill(ctx context.Context) error {
	if err := t.catchUp(ctx); err != nil {
		return err
	}
	for resource, all := range t.byKind {
		for _, k := range all {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			t.Upsert(k, t.now)
		}
		t.Replace(resource, all, 0, t.now)
	}
	return t.catchUp(ctx)
}

// catchUp has judged anew what is to be.
func (t *trial) catchUp(ctx context.Context) error {
	return finish(ctx, func() bool { return t.Step(t.now) })
}

// finish takes steps until there is no more to do, or fails when ctx ends.
func finish(ctx context.Context, step func() (more bool)) error {
	for ctx.Err() == nil && step() {
	}
	return ctx.Err()
}

// unapproved is the policy after the change, without the approvals that the change brings.
func unapproved(change gc.PolicyChange) metav1.Object {
	ids := gc.ApprovedHolds(change.After.GetAnnotations()[gc.AnnotationApprovedHold])
	added := gc.NewlyApproved(change.After, change.Before)
	ids = slices.DeleteFunc(ids, func(id string) bool { return slices.Contains(added, id) })
	p := change.After.(runtime.Object).DeepCopyObject().(metav1.Object)
	p.SetAnnotations(map[string]string{gc.AnnotationApprovedHold: strings.Join(ids, ",")})
	return p
}

// compare finds those that were not about to go already, or that wait for another approval than before, and those of the changed policy
// that wait for the same. Of what policies show that do not enforce, only that of the changed one is new. People learn nothing of
// namespaces that their policy is not for.
func compare(before map[types.UID]engine.Due, after []engine.Due, changed metav1.Object) (fresh, still []engine.Due) {
	for _, due := range after {
		was, ok := before[due.UID()]
		own := due.Policy == nameOf(changed)
		switch {
		case ok && goesAlike(was, due):
			if own && was.Hold != "" {
				still = append(still, due)
			}
		case due.Preview && !own:
		case changed.GetNamespace() != "" && changed.GetNamespace() != due.Namespace:
		default:
			fresh = append(fresh, due)
		}
	}
	return fresh, still
}

// goesAlike reports whether an object was about to go before a change already, or waits for the same approval as after it.
func goesAlike(was, is engine.Due) bool {
	return was.Hold == "" || was.Hold == is.Hold && was.Policy == is.Policy
}

func nameOf(p metav1.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: p.GetNamespace(), Name: p.GetName()}
}

// holdsOf are the holds that the status of a policy tells of.
func holdsOf(p metav1.Object) []gc.PolicyHold {
	switch p := p.(type) {
	case *gc.CleanupPolicy:
		return p.Status.Holds
	case *gc.ClusterCleanupPolicy:
		return p.Status.Holds
	}
	return nil
}
