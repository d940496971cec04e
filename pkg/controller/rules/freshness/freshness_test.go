// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package freshness

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

type contents = map[types.NamespacedName]Revision

func always(Collection, contents) bool { return true }
func never(Collection, contents) bool  { return false }

func read(began time.Time, version string) ConsistentRead {
	c := Contents{Version: version, Revisions: contents{}}
	return ConsistentRead{Began: began, Policies: c, ClusterPolicies: c, Namespaces: c}
}

func TestConfirm(t *testing.T) {
	for name, c := range map[string]struct {
		seen, version string
		same          func(Collection, contents) bool
		want          bool
	}{
		"memory is newer":                                  {"12", "11", never, true},
		"memory is as new":                                 {"12", "12", never, true},
		"memory is older, and the same":                    {"12", "13", always, true},
		"memory is older, and another":                     {"12", "13", never, false},
		"a version that cannot be read, the same":          {"12", "x", always, true},
		"a version that cannot be read":                    {"12", "x", never, false},
		"a version of memory that could not be read":       {"x", "12", never, false},
		"neither version can be read, and memory is empty": {"", "", never, false},
	} {
		var f Freshness
		for _, collection := range []Collection{Policies, ClusterPolicies, Namespaces} {
			f.Relisted(collection, c.seen)
		}
		if got := f.Confirm(read(now, c.version), c.same); got != c.want || f.Allows(now) != c.want {
			t.Errorf("%s: confirmed %v, allows %v", name, got, f.Allows(now))
		}
	}
}

// TestConfirmAVersion: if only a version was read, memory must have observed that version. Its contents do not matter.
func TestConfirmAVersion(t *testing.T) {
	for name, c := range map[string]struct {
		seen, version string
		want          bool
	}{
		"memory is newer":                            {"12", "11", true},
		"memory is as new":                           {"12", "12", true},
		"memory is older":                            {"12", "13", false},
		"a version that cannot be read":              {"12", "x", false},
		"no version":                                 {"12", "", false},
		"a version of memory that could not be read": {"x", "12", false},
	} {
		for _, collection := range []Collection{Policies, ClusterPolicies} {
			var f Freshness
			for _, other := range []Collection{Policies, ClusterPolicies, Namespaces} {
				if other != collection {
					f.Relisted(other, "99")
				}
			}
			f.Relisted(collection, c.seen)
			r := read(now, "99")
			*map[Collection]*Contents{Policies: &r.Policies, ClusterPolicies: &r.ClusterPolicies}[collection] = Contents{Version: c.version}
			if got := f.Confirm(r, always); got != c.want || f.Allows(now) != c.want {
				t.Errorf("%s: collection %d: confirmed %v, allows %v", name, collection, got, f.Allows(now))
			}
		}
	}
}

// TestConfirmWaits: if memory is behind a reading, it is compared again after the next event, and not before.
func TestConfirmWaits(t *testing.T) {
	for name, c := range map[string]struct {
		move func(*Freshness)
		want bool
	}{
		"memory has not moved":          {func(*Freshness) {}, false},
		"memory is still behind":        {func(f *Freshness) { f.Seen(Policies, "12") }, false},
		"memory has seen the version":   {func(f *Freshness) { f.Seen(Policies, "13") }, true},
		"memory has seen a newer one":   {func(f *Freshness) { f.Seen(Policies, "14") }, true},
		"a list is as new":              {func(f *Freshness) { f.Relisted(Policies, "13") }, true},
		"a list is older":               {func(f *Freshness) { f.Relisted(Policies, "11") }, false},
		"another watch has come as far": {func(f *Freshness) { f.Seen(Namespaces, "13") }, false},
		"an older event after the wait": {func(f *Freshness) { f.Seen(Policies, "13"); f.Changed(Policies, "12") }, true},
		"a list sets nothing back":      {func(f *Freshness) { f.Seen(Policies, "13"); f.Relisted(Policies, "12") }, true},
		"the store went back":           {func(f *Freshness) { f.Seen(Policies, "13"); f.StartAnew(); f.Relisted(Policies, "12") }, false},
	} {
		var f Freshness
		for _, collection := range []Collection{Policies, ClusterPolicies, Namespaces} {
			f.Relisted(collection, "12")
		}
		compared := 0
		same := func(Collection, contents) bool { compared++; return true }
		r := read(now, "12")
		r.Policies = Contents{Version: "13"}
		for range 3 {
			if f.Confirm(r, same) {
				t.Fatalf("%s: memory is behind, and agrees", name)
			}
		}
		c.move(&f)
		if got := f.Confirm(r, same); got != c.want || f.Allows(now) != c.want || compared > 0 {
			t.Errorf("%s: confirmed %v, allows %v, compared contents %d times", name, got, f.Allows(now), compared)
		}
	}
	var f Freshness
	compared := 0
	differs := func(Collection, contents) bool { compared++; return false }
	for range 3 {
		f.Confirm(read(now, "1"), differs)
	}
	if compared != 1 {
		t.Errorf("compared contents %d times, though memory has not moved", compared)
	}
	if f.Confirm(read(now.Add(1), "1"), differs); compared != 2 {
		t.Error("another read is not compared")
	}
}

