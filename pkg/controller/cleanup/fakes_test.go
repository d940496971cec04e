// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package cleanup

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/rules/deletion"
	"github.com/winnow-dev/winnow/pkg/controller/rules/freshness"
	"github.com/winnow-dev/winnow/pkg/controller/write/deleter"
)

// fakedLoop is a loop with fakes of everything that it calls. It runs in the fake time of testing/synctest, in which a request takes as
// long as its fake sleeps.
type fakedLoop struct {
	*loop
	policy  *fakePolicy
	tracker *fakeTracker
	reader  *fakeReader
	deleter *fakeDeleter
}

func newLoop(t *testing.T, deletesAtOnce int, seed uint64) *fakedLoop {
	p := newFakePolicy(t, seed)
	tr := &fakeTracker{fakePolicy: p, changed: make(chan struct{}, 1), underway: map[*deletion.Order]bool{}}
	r := &fakeReader{fakePolicy: p, takes: func() (before, after time.Duration, err error) {
		return 5 * time.Millisecond, 5 * time.Millisecond, nil
	}}
	d := &fakeDeleter{fakePolicy: p, answers: func(*deletion.Order) (time.Duration, deletion.Result) {
		return 10 * time.Millisecond, deletion.Result{}
	}}
	return &fakedLoop{policy: p, tracker: tr, reader: r, deleter: d, loop: &loop{
		clock: clock.RealClock{}, tracker: tr, reader: r, deleter: d, limit: deleter.NewLimit(deletesAtOnce),
		relist: func() { tr.do(func() { tr.relists++ }) }, gone: func([]deletion.Gone) {},
		record: func(*deletion.Order, time.Time, bool) {},
	}}
}

// run runs the loop until beside returns, and then until no request is in flight.
func (l *fakedLoop) run(t *testing.T, beside func()) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { l.dispatch(ctx) })
	beside()
	stop()
	running.Wait()
	l.policy.do(func() {
		if n := len(l.tracker.underway); n > 0 {
			t.Errorf("%d orders were never ended", n)
		}
		if l.reader.underway > 0 {
			t.Error("it returned while a reading was in flight")
		}
	})
}

// fakePolicy is one policy, which allows or forbids every delete: the writes of the stored policy, and the one that memory knows.
type fakePolicy struct {
	*testing.T
	random *rand.Rand
	mu     sync.Mutex
	writes []policyWrite
	known  int // the index of the write that memory knows
}

// policyWrite may take effect from began on, and has taken effect from acknowledged on, which is zero until then.
type policyWrite struct {
	allows              bool
	began, acknowledged time.Time
}

func newFakePolicy(t *testing.T, seed uint64) *fakePolicy {
	now := time.Now()
	return &fakePolicy{T: t, random: rand.New(rand.NewPCG(seed, 0)), writes: []policyWrite{{allows: true, began: now, acknowledged: now}}}
}

func (p *fakePolicy) do(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f()
}

// write changes the policy, which takes a while.
func (p *fakePolicy) write(allows bool, takes time.Duration) {
	p.do(func() { p.writes = append(p.writes, policyWrite{allows: allows, began: time.Now()}) })
	time.Sleep(takes)
	p.do(func() { p.writes[len(p.writes)-1].acknowledged = time.Now() })
}

// forbade reports whether the policy forbids a delete for certain: a write that forbids it was acknowledged more than a second ago, and no
// later write can have allowed it.
func (p *fakePolicy) forbade(now time.Time) bool {
	for i := len(p.writes) - 1; i >= 0; i-- {
		w := p.writes[i]
		if w.allows {
			return false
		}
		if !w.acknowledged.IsZero() && now.Sub(w.acknowledged) > time.Second {
			return true
		}
	}
	return false
}

