// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/policy"
)

// notices waits for the next turn of each namespace and says which objects are told what.
func (w *world) notices() []string {
	w.now = w.now.Add(noticeEvery)
	all, _ := w.TakeNotices(100, w.now)
	var out []string
	for _, n := range all {
		out = append(out, fmt.Sprintf("%s: %s by %s", n.Fact.Name, n.Reason, n.Policy.Name))
	}
	return out
}

func (w *world) notifies(want ...string) {
	w.Helper()
	if got := w.notices(); !slices.Equal(got, want) {
		w.Fatalf("told of %q, want %q", got, want)
	}
}

// TestNoticesFollowAnnotations: each is told once, and again when it changes, not whenever its object is judged.
func TestNoticesFollowAnnotations(t *testing.T) {
	p := testbuilders.Policy("p").Default("1h")
	w := newWorld(t, p)
	shorter := func() *testbuilders.JobBuilder { return testbuilders.Job("a").TTL("10m").Complete(testbuilders.Now) }
	w.upsert(shorter().Fact())
	w.notifies("a: AnnotationIgnored by p")
	w.notifies()
	w.upsert(shorter().Label("x", "y").Fact())
	w.notifies()
	w.upsert(shorter().TTL("5 m").Fact())
	w.notifies("a: InvalidAnnotation by p")
	w.upsert(shorter().TTL("2h").Fact())
	w.notifies()

	w.policy(p.Generation(2).Annotations(gc.AnnotationIgnore)) // Another policy may make of it what it wants.
	w.notifies("a: AnnotationIgnored by p")
	w.upsert(shorter().TTL("10m").Fact())
	w.removed("a")
	w.notifies()
}

// TestNoticesOnceFinished: what depends on the outcome is told when that is known.
func TestNoticesOnceFinished(t *testing.T) {
	w := newWorld(t, testbuilders.Policy("p").Default("1m").Rules(testbuilders.Rule("failed", "1h").Outcome(gc.OutcomeFailed)))
	w.upsert(testbuilders.Job("a").TTL("10m").Fact(), testbuilders.Job("b").TTL("10m").Fact())
	w.notifies()
	w.notifies()
	w.upsert(
		testbuilders.Job("a").TTL("10m").Complete(testbuilders.Now).Fact(),
		testbuilders.Job("b").TTL("10m").Failed(testbuilders.Now).Fact(),
	)
	w.notifies()
	w.notifies("b: AnnotationIgnored by p")
}

// TestNoticesNeedAPolicyThatEnforces, and a namespace in which something is deleted.
func TestNoticesNeedAPolicyThatEnforces(t *testing.T) {
	p := testbuilders.Policy("p").Default("1h").Preview()
	w := newWorld(t, p)
	w.upsert(testbuilders.Job("a").TTL("nonsense").Complete(testbuilders.Now).Fact())
	w.notifies()
	w.namespace(testbuilders.Home, gc.LabelProtected, "true")
	w.policy(p.Generation(2).Mode(gc.ModeEnforce))
	w.notifies()
	w.namespace(testbuilders.Home)
	w.notifies("a: InvalidAnnotation by p")
}

// TestNoticesAreBounded: whoever annotates very many objects gets some of the notices, and takes none of those of others.
func TestNoticesAreBounded(t *testing.T) {
	w := newWorld(t)
	w.namespace("team-b")
	w.clusterPolicy(clusterDefault("all", "1h", 1))
	const flood = 1000
	for i := range flood {
		w.upsert(testbuilders.Job(fmt.Sprintf("a-%04d", i)).TTL("1m").Complete(testbuilders.Now).Fact())
	}
	w.upsert(testbuilders.Job("b").In("team-b").TTL("1m").Complete(testbuilders.Now).Fact())
	if n := cap(w.Engine.namespaces[testbuilders.Home].noticeQueue.waiting); n > 3*noticeQueueLimit {
		t.Errorf("%d objects wait to be looked at", n)
	}
	all, dropped := w.TakeNotices(10, w.now)
	if len(all) != 2 || all[0].Fact.Name != "a-0980" || all[1].Fact.Name != "b" || dropped != flood-noticeQueueLimit {
		t.Errorf("told of %d, the first %+v, and passed over %d", len(all), all, dropped)
	}
	if all, dropped := w.TakeNotices(10, w.now.Add(noticeEvery-time.Nanosecond)); len(all) != 0 || dropped != 0 {
		t.Errorf("told of %+v before its turn, passed over %d", all, dropped)
	}
	told := 0
	for range 2 * noticeQueueLimit {
		for _, n := range w.notices() {
			if told++; !strings.HasPrefix(n, "a-") || !strings.HasSuffix(n, string(policy.ReasonAnnotationIgnored)+" by all") {
				t.Errorf("told of %s", n)
			}
		}
	}
	if told != noticeQueueLimit-1 {
		t.Errorf("told of %d", told)
	}
}
