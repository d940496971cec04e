// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package cleanup

import (
	"context"
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	componentbaseconfig "k8s.io/component-base/config"
	"k8s.io/utils/clock"
)

// fakeLock is a Lease that remembers in whose name it was written.
type fakeLock struct {
	resourcelock.Interface
	holder  string
	fails   bool
	written []string
}

func (l *fakeLock) Identity() string { return "us" }

func (l *fakeLock) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	if l.fails {
		return nil, nil, errors.New("no answer")
	}
	return &resourcelock.LeaderElectionRecord{HolderIdentity: l.holder}, nil, nil
}

func (l *fakeLock) Update(_ context.Context, r resourcelock.LeaderElectionRecord) error {
	l.written = append(l.written, r.HolderIdentity)
	if l.fails {
		return errors.New("no answer")
	}
	l.holder = r.HolderIdentity
	return nil
}

// TestTheLeaseIsWrittenWhenItMatters: a renewal is spared only right after a write, and a replica gives back no Lease of another one.
func TestTheLeaseIsWrittenWhenItMatters(t *testing.T) {
	const read, renew, giveBack = "read", "us", ""
	for name, c := range map[string]struct {
		holder string
		do     []string
		writes int
	}{
		"renewed twice":                  {"us", []string{renew, renew}, 1},
		"read before it is renewed":      {"us", []string{renew, read, renew}, 2},
		"given back":                     {"us", []string{renew, read, giveBack}, 2},
		"taken when it is free":          {"", []string{read, renew}, 1},
		"given back, of another replica": {"them", []string{read, giveBack}, 0},
		"given back twice":               {"us", []string{read, giveBack, read, giveBack}, 1},
	} {
		lock := &fakeLock{holder: c.holder}
		s := &sparing{Interface: lock, clock: clock.RealClock{}, spare: time.Hour}
		for _, do := range c.do {
			var err error
			if do == read {
				_, _, err = s.Get(t.Context())
			} else {
				err = s.Update(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: do})
			}
			if err != nil {
				t.Error(name, err)
			}
		}
		if len(lock.written) != c.writes {
			t.Errorf("%s: written for %q, want %d writes", name, lock.written, c.writes)
		}
	}
	lock := &fakeLock{holder: "us", fails: true}
	s := &sparing{Interface: lock, clock: clock.RealClock{}, spare: time.Hour}
	for range 3 {
		if s.Update(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: renew}) == nil {
			t.Error("a renewal that failed was spared")
		}
	}
}

// TestALeaderStopsBeforeTheLeaseEnds: from the last write, a leader believes for the spared time that it has renewed, and for the deadline
// that it may.
func TestALeaderStopsBeforeTheLeaseEnds(t *testing.T) {
	for _, c := range []struct{ lease, deadline time.Duration }{
		{15 * time.Second, 10 * time.Second}, {4 * time.Second, 3 * time.Second}, {15900 * time.Millisecond, 14500 * time.Millisecond},
		{1900 * time.Millisecond, 1500 * time.Millisecond},
	} {
		spare := spareOf(&componentbaseconfig.LeaderElectionConfiguration{
			LeaseDuration: metav1.Duration{Duration: c.lease}, RenewDeadline: metav1.Duration{Duration: c.deadline},
		})
		if most := c.lease.Truncate(time.Second); max(spare, 0)+c.deadline >= most && spare > 0 {
			t.Errorf("with %v and %v, it leads for %v after the last write, and others may after %v", c.lease, c.deadline, spare+c.deadline, most)
		}
	}
}
