// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/engine/knowledge"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/objects/facts"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/rules/deletion"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

// recreated returns Job a as it is created for the n-th time, and finishes at once.
func (w *world) recreated(n int, content lifecycle.Digest) *lifecycle.Fact {
	f := testbuilders.Job("a").Complete(w.now).Fact()
	f.UID, f.Created, f.Content = types.UID(fmt.Sprint("uid-a", n)), w.now, content
	return f
}

// TestReturns: an object is held if it comes back with the same content within a minute of its deletion, twice in a row.
func TestReturns(t *testing.T) {
	type life struct {
		after   time.Duration // the last deletion
		content lifecycle.Digest
	}
	const soon = 10 * time.Second
	for name, c := range map[string]struct {
		lives []life
		held  bool // the last one
	}{
		"once":                            {[]life{{0, 1}, {soon, 1}}, false},
		"twice":                           {[]life{{0, 1}, {soon, 1}, {soon, 1}}, true},
		"after a minute":                  {[]life{{0, 1}, {time.Minute, 1}, {time.Minute, 1}}, true},
		"after more than a minute":        {[]life{{0, 1}, {soon, 1}, {time.Minute + time.Second, 1}}, false},
		"not in a row":                    {[]life{{0, 1}, {soon, 1}, {2 * time.Minute, 1}, {soon, 1}}, false},
		"in a row after a pause":          {[]life{{0, 1}, {time.Hour, 1}, {soon, 1}, {soon, 1}}, true},
		"another version at each deploy":  {[]life{{0, 1}, {soon, 3}, {soon, 5}, {soon, 7}, {soon, 9}}, false},
		"another version, then the same":  {[]life{{0, 1}, {soon, 3}, {soon, 5}, {soon, 5}, {soon, 5}}, true},
		"the versions take turns":         {[]life{{0, 1}, {soon, 3}, {soon, 1}, {soon, 3}, {soon, 1}}, false},
		"its content is not known":        {[]life{{0, 0}, {soon, 0}, {soon, 0}}, true},
		"its content is not always known": {[]life{{0, 1}, {soon, 3}, {soon, 0}}, true},
	} {
		for _, by := range []string{"the leader", "the leader, without an answer", "another replica", "another replica, with a finalizer"} {
			t.Run(name+", by "+by, func(t *testing.T) {
				w := newWorld(t, ttlPolicy("0s", 1))
				if strings.HasPrefix(by, "another") {
					w.Follow()
				}
				for i, life := range c.lives {
					w.pass(life.after)
					w.upsert(w.recreated(i, life.content))
					if i == len(c.lives)-1 {
						break
					}
					w.decided("a", policy.Delete, policy.ReasonExpired)
					switch by {
					case "the leader":
						w.takes("a")
						w.done("a", deletion.Accepted)
					case "the leader, without an answer":
						w.takes("a")
						w.done("a", deletion.Unknown)
					case "another replica, with a finalizer":
						f := *w.facts["a"]
						f.Terminating, f.Finalizers = true, []string{"example.com/hold"}
						w.upsert(&f)
					}
					w.removed("a")
				}
				if c.held {
					w.decided("a", policy.Hold, policy.ReasonRecreateLoop)
				} else {
					w.decided("a", policy.Delete, policy.ReasonExpired)
				}
			})
		}
	}
}

// TestReturnsByARestore: an object that is back because a backup was restored has not been created again.
func TestReturnsByARestore(t *testing.T) {
	w := newWorld(t, ttlPolicy("0s", 1))
	first := w.recreated(0, 1)
	deleteIt := func() {
		w.takes("a")
		w.done("a", deletion.Accepted)
		w.removed("a")
		w.pass(10 * time.Second)
	}
	w.upsert(first)
	deleteIt()
	w.upsert(w.recreated(1, 1))
	deleteIt()
	w.upsert(first)
	w.decided("a", policy.Delete, policy.ReasonExpired)
}

// TestReturnsAfterAnotherReplica: what comes back too often stays held if a replica deletes it that has not run for as long.
func TestReturnsAfterAnotherReplica(t *testing.T) {
	w := newWorld(t, ttlPolicy("0s", 1))
	w.Follow()
	for i := range 5 {
		w.pass(10 * time.Second)
		w.upsert(w.recreated(i, 1))
		if i >= knowledge.MaxReturns {
			w.decided("a", policy.Hold, policy.ReasonRecreateLoop)
		}
		w.pass(time.Hour)
		w.removed("a")
	}
}

