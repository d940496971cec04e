// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package humantime says in words how far away a time is. It is the same in the tables of the server and in the plugin.
package humantime

import (
	"time"

	"k8s.io/apimachinery/pkg/util/duration"
)

// When formats a time by its distance from now: "in 5m", or "5m ago"; "-" if the time is zero. Nothing is due "in 0s".
func When(at, now time.Time) string {
	switch {
	case at.IsZero():
		return "-"
	case at.After(now):
		return "in " + Duration(max(at.Sub(now), time.Second))
	}
	return Duration(now.Sub(at)) + " ago"
}

// Ago formats a time at which something has happened: "5m ago"; "-" if the time is zero. It is never in the future, although clocks differ,
// times are rounded up to seconds, and something may happen after now was read.
func Ago(at, now time.Time) string {
	if at.After(now) {
		at = now
	}
	return When(at, now)
}

// Duration formats a duration as kubectl formats an age, but rounds it to the nearest unit that is shown, where kubectl cuts it off. So a
// second after somebody kept an object for 30 days, it is due in 30d, and not in 29d. The error is at most half of the smallest unit shown.
func Duration(d time.Duration) string {
	return duration.HumanDuration(d.Round(shown(d)))
}

// day and year are as long as for duration.HumanDuration.
const day, year = 24 * time.Hour, 365 * 24 * time.Hour

// shown returns the smallest unit that duration.HumanDuration shows of a duration.
func shown(d time.Duration) time.Duration {
	switch {
	case d < 10*time.Minute:
		return time.Second
	case d < 8*time.Hour:
		return time.Minute
	case d < 8*day:
		return time.Hour
	case d < 8*year:
		return day
	}
	return year
}
