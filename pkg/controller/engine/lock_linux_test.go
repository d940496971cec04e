// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"fmt"
	"runtime"
	"syscall"
	"testing"
	"time"
	"unsafe"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/engine/scope"
	"github.com/winnow-dev/winnow/pkg/controller/engine/trial"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/objects/facts"
	"github.com/winnow-dev/winnow/pkg/controller/rules/freshness"
)

// BenchmarkLock measures the longest time for which one call has the lock, in CPU time: while a cluster policy with a ceiling changes, so
// that all Jobs are settled again, reports are created, and a forecast copies everything; while one namespace has 400 Jobs and 120 policies
// of 100 rules each, half of them Previews; while it has as many policies and match conditions as are allowed; and while metrics are scraped
// and all Jobs are due.
func BenchmarkLock(b *testing.B) {
	b.Run("cluster policy", func(b *testing.B) {
		spec := scaleSpec("30d")
		spec.Capacity = &gc.Capacity{MaxObjects: new(int64(scaleJobs / scaleNamespaces * 9 / 10))}
		t := scaled(spec)
		t.longest(b, func(generation int) {
			p := scaleClusterPolicy(generation, scaleCeiling(int64(scaleJobs*8/10-generation)))
			t.Snapshot(gc.PolicyChange{After: p}, 50_000, testbuilders.Now)
			t.SetClusterPolicy(p, testbuilders.Now)
		})
	})
	b.Run("review in many namespaces", func(b *testing.B) {
		t := newDriver(memory.Config{HoldAbove: -1, HoldAboveTotal: -1})
		var namespaces []*metav1.PartialObjectMetadata
		for ns := range manyNamespaces {
			namespaces = append(namespaces, testbuilders.Namespace(fmt.Sprintf("team-%05d", ns), "1"))
		}
		t.ReplaceNamespaces(namespaces, "1", testbuilders.Now)
		t.ReplacePolicies(nil, "1", testbuilders.Now)
		t.ReplaceClusterPolicies(nil, "1", testbuilders.Now)
		t.longest(b, func(generation int) {
			change := gc.PolicyChange{After: scaleClusterPolicy(generation, scaleCeiling(1000))}
			within := trial.Propose(change).Within(t.Needs(change).ByNamespace)
			t.interrupt() // The questions are asked without the lock.
			t.SnapshotOf(within, 50_000, testbuilders.Now)
		})
	})
	b.Run("tenant", func(b *testing.B) { busyTenant(b, crowd(120, 100, "30d", tenantJobs/2)) })
	b.Run("scrape", func(b *testing.B) {
		t := scaled(scaleSpec("0s"))
		t.longest(b, func(int) {
			t.Totals(testbuilders.Now)
			t.oldestOverdue(testbuilders.Now)
		})
	})
	b.Run("conditions", func(b *testing.B) {
		policies := crowd(50, 1, "30d", tenantJobs/2) // As many as --max-policies-per-namespace allows.
		for i, p := range policies {
			var rules []*testbuilders.RuleBuilder
			for r := range 4 {
				rule := testbuilders.Rule(fmt.Sprint("conditions-", r), "1h")
				for c := range 15 {
					rule.If(fmt.Sprintf("object.metadata.name != 'other-%d-%d-%d'", i, r, c))
				}
				rules = append(rules, rule.If(fmt.Sprintf("object.metadata.name == 'other-%d-%d'", i, r)))
			}
			p.Rules(rules...)
		}
		busyTenant(b, policies)
	})
	b.Run("marks", matchMarks)
}

