// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/facts"
	"github.com/winnow-dev/winnow/pkg/controller/freshness"
	"github.com/winnow-dev/winnow/pkg/controller/internal/model"
	"github.com/winnow-dev/winnow/pkg/controller/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/policy"
	"github.com/winnow-dev/winnow/pkg/controller/report"
)

// driver calls an engine as pkg/controller/tracker does, but without a lock: it repeats each call whose budget was spent until there is no
// more to do.
type driver struct {
	*Engine
	budget    int    // how many objects fit into the budget of a call; 0 for any number
	spentNow  int    // objects in the current call
	interrupt func() // called after each call whose budget was spent, because others may get the lock then
}

func newDriver(c Config) *driver {
	d := &driver{interrupt: func() {}}
	c.Spent = func(int) bool {
		if d.spentNow++; d.budget == 0 || d.spentNow < d.budget {
			return false
		}
		d.spentNow = 0
		return true
	}
	d.Engine = New(c)
	return d
}

// setBudget sets how many objects fit into the budget of a call.
func (d *driver) setBudget(objects int) { d.budget, d.spentNow = objects, 0 }

// finish repeats a call until there is no more to do.
func (d *driver) finish(step func() (more bool)) {
	for step() {
		d.interrupt()
	}
}

// observed returns the facts of an object with the results of match conditions, as an observer does.
func (d *driver) observed(f *lifecycle.Fact) *facts.Compact {
	read := *f
	if f.FirstSeen != nil { // Objects do not say that.
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
func (d *driver) add(m *Merge, page []*facts.Compact, now time.Time) {
	d.finish(func() bool {
		page = m.Add(page, now)
		return len(page) > 0
	})
}

func (d *driver) Reports(namespace string) []report.Report {
	r := d.ReportOn(namespace)
	d.finish(r.Step)
	return r.Reports()
}

func (d *driver) Holds(p metav1.Object) ([]gc.PolicyHold, bool) {
	h := d.HoldsOf(p)
	d.finish(h.Step)
	return h.Holds()
}

// Snapshot copies everything that a change affects. The driver of the copy has a budget of its own.
func (d *driver) Snapshot(change gc.PolicyChange, most int, now time.Time) *trialCopy {
	s := &trialCopy{driver: newDriver(Config{})}
	s.Snapshot = d.BeginSnapshot(Propose(change), most, s.driver.config.Spent, now)
	s.driver.Engine = s.Snapshot.Engine
	d.finish(func() bool { return s.Step(now) })
	return s
}

// trialCopy is a snapshot with its driver.
type trialCopy struct {
	*Snapshot
	driver *driver
}

func (d *driver) SetPolicy(p *gc.CleanupPolicy, now time.Time) {
	d.Engine.SetPolicy(Observe(p), now)
}

func (d *driver) SetClusterPolicy(p *gc.ClusterCleanupPolicy, now time.Time) {
	d.Engine.SetPolicy(Observe(p), now)
}

func (d *driver) RemovePolicy(p *gc.CleanupPolicy, now time.Time) {
	d.Engine.RemovePolicy(policy.StoredOf(p), now)
}

func (d *driver) RemoveClusterPolicy(p *gc.ClusterCleanupPolicy, now time.Time) {
	d.Engine.RemovePolicy(policy.StoredOf(p), now)
}

func (d *driver) ReplacePolicies(all []*gc.CleanupPolicy, rv string, now time.Time) {
	replacePolicies(d, freshness.Policies, all, rv, now)
}

func (d *driver) ReplaceClusterPolicies(all []*gc.ClusterCleanupPolicy, rv string, now time.Time) {
	replacePolicies(d, freshness.ClusterPolicies, all, rv, now)
}

func replacePolicies[P metav1.Object](d *driver, kind freshness.Collection, all []P, rv string, now time.Time) {
	var observed []ObservedPolicy
	for _, p := range all {
		observed = append(observed, Observe(p))
	}
	d.Engine.ReplacePolicies(kind, observed, rv, now)
}

func (d *driver) SetReferrerSources(names []string, why string, now time.Time) {
	d.Engine.SetReferrerSources(names, why, now)
	d.takeReferrers(now)
}

func (d *driver) SetReferring(all []Referring, now time.Time) {
	d.Engine.SetReferring(all, now)
	d.takeReferrers(now)
}

func (d *driver) RemoveReferrer(source string, uid types.UID, now time.Time) {
	d.Engine.RemoveReferrer(source, uid, now)
	d.takeReferrers(now)
}

func (d *driver) EndReferrers(source string, now time.Time) {
	d.Engine.EndReferrers(source, now)
	d.takeReferrers(now)
}

func (d *driver) takeReferrers(now time.Time) {
	d.finish(func() bool { return d.StepReferrers(now) })
}
