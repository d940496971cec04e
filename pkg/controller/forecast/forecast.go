// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package forecast tells people what the change of a policy makes due at once, before it is made. It decides nothing itself: a
// copy of what the tracker knows is asked before and after the change.
package forecast

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/facts"
	"github.com/winnow-dev/winnow/pkg/controller/observe"
	"github.com/winnow-dev/winnow/pkg/controller/tracker"
)

const (
	// patience is for how long somebody who writes a policy is kept waiting for what is to be listed first.
	patience = time.Second
	// knownMost and listedMost are how many objects are looked at: of those that are known, and of those that are not.
	knownMost, listedMost = 50_000, 20_000
	// atOnce is how many forecasts are made at a time; each may take a processor.
	atOnce = 2
)

// Config is what a Forecaster works with.
type Config struct {
	Tracker *tracker.Tracker
	// Clients list what the tracker does not know, since no policy covers it yet.
	observe.Clients
	Clock clock.PassiveClock
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

// Forecast returns, in lines for people, what becomes due at once by a change; none when nothing does. It takes about a second at
// the most, and says so where that was not enough.
func (f *Forecaster) Forecast(ctx context.Context, change gc.PolicyChange) []string {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	select {
	case f.slots <- struct{}{}:
		defer func() { <-f.slots }()
	case <-ctx.Done():
		a := account{PolicyChange: change}
		return append(a.approved(), fmt.Sprintf("what becomes due by this at once was not counted within %s, too much else is under way", patience))
	}
	now := f.Clock.Now()
	snapshot := f.Tracker.Snapshot(change, f.knownMost, now)
	listed := f.list(ctx, snapshot.Missing)
	a := account{
		PolicyChange: change, fresh: try(snapshot, listed, change, now),
		looked: len(snapshot.Kept) + listed.looked, cut: snapshot.Cut || listed.cut, errs: listed.errs,
	}
	return a.lines()
}

// try makes the change on a copy of what is known, and returns what becomes due by it.
func try(snapshot *tracker.Snapshot, listed *listing, change gc.PolicyChange, now time.Time) []tracker.Due {
	t := snapshot.Tracker
	t.ReplaceCronJobs(append(snapshot.CronJobs, listed.cronJobs...), now)
	t.ReplaceQuotas(append(snapshot.Quotas, listed.quotas...), now)
	byResource := map[string][]*facts.Kept{gc.ResourceJobs: nil, gc.ResourcePods: nil}
	for _, all := range [][]*facts.Kept{snapshot.Kept, listed.kept} {
		for _, k := range all {
			byResource[k.Resource] = append(byResource[k.Resource], k)
		}
	}
	fill := func() {
		for resource, all := range byResource {
			t.Replace(resource, all, 0, now)
		}
	}
	if change.Before != nil {
		set(t, change.Before, now) // The watch of it may lag.
	}
	fill()
	before := map[types.UID]tracker.Due{}
	for _, due := range t.Due() {
		if !due.Preview {
			before[due.UID()] = due
		}
	}
	if change.After != nil {
		set(t, change.After, now)
	} else {
		remove(t, change.Before, now)
	}
	fill()
	return fresh(before, t.Due(), change.Policy())
}

// fresh are those that were not about to go already, or that wait for another approval than before. Of what policies show that do
// not enforce, only that of the changed one is new. People learn nothing of namespaces that their policy is not for.
func fresh(before map[types.UID]tracker.Due, after []tracker.Due, changed metav1.Object) []tracker.Due {
	var out []tracker.Due
	for _, due := range after {
		was, ok := before[due.UID()]
		switch {
		case ok && (was.Hold == "" || was.Hold == due.Hold && was.Policy == due.Policy):
		case due.Preview && due.Policy != nameOf(changed):
		case changed.GetNamespace() != "" && changed.GetNamespace() != due.Namespace:
		default:
			out = append(out, due)
		}
	}
	return out
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

func set(t *tracker.Tracker, p metav1.Object, now time.Time) {
	switch p := p.(type) {
	case *gc.CleanupPolicy:
		t.SetPolicy(p, now)
	case *gc.ClusterCleanupPolicy:
		t.SetClusterPolicy(p, now)
	}
}

func remove(t *tracker.Tracker, p metav1.Object, now time.Time) {
	switch p := p.(type) {
	case *gc.CleanupPolicy:
		t.RemovePolicy(p, now)
	case *gc.ClusterCleanupPolicy:
		t.RemoveClusterPolicy(p, now)
	}
}
