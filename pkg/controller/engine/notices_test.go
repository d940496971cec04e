// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/engine/view"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

// notices waits until each namespace may have another notice, and returns all notices.
func (w *world) notices() []string {
	w.now = w.now.Add(view.NoticeEvery)
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
		w.Fatalf("the notices are %q, want %q", got, want)
	}
}

// TestNoticesFollowAnnotations: each notice is sent once, and again if the annotation changes, but not whenever the object is settled.
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

	w.policy(p.Generation(2).Annotations(gc.AnnotationIgnore)) // Another generation may treat the annotation differently.
	w.notifies("a: AnnotationIgnored by p")
	w.upsert(shorter().TTL("10m").Fact())
	w.removed("a")
	w.notifies()
}

// TestCandidatesSayWhatAnnotationsDoNot: the message of a candidate ends with the text of the notice.
func TestCandidatesSayWhatAnnotationsDoNot(t *testing.T) {
	const ignored = `. Annotation gc.winnow.dev/ttl: "10m" has no effect: CleanupPolicy "p" `
	done := func() *testbuilders.JobBuilder { return testbuilders.Job("a").Complete(testbuilders.Now) }
	p := testbuilders.Policy("p").Default("1h")
	for name, c := range map[string]struct {
		policy *testbuilders.PolicyBuilder
		job    *testbuilders.JobBuilder
		want   string
	}{
		"shorter":       {p, done().TTL("10m"), ignored + "keeps this object for 1h, and an annotation can only keep it longer"},
		"not asked":     {testbuilders.Policy("p").Default("1h").Annotations(gc.AnnotationIgnore), done().TTL("10m"), ignored + "ignores annotations."},
		"while it runs": {p, testbuilders.Job("a").TTL("10m"), ignored + "keeps this object for 1h"},
		"longer":        {p, done().TTL("2h"), ""},
		"none":          {p, done(), ""},
		"a preview":     {testbuilders.Policy("p").Default("1h").Preview(), done().TTL("10m"), ""},
		"not readable":  {p, done().TTL("10 m"), ""}, // The reason is InvalidAnnotation, whose sentence says so.
	} {
		w := newWorld(t, c.policy)
		w.upsert(c.job.Fact())
		message := w.candidate("a").Status.Message
		if c.want != "" && !strings.Contains(message, c.want) || c.want == "" && strings.Contains(message, "has no effect") {
			t.Errorf("%s: got %q, want %q in it", name, message, c.want)
		}
	}
}

// TestNoticesOnceFinished: a notice that depends on the outcome is sent when the outcome is known.
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

// TestNoticesNeedAPolicyThatEnforces: there are no notices for Previews, or in namespaces in which nothing is deleted.
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

// TestNoticesAreBounded: if very many objects are annotated, some of the notices are dropped, but none of other namespaces.
func TestNoticesAreBounded(t *testing.T) {
	w := newWorld(t)
	w.namespace("team-b")
	w.clusterPolicy(ttlClusterPolicy("all", "1h", 1))
	const flood = 1000
	for i := range flood {
		w.upsert(testbuilders.Job(fmt.Sprintf("a-%04d", i)).TTL("1m").Complete(testbuilders.Now).Fact())
	}
	w.upsert(testbuilders.Job("b").In("team-b").TTL("1m").Complete(testbuilders.Now).Fact())
	if n := cap(w.Engine.Namespaces[testbuilders.Home].NoticeQueue.Waiting); n > 3*view.NoticeQueueLimit {
		t.Errorf("%d objects wait for a notice", n)
	}
	all, dropped := w.TakeNotices(10, w.now)
	if len(all) != 2 || all[0].Fact.Name != "a-0980" || all[1].Fact.Name != "b" || dropped != flood-view.NoticeQueueLimit {
		t.Errorf("got %d notices, the first %+v, and %d dropped", len(all), all, dropped)
	}
	if all, dropped := w.TakeNotices(10, w.now.Add(view.NoticeEvery-time.Nanosecond)); len(all) != 0 || dropped != 0 {
		t.Errorf("got %+v too early, and %d dropped", all, dropped)
	}
	sent := 0
	for range 2 * view.NoticeQueueLimit {
		for _, n := range w.notices() {
			if sent++; !strings.HasPrefix(n, "a-") || !strings.HasSuffix(n, string(policy.ReasonAnnotationIgnored)+" by all") {
				t.Errorf("got %s", n)
			}
		}
	}
	if sent != view.NoticeQueueLimit-1 {
		t.Errorf("%d notices", sent)
	}
}