// TestEachCollectionMustAgree: memory is not fresh if it is behind in one collection.
func TestEachCollectionMustAgree(t *testing.T) {
	for _, other := range []Collection{Policies, ClusterPolicies, Namespaces} {
		var f Freshness
		if f.Confirm(read(now, "1"), func(c Collection, _ contents) bool { return c != other }) {
			t.Errorf("collection %d differs", other)
		}
	}
}

func TestWhatEndsFreshness(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(*Freshness)
		want bool
	}{
		"nothing": {func(*Freshness) {}, true},
		"an older read that agrees takes nothing away": {func(f *Freshness) { f.Confirm(read(now.Add(-time.Second), "10"), always) }, true},
		"a read that does not agree, neither":          {func(f *Freshness) { f.Confirm(read(now, "13"), never) }, true},
		"a change after the read":                      {func(f *Freshness) { f.Changed(Policies, "11") }, true},
		"a change that the read had seen":              {func(f *Freshness) { f.Changed(Policies, "10") }, false},
		"a change of unknown version":                  {func(f *Freshness) { f.Changed(Namespaces, "x") }, false},
		"a new list":                                   {func(f *Freshness) { f.Relisted(ClusterPolicies, "99") }, false},
		"a doubt":                                      {func(f *Freshness) { f.Revoke() }, false},
	} {
		var f Freshness
		f.Confirm(read(now, "10"), always)
		if c.do(&f); f.Allows(now) != c.want {
			t.Errorf("%s: allows %v", name, f.Allows(now))
		}
	}
}

// TestNothingIsListedAtFirst: no collection is listed at first, and only a new start sets memory back.
func TestNothingIsListedAtFirst(t *testing.T) {
	var f Freshness
	for i, c := range []Collection{Policies, ClusterPolicies, Namespaces} {
		if f.Listed(c) || f.AllListed() {
			t.Errorf("%d lists, and collection %d was listed", i, c)
		}
		f.Relisted(c, "5")
		f.Seen(c, "4")
		f.Seen(c, "nonsense")
	}
	if !f.AllListed() || !f.Confirm(read(now, "5"), never) {
		t.Error("memory has gone back")
	}
	if listed := f.WhatIsListed(); !listed.AllListed() || listed.Allows(now) {
		t.Error("what is listed is known, and nothing else")
	}
	if !f.Replays(Policies, "4") || f.Replays(Policies, "5") || f.Replays(Policies, "nonsense") {
		t.Error("what is older than what was seen is a replay, and nothing else")
	}
	if f.StartAnew(); f.AllListed() || f.Replays(Policies, "4") {
		t.Error("what was seen before the store went back still counts")
	}
}

// TestClockSkew: the Date of the API server is in whole seconds, and was written between the beginning and the end of the reading.
func TestClockSkew(t *testing.T) {
	for name, c := range map[string]struct {
		date time.Duration // after the beginning of a reading that takes 300 ms
		want time.Duration
	}{
		"the same second":     {0, 0},
		"it ended since":      {300 * time.Millisecond, 0},
		"almost a second ago": {-time.Second, 0},
		"behind":              {-3 * time.Second, -2 * time.Second},
		"ahead":               {2 * time.Second, 1700 * time.Millisecond},
	} {
		var f Freshness
		if _, compared := f.ClockSkew(now); compared {
			t.Error("compared before the first reading")
		}
		end := now.Add(300 * time.Millisecond)
		f.CompareClocks(now.Add(c.date), now, end)
		f.CompareClocks(time.Time{}, now, end.Add(time.Minute)) // an answer without a Date
		if got, compared := f.ClockSkew(end.Add(skewFor - 1)); got != c.want || !compared {
			t.Errorf("%s: %s, compared %v; want %s", name, got, compared, c.want)
		}
		if _, compared := f.ClockSkew(end.Add(skewFor)); compared {
			t.Errorf("%s: it is still known", name)
		}
	}
}

// TestClockDoubt: a doubt ends only when clocks are compared and agree.
func TestClockDoubt(t *testing.T) {
	for name, c := range map[string]struct {
		then func(*Freshness) (changed bool)
		want bool
	}{
		"clocks agree":             {func(f *Freshness) bool { return !f.CompareClocks(now, now, now) }, false},
		"clocks still differ":      {func(f *Freshness) bool { return f.CompareClocks(now.Add(time.Hour), now, now) }, true},
		"an answer without a date": {func(f *Freshness) bool { return f.CompareClocks(time.Time{}, now, now) }, true},
		"a reading agrees":         {func(f *Freshness) bool { return !f.Confirm(read(now, "1"), always) }, true},
		"the store went back":      {func(f *Freshness) bool { f.StartAnew(); return false }, true},
	} {
		var f Freshness
		if !f.CompareClocks(now.Add(-time.Hour), now, now) {
			t.Fatal("clocks that differ by an hour are believed")
		}
		if c.then(&f) {
			t.Errorf("%s: reports another change", name)
		}
		if got := f.ClockDoubt() != ""; got != c.want {
			t.Errorf("%s: in doubt %v", name, got)
		}
	}
}