// fakeTracker has orders while memory knows a policy that allows them.
type fakeTracker struct {
	*fakePolicy
	changed chan struct{}

	due      int       // objects that are to be deleted
	next     time.Time // when later objects become due
	later    int
	fresh    time.Time                       // when the last confirmed reading began
	busy     func(call string) time.Duration // how long a call takes after its decision; may be nil
	reread   bool
	underway map[*deletion.Order]bool
	taken    int

	compared []time.Duration // how old each reading was when it was compared with memory
	failed   []string        // what was said of the readings that failed; empty for those that did not agree
	relists  int             // how often policies and namespaces were to be listed again
}

func (f *fakeTracker) ReadFailed(why string, _ time.Time) {
	f.do(func() { f.failed = append(f.failed, why) })
}

// catchUp makes memory know the last write.
func (f *fakeTracker) catchUp() {
	f.do(func() { f.known = len(f.writes) - 1 })
	f.wake()
}

// add makes objects due.
func (f *fakeTracker) add(n int) {
	f.do(func() { f.due += n })
	f.wake()
}

func (f *fakeTracker) wake() {
	select {
	case f.changed <- struct{}{}:
	default:
	}
}

// wait makes a call take longer, as if others had the lock of the tracker.
func (f *fakeTracker) wait(call string) {
	var d time.Duration
	f.do(func() {
		if f.busy != nil {
			d = f.busy(call)
		}
	})
	time.Sleep(d)
}

func (f *fakeTracker) Expire(now time.Time) bool {
	f.do(func() {
		if f.later > 0 && !now.Before(f.next) {
			f.due, f.later = f.due+f.later, 0
		}
	})
	return false
}

func (f *fakeTracker) Next() (at time.Time, ok bool) {
	f.do(func() { at, ok = f.next, f.later > 0 })
	return at, ok
}

func (f *fakeTracker) NeedsRead(by time.Time) (needs bool) {
	f.do(func() { needs = f.due > 0 || len(f.underway) > 0 || f.later > 0 && !f.next.After(by) })
	return needs
}

func (f *fakeTracker) ConfirmFresh(r freshness.ConsistentRead, now time.Time) (agrees bool) {
	f.wait("ConfirmFresh")
	f.do(func() {
		f.compared = append(f.compared, now.Sub(r.Began))
		version, err := strconv.Atoi(r.Policies.Version)
		if err != nil {
			f.Error(err)
		}
		if agrees = f.known >= version; agrees && r.Began.After(f.fresh) {
			f.fresh = r.Began
		}
	})
	return agrees
}

func (f *fakeTracker) Take(now time.Time) (order *deletion.Order, ok bool) {
	f.do(func() {
		if ok = f.due > 0 && f.writes[f.known].allows && now.Before(f.fresh.Add(freshness.For)); !ok {
			return
		}
		f.due--
		f.taken++
		order = f.order(fmt.Sprint("job-", f.taken), f.reread)
	})
	if ok {
		f.wait("Take")
	}
	return order, ok
}

func (f *fakeTracker) order(name string, reread bool) *deletion.Order {
	o := &deletion.Order{Fact: &lifecycle.Fact{Resource: "jobs.batch", Name: name}, Until: f.fresh.Add(freshness.For), Reread: reread}
	f.underway[o] = true
	return o
}

func (f *fakeTracker) Retake(o *deletion.Order, read *lifecycle.Fact, now time.Time) (renewed *deletion.Order, ok bool) {
	f.do(func() {
		if ok = f.writes[f.known].allows && now.Before(f.fresh.Add(freshness.For)); ok {
			delete(f.underway, o)
			renewed = f.order(read.Name, false)
		}
	})
	f.wait("Retake")
	return renewed, ok
}

func (f *fakeTracker) Renew(o *deletion.Order, _ time.Time) (*deletion.Order, bool) { return o, true }

func (f *fakeTracker) Release(o *deletion.Order, _ time.Time) { f.end(o, 1) }

func (f *fakeTracker) SetRight(deletion.Right, string, time.Time) {}

