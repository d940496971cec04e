// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package cleanup

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/winnow-dev/winnow/pkg/controller/rules/deletion"
	"github.com/winnow-dev/winnow/pkg/controller/rules/freshness"
)

// TestPromiseOfASecondAtRandom: however long requests take, and whichever fail, no DELETE begins that a policy has forbidden for more than
// a second. Once nothing is slow and the policy allows it, everything is deleted.
func TestPromiseOfASecondAtRandom(t *testing.T) {
	const runs, most = 150, 4
	deletes, notSent := 0, 0
	for seed := range uint64(runs) {
		synctest.Test(t, func(t *testing.T) {
			l := newLoop(t, most, seed)
			upTo := func(d time.Duration) time.Duration { return time.Duration(l.policy.random.Int64N(int64(d) + 1)) }
			one := func(in int) bool { return l.policy.random.IntN(in) == 0 }
			slow := true
			l.reader.takes = func() (before, after time.Duration, err error) {
				if slow && one(5) {
					err = errors.New("no answer")
				}
				if slow && one(2) {
					return upTo(300 * time.Millisecond), upTo(800 * time.Millisecond), err
				}
				return upTo(20 * time.Millisecond), upTo(20 * time.Millisecond), err
			}
			l.deleter.answers = func(*deletion.Order) (time.Duration, deletion.Result) {
				if slow && one(3) {
					return upTo(2 * time.Second), deletion.Result{Outcome: deletion.Outcome(l.policy.random.IntN(int(deletion.Unknown) + 1))}
				}
				return upTo(100 * time.Millisecond), deletion.Result{}
			}
			l.deleter.reads = func() time.Duration {
				if slow {
					return upTo(1200 * time.Millisecond)
				}
				return upTo(50 * time.Millisecond)
			}
			l.tracker.reread = one(3)
			l.tracker.busy = func(string) time.Duration {
				if slow && one(20) {
					return upTo(1500 * time.Millisecond)
				}
				return 0
			}
			l.run(t, func() {
				for range 10 {
					l.tracker.add(100)
					var allows, learns bool
					var takes, lag, pause time.Duration
					l.policy.do(func() {
						allows, learns = one(2), !one(4)
						takes, lag, pause = upTo(300*time.Millisecond), upTo(2*time.Second), upTo(2*time.Second)
					})
					l.policy.write(allows, takes)
					time.Sleep(lag)
					if learns {
						l.tracker.catchUp()
					}
					time.Sleep(pause)
				}
				l.policy.do(func() { slow = false })
				l.policy.write(true, 0)
				l.tracker.catchUp()
				time.Sleep(2 * time.Minute) // The server may have asked again and again to retry later.
			})
			if n := l.tracker.left(); n > 0 {
				t.Errorf("seed %d: %d objects were not deleted", seed, n)
			}
			if l.deleter.most > most {
				t.Errorf("seed %d: %d DELETEs were in flight at once", seed, l.deleter.most)
			}
			deletes += len(l.deleter.begun)
			notSent += l.tracker.taken - len(l.deleter.begun)
			if t.Failed() {
				t.Fatal("seed", seed)
			}
		})
		if t.Failed() {
			return
		}
	}
	t.Logf("%d DELETEs, %d orders were not sent", deletes, notSent)
	if notSent == 0 {
		t.Error("no order lapsed or was released")
	}
}

