// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package turns

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// asking are reviews that several users ask for, one after the other. Each runs for a second.
type asking struct {
	*Queue
	t *testing.T

	lock    sync.Mutex
	ran     []string
	refused map[string]string // by user, the last error
}

func newAsking(t *testing.T) *asking {
	return &asking{Queue: New("review", 1), t: t, refused: map[string]string{}}
}

// ask asks for a review, and returns when it runs, waits or is refused.
func (a *asking) ask(ctx context.Context, user string) {
	go func() {
		leave, err := a.Enter(ctx, user)
		if a.note(user, err); err == nil {
			time.Sleep(time.Second)
			leave()
		}
	}()
	synctest.Wait()
}

func (a *asking) note(user string, err error) {
	a.lock.Lock()
	defer a.lock.Unlock()
	if err == nil {
		a.ran = append(a.ran, user)
		return
	}
	if !apierrors.IsTooManyRequests(err) {
		a.t.Errorf("%s: got %v, want TooManyRequests", user, err)
	}
	a.refused[user] = err.Error()
}

// look calls check while nobody asks or leaves.
func (a *asking) look(check func()) {
	a.lock.Lock()
	defer a.lock.Unlock()
	a.Queue.lock.Lock()
	defer a.Queue.lock.Unlock()
	check()
}

func (a *asking) end(ran string) {
	a.t.Helper()
	time.Sleep(time.Hour)
	synctest.Wait()
	if got := strings.Join(a.ran, " "); got != ran {
		a.t.Errorf("they ran in the order %s, want %s", got, ran)
	}
	if a.all != 0 || len(a.waiting) != 0 || len(a.turns) != 0 || a.running != 0 {
		a.t.Errorf("somebody still has a place: %+v", a.Queue)
	}
}

// TestTurns: users take turns, whoever asks first and most.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAsking(t)
		for _, user := range []string{"eve", "eve", "eve", "eve", "bob", "eve", "vic", "bob"} {
			a.ask(t.Context(), user)
		}
		a.end("eve eve bob vic eve bob eve eve")
		if len(a.refused) > 0 {
			t.Errorf("refused: %q", a.refused)
		}
	})
}

// TestNobodyFillsTheQueue: a user has only so many places, and gives up the last one where others have less.
func TestNobodyFillsTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAsking(t)
		users := waitingMost / mineMost
		a.ask(t.Context(), "first")
		for i := range users {
			for range mineMost {
				a.ask(t.Context(), fmt.Sprint("user-", i))
			}
		}
		a.look(func() {
			if a.all != waitingMost || len(a.refused) > 0 {
				t.Fatalf("%d wait, refused: %q", a.all, a.refused)
			}
		})
		a.ask(t.Context(), "user-3")
		a.look(func() {
			if got := a.refused["user-3"]; got != "8 reviews of yours are waiting already; wait for their answers" {
				t.Errorf("user-3: %q", got)
			}
		})
		for i := range 3 * mineMost {
			a.ask(t.Context(), fmt.Sprint("late-", i%3))
		}
		a.look(func() {
			if a.all != waitingMost {
				t.Errorf("%d wait", a.all)
			}
			for user, places := range a.waiting {
				if len(places) < waitingMost/(users+3) {
					t.Errorf("%s has %d places", user, len(places))
				}
			}
			if !strings.Contains(a.refused["user-0"], "others who have fewer") || !strings.Contains(a.refused["late-2"], "64 reviews of other users") {
				t.Errorf("refused: %q", a.refused)
			}
		})
		time.Sleep(time.Hour)
	})
}

// TestServiceAccounts of one namespace take turns together.
func TestServiceAccounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAsking(t)
		const mine = "system:serviceaccount:team-a:"
		for _, user := range []string{"vic", mine + "a", mine + "b", mine + "c", "bob"} {
			a.ask(t.Context(), user)
		}
		a.end(strings.Join([]string{"vic", mine + "a", "bob", mine + "b", mine + "c"}, " "))
	})
}

// TestGivingUp: who has waited for too long, or has gone, leaves no place behind.
func TestGivingUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New("review", 1)
		leave, err := q.Enter(t.Context(), "vic")
		if err != nil {
			t.Fatal(err)
		}
		begun, outcomes := time.Now(), make(chan error, 2)
		gone, cancel := context.WithCancel(t.Context())
		for _, ctx := range []context.Context{t.Context(), gone} {
			go func() {
				_, err := q.Enter(ctx, "bob")
				outcomes <- err
			}()
			synctest.Wait()
		}
		cancel()
		for _, waited := range []time.Duration{0, waitMost} {
			if err := <-outcomes; !apierrors.IsTooManyRequests(err) || time.Since(begun) != waited {
				t.Errorf("got %v after %v, want TooManyRequests after %v", err, time.Since(begun), waited)
			}
		}
		leave()
		if q.running != 0 || q.all != 0 || len(q.turns) != 0 {
			t.Errorf("somebody still has a place: %+v", q)
		}
		// One that may run at the moment when it gives up lets the next one run.
		p, err := q.join("vic")
		if err != nil {
			t.Fatal(err)
		}
		next, err := q.join("bob")
		if err != nil {
			t.Fatal(err)
		}
		if err := q.giveUp("vic", p, "gone"); !apierrors.IsTooManyRequests(err) {
			t.Error(err)
		}
		if err := <-next.answer; err != nil || !slices.Equal(q.turns, nil) {
			t.Errorf("the next one: %v, %q", err, q.turns)
		}
	})
}

// TestSeveralAtOnce: as many run at once as there are places.
func TestSeveralAtOnce(t *testing.T) {
	q := New("read", 2)
	var leaves []func()
	for _, user := range []string{"vic", "bob"} {
		leave, err := q.Enter(t.Context(), user)
		if err != nil {
			t.Fatal(err)
		}
		leaves = append(leaves, leave)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := q.Enter(ended, "eve"); !apierrors.IsTooManyRequests(err) || !strings.Contains(err.Error(), "before the read began") {
		t.Errorf("a third one: got %v", err)
	}
	leaves[0]()
	leave, err := q.Enter(t.Context(), "eve")
	if err != nil {
		t.Fatal(err)
	}
	leave()
	leaves[1]()
	if q.running != 0 {
		t.Errorf("%d still run", q.running)
	}
}
