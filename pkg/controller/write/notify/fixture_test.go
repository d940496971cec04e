// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/metrics"
	"github.com/winnow-dev/winnow/pkg/controller/objects/kinds"
	"github.com/winnow-dev/winnow/pkg/controller/rules/deletion"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
	"github.com/winnow-dev/winnow/pkg/controller/rules/report"
)

func TestMain(m *testing.M) {
	metrics.Register() // Otherwise they count nothing.
	os.Exit(m.Run())
}

var errDown = errors.New("down")

// fixture is a Notifier in the time of package synctest, and a receiver that answers in memory.
type fixture struct {
	*testing.T
	*Notifier
	end context.CancelFunc
	// ended is closed when Run has returned.
	ended chan struct{}

	mu      sync.Mutex
	answers []answer // to the next requests; after that, all are accepted
	down    bool     // no request is accepted
	downAs  answer   // the answer while no request is accepted
	// judge answers other requests, if it is set.
	judge    func([]event.Event) answer
	attempts []time.Time
	accepted [][]event.Event
}

// found and ended are the IDs of the events about the hold a.
const (
	found = "uid-p/a/2026-03-01T12:00:00Z/found"
	ended = "uid-p/a/2026-03-01T12:00:00Z/ended"
)

// left returns how many events wait.
func (n *Notifier) left() (left int) {
	for _, l := range n.lanes {
		for _, b := range append(l.work, l.aside...) {
			left += len(b.items)
		}
	}
	return left + n.queue.used.events + len(n.holds.offers)
}

// reports passes on a report on policy p with these holds.
func (f *fixture) reports(holds ...gc.PolicyHold) {
	f.Reported(testbuilders.Home, []report.Report{reported(nil, holds...)})
}

// bubble runs a test with the time of package synctest.
func bubble(t *testing.T, test func(*fixture)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f := &fixture{T: t, downAs: answer{err: errDown}, ended: make(chan struct{})}
		f.Notifier = New(Config{URL: "https://receiver", Instance: "replica-1", Clock: clock.RealClock{}})
		f.Notifier.send = f.receive
		ctx, end := context.WithCancel(t.Context())
		f.end = end
		go func() {
			defer close(f.ended)
			f.Notifier.Run(ctx)
		}()
		test(f)
		end()
		<-f.ended
	})
}

func (f *fixture) receive(ctx context.Context, body []byte) answer {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.attempts = append(f.attempts, time.Now())
	if len(f.answers) > 0 {
		a := f.answers[0]
		f.answers = f.answers[1:]
		return a
	}
	if f.down || ctx.Err() != nil {
		return f.downAs
	}
	var events []event.Event
	if err := json.Unmarshal(body, &events); err != nil {
		return answer{err: err, refused: true}
	}
	if f.judge != nil {
		if a := f.judge(events); a.err != nil {
			return a
		}
	}
	f.accepted = append(f.accepted, events)
	return answer{}
}

// refusing returns a judge that does not accept requests with an event, by ID.
func refusing(a answer, ids ...string) func([]event.Event) answer {
	return func(events []event.Event) answer {
		if slices.ContainsFunc(events, func(e event.Event) bool { return slices.Contains(ids, e.ID()) }) {
			return a
		}
		return answer{}
	}
}

func (f *fixture) set(down bool, answers ...answer) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.down, f.answers = down, answers
}

// passes lets time pass, and waits until everything waits for time.
func passes(d time.Duration) {
	time.Sleep(d) // the time of package synctest
	synctest.Wait()
}

// got returns the events that were accepted, and how many were in each request.
func (f *fixture) got() (all []event.Event, sizes []int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, events := range f.accepted {
		all = append(all, events...)
		sizes = append(sizes, len(events))
	}
	return all, sizes
}

// expect expects exactly these accepted events, by ID.
func (f *fixture) expect(want ...string) {
	f.Helper()
	all, _ := f.got()
	var got []string
	for _, e := range all {
		got = append(got, e.ID())
	}
	if !slices.Equal(got, want) {
		f.Fatalf("accepted %q, want %q", got, want)
	}
}

// lost returns what the events of type TypeDropped say together.
func (f *fixture) lost() (total Dropped) {
	f.Helper()
	all, _ := f.got()
	for _, e := range all {
		var d Dropped
		if e.Type() != TypeDropped {
			continue
		}
		if err := e.DataAs(&d); err != nil {
			f.Fatal(err)
		}
		total.EventType = d.EventType
		total.QueueFull, total.Refused = total.QueueFull+d.QueueFull, total.Refused+d.Refused
	}
	return total
}

// delete queues the deletions of Jobs first to last.
func (f *fixture) delete(first, last int) {
	for i := first; i <= last; i++ {
		f.Deleted([]deletion.Gone{gone(fmt.Sprintf("job-%05d", i))})
	}
}

// idOf is the ID of the event about the deletion of a Job.
func idOf(i int) string { return fmt.Sprintf("uid-job-%05d/deletion", i) }

var jobs, _ = kinds.Builtin().For(gc.ResourceJobs)

// gone is the deletion of a Job.
func gone(name string) deletion.Gone {
	return deletion.Gone{At: testbuilders.Now.Add(1500 * time.Millisecond), Order: &deletion.Order{
		Kind: jobs, Fact: testbuilders.Job(name).Complete(testbuilders.Now.Add(-time.Hour)).Fact(),
		Policy: types.NamespacedName{Namespace: testbuilders.Home, Name: "p"}, PolicyUID: "uid-p", PolicyGeneration: 3,
		Rule: "default", Reason: policy.ReasonExpired, After: gc.AfterFinished, Due: testbuilders.Now,
	}}
}

// hold is a hold of policy p.
func hold(id string) gc.PolicyHold {
	return gc.PolicyHold{
		ID: id, Namespace: testbuilders.Home, Resources: []string{gc.ResourceJobs}, Objects: 1200,
		Why:   "generation 3 of cleanuppolicies.gc.winnow.dev/p made more objects due at once than --default-hold-above allows (1000 in ten minutes)",
		Since: &metav1.Time{Time: testbuilders.Now},
	}
}

// reported is the report on policy p with some holds, of which the stored status lists others.
func reported(stored []gc.PolicyHold, holds ...gc.PolicyHold) report.Report {
	return report.Report{Holds: holds, Stored: policy.Stored{
		ObjectMeta: &metav1.ObjectMeta{Namespace: testbuilders.Home, Name: "p", UID: "uid-p", Generation: 3},
		Status:     &gc.CleanupPolicyStatus{Holds: stored},
	}}
}