// matchMarks measures the longest call while the marks of as many matches are found as can be stored, and some more.
func matchMarks(b *testing.B) {
	const objects = 60_000
	t := newDriver(memory.Config{HoldAbove: -1, HoldAboveTotal: -1})
	t.SetKinds(drawnKinds, testbuilders.Now)
	for _, resource := range drawnKinds.Deletable() {
		k, _ := drawnKinds.For(resource)
		t.StartObserving(k)
	}
	t.ReplaceNamespaces([]*metav1.PartialObjectMetadata{testbuilders.Namespace(testbuilders.Home, "1")}, "1", testbuilders.Now)
	t.ReplacePolicies([]*gc.CleanupPolicy{matchedPolicy(1).Version("1").Obj()}, "1", testbuilders.Now)
	t.ReplaceClusterPolicies(nil, "1", testbuilders.Now)
	var all []*facts.Compact
	for _, name := range names("a-", objects) {
		f := superseded(name)
		f.ResourceVersion = 1
		all = append(all, t.observed(f))
	}
	t.Replace(gc.ResourceConfigMaps, all, 1, testbuilders.Now)
	t.MarksListed(nil, testbuilders.Now)
	t.ConfirmFresh(freshness.ConsistentRead{Began: testbuilders.Now, ServerTime: testbuilders.Now}, testbuilders.Now) // No clock is in doubt.
	later, stored := testbuilders.Now.Add(time.Hour), 0
	t.longest(b, func(generation int) {
		marks, _ := t.MarksToStore(testbuilders.Home, later)
		stored += len(marks)
		t.interrupt() // They are stored without the lock.
		for _, m := range marks {
			m.ResourceVersion = fmt.Sprint(generation + 1)
			t.Turn(func() { t.SetMarks(m, later) }, later)
			t.interrupt()
		}
	})
	if stored < 10 {
		b.Fatalf("%d marks are stored", stored)
	}
}

const tenantJobs, manyNamespaces = 400, 10_000

// busyTenant measures the longest call while one policy of a namespace after another changes, and one of its Jobs after another.
func busyTenant(b *testing.B, policies []*testbuilders.PolicyBuilder) {
	t := newDriver(memory.Config{HoldAbove: -1, HoldAboveTotal: -1})
	t.ReplaceNamespaces([]*metav1.PartialObjectMetadata{testbuilders.Namespace(testbuilders.Home, "1")}, "1", testbuilders.Now)
	var all []*gc.CleanupPolicy
	for _, p := range policies {
		all = append(all, p.Version("1").Obj())
	}
	t.ReplacePolicies(all, "1", testbuilders.Now)
	t.ReplaceClusterPolicies(nil, "1", testbuilders.Now)
	t.ReplaceCronJobs(nil, testbuilders.Now)
	t.Replace(gc.ResourcePods, nil, 1, testbuilders.Now)
	job := func(i, version int) *facts.Compact {
		return t.observed(testbuilders.Job(fmt.Sprint("job-", i)).Version(fmt.Sprint(version)).Label("app", "mine").
			Complete(testbuilders.Now.Add(time.Duration(i-tenantJobs) * time.Second)).Fact())
	}
	var known []*facts.Compact
	for i := range tenantJobs {
		known = append(known, job(i, 1))
	}
	t.Replace(gc.ResourceJobs, known, 1, testbuilders.Now)
	t.longest(b, func(generation int) {
		changed := scope.Observe(policies[0].Generation(int64(generation + 1)).Version(fmt.Sprint(generation + 1)).Obj())
		seen := job(generation%tenantJobs, generation+1)
		t.interrupt() // Both are done without the lock.
		t.Turn(func() { t.Engine.SetPolicy(changed, testbuilders.Now) }, testbuilders.Now)
		t.Upsert(seen, testbuilders.Now)
	})
}

// longest measures the longest call, with a budget like the tracker's, while a policy changes and its effects are processed.
func (d *driver) longest(b *testing.B, change func(generation int)) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var longest time.Duration
	begin, looked := cpuTime(), 0
	d.interrupt = func() {}
	d.Engine.Config.Spent = func(work int) bool {
		if looked += work; looked < 64 {
			return false
		}
		looked = 0
		return cpuTime().Sub(begin) >= 5*time.Millisecond
	}
	turn := func() {
		longest = max(longest, cpuTime().Sub(begin))
		begin = cpuTime()
	}
	d.interrupt = turn
	generation := 0
	for b.Loop() {
		generation++
		turn()
		change(generation)
		d.finish(func() bool { return d.Step(testbuilders.Now) })
		turn()
		for _, ns := range d.TakeUnwritten() {
			d.Reports(ns)
			turn()
		}
	}
	b.ReportMetric(float64(longest.Microseconds())/1000, "longest-ms")
	d.readable(b)
}

// cpuTime returns the CPU time of this thread, which does not include other processes of the machine.
func cpuTime() time.Time {
	const threadCPUTime = 3 // CLOCK_THREAD_CPUTIME_ID
	var now syscall.Timespec
	if _, _, errno := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, threadCPUTime, uintptr(unsafe.Pointer(&now)), 0); errno != 0 {
		panic(errno)
	}
	return time.Unix(now.Unix())
}
