// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package deleter

import (
	"testing"
	"time"

	"github.com/winnow-dev/winnow/pkg/controller/internal/given"
)

func TestLimit(t *testing.T) {
	now := given.Now
	l := NewLimit(8)
	current := func(want int) {
		t.Helper()
		if l.Current() != want {
			t.Fatalf("the limit is %d, want %d", l.Current(), want)
		}
	}
	succeed := func(n int) {
		for range n {
			l.Succeeded()
		}
	}
	current(8)
	if !l.Allows(7, now) || l.Allows(8, now) {
		t.Error("it must allow 8 and no more")
	}
	succeed(100)
	current(8)

	l.Throttled(0, now)
	current(4)
	l.Throttled(0, now.Add(cutEvery-1)) // Of the same burst.
	current(4)
	now = now.Add(cutEvery)
	if !l.Allows(3, now) || l.Allows(4, now) {
		t.Error("it must allow 4 and no more")
	}
	for i, want := range []int{2, 1, 1, 1} {
		l.Throttled(0, now.Add(time.Duration(i)*cutEvery))
		current(want)
	}
	now = now.Add(3 * cutEvery)
	if !l.Allows(0, now) {
		t.Error("it must always allow one")
	}

	succeed(1)
	current(2)
	succeed(2) // One round at 2 is almost one more.
	current(2)
	succeed(1)
	current(3)
	succeed(40)
	current(8)
}

func TestLimitWaitsAsItIsAsked(t *testing.T) {
	now := given.Now
	l := NewLimit(8)
	l.Throttled(5*time.Second, now)
	l.Throttled(time.Second, now) // The longest wait counts.
	if !l.ResumeAt().Equal(now.Add(5 * time.Second)) {
		t.Errorf("resumes at %v", l.ResumeAt())
	}
	if l.Allows(0, now.Add(5*time.Second-1)) || !l.Allows(0, now.Add(5*time.Second)) {
		t.Error("it must wait 5 seconds and no longer")
	}
}
