// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"testing"
	"time"
	"unsafe"

	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/objects/facts"
)

// TestMembershipSize: allocations of 48 bytes waste nothing.
func TestMembershipSize(t *testing.T) {
	if got := unsafe.Sizeof(Membership{}); got != 48 {
		t.Errorf("a membership takes %d bytes", got)
	}
}

// TestLimitTimes: the namespace has times only of the records that need some.
func TestLimitTimes(t *testing.T) {
	ns := &Namespace{}
	one := NewRecord(ns, facts.Compress(testbuilders.Job("a").Fact()))
	other := NewRecord(ns, facts.Compress(testbuilders.Job("b").Fact()))
	ns.AddRecord(one)
	ns.AddRecord(other)
	one.ForgetRecount()
	now, later := testbuilders.Now, testbuilders.Now.Add(time.Hour)
	one.RecountBy(later)
	one.RecountBy(now)
	one.RecountBy(later)
	other.SetOverSince(later)
	if !one.RecountAt().Equal(now) || !one.OverSince().IsZero() || !other.OverSince().Equal(later) || !other.RecountAt().IsZero() {
		t.Errorf("got %v, %v, %v and %v", one.RecountAt(), one.OverSince(), other.OverSince(), other.RecountAt())
	}
	one.ForgetRecount()
	if !one.RecountAt().IsZero() || len(ns.limitTimes) != 1 {
		t.Errorf("got %v; the namespace has %d", one.RecountAt(), len(ns.limitTimes))
	}
	ns.RemoveRecord(other)
	if !other.OverSince().IsZero() || ns.limitTimes != nil {
		t.Errorf("got %v; the namespace has %d", other.OverSince(), len(ns.limitTimes))
	}
}