// TestReturnsOfWhatMatchesLater: a replica that has just started may count later than the leader from when a rule matches. What the leader
// deletes then counts nevertheless.
func TestReturnsOfWhatMatchesLater(t *testing.T) {
	for ttl, held := range map[gc.TTL]bool{"100s": true, "3m": false} {
		w := newWorld(t, testbuilders.Policy("p").Rules(testbuilders.Rule("r", ttl).For(gc.ResourceJobs).Labelled("app", "x").AfterMatched()))
		w.MarksListed(nil, w.now)
		w.Follow()
		for i := range knowledge.MaxReturns + 1 {
			w.pass(10 * time.Second)
			f := w.recreated(i, 1)
			f.Labels = labels.Set{"app": "x"}
			w.upsert(f)
			if i < knowledge.MaxReturns {
				w.decided("a", policy.Wait, policy.ReasonNotDue)
				w.pass(10 * time.Second)
				w.removed("a")
			}
		}
		if w.pass(4 * time.Minute); held {
			w.decided("a", policy.Hold, policy.ReasonRecreateLoop)
		} else {
			w.decided("a", policy.Delete, policy.ReasonExpired)
		}
	}
}

// TestReturnsWhereWindowsOpen: what the leader deletes when a window opens, or before it closes, counts although the window is closed by what
// this replica knows.
func TestReturnsWhereWindowsOpen(t *testing.T) {
	const opens, closes, soon = 10 * time.Hour, 16 * time.Hour, 10 * time.Second // after noon
	for name, c := range map[string]struct {
		removed []time.Duration // after noon
		held    bool
	}{
		"it opens":                {[]time.Duration{opens, opens + 2*soon}, true},
		"it opens in a moment":    {[]time.Duration{opens - time.Second, opens + 2*soon}, true},
		"it closed a moment ago":  {[]time.Duration{closes - 2*soon, closes + time.Second}, true},
		"it opens after a minute": {[]time.Duration{opens - time.Minute, opens - 2*soon}, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, ttlPolicy("0s", 1))
			w.clusterPolicy(windowsPolicy(1, nights))
			w.Follow()
			noon := w.now
			for i, at := range c.removed {
				w.pass(noon.Add(at - soon).Sub(w.now))
				w.upsert(w.recreated(i, 1))
				w.now = w.now.Add(soon) // Nothing expires the timers.
				w.removed("a")
			}
			w.pass(soon)
			w.upsert(w.recreated(len(c.removed), 1))
			if held := w.decisionOn("a").reason == policy.ReasonRecreateLoop; held != c.held {
				t.Errorf("it is held: %v, want %v", held, c.held)
			}
		})
	}
}

// TestReturnsThatDoNotCount: returns do not count after a deletion that Winnow did not want.
func TestReturnsThatDoNotCount(t *testing.T) {
	for name, p := range map[string]*testbuilders.PolicyBuilder{
		"not due":   ttlPolicy("1h", 1),
		"suspended": ttlPolicy("0s", 1).Suspended(),
		"never":     ttlPolicy("never", 1),
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, p)
			for i := range 3 {
				w.pass(time.Second)
				w.upsert(w.recreated(i, 1))
				w.removed("a")
			}
			w.policy(ttlPolicy("0s", 2))
			w.upsert(w.recreated(3, 1))
			w.confirmFresh()
			w.decided("a", policy.Delete, policy.ReasonExpired)
		})
	}
}

// TestReturnsAreDeletedIfARuleSaysSo: a rule with managedElsewhere: Delete deletes the object each time.
func TestReturnsAreDeletedIfARuleSaysSo(t *testing.T) {
	w := newWorld(t, testbuilders.Policy("p").Rules(testbuilders.Rule("all", "0s").ManagedElsewhere(gc.ManagedElsewhereDelete)))
	for i := range 5 {
		w.pass(time.Second)
		w.upsert(w.recreated(i, 1))
		w.takes("a")
		w.done("a", deletion.Accepted)
		w.removed("a")
	}
}

// TestNamesThatAreRemembered: Winnow remembers the last 20,000 names that were deleted, and no more. Otherwise its memory would grow
// without end.
func TestNamesThatAreRemembered(t *testing.T) {
	first := facts.Compress(testbuilders.Job("first").Complete(testbuilders.Now).Fact())
	r := knowledge.NewRecreations()
	r.RecordDeletion(first, testbuilders.Now)
	for i := range 19_999 {
		r.RecordDeletion(facts.Compress(testbuilders.Job(fmt.Sprint(i)).Complete(testbuilders.Now).Fact()), testbuilders.Now)
	}
	if !r.Names.Contains(knowledge.NameOf(first)) {
		t.Errorf("forgotten, and only %d names are remembered", r.Names.Len())
	}
	r.RecordDeletion(facts.Compress(testbuilders.Job("last").Complete(testbuilders.Now).Fact()), testbuilders.Now)
	if r.Names.Contains(knowledge.NameOf(first)) || r.Names.Len() != 20_000 {
		t.Errorf("%d names are remembered", r.Names.Len())
	}
}
