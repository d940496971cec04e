// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"testing"
	"time"
)

// TestScheduledAfter: the answer is the same for every form of the scheduled time, even if clocks differ, so that a Job seems older than
// its schedule.
func TestScheduledAfter(t *testing.T) {
	scheduled := time.Unix(29_538_900*60, 0).UTC()
	for name, created := range map[string]time.Time{"in time": scheduled, "late": scheduled.Add(time.Hour), "early": scheduled.Add(-time.Hour)} {
		facts := map[string]*Fact{
			"by its field": {Name: "other", Scheduled: scheduled, Created: created},
			"by its name":  {Name: "nightly-29538900", Controller: &Owner{Name: "nightly"}, ScheduledBy: ScheduledByName, Created: created},
		}
		if !created.Before(scheduled) {
			facts["by its creation"] = &Fact{
				Name: "nightly-29538900", Controller: &Owner{Name: "nightly"}, ScheduledBy: ScheduledByCreation, Created: created,
			}
		}
		for how, f := range facts {
			for _, off := range []time.Duration{-2 * time.Hour, -time.Second, 0, time.Second, 30 * time.Minute, 2 * time.Hour} {
				if got, want := f.scheduledAfter(scheduled.Add(off)), off < 0; got != want {
					t.Errorf("%s, %s: later than %s after it: %t, want %t", name, how, off, got, want)
				}
			}
		}
	}
}
