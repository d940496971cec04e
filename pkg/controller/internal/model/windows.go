// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
)

// outsideWindow reports whether a cluster policy with windows selects the namespace, and none of its windows is open now.
func (c *recomputation) outsideWindow(namespace string) bool {
	return slices.ContainsFunc(c.enforcedIn(namespace), func(p policy) bool {
		g := p.cluster.Guardrails
		return g != nil && len(g.Windows) > 0 && !slices.ContainsFunc(g.Windows, c.open)
	})
}

// open reports whether a window is open now: whether it has opened at a minute that is not longer ago than its duration.
func (c *recomputation) open(w gc.Window) bool {
	zone := time.UTC
	if w.TimeZone != nil {
		zone = must2(time.LoadLocation(*w.TimeZone))
	}
	for at := c.Now.Truncate(time.Minute); c.Now.Before(at.Add(duration(w.Duration))); at = at.Add(-time.Minute) {
		if fires(w.Schedule, at.In(zone)) {
			return true
		}
	}
	return false
}

// fires reports whether a schedule of numbers, lists, ranges and steps opens a window at a minute.
func fires(schedule string, at time.Time) bool {
	fields := strings.Fields(schedule)
	is := func(i, value int) bool {
		return slices.ContainsFunc(strings.Split(fields[i], ","), func(part string) bool { return selects(part, value) })
	}
	day, weekday := is(2, at.Day()), is(4, int(at.Weekday()))
	days := day && weekday
	if fields[2] != "*" && fields[4] != "*" { // As cron has it: either will do.
		days = day || weekday
	}
	return is(0, at.Minute()) && is(1, at.Hour()) && is(3, int(at.Month())) && days
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
