// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
)

// within is a condition that costs most of what those for one object may cost.
func within() string {
	numbers := "[" + strings.TrimSuffix(strings.Repeat("1,", 20), ",") + "]"
	return numbers + ".all(a, " + numbers + ".all(b, a + b > 0 && object.metadata.name != ''))"
}

// TestCostlyConditionsWaitAlone: a namespace that has used up its time holds up no other one. What was not evaluated is held, and listed as
// slowly as the namespace can afford it.
func TestCostlyConditionsWaitAlone(t *testing.T) {
	const n = 100
	objects := []runtime.Object{testbuilders.Job("other").In("team-b").Complete(testbuilders.Now).Obj()}
	for i := range n {
		objects = append(objects, testbuilders.Job(fmt.Sprintf("j%d", i)).Complete(testbuilders.Now).Obj())
	}
	o := newObserved(t, objects...)
	o.run()
	goes := func() int64 { // how many are due and not held
		for _, r := range o.Tracker.Reports(testbuilders.Home) {
			return r.Due - r.Held
		}
		return 0
	}
	o.create(testbuilders.Policy("p").Rules(testbuilders.Rule("r", "0s").For(gc.ResourceJobs).If(within())))
	o.watched(1, "jobs")
	o.until("the list of the namespace waits", o.clock.HasWaiters)
	if goes := goes(); goes >= n/2 {
		t.Errorf("%d of %d go without any time", goes, n)
	}
	o.create(testbuilders.Policy("q").In("team-b").Rules(testbuilders.Rule("r", "0s").For(gc.ResourceJobs)))
	o.tracks(n + 1)
	if goes := goes(); goes >= n/2 {
		t.Errorf("%d of %d go without any time", goes, n)
	}
	o.until("all Jobs go", func() bool {
		o.clock.Step(10 * time.Millisecond)
		return goes() == n
	})

	for range 100 {
		o.cluster.Set(testbuilders.Job("often").Obj())
	}
	o.cluster.Set(testbuilders.Job("often").Complete(testbuilders.Now).Obj())
	o.until("the last change has been evaluated", func() bool {
		o.clock.Step(10 * time.Millisecond)
		return goes() == n+1
	})
}

// TestPacer: a namespace has so much at once, and so much each second.
func TestPacer(t *testing.T) {
	clock := clocktesting.NewFakeClock(testbuilders.Now)
	p, at := newPacer(clock), place{"jobs.batch", "a"}
	p.charge("a", paceBurst-1)
	if !p.may(at) {
		t.Error("one unit is left")
	}
	p.charge("a", 1+pacePerSecond)
	if p.may(at) || !p.may(place{"jobs.batch", "b"}) {
		t.Error("a namespace without time may go on, or another one may not")
	}
	if got := p.takeWaiting("pods"); len(got) > 0 {
		t.Errorf("%v waits for Pods", got)
	}
	if got := p.takeWaiting("jobs.batch"); len(got) != 1 || len(p.takeWaiting("jobs.batch")) > 0 {
		t.Errorf("%v waits for Jobs", got)
	}
	clock.Step(time.Second)
	if p.may(at) {
		t.Error("it may go on with nothing left")
	}
	clock.Step(time.Millisecond)
	if !p.may(at) {
		t.Error("it may not go on")
	}
	p.charge("a", 1<<62)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p.wait(ctx, "a")
	clock.Step(time.Hour)
	p.wait(t.Context(), "a")
	if got := p.left("a"); got != paceBurst {
		t.Errorf("after an hour %d is left", got)
	}
	for i := range 2_000 {
		p.charge(fmt.Sprint("full", i), 0)
	}
	if len(p.buckets) > 1_001 {
		t.Errorf("%d namespaces are known that have all their time", len(p.buckets))
	}
}
