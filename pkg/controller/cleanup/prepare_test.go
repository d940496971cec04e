// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package cleanup

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/objects/facts"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/rules/deletion"
	"github.com/winnow-dev/winnow/pkg/controller/rules/freshness"
	"github.com/winnow-dev/winnow/pkg/controller/write/deleter"
)

const getA = "GET " + jobsPath + "a"

// keeping is a tracker whose orders keep copies for a time. No rule can ask for copies of Jobs, so the loop is told that one does.
type keeping struct {
	orders
	first, later time.Duration // later is that of orders that replace another one
	retaken      func()        // is called after Retake
}

func (k *keeping) of(o *deletion.Order, ok bool, d time.Duration) (*deletion.Order, bool) {
	if ok {
		o.KeepCopy = d
	}
	return o, ok
}

func (k *keeping) Take(now time.Time) (*deletion.Order, bool) {
	o, ok := k.orders.Take(now)
	return k.of(o, ok, k.first)
}

func (k *keeping) Retake(o *deletion.Order, read *lifecycle.Fact, now time.Time) (*deletion.Order, bool) {
	renewed, ok := k.orders.Retake(o, read, now)
	k.retaken()
	return k.of(renewed, ok, k.first)
}

func (k *keeping) Renew(o *deletion.Order, now time.Time) (*deletion.Order, bool) {
	renewed, ok := k.orders.Renew(o, now)
	return k.of(renewed, ok, k.later)
}

// wholeReader reads Jobs whole, which the Deleter refuses.
type wholeReader struct{ *deleter.Deleter }

func (r wholeReader) ReadWhole(ctx context.Context, o *deletion.Order) (*lifecycle.Fact, []byte, error) {
	f, err := r.Read(ctx, o)
	if f == nil || err != nil {
		return nil, nil, err
	}
	return f, fmt.Appendf(nil, "version %d", f.ResourceVersion), nil
}

// copyWorld is a world in which copies are kept.
type copyWorld struct {
	*world
	keeping
	kept    []string
	refused *deletion.Result
	while   func() // is called while a copy is stored
	full    *deletion.Result
	ended   []deletion.Outcome
}

// Full implements copier.
func (w *copyWorld) Full(*deletion.Order) *deletion.Result { return w.full }

// Ended implements copier.
func (w *copyWorld) Ended(_ context.Context, _ *deletion.Order, result deletion.Result) {
	w.ended = append(w.ended, result.Outcome)
	if _, ok := w.world.tracker.Take(w.time.Now()); ok {
		w.Error("the next order was taken before the copy of this one ended")
	}
}

// Keep implements copier.
func (w *copyWorld) Keep(_ context.Context, o *deletion.Order, object []byte) (time.Time, *deletion.Result) {
	if w.requests(deleteA) > 0 {
		w.Error("the DELETE was sent before the copy was stored")
	}
	if want := fmt.Sprintf("version %d", o.Fact.ResourceVersion); string(object) != want {
		w.Errorf("the copy for version %d is of %s", o.Fact.ResourceVersion, object)
	}
	if w.while != nil {
		w.while()
	}
	if w.refused != nil {
		return time.Time{}, w.refused
	}
	w.kept = append(w.kept, string(object))
	return w.time.Now().Add(o.KeepCopy), nil
}

func newCopyWorld(t *testing.T) *copyWorld {
	w := &copyWorld{world: newWorld(t)}
	const week = 7 * 24 * time.Hour
	w.keeping = keeping{orders: w.world.loop.tracker, first: week, later: week, retaken: func() {}}
	w.loop.tracker, w.loop.copies = &w.keeping, w
	d, ok := w.loop.deleter.(*deleter.Deleter)
	if !ok {
		t.Fatal("the world has another deleter")
	}
	w.loop.deleter = wholeReader{d}
	w.job("a")
	w.confirmFresh()
	return w
}

// take takes the order for Job a.
func (w *copyWorld) take() *deletion.Order {
	w.Helper()
	order, ok := w.keeping.Take(w.time.Now())
	if !ok {
		w.Fatal("there is nothing to take")
	}
	return order
}

// changed makes Job a newer, as the server and the watch have it.
func (w *copyWorld) changed(version string) {
	w.do(func() { w.jobs["a"].ResourceVersion = version })
	f, err := lifecycle.FromJob(w.jobs["a"])
	if err != nil {
		w.Fatal(err)
	}
	w.world.tracker.Upsert(facts.Compress(f), w.time.Now())
}

