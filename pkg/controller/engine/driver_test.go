// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/engine"
	"github.com/winnow-dev/winnow/pkg/controller/engine/knowledge"
	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/engine/scope"
	"github.com/winnow-dev/winnow/pkg/controller/engine/trial"
	"github.com/winnow-dev/winnow/pkg/controller/engine/view"
	"github.com/winnow-dev/winnow/pkg/controller/internal/model"
	"github.com/winnow-dev/winnow/pkg/controller/objects/facts"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/rules/freshness"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
	"github.com/winnow-dev/winnow/pkg/controller/rules/report"
)

// driver calls an engine as pkg/controller/tracker does, but without a lock: it repeats each call whose budget was spent until there is no
// more to do.
type driver struct {
	*engine.Engine
	budget    int    // how many objects fit into the budget of a call; 0 for any number
	spentNow  int    // objects in the current call
	interrupt func() // called after each call whose budget was spent, because others may get the lock then
}

func newDriver(c memory.Config) *driver {
	d := &driver{interrupt: func() {}}
	c.Spent = func(int) bool {
		if d.spentNow++; d.budget == 0 || d.spentNow < d.budget {
			return false
		}
		d.spentNow = 0
		return true
	}
	d.Engine = engine.New(c)
	return d
}

// setBudget sets how many objects fit into the budget of a call.
func (d *driver) setBudget(objects int) { d.budget, d.spentNow = objects, 0 }

// read waits until a reading has ended.
func (d *driver) read(r memory.Reading) {
	for range r {
		d.interrupt()
	}
}

// MarksToStore returns the marks of a namespace that must be stored, and reports whether they are known.
func (d *driver) MarksToStore(namespace string, now time.Time) (all []*memory.Marks, known bool) {
	var out memory.ChangedMarks
	d.read(d.Engine.MarksToStore(namespace, now, &out))
	return out.All, out.Known
}

// finish repeats a call until there is no more to do.
func (d *driver) finish(step func() (more bool)) {
	for step() {
		d.interrupt()
	}
}

// observed returns the facts of an object with the results of match conditions, as an observer does.
func (d *driver) observed(f *lifecycle.Fact) *facts.Compact {
	read := *f
	if f.FirstSeen != nil { // The time is not in the object.
		read.FinishedAt, read.Doubt, read.FirstSeen = time.Time{}, f.FirstSeen.Why, nil
	}
	read.Conditions = d.Conditions()[f.Resource][f.Namespace].Evaluate(model.Content(f))
	return facts.Compress(&read)
}

// Replace ends a list of all namespaces, as an observer does.
func (d *driver) Replace(resource string, all []*facts.Compact, rv uint64, now time.Time) {
	l := d.BeginList(resource)
	d.finish(func() bool {
		all = l.Add(all, now)
		return len(all) > 0
	})
	d.finish(func() bool { return l.End(rv, now) })
}

// add adds a page to a list of one namespace.
func (d *driver) add(m *drivenMerge, page []*facts.Compact, now time.Time) {
	d.finish(func() bool {
		page = m.Add(page, now)
		return len(page) > 0
	})
}

func (d *driver) Reports(namespace string) []report.Report {
	var out []report.Report
	d.read(d.ReportOn(namespace, &out))
	return out
}

func (d *driver) Holds(p metav1.Object) ([]gc.PolicyHold, bool) {
	var out view.Holds
	d.read(d.HoldsOf(p, &out))
	return out.All, out.Complete
}

func (d *driver) Needs(change gc.PolicyChange) trial.Needs {
	var out trial.Needs
	d.read(trial.NeedsOf(d.Engine, trial.Propose(change), &out))
	return out
}

// Snapshot copies everything that a change affects. The driver of the copy has a separate budget.
func (d *driver) Snapshot(change gc.PolicyChange, most int, now time.Time) *trialCopy {
	return d.SnapshotOf(trial.Propose(change), most, now)
}

func (d *driver) SnapshotOf(change trial.Proposal, most int, now time.Time) *trialCopy {
	s := &trialCopy{driver: newDriver(memory.Config{})}
	var reading memory.Reading
	s.Snapshot, reading = trial.New(d.Engine, change, most, s.driver.Config.Spent, now)
	s.driver.Engine = s.Snapshot.Engine
	d.read(reading)
	return s
}

// trialCopy is a snapshot with its driver.
type trialCopy struct {
	*trial.Snapshot
	driver *driver
}

func (d *driver) SetPolicy(p *gc.CleanupPolicy, now time.Time) {
	d.Turn(func() { d.Engine.SetPolicy(scope.Observe(p), now) }, now)
}

func (d *driver) SetClusterPolicy(p *gc.ClusterCleanupPolicy, now time.Time) {
	d.Turn(func() { d.Engine.SetPolicy(scope.Observe(p), now) }, now)
}

func (d *driver) RemovePolicy(p *gc.CleanupPolicy, now time.Time) {
	d.Turn(func() { d.Engine.RemovePolicy(policy.StoredOf(p), now) }, now)
}

func (d *driver) RemoveClusterPolicy(p *gc.ClusterCleanupPolicy, now time.Time) {
	d.Turn(func() { d.Engine.RemovePolicy(policy.StoredOf(p), now) }, now)
}

func (d *driver) ReplacePolicies(all []*gc.CleanupPolicy, rv string, now time.Time) {
	replacePolicies(d, freshness.Policies, all, rv, now)
}

func (d *driver) ReplaceClusterPolicies(all []*gc.ClusterCleanupPolicy, rv string, now time.Time) {
	replacePolicies(d, freshness.ClusterPolicies, all, rv, now)
}

func replacePolicies[P metav1.Object](d *driver, kind freshness.Collection, all []P, rv string, now time.Time) {
	var observed []scope.ObservedPolicy
	for _, p := range all {
		observed = append(observed, scope.Observe(p))
	}
	d.Turn(func() { d.Engine.ReplacePolicies(kind, observed, rv, now) }, now)
}

func (d *driver) SetReferrerSources(names []string, why string, now time.Time) {
	d.Turn(func() { d.Engine.SetReferrerSources(names, why, now) }, now)
	d.takeReferrers(now)
}

func (d *driver) SetReferring(all []knowledge.Referring, now time.Time) {
	d.Turn(func() { d.Engine.SetReferring(all, now) }, now)
	d.takeReferrers(now)
}

func (d *driver) RemoveReferrer(source string, uid types.UID, now time.Time) {
	d.Turn(func() { d.Engine.RemoveReferrer(source, uid, now) }, now)
	d.takeReferrers(now)
}

func (d *driver) EndReferrers(source string, now time.Time) {
	d.Turn(func() { d.Engine.EndReferrers(source, now) }, now)
	d.takeReferrers(now)
}

func (d *driver) takeReferrers(now time.Time) {
	d.finish(func() bool { return d.StepReferrers(now) })
}
