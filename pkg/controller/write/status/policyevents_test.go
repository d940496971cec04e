// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	batchv1 "k8s.io/api/batch/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"

	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/rules/deletion"
)

func TestWarnings(t *testing.T) {
	o := newFixture(t, testbuilders.Policy("p").Default("0s"))
	pod := func() *testbuilders.PodBuilder {
		return testbuilders.Pod("a").Finalizer(batchv1.JobTrackingFinalizer).Succeeded(testbuilders.Now)
	}
	o.upsert(pod().Fact())
	const held = "Warning Uncounted: Held, Uncounted: pods/a (the Job controller has not counted this Pod yet)"
	o.writes(0, []string{"p"}, nil) // The reason may be gone soon.
	o.writes(warnAfter-1, nil, nil)
	o.writes(1, nil, []string{held})
	o.upsert(pod().Label("new", "state").Fact())
	o.writes(repeatAfter-1, nil, nil) // It is not repeated yet.
	o.upsert(pod().Fact())
	o.writes(1, nil, []string{held}) // It is repeated while the object is held.

	o.upsert(testbuilders.Pod("a").TTL("1h").Succeeded(o.clock.Now()).Fact())
	o.writes(time.Second, []string{"p"}, nil)
	o.upsert(pod().Fact())
	o.writes(time.Second, []string{"p"}, nil) // The object is held again, so the wait starts again.
	o.writes(warnAfter, nil, []string{held})
	o.Tracker.RemovePolicy(o.policies["p"], o.clock.Now())
	o.writes(time.Second, nil, nil)
	if n := len(o.correlator.warnings); n != 0 {
		t.Errorf("%d warnings of a removed policy are remembered", n)
	}
}

// TestWaitingIsNoWarning: the author of the rule wants that, and others should know.
func TestWaitingIsNoWarning(t *testing.T) {
	o := newFixture(t, testbuilders.Policy("p").Rules(testbuilders.Rule("r", "0s").WaitFor("false", "7d", "")))
	o.upsert(testbuilders.Pod("a").Succeeded(testbuilders.Now).Fact())
	o.after(0)
	_, events := o.after(warnAfter)
	if got := notes(events); len(got) != 1 || !strings.HasPrefix(got[0], "Normal WaitingForArchive: Held, WaitingForArchive: pods/a (waitFor of rule") {
		t.Errorf("got %q", got)
	}
}

func TestWarningOfAFinalizer(t *testing.T) {
	o := newFixture(t, testbuilders.Policy("p").Default("0s"))
	o.upsert(
		testbuilders.Job("a").Complete(testbuilders.Now).Finalizer("example.com/f").Terminating().Fact(),
		testbuilders.Pod("b").Finalizer(batchv1.JobTrackingFinalizer).Succeeded(testbuilders.Now).Fact(),
	)
	o.after(0)
	_, events := o.after(warnAfter)
	got := notes(events)
	if len(got) != 2 || !strings.HasPrefix(got[0], "Warning Uncounted: Held, Uncounted: pods/b") ||
		got[1] != `Warning Terminating: Being deleted, Terminating: jobs.batch/a (waits for finalizers ["example.com/f"])` {
		t.Errorf("got %q", got)
	}
}

func gone(policy, rule string, facts ...*lifecycle.Fact) []deletion.Gone {
	var out []deletion.Gone
	for _, f := range facts {
		out = append(out, deletion.Gone{Order: &deletion.Order{
			Fact: f, Policy: types.NamespacedName{Namespace: testbuilders.Home, Name: policy}, PolicyUID: testbuilders.UID(policy), Rule: rule,
		}})
	}
	return out
}

func TestDeletionsAreSummedUp(t *testing.T) {
	o := newFixture(t)
	job, pod := testbuilders.Job("a").Fact(), testbuilders.Pod("a").Fact()
	o.Gone(gone("p", "default", job))
	o.writes(0, nil, []string{"Normal Deleted: Deleted 1 jobs.batch by rule default"}) // The first event is not delayed.
	o.Gone(gone("p", "default", job, pod, job))
	o.Gone(gone("p", "a-rule", pod))
	o.Gone(nil)
	o.writes(sumFor-1, nil, nil)
	o.writes(1, nil, []string{"Normal Deleted: Deleted 1 pods by rule a-rule, 2 jobs.batch by rule default, 1 pods by rule default"})
	o.writes(sumFor, nil, nil)
	if len(o.correlator.sums) != 0 {
		t.Error("sums of policies that delete nothing are kept")
	}
	o.Gone(gone("p", "default", job))
	o.Gone(gone("q", "default", pod))
	_, events := o.after(time.Second)
	if got := notes(events); len(got) != 2 {
		t.Errorf("got %q", got)
	}
}

func TestEvent(t *testing.T) {
	long := strings.Repeat("é", noteMost)
	for name, c := range map[string]struct {
		policy, note, wantName, wantNote string
	}{
		"as a rule":                           {"p", "Deleted", "p.", "Deleted"},
		"a long name":                         {strings.Repeat("x", 253), "Deleted", strings.Repeat("x", 200) + ".", "Deleted"},
		"a long name, cut where none may end": {strings.Repeat("x", 198) + ".-" + strings.Repeat("x", 53), "Deleted", strings.Repeat("x", 198) + ".", "Deleted"},
		"a long note, cut between characters": {"p", long, "p.", strings.Repeat("é", (noteMost-3)/2) + "..."},
		"a note that just fits":               {"p", long[:noteMost], "p.", long[:noteMost]},
	} {
		t.Run(name, func(t *testing.T) {
			o := newFixture(t)
			e := event{
				subject: subject{types.NamespacedName{Namespace: testbuilders.Home, Name: c.policy}, "uid-p"},
				kind:    "Normal",
				reason:  "Deleted",
				note:    c.note,
			}
			if err := o.createEvent(context.Background(), e); err != nil {
				t.Fatal(err)
			}
			got := o.cluster.Actions()[0].(clienttesting.CreateAction).GetObject().(*eventsv1.Event)
			if want := fmt.Sprintf("%s%x", c.wantName, testbuilders.Now.UnixNano()); got.Name != want {
				t.Errorf("the name is %s, want %s", got.Name, want)
			}
			if got.Note != c.wantNote || len(got.Note) > noteMost || !utf8.ValidString(got.Note) {
				t.Errorf("the note is %q", got.Note)
			}
			r := got.Regarding
			if got.Namespace != testbuilders.Home || got.Type != "Normal" || got.Reason != "Deleted" || got.Action != "Cleanup" ||
				got.ReportingController != "gc.winnow.dev/winnow" || got.ReportingInstance != "replica-1" || !got.EventTime.Time.Equal(testbuilders.Now) ||
				r.APIVersion != "gc.winnow.dev/v1alpha1" || r.Kind != "CleanupPolicy" || r.Namespace != testbuilders.Home || r.Name != c.policy || r.UID != "uid-p" {
				t.Errorf("got %+v", got)
			}
		})
	}
}
