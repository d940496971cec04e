// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/objects/facts"
)

const (
	scaleJobs       = 200_000
	scaleNamespaces = 50
)

// scaleJob returns one of many finished Jobs, as a batch system creates them.
func scaleJob(i int) *facts.Compact {
	ns := i % scaleNamespaces
	return facts.Compress(testbuilders.Job(fmt.Sprintf("train-%02d-%08d", ns, i)).In(fmt.Sprintf("team-%02d", ns)).
		WithUID(types.UID(fmt.Sprintf("%08x-1111-4222-8333-%012x", i, i))).Version(fmt.Sprint(i+1)).
		Label("app", "train").Label("team", fmt.Sprint("team-", ns)).Label("run", fmt.Sprint(i%20)).
		Created(testbuilders.Now.Add(-24 * time.Hour)).Complete(testbuilders.Now.Add(-time.Duration(i*7919%scaleJobs/10) * time.Second)).Fact())
}

// scaled returns an engine with many namespaces, each with a policy and Jobs.
func scaled(p gc.CleanupPolicySpec) *driver {
	t := newDriver(memory.Config{HoldAbove: -1, HoldAboveTotal: -1})
	var all []*facts.Compact
	for ns := range scaleNamespaces { // By namespace, as the API server lists them.
		for i := ns; i < scaleJobs; i += scaleNamespaces {
			all = append(all, scaleJob(i))
		}
	}
	var policies []*gc.CleanupPolicy
	var namespaces []*metav1.PartialObjectMetadata
	for ns := range scaleNamespaces {
		policies = append(policies, scalePolicy(ns, 1, p))
		namespaces = append(namespaces, testbuilders.Namespace(fmt.Sprintf("team-%02d", ns), "1"))
	}
	t.ReplaceNamespaces(namespaces, "1", testbuilders.Now)
	t.ReplacePolicies(policies, "1", testbuilders.Now)
	t.ReplaceClusterPolicies(nil, "1", testbuilders.Now)
	t.ReplaceCronJobs(nil, testbuilders.Now)
	t.Replace(gc.ResourcePods, nil, 1, testbuilders.Now)
	t.Replace(gc.ResourceJobs, all, uint64(scaleJobs), testbuilders.Now)
	return t
}

func scalePolicy(ns, generation int, spec gc.CleanupPolicySpec) *gc.CleanupPolicy {
	name := fmt.Sprintf("team-%02d", ns)
	return &gc.CleanupPolicy{ObjectMeta: metav1.ObjectMeta{
		Namespace: name, Name: "p", UID: "uid-" + testbuilders.UID(name), Generation: int64(generation), ResourceVersion: fmt.Sprint(generation),
	}, Spec: spec}
}

func scaleSpec(ttl string) gc.CleanupPolicySpec {
	spec := testbuilders.Policy("p").Default(gc.TTL(ttl)).Obj().Spec
	return spec
}

func liveHeap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// BenchmarkHeap measures the memory for a Job that is not due yet.
func BenchmarkHeap(b *testing.B) {
	for b.Loop() {
		before := liveHeap()
		t := scaled(scaleSpec("30d"))
		b.ReportMetric(float64(liveHeap()-before)/float64(t.Records.Count), "heap-B/Job")
		runtime.KeepAlive(t)
	}
}

// readable fails if a policy cannot be read, because then the benchmark would measure nothing.
func (d *driver) readable(b *testing.B) {
	b.Helper()
	all := slices.Clone(d.ClusterPolicies)
	for _, ns := range d.Namespaces {
		all = append(all, ns.Policies...)
	}
	for _, ps := range all {
		if ps.Err != nil {
			b.Fatalf("policy %s: %v", ps.Title(), ps.Err)
		}
	}
}

// scaleClusterPolicy returns a cluster policy for all namespaces.
func scaleClusterPolicy(generation int, guardrails *gc.Guardrails) *gc.ClusterCleanupPolicy {
	return &gc.ClusterCleanupPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "c", UID: "c", Generation: int64(generation), ResourceVersion: fmt.Sprint(generation)},
		Spec: gc.ClusterCleanupPolicySpec{
			Mode: gc.ModeEnforce, AnnotationTTL: gc.AnnotationExtendOnly, NamespaceSelector: &metav1.LabelSelector{}, Guardrails: guardrails,
		},
	}
}

func scaleCeiling(most int64) *gc.Guardrails {
	return &gc.Guardrails{Ceilings: []gc.Ceiling{{Resources: []string{gc.ResourceJobs}, MaxObjects: &most}}}
}

// BenchmarkSettle settles all Jobs again because a cluster policy has changed: without limits, with pools and a ceiling that stay the same,
// and with a ceiling that changes each time.
func BenchmarkSettle(b *testing.B) {
	limited := scaleSpec("30d")
	limited.Capacity = &gc.Capacity{MaxObjects: new(int64(scaleJobs / scaleNamespaces * 9 / 10))}
	for name, c := range map[string]struct {
		spec       gc.CleanupPolicySpec
		guardrails func(generation int) *gc.Guardrails
	}{
		"ttl":         {scaleSpec("30d"), func(int) *gc.Guardrails { return &gc.Guardrails{} }},
		"limited":     {limited, func(int) *gc.Guardrails { return scaleCeiling(scaleJobs * 8 / 10) }},
		"new ceiling": {limited, func(generation int) *gc.Guardrails { return scaleCeiling(int64(scaleJobs*8/10 - generation)) }},
	} {
		b.Run(name, func(b *testing.B) {
			t := scaled(c.spec)
			b.ReportAllocs()
			generation := 0
			for b.Loop() {
				generation++
				t.SetClusterPolicy(scaleClusterPolicy(generation, c.guardrails(generation)), testbuilders.Now)
				for t.Step(testbuilders.Now) {
				}
			}
			t.readable(b)
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/scaleJobs, "ns/Job")
		})
	}
}

// BenchmarkListed ends the lists of 3,000 namespaces, which a new cluster policy covers, one after the other.
func BenchmarkListed(b *testing.B) {
	const namespaces = 3000
	for b.Loop() {
		b.StopTimer()
		t := newDriver(memory.Config{HoldAbove: -1, HoldAboveTotal: -1})
		var all []*metav1.PartialObjectMetadata
		for i := range namespaces {
			all = append(all, testbuilders.Namespace(fmt.Sprint("ns-", i), "1"))
		}
		t.ReplaceNamespaces(all, "1", testbuilders.Now)
		t.ReplacePolicies(nil, "1", testbuilders.Now)
		t.ReplaceClusterPolicies(nil, "1", testbuilders.Now)
		t.ReplaceCronJobs(nil, testbuilders.Now)
		p := ttlClusterPolicy("c", "10m", 1)
		p.ResourceVersion = "2"
		t.SetClusterPolicy(p, testbuilders.Now)
		b.StartTimer()
		for resource, covered := range t.Coverage() {
			for name := range covered {
				t.BeginMerge(resource, name).End(true, testbuilders.Now)
			}
		}
		if len(t.Pending) > 0 {
			b.Fatalf("%d namespaces are not assessed", len(t.Pending))
		}
	}
}
