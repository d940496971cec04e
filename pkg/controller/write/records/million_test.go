// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package records

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic/fake"
	metadatafake "k8s.io/client-go/metadata/fake"

	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/rules/deletion"
)

// BenchmarkMillion stores the records of a million deletions in 30 simulated days: every hour, the Jobs of CronJobs in 100 namespaces. It
// reports the bytes of a stored record, the writes for each deletion and second, and the memory of the writer when all are written.
func BenchmarkMillion(b *testing.B) {
	const namespaces, hours, each = 100, 30 * 24, 14
	for b.Loop() {
		before := liveHeap()
		s := newStore(b)
		w := s.writer()
		for hour := range hours {
			at := s.clock.Now()
			for i := range namespaces * each {
				w.Add(cronJobOrder(fmt.Sprintf("team-%d", i%namespaces), hour), at, false)
			}
			w.flush(b.Context())
			s.forgetActions()
			if hour%24 == 23 {
				if err := w.sweep(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
			s.clock.Step(time.Hour)
		}
		writes, left, size := 0, 0, 0
		for _, r := range s.requests {
			if strings.HasPrefix(r, "create ") || strings.HasPrefix(r, "update ") {
				writes++
			}
		}
		for _, o := range s.objects {
			c, _ := describe(o)
			left, size = left+c.count, size+len(o.Object[fieldRecords].(string))
		}
		if want := namespaces * min(hours*each, s.PerNamespace); left > want || left < want*9/10 {
			b.Fatalf("%d records are stored, want %d or a little less", left, want)
		}
		s.objects, s.requests = nil, nil // This is the memory of the API server.
		b.ReportMetric(float64(size)/float64(left), "B/record")
		b.ReportMetric(float64(writes)/(namespaces*hours*each), "writes/deletion")
		b.ReportMetric(float64(writes)/(hours*3600), "writes/simulated-s")
		b.ReportMetric(float64(liveHeap()-before), "heap-B")
		runtime.KeepAlive(w)
	}
}

// forgetActions frees what the fake clients remember.
func (s *store) forgetActions() {
	s.Client.(*fake.FakeDynamicClient).ClearActions()
	s.Metadata.(*metadatafake.FakeMetadataClient).ClearActions()
}

func liveHeap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// cronJobOrder returns an order as for a Job of a CronJob. Its names and UIDs are random, as the compression needs it.
func cronJobOrder(namespace string, number int) *deletion.Order {
	o := order(namespace, number)
	o.Fact.Name, o.Fact.UID, o.Fact.ResourceVersion = fmt.Sprintf("nightly-report-%d", 29_000_000+number*5), randomUID(), rand.Uint64N(1<<32)
	o.Fact.Controller = &lifecycle.Owner{GroupKind: schema.GroupKind{Group: "batch", Kind: "CronJob"}, Name: "nightly-report", UID: "5f0f3c9e-6a51-4c3e-a1f7-0c8f5f0b7a11"}
	o.Fact.Outcome, o.Rule, o.PolicyGeneration, o.Propagation = "Succeeded", "default", 3, "Background"
	o.Since = now.Add(time.Duration(number) * time.Hour)
	o.Due = o.Since.Add(time.Hour)
	return o
}

func randomUID() types.UID {
	return types.UID(fmt.Sprintf("%08x-%04x-4%03x-a%03x-%012x", rand.Uint32(), rand.IntN(1<<16), rand.IntN(1<<12), rand.IntN(1<<12), rand.Int64N(1<<48)))
}
