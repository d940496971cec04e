// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/windows"
)

const (
	scheduleExample = `; for example "0 22 * * 1-5" is at 22:00 from Monday to Friday`
	windowExample   = `; use for example "6h", from 1m to 31d`
	zoneExample     = `; use for example "Europe/Berlin", or remove timeZone for UTC`
)

// validateWindows does not check the number of windows and the lengths of texts, because the tags of the type do.
func validateWindows(all []gc.Window, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range all {
		w, path := &all[i], path.Index(i)
		if schedule := path.Child("schedule"); w.Schedule == "" {
			errs = append(errs, field.Required(schedule, "set when the window opens"+scheduleExample))
		} else if _, err := windows.ParseSchedule(w.Schedule); err != nil {
			errs = append(errs, field.Invalid(schedule, w.Schedule, err.Error()+scheduleExample))
		}
		if duration := path.Child("duration"); w.Duration == "" {
			errs = append(errs, field.Required(duration, "set how long the window stays open"+windowExample))
		} else if _, err := windows.ParseDuration(w.Duration); err != nil {
			errs = append(errs, field.Invalid(duration, w.Duration, err.Error()+windowExample))
		}
		if w.TimeZone != nil {
			if _, err := windows.ParseZone(*w.TimeZone); err != nil {
				errs = append(errs, field.Invalid(path.Child("timeZone"), *w.TimeZone, err.Error()+zoneExample))
			}
		}
	}
	return errs
}

// shortWindow is the shortest duration of a window without a warning.
const shortWindow = 15 * time.Minute

// windowWarnings is about windows that never open, or are too short. Whether a schedule ever fires does not depend on when it is asked, but
// for the length of centuries.
func windowWarnings(all []gc.Window, path *field.Path) []string {
	var warnings []string
	for i := range all {
		w, err := windows.Compile(&all[i])
		if err != nil {
			continue // refused elsewhere
		}
		if !w.Opens(time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)) {
			warnings = append(warnings, warn(path.Index(i).Child("schedule"),
				"%q names no day that exists, so this window never opens; while it is the only one, nothing is deleted", all[i].Schedule)...)
		}
		if d, _ := windows.ParseDuration(all[i].Duration); d < shortWindow {
			warnings = append(warnings, warn(path.Index(i).Child("duration"),
				"Winnow needs some time of each window to begin, so less than %s may be too short to delete all that is due",
				gc.FormatDuration(shortWindow))...)
		}
	}
	return warnings
}