// TestReadingsFollowEachOther: while anything is due, a reading begins every half second, but not while another reading is in flight. The
// first begins half a second before an object becomes due, and none begins when nothing is left.
func TestReadingsFollowEachOther(t *testing.T) {
	for name, c := range map[string]struct {
		takes time.Duration // each reading
		want  []time.Duration
		late  time.Duration // the first DELETE
	}{
		"fast readings": {100 * time.Millisecond, milliseconds(9500, 10000, 10500, 11000, 11500, 12000), 0},
		"slow readings": {800 * time.Millisecond, milliseconds(9500, 10300, 11100, 11900, 12700, 13500, 14300), 300 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLoop(t, 1, 0)
				start := time.Now()
				l.reader.takes = func() (before, after time.Duration, err error) { return c.takes, 0, nil }
				l.deleter.answers = func(*deletion.Order) (time.Duration, deletion.Result) {
					return 400 * time.Millisecond, deletion.Result{}
				}
				l.tracker.later, l.tracker.next = 6, start.Add(10*time.Second)
				l.run(t, func() { time.Sleep(time.Minute) })
				var got []time.Duration
				for _, at := range l.reader.begun {
					got = append(got, at.Sub(start))
				}
				if !slices.Equal(got, c.want) {
					t.Errorf("readings began after %v, want %v", got, c.want)
				}
				if n := l.tracker.left(); n > 0 {
					t.Errorf("%d objects were not deleted", n)
				}
				if late := l.deleter.begun[0].Sub(start.Add(10 * time.Second)); late != c.late {
					t.Errorf("the first DELETE began %s late, want %s", late, c.late)
				}
			})
		})
	}
}

func seconds(all ...int) (out []time.Duration) {
	for _, n := range all {
		out = append(out, time.Duration(n)*time.Second)
	}
	return out
}

func milliseconds(all ...int) (out []time.Duration) {
	for _, n := range all {
		out = append(out, time.Duration(n)*time.Millisecond)
	}
	return out
}

// TestUselessReadings: a reading that failed or took too long is never compared with memory. If memory is behind a reading, it is compared
// only as long as the reading could allow a DELETE.
func TestUselessReadings(t *testing.T) {
	for name, arrange := range map[string]func(*fakedLoop){
		"they take too long": func(l *fakedLoop) {
			l.reader.takes = func() (before, after time.Duration, err error) { return 0, freshness.For, nil }
		},
		"they fail": func(l *fakedLoop) {
			l.reader.takes = func() (before, after time.Duration, err error) { return 0, 0, errors.New("no answer") }
		},
		"memory is behind": func(l *fakedLoop) { l.policy.write(true, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLoop(t, 1, 0)
				arrange(l)
				l.tracker.add(1)
				l.run(t, func() { time.Sleep(10 * time.Second) })
				if len(l.deleter.begun) > 0 {
					t.Error("there was a DELETE")
				}
				if n := len(l.reader.begun); n < 8 {
					t.Errorf("there were only %d readings", n)
				}
				if behind := name == "memory is behind"; behind != (len(l.tracker.compared) > 0) {
					t.Errorf("%d readings were compared", len(l.tracker.compared))
				}
				for _, age := range l.tracker.compared {
					if age >= freshness.For {
						t.Errorf("a reading of %s ago was compared", age)
					}
				}
			})
		})
	}
}

// TestRelistsWhileMemoryIsBehind: policies and namespaces are listed again once no reading has agreed with memory for five seconds, and again
// every five seconds after that, until one agrees. Readings that fail say nothing about memory.
func TestRelistsWhileMemoryIsBehind(t *testing.T) {
	for name, c := range map[string]struct {
		arrange func(*fakedLoop)
		behind  []time.Duration // after each, memory catches up, and a later write follows
		want    int
	}{
		"for long":              {func(l *fakedLoop) { l.policy.write(true, 0) }, seconds(17), 3},
		"for a short time":      {func(l *fakedLoop) { l.policy.write(true, 0) }, seconds(4), 0},
		"again and again":       {func(l *fakedLoop) { l.policy.write(true, 0) }, seconds(4, 4, 4), 0},
		"but nothing is stored": {func(*fakedLoop) {}, nil, 0},
		"and readings fail": {func(l *fakedLoop) {
			l.policy.write(true, 0)
			l.reader.takes = func() (before, after time.Duration, err error) { return 0, 0, errors.New("no answer") }
		}, seconds(17), 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLoop(t, 1, 0)
				c.arrange(l)
				l.tracker.add(100)
				l.deleter.answers = func(*deletion.Order) (time.Duration, deletion.Result) { return time.Second, deletion.Result{} }
				l.run(t, func() {
					for _, behind := range c.behind {
						time.Sleep(behind)
						l.tracker.catchUp()
						time.Sleep(time.Second)
						l.policy.write(true, 0)
					}
					l.tracker.catchUp()
					time.Sleep(time.Minute)
				})
				if l.tracker.relists != c.want {
					t.Errorf("listed again %d times, want %d", l.tracker.relists, c.want)
				}
			})
		})
	}
}

