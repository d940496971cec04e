// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package top

import (
	"math"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/plugin/local"
)

const (
	// rateWindow is over how long rates are measured. A status is written every few seconds, so a shorter time would show leaps.
	rateWindow = time.Minute
	// rateLeast is how long must be measured.
	rateLeast = 10 * time.Second
)

// history is what earlier readings have counted.
type history struct {
	past []reading
	// peak is the largest backlog since there was none.
	peak int64
}

// reading is what one reading has counted.
type reading struct {
	at      time.Time
	deleted map[types.UID]int64
	backlog int64
}

// backlog is what is about to be deleted.
type backlog struct {
	left, peak int64
	// remaining is how long it takes until nothing is left, at the speed of the last minute; 0 if it does not get smaller.
	remaining time.Duration
}

// add adds a reading, sets the rates of its rows, and returns the backlog.
func (h *history) add(at time.Time, s *local.Statuses, rows []usage) backlog {
	now := reading{at: at, deleted: map[types.UID]int64{}}
	for i := range s.Policies {
		now.deleted[s.Policies[i].UID] = s.Policies[i].Status.Deleted
	}
	for i := range s.ClusterPolicies {
		now.deleted[s.ClusterPolicies[i].UID] = s.ClusterPolicies[i].Status.Deleted
	}
	for i := range rows {
		now.backlog += rows[i].backlog()
	}
	for len(h.past) > 1 && at.Sub(h.past[1].at) >= rateWindow {
		h.past = h.past[1:]
	}
	h.past = append(h.past, now)
	if h.peak = max(h.peak, now.backlog); now.backlog == 0 {
		h.peak = 0
	}
	if since := at.Sub(h.past[0].at); since >= rateLeast {
		for i := range rows {
			rows[i].rate(h.past[0].deleted, now.deleted, since)
		}
	}
	return backlog{now.backlog, h.peak, h.remaining()}
}

// rate sets how many objects the policies have deleted in a minute. A new policy has deleted nothing before.
func (u *usage) rate(before, now map[types.UID]int64, since time.Duration) {
	if len(u.policies) == 0 {
		return
	}
	var n int64
	for _, policy := range u.policies {
		n += max(now[policy]-before[policy], 0)
	}
	u.DeletedPerMinute = new(int64(math.Round(float64(n) / since.Minutes())))
}

// remaining estimates how long the backlog takes, by how fast it has become smaller since it was the largest.
func (h *history) remaining() time.Duration {
	now, largest := h.past[len(h.past)-1], h.past[0]
	for _, r := range h.past {
		if r.backlog >= largest.backlog {
			largest = r
		}
	}
	gone, since := largest.backlog-now.backlog, now.at.Sub(largest.at)
	if gone <= 0 || since < rateLeast {
		return 0
	}
	return time.Duration(float64(since) * float64(now.backlog) / float64(gone))
}
