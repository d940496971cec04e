// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package forecast tells people what the change of a policy makes due at once, before it is made. It decides nothing itself: a
// copy of what the tracker knows is asked before and after the change.
package forecast

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
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

// Forecast returns what becomes due at once by a change. It takes about a second at the most, and says so where that was not enough.
func (f *Forecaster) Forecast(ctx context.Context, change gc.PolicyChange) gc.PolicyForecast {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	select {
	case f.slots <- struct{}{}:
		defer func() { <-f.slots }()
	case <-ctx.Done():
		a := account{PolicyChange: change}
		line := fmt.Sprintf("what becomes due by this at once was not counted within %s, too much else is under way", patience)
		return gc.PolicyForecast{Lines: append(a.approved(), line)}
	}
	now := f.Clock.Now()
	snapshot := f.Tracker.Snapshot(change, f.knownMost, now)
	listed := f.list(ctx, snapshot.Missing)
	fresh, waiting := try(snapshot, listed, change, now)
	a := account{
		PolicyChange: change, fresh: fresh,
		looked: len(snapshot.Kept) + listed.looked, cut: snapshot.Cut || listed.cut, errs: listed.errs,
	}
	return gc.PolicyForecast{Lines: a.lines(), Holds: waiting, Complete: !a.cut}
}

// try makes the change on a copy of what is known, and returns what becomes due by it, and the holds of the policy before the change
// approves any.
func try(snapshot *tracker.Snapshot, listed *listing, change gc.PolicyChange, now time.Time) ([]tracker.Due, []gc.PolicyHold) {
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
	if change.After == nil {
		remove(t, change.Before, now)
		fill()
		return fresh(before, t.Due(), change.Policy()), nil
	}
	set(t, unapproved(change), now)
	fill()
	waiting := waiting(t.Due(), nameOf(change.After))
	set(t, change.After, now)
	return fresh(before, t.Due(), change.After), waiting
}

func newlyApproved(change gc.PolicyChange) []string {
	before := ""
	if change.Before != nil {
		before = change.Before.GetAnnotations()[gc.AnnotationApprovedHold]
	}
	return gc.NewlyApproved(change.After.GetAnnotations()[gc.AnnotationApprovedHold], before)
}

// unapproved is the policy after the change, without the approvals that the change brings.
func unapproved(change gc.PolicyChange) metav1.Object {
	ids := gc.ApprovedHolds(change.After.GetAnnotations()[gc.AnnotationApprovedHold])
	added := newlyApproved(change)
	ids = slices.DeleteFunc(ids, func(id string) bool { return slices.Contains(added, id) })
	p := change.After.(runtime.Object).DeepCopyObject().(metav1.Object)
	p.SetAnnotations(map[string]string{gc.AnnotationApprovedHold: strings.Join(ids, ",")})
	return p
}

// waiting are the holds of a policy, and those of others that its objects wait under.
func waiting(all []tracker.Due, of types.NamespacedName) []gc.PolicyHold {
	byID := map[string]*gc.PolicyHold{}
	for _, due := range all {
		if due.Hold == "" || due.Preview || due.HoldOf != of && due.Policy != of {
			continue
		}
		h := byID[due.Hold]
		if h == nil {
			h = &gc.PolicyHold{ID: due.Hold, Namespace: due.Namespace}
			byID[due.Hold] = h
		}
		if due.HoldTotal {
			h.Namespace = ""
		}
		if due.HoldOf != of {
			h.Policy = strings.TrimPrefix(due.HoldOf.String(), "/")
		}
		h.Objects++
		h.Resources = sets.List(sets.New(h.Resources...).Insert(due.Resource))
	}
	var out []gc.PolicyHold
	for _, id := range slices.Sorted(maps.Keys(byID)) {
		out = append(out, *byID[id])
	}
	return out
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