// TestMemoryCatchesUpWithAReading: deletes begin as soon as memory has what was read, without another reading.
func TestMemoryCatchesUpWithAReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLoop(t, 1, 0)
		l.policy.write(true, 0)
		l.tracker.add(1)
		start := time.Now()
		l.run(t, func() {
			time.Sleep(300 * time.Millisecond)
			l.tracker.catchUp()
			time.Sleep(time.Minute)
		})
		if n := len(l.reader.begun); n != 1 {
			t.Errorf("%d readings", n)
		}
		if at := l.deleter.begun[0].Sub(start); at != 300*time.Millisecond {
			t.Errorf("the DELETE began after %s", at)
		}
	})
}

// TestOrdersThatLapse: an order is released if the tracker was busy for so long that nothing was sent in time, and the object is deleted by
// the next order.
func TestOrdersThatLapse(t *testing.T) {
	for _, call := range []string{"Take", "Retake"} {
		t.Run(call, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLoop(t, 1, 0)
				l.tracker.reread = call == "Retake"
				l.deleter.reads = func() time.Duration { return time.Millisecond }
				first := true
				l.tracker.busy = func(now string) time.Duration {
					if now == call && first {
						first = false
						return freshness.For
					}
					return 0
				}
				l.tracker.add(1)
				l.run(t, func() { time.Sleep(time.Minute) })
				if len(l.deleter.begun) != 1 || l.tracker.taken != 2 || l.tracker.left() > 0 {
					t.Errorf("%d DELETEs for %d orders, %d objects are left", len(l.deleter.begun), l.tracker.taken, l.tracker.left())
				}
			})
		})
	}
}

// TestNothingStartsAfterTheEnd: requests that are in flight when the replica no longer leads are completed, and no other requests begin.
func TestNothingStartsAfterTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLoop(t, 3, 0)
		l.deleter.answers = func(*deletion.Order) (time.Duration, deletion.Result) { return 10 * time.Second, deletion.Result{} }
		l.tracker.add(10)
		start := time.Now()
		l.run(t, func() { time.Sleep(time.Second) })
		if took := time.Since(start); took < 10*time.Second {
			t.Errorf("it returned after %s", took)
		}
		if n := len(l.deleter.begun); n != 3 || len(l.deleter.deleted) != 3 || l.tracker.left() != 7 {
			t.Errorf("%d DELETEs, %d objects are left", n, l.tracker.left())
		}
	})
}

// TestRetryLater: nothing is sent before the time that the server asked for has passed, but readings continue.
func TestRetryLater(t *testing.T) {
	for asked, want := range map[time.Duration]time.Duration{time.Second: time.Second, time.Hour: pauseMost} {
		t.Run(fmt.Sprint(asked), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLoop(t, 1, 0)
				first := true
				l.deleter.answers = func(*deletion.Order) (time.Duration, deletion.Result) {
					if first {
						first = false
						return 0, deletion.Result{Outcome: deletion.RetryLater, RetryAfter: asked}
					}
					return 0, deletion.Result{}
				}
				l.tracker.add(2)
				l.run(t, func() { time.Sleep(time.Minute) })
				if len(l.deleter.begun) != 3 || l.tracker.left() > 0 {
					t.Fatalf("%d DELETEs, %d objects are left", len(l.deleter.begun), l.tracker.left())
				}
				if pause := l.deleter.begun[1].Sub(l.deleter.begun[0]); pause != want {
					t.Errorf("a pause of %s, want %s", pause, want)
				}
				if n := len(l.reader.begun); n < int(want/readEvery) {
					t.Errorf("%d readings", n)
				}
			})
		})
	}
}