// TestCopyFirst: a DELETE is sent only for the state of which a copy is stored, and after it was stored.
func TestCopyFirst(t *testing.T) {
	full := &deletion.Result{Outcome: deletion.CopyQuotaExceeded, NotSent: true, Detail: "full"}
	large := &deletion.Result{Outcome: deletion.CopyTooLarge, NotSent: true, Detail: "large"}
	for name, c := range map[string]struct {
		change  func(w *copyWorld)
		outcome deletion.Outcome
		sent    int
		kept    []string
	}{
		"stored": {func(*copyWorld) {}, deletion.Accepted, 1, []string{"version 1"}},
		"a newer state is read": {func(w *copyWorld) {
			w.jobs["a"].ResourceVersion = "2"
		}, deletion.Accepted, 1, []string{"version 2"}},
		"it is known that there is no room": {func(w *copyWorld) {
			w.full = full
			w.on(getA, func() int { w.Error("it is read"); return 0 })
		}, deletion.CopyQuotaExceeded, 0, nil},
		"there is no room": {func(w *copyWorld) { w.refused = full }, deletion.CopyQuotaExceeded, 0, nil},
		"it is too large":  {func(w *copyWorld) { w.refused = large }, deletion.CopyTooLarge, 0, nil},
		"it cannot be read": {func(w *copyWorld) {
			w.on(getA, func() int { return http.StatusForbidden })
		}, deletion.Unknown, 0, nil},
		"the server asks to wait": {func(w *copyWorld) {
			w.on(getA, func() int { return http.StatusTooManyRequests })
		}, deletion.RetryLater, 0, nil},
		"the leader pauses before the copy": {func(w *copyWorld) {
			w.retaken = func() { w.time.Step(freshness.For) }
		}, deletion.Released, 0, nil},
		"it is gone":                           {func(w *copyWorld) { delete(w.jobs, "a") }, deletion.NotFound, 0, nil},
		"it changes while the copy is stored":  {func(w *copyWorld) { w.while = func() { w.changed("2") } }, deletion.Conflict, 0, []string{"version 1"}},
		"it changes after the copy was stored": {func(w *copyWorld) { w.on(deleteA, func() int { return http.StatusConflict }) }, deletion.Conflict, 1, []string{"version 1"}},
		"it is kept by then": {func(w *copyWorld) {
			w.while = func() {
				w.world.tracker.RemoveNamespace(testbuilders.Namespace(testbuilders.Home, "2"), w.time.Now())
			}
		}, deletion.Released, 0, []string{"version 1"}},
		"the reading lapses meanwhile": {func(w *copyWorld) { w.while = func() { w.time.Step(freshness.For) } }, deletion.Released, 0, []string{"version 1"}},
		"copies must be kept for longer by then": {func(w *copyWorld) {
			w.later = 2 * w.first
		}, deletion.Released, 0, []string{"version 1"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newCopyWorld(t)
			order := w.take()
			c.change(w)
			if got := w.carryOut(t.Context(), order); got.Outcome != c.outcome || got.NotSent != (c.sent == 0) {
				t.Errorf("got %+v", got)
			}
			if n := w.requests(deleteA); n != c.sent || !slices.Equal(w.kept, c.kept) {
				t.Errorf("%d requests after copies of %q", n, w.kept)
			}
			if !slices.Equal(w.ended, []deletion.Outcome{c.outcome}) {
				t.Errorf("ended with %v", w.ended)
			}
		})
	}
}

// TestChangesDuringEachTry: an object that changes whenever its copy is stored is contended, instead of being read without end.
func TestChangesDuringEachTry(t *testing.T) {
	w := newCopyWorld(t)
	version := 1
	w.while = func() {
		version++
		w.changed(strconv.Itoa(version))
	}
	for range 10 {
		w.carryOut(t.Context(), w.take())
	}
	if _, ok := w.keeping.Take(w.time.Now()); ok || w.requests(deleteA) > 0 {
		t.Errorf("it is tried again at once, after %d requests", w.requests(deleteA))
	}
}

// TestShutdownBeforeCopy: after the end of its context, an order neither reads nor stores anything.
func TestShutdownBeforeCopy(t *testing.T) {
	w := newCopyWorld(t)
	order := w.take()
	ctx, cancel := context.WithCancel(t.Context())
	w.on(getA, func() int { cancel(); panic(http.ErrAbortHandler) }) // An answer could be read before the end is seen.
	if got := w.carryOut(ctx, order); got.Outcome != deletion.Released || len(w.kept) > 0 || w.requests(deleteA) > 0 {
		t.Errorf("got %+v, copies of %q", got, w.kept)
	}
}

// TestCopyAfterConflict: what was copied and then not deleted is copied again in its newer state.
func TestCopyAfterConflict(t *testing.T) {
	w := newCopyWorld(t)
	job := w.jobs["a"]
	w.while = func() {
		w.do(func() { w.jobs["a"].ResourceVersion = "2" }) // The watch is late.
		w.on(deleteA, func() int { return http.StatusConflict })
	}
	if got := w.carryOut(t.Context(), w.take()); got.Outcome != deletion.Conflict {
		t.Fatalf("got %+v", got)
	}
	w.while = nil
	w.do(func() { w.jobs["a"], w.seen, w.before = job, nil, map[string]func() int{} })
	w.changed("2")
	if got := w.carryOut(t.Context(), w.take()); got.Outcome != deletion.Accepted || !slices.Equal(w.kept, []string{"version 1", "version 2"}) {
		t.Errorf("got %+v, copies of %q", got, w.kept)
	}
}

// TestRecordsSayUntilWhenCopiesAreKept: the order of a deletion says it.
func TestRecordsSayUntilWhenCopiesAreKept(t *testing.T) {
	w := newCopyWorld(t)
	var until time.Time
	w.loop.record = func(o *deletion.Order, _ time.Time, _ bool) { until = o.CopyUntil }
	w.carryOut(t.Context(), w.take())
	if want := w.time.Now().Add(w.first); !until.Equal(want) {
		t.Errorf("got %s, want %s", until, want)
	}
}