// TestClocksAreInDoubtAtFirst: clocks are in doubt until they are compared with an answer that has a date.
func TestClocksAreInDoubtAtFirst(t *testing.T) {
	var f Freshness
	f.DoubtClocks()
	if f.CompareClocks(time.Time{}, now, now) || f.ClockDoubt() != notCompared {
		t.Errorf("after an answer without a date: %q", f.ClockDoubt())
	}
	if !f.CompareClocks(now.Add(time.Hour), now, now) || !strings.Contains(f.ClockDoubt(), "set the clocks right") {
		t.Errorf("after an answer by another clock: %q", f.ClockDoubt())
	}
	f.DoubtClocks()
	if !f.CompareClocks(now, now, now) || f.ClockDoubt() != "" {
		t.Errorf("after an answer by the same clock: %q", f.ClockDoubt())
	}
}

// TestUnconfirmed: after a minute without a reading that agrees, memory is unconfirmed until a reading agrees. A pause in which nothing was
// due does not count.
func TestUnconfirmed(t *testing.T) {
	failing := func(f *Freshness, from, to time.Duration) {
		for at := from; at <= to; at += time.Second {
			f.Failed("the store cannot be reached", now.Add(at))
			f.UpdateUnconfirmed(now.Add(at), false)
		}
	}
	for name, c := range map[string]struct {
		do   func(*Freshness)
		want bool
	}{
		"nothing":             {func(*Freshness) {}, false},
		"less than a minute":  {func(f *Freshness) { failing(f, 0, 59*time.Second) }, false},
		"a minute":            {func(f *Freshness) { failing(f, 0, time.Minute) }, true},
		"half, a pause, half": {func(f *Freshness) { failing(f, 0, 30*time.Second); failing(f, 50*time.Second, 100*time.Second) }, false},
		"one, and time":       {func(f *Freshness) { failing(f, 0, 0); f.UpdateUnconfirmed(now.Add(time.Hour), false) }, false},
		"one agrees in between": {func(f *Freshness) {
			failing(f, 0, 50*time.Second)
			f.Confirm(read(now, "1"), always)
			failing(f, 51*time.Second, 100*time.Second)
		}, false},
		"one agrees in the end": {func(f *Freshness) {
			failing(f, 0, time.Minute)
			f.Confirm(read(now, "1"), always)
			f.UpdateUnconfirmed(now, false)
		}, false},
		"no longer leading": {func(f *Freshness) { failing(f, 0, time.Minute); f.UpdateUnconfirmed(now, true) }, false},
	} {
		var f Freshness
		c.do(&f)
		if got := f.Unconfirmed(); got != "" != c.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestWatches(t *testing.T) {
	var w Watches
	if at := w.HeardAt("pods"); !at.IsZero() {
		t.Errorf("heard at %v, before there was a watch", at)
	}
	if w.Expire(now) || w.Heard("pods", now) {
		t.Error("a watch that begins is no news")
	}
	if silent := w.Silent(now.Add(time.Minute)); len(silent) != 1 || silent["pods"] != time.Minute {
		t.Errorf("silent for %v", silent)
	}
	if at, ok := w.Next(); !ok || !at.Equal(now.Add(StaleAfter)) {
		t.Errorf("goes stale at %v, %v", at, ok)
	}
	if w.Expire(now.Add(StaleAfter-1)) || w.Stale("pods") != "" {
		t.Error("stale too soon")
	}
	if !w.Expire(now.Add(StaleAfter)) || w.Expire(now.Add(StaleAfter)) || w.Stale("pods") == "" {
		t.Error("a watch becomes stale once")
	}
	if _, ok := w.Next(); ok {
		t.Error("what is stale does not go stale")
	}
	if !w.Heard("pods", now.Add(time.Hour)) || w.Stale("pods") != "" || len(w.AllStale()) > 0 {
		t.Error("heard, and still stale")
	}
	if at := w.HeardAt("pods"); !at.Equal(now.Add(time.Hour)) {
		t.Errorf("heard at %v", at)
	}
	failed := errTest("forbidden")
	if !w.Observing("pods", failed) || w.Observing("pods", failed) || w.Failing("pods") != "pods cannot be observed: forbidden" {
		t.Errorf("failing: %q", w.Failing("pods"))
	}
	if !w.Heard("pods", now) || w.Failing("pods") != "" || w.Observing("pods", nil) {
		t.Error("what is heard does not fail")
	}
	w.Observing("pods", failed)
	w.Forget("pods")
	if _, ok := w.Next(); ok || w.Failing("pods") != "" {
		t.Error("not forgotten")
	}
}

type errTest string

func (e errTest) Error() string { return string(e) }
