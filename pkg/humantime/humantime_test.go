// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package humantime

import (
	"math/rand/v2"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"
)

func TestWhen(t *testing.T) {
	now := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	for d, want := range map[time.Duration]string{
		30*day - time.Second:                   "in 30d",
		30*day - 11*time.Hour:                  "in 30d",
		30*day - 13*time.Hour:                  "in 29d",
		2*day - time.Second:                    "in 2d",
		day - time.Second:                      "in 24h",
		8*day - 20*time.Minute:                 "in 8d",
		7*day - time.Minute:                    "in 7d",
		7*day - time.Hour:                      "in 6d23h",
		8*time.Hour - time.Second:              "in 8h",
		3*time.Hour - time.Second:              "in 3h",
		time.Hour - 31*time.Second:             "in 59m",
		10*time.Minute - 400*time.Millisecond:  "in 10m",
		2*time.Minute - 400*time.Millisecond:   "in 2m",
		90*time.Second + 600*time.Millisecond:  "in 91s",
		time.Millisecond:                       "in 1s",
		1600 * time.Millisecond:                "in 2s",
		8*year - time.Hour:                     "in 8y",
		100*year - time.Hour:                   "in 100y",
		0:                                      "0s ago",
		-400 * time.Millisecond:                "0s ago",
		-5 * time.Minute:                       "5m ago",
		-(26*day + 23*time.Hour):               "27d ago",
		-(45*day + time.Minute):                "45d ago",
		-(47*time.Hour + 59*time.Minute):       "2d ago",
		-(3*time.Hour + 15*time.Minute + 29e9): "3h15m ago",
	} {
		if got := When(now.Add(d), now); got != want {
			t.Errorf("%s: got %q, want %q", d, got, want)
		}
	}
	if got := When(time.Time{}, now); got != "-" {
		t.Errorf("no time: got %q", got)
	}
}

// TestAgo: what has happened is never in the future.
func TestAgo(t *testing.T) {
	now := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	for at, want := range map[time.Time]string{
		now.Add(-5 * time.Minute): "5m ago", now: "0s ago", now.Add(time.Millisecond): "0s ago", now.Add(time.Hour): "0s ago", {}: "-",
	} {
		if got := Ago(at, now); got != want {
			t.Errorf("%s: got %q, want %q", at, got, want)
		}
	}
}

// TestShown: rounding by the smallest unit shown loses at most half of it, and never changes what kubectl shows of a round number.
func TestShown(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 10_000 {
		d := time.Duration(random.Int64N(int64(10 * year)))
		for d > time.Second && random.IntN(2) == 0 {
			d /= 10
		}
		round := d.Round(shown(d))
		if off := (d - round).Abs(); off > shown(d)/2 {
			t.Fatalf("%s is rounded to %s", d, round)
		}
		if cut := round + shown(round) - 1; duration.HumanDuration(round) != duration.HumanDuration(cut) {
			t.Fatalf("%s is %s, but %s is %s", round, duration.HumanDuration(round), cut, duration.HumanDuration(cut))
		}
	}
}