func (f *fakeTracker) Done(o *deletion.Order, result deletion.Result, _ time.Time) {
	again := 0
	switch result.Outcome {
	case deletion.Accepted, deletion.NotFound:
	case deletion.Conflict, deletion.RetryLater, deletion.Unauthorized, deletion.Refused, deletion.Unknown, deletion.Released,
		deletion.CopyTooLarge, deletion.CopyQuotaExceeded:
		again = 1
	}
	f.end(o, again)
}

// end ends an order, after which the object may be due again.
func (f *fakeTracker) end(o *deletion.Order, due int) {
	f.do(func() {
		if !f.underway[o] {
			f.Errorf("the order for %s was ended before, or was never taken", o.Fact.Name)
		}
		delete(f.underway, o)
		f.due += due
	})
	f.wake()
}

func (f *fakeTracker) Changed() <-chan struct{}  { return f.changed }
func (f *fakeTracker) TakeGone() []deletion.Gone { return nil }

func (f *fakeTracker) TakeExceeded() []deletion.Exceeded { return nil }

// left returns how many objects are not deleted yet.
func (f *fakeTracker) left() (n int) {
	f.do(func() { n = f.due + f.later + len(f.underway) })
	return n
}

// fakeReader reads the policy as it is stored.
type fakeReader struct {
	*fakePolicy
	// takes returns how long a reading takes before and after it reads the policy, and its error.
	takes    func() (before, after time.Duration, err error)
	underway int
	begun    []time.Time
}

func (f *fakeReader) read(_ context.Context, began time.Time) (out freshness.ConsistentRead, err error) {
	var before, after time.Duration
	f.do(func() {
		if before, after, err = f.takes(); time.Now().Before(began) {
			f.Error("a reading began in the future")
		}
		if f.underway++; f.underway > 1 {
			f.Error("two readings are in flight")
		}
		f.begun = append(f.begun, time.Now())
	})
	time.Sleep(before)
	out.Began = began
	f.do(func() {
		stored := len(f.writes) - 1
		if f.writes[stored].acknowledged.IsZero() && f.random.IntN(2) == 0 {
			stored--
		}
		out.Policies.Version = strconv.Itoa(stored)
	})
	time.Sleep(after)
	f.do(func() { f.underway-- })
	return out, err
}

// fakeDeleter records each DELETE.
type fakeDeleter struct {
	*fakePolicy
	// answers returns how long an order takes, and its result.
	answers  func(*deletion.Order) (time.Duration, deletion.Result)
	reads    func() time.Duration
	underway int
	most     int // in flight at once
	begun    []time.Time
	deleted  map[string]int
}

func (f *fakeDeleter) Delete(_ context.Context, o *deletion.Order) deleter.Answer {
	var takes time.Duration
	var result deletion.Result
	f.do(func() {
		now := time.Now()
		if f.begun = append(f.begun, now); f.forbade(now) {
			f.Errorf("a DELETE began although the policy has forbidden it for more than a second")
		}
		f.underway++
		f.most = max(f.most, f.underway)
		takes, result = f.answers(o)
	})
	time.Sleep(takes)
	f.do(func() {
		f.underway--
		if result.Outcome == deletion.Accepted {
			if f.deleted == nil {
				f.deleted = map[string]int{}
			}
			f.deleted[o.Fact.Name]++
		}
	})
	result.Overloaded = result.Outcome == deletion.RetryLater
	return deleter.Answer{Result: result}
}

func (f *fakeDeleter) Read(_ context.Context, o *deletion.Order) (*lifecycle.Fact, error) {
	var takes time.Duration
	f.do(func() { takes = f.reads() })
	time.Sleep(takes)
	if takes > time.Second {
		return nil, errors.New("no answer")
	}
	return o.Fact, nil
}

func (f *fakeDeleter) ReadFailed(_ context.Context, _ *deletion.Order, err error) deleter.Answer {
	return notSent(deletion.Unknown, err.Error())
}

func (f *fakeDeleter) ReadWhole(ctx context.Context, o *deletion.Order) (*lifecycle.Fact, []byte, error) {
	fact, err := f.Read(ctx, o)
	return fact, []byte("{}"), err
}
