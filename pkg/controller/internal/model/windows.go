// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
)

// windowsOf returns the windows of each cluster policy that selects the namespace and has any.
func (w *World) windowsOf(namespace string) [][]gc.Window {
	var out [][]gc.Window
	for _, p := range w.enforcedIn(namespace) {
		if g := p.cluster.Guardrails; g != nil && len(g.Windows) > 0 {
			out = append(out, g.Windows)
		}
	}
	return out
}

// outsideWindow returns why deletions may not start in a namespace now because of windows; empty if they may.
func (c *recomputation) outsideWindow(namespace string) string {
	switch opens := c.opens(namespace); {
	case opens.IsZero():
		return "WindowNeverOpens"
	case opens.After(c.Now):
		return "OutsideWindow"
	}
	return ""
}

// opening is when windows are open first, if somebody asks from a time on.
type opening struct{ from, opens time.Time }

// openings remembers openings by windows, because it takes long to look at every minute.
var (
	openings     = map[string]opening{}
	openingsLock sync.Mutex
)

// opens returns when deletions may start in a namespace, which is now if they may; zero if they may at no time of the next 400 days.
func (w *World) opens(namespace string) time.Time {
	all := w.windowsOf(namespace)
	if allOpen(all, w.Now) {
		return w.Now
	}
	openingsLock.Lock()
	defer openingsLock.Unlock()
	key := ""
	for _, windows := range all {
		for _, of := range windows {
			key += fmt.Sprint(of.Schedule, " for ", of.Duration, " in ", or(of.TimeZone, "UTC"), "; ")
		}
		key += "and "
	}
	known, ok := openings[key]
	if !ok || w.Now.Before(known.from) || !known.opens.IsZero() && !w.Now.Before(known.opens) {
		known = opening{w.Now, firstOpening(all, w.Now)}
		openings[key] = known
	}
	return known.opens
}

func firstOpening(all [][]gc.Window, now time.Time) time.Time {
	for day := now.Truncate(24 * time.Hour); day.Before(now.AddDate(0, 0, 400)); day = day.Add(24 * time.Hour) {
		if !mayOpen(all, day) {
			continue
		}
		for at := day; at.Before(day.Add(24 * time.Hour)); at = at.Add(time.Minute) {
			if at.After(now) && allOpen(all, at) {
				return at
			}
		}
	}
	return time.Time{}
}

// mayOpen reports whether a window of each policy opens on a day, or a day before or after it in UTC. It is for windows of less than a day.
func mayOpen(all [][]gc.Window, day time.Time) bool {
	return !slices.ContainsFunc(all, func(windows []gc.Window) bool {
		return !slices.ContainsFunc(windows, func(w gc.Window) bool {
			return slices.ContainsFunc([]int{-2, -1, 0, 1}, func(off int) bool {
				return duration(w.Duration) >= 24*time.Hour || firesOn(strings.Fields(w.Schedule), day.AddDate(0, 0, off))
			})
		})
	})
}

// allOpen reports whether a window of each policy is open at a time.
func allOpen(all [][]gc.Window, at time.Time) bool {
	return !slices.ContainsFunc(all, func(windows []gc.Window) bool {
		return !slices.ContainsFunc(windows, func(w gc.Window) bool { return isOpen(w, at) })
	})
}

// isOpen reports whether a window is open at a time: whether it has opened at a minute that is not longer ago than its duration.
func isOpen(w gc.Window, now time.Time) bool {
	zone := must2(time.LoadLocation(or(w.TimeZone, "UTC")))
	for at := now.Truncate(time.Minute); now.Before(at.Add(duration(w.Duration))); at = at.Add(-time.Minute) {
		if fires(w.Schedule, at.In(zone)) {
			return true
		}
	}
	return false
}

func or(s *string, byDefault string) string {
	if s == nil {
		return byDefault
	}
	return *s
}

// Opens returns when deletions may start in a namespace, which is now if they may; false if they never may.
func (w *World) Opens(namespace string) (time.Time, bool) {
	at := w.opens(namespace)
	return at, !at.IsZero()
}

// OpensSooner reports whether deletions may start sooner in a namespace of after than in that of before.
func OpensSooner(before, after *World, namespace string) bool {
	was, known := before.Opens(namespace)
	is, ok := after.Opens(namespace)
	return ok && (!known || is.Before(was))
}

// WaitsForNothingElse returns the objects that are due and wait for a window, or for nothing.
func (w *World) WaitsForNothingElse() map[types.UID]bool {
	out := map[types.UID]bool{}
	c := w.recomputation(PolicyRef{})
	for _, f := range w.Objects {
		if v := c.decideAnytime(f); v.Action == Delete && v.waits == "" {
			out[f.UID] = true
		}
	}
	return out
}

// fires reports whether a schedule of numbers, lists, ranges and steps opens a window at a minute.
func fires(schedule string, at time.Time) bool {
	fields := strings.Fields(schedule)
	return names(fields[0], at.Minute()) && names(fields[1], at.Hour()) && firesOn(fields, at)
}

// firesOn reports whether a schedule opens a window at some time of a day.
func firesOn(fields []string, at time.Time) bool {
	day, weekday := names(fields[2], at.Day()), names(fields[4], int(at.Weekday()))
	days := day && weekday
	if fields[2] != "*" && fields[4] != "*" { // As cron has it: either will do.
		days = day || weekday
	}
	return names(fields[3], int(at.Month())) && days
}

// names reports whether a field of a schedule names a value.
func names(field string, value int) bool {
	return slices.ContainsFunc(strings.Split(field, ","), func(part string) bool { return selects(part, value) })
}

func selects(part string, value int) bool {
	values, every, stepped := strings.Cut(part, "/")
	step := 1
	if stepped {
		step = must2(strconv.Atoi(every))
	}
	if values == "*" {
		return value%step == 0 // Of minutes and hours, which begin at 0.
	}
	from, to, isRange := strings.Cut(values, "-")
	if !isRange {
		to = from
	}
	least, most := must2(strconv.Atoi(from)), must2(strconv.Atoi(to))
	return least <= value && value <= most && (value-least)%step == 0
}

// must2 is for texts in the files of this package.
func must2[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// Percent returns the smallest holdAbove.percent; false if no guardrail sets it.
func (w *World) Percent(namespace string) (int, bool) {
	return w.smallest(namespace, func(g *gc.Guardrails) *int64 {
		if g.HoldAbove == nil {
			return nil
		}
		return g.HoldAbove.Percent
	})
}
