// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	clienttesting "k8s.io/client-go/testing"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/engine/view"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
)

// newNoticeFixture returns a fixture in which policy p gives two hours of notice, and which knows what is stored.
func newNoticeFixture(t *testing.T) *fixture {
	o := newFixture(t, testbuilders.Policy("p").Rules(testbuilders.Rule("r", "1h").Notice("2h")))
	o.Tracker.ReplaceMarks(nil, o.clock.Now())
	return o
}

func (o *fixture) finished(names ...string) {
	for _, name := range names {
		o.upsert(testbuilders.Job(name).Complete(o.clock.Now().Add(-3 * time.Hour)).Fact())
	}
}

// announces returns the events about notices that are written after a time.
func (o *fixture) announces(d time.Duration) []eventsv1.Event {
	_, events := o.after(d)
	return slices.DeleteFunc(events, func(e eventsv1.Event) bool { return e.Reason != reasonNotice })
}

func numbered(prefix string, n int) []string {
	var out []string
	for i := range n {
		out = append(out, fmt.Sprintf("%s%03d", prefix, i))
	}
	return out
}

// TestFewNotices: an event on the object names when, which policy and rule, and how to keep it. It is written once.
func TestFewNotices(t *testing.T) {
	o := newNoticeFixture(t)
	var told []view.DeletionNotice
	o.Announced = func(given []view.DeletionNotice, _ time.Time) { told = append(told, given...) }
	o.finished("a")
	events := o.announces(time.Second)
	if len(events) != 1 {
		t.Fatalf("got %v", notes(events))
	}
	e := events[0]
	at := o.clock.Now().Add(2 * time.Hour).UTC()
	want := fmt.Sprintf(`Rule "r" of CleanupPolicy "p" deletes this object at %s at the earliest (Expired; notice of rule "r" of CleanupPolicy "p"). `+
		"To keep it for a week longer: kubectl annotate --overwrite jobs.batch a -n team-a gc.winnow.dev/keep-until=%s",
		at.Format(time.RFC3339), at.Add(7*24*time.Hour).Format(time.RFC3339))
	if e.Note != want || e.Type != "Normal" || e.Regarding.Kind != "Job" || e.Regarding.Name != "a" || e.Related == nil || e.Related.Name != "p" ||
		e.Namespace != testbuilders.Home {
		t.Errorf("got %+v\nwant %s", e, want)
	}
	if len(told) != 1 || told[0].Fact.Name != "a" {
		t.Errorf("told %+v", told)
	}
	if again := o.announces(time.Hour); len(again) > 0 {
		t.Errorf("written again: %v", notes(again))
	}
	marks, _ := o.Tracker.MarksToStore(testbuilders.Home)
	if len(marks) != 1 || len(marks[0].Announced) != 1 || !marks[0].Announced["uid-a"].At.Equal(at) {
		t.Errorf("must store %+v", marks)
	}
}

// TestManyNotices: there is one event a minute about many objects, and the clock of those that wait for it has not begun.
func TestManyNotices(t *testing.T) {
	o := newNoticeFixture(t)
	o.finished(numbered("a-", fewNotices)...)
	if got := o.announces(time.Second); len(got) != fewNotices {
		t.Fatalf("got %v", notes(got))
	}
	o.finished(numbered("b-", 300)...)
	events := o.announces(time.Second)
	if len(events) != 1 || events[0].Regarding.Kind != "CleanupPolicy" || !strings.Contains(events[0].Note, "deletes 300 objects") ||
		!strings.Contains(events[0].Note, "jobs.batch/b-") || !strings.Contains(events[0].Note, "--field-selector state=Notified") {
		t.Fatalf("got %v", notes(events))
	}
	o.finished("c")
	for range 50 {
		if got := o.announces(time.Second); len(got) > 0 {
			t.Fatalf("another event in the same minute: %v", notes(got))
		}
	}
	o.finished(numbered("d-", 300)...)
	if marks, _ := o.Tracker.MarksToStore(testbuilders.Home); len(marks) != 1 || len(marks[0].Announced) != 300+fewNotices {
		t.Errorf("must store %d notices", len(marks[0].Announced))
	}
	if got := o.announces(15 * time.Second); len(got) != 1 || !strings.Contains(got[0].Note, "deletes 301 objects") {
		t.Errorf("got %v", notes(got))
	}
}

// TestNoticesThatCannotBeWritten are not given, and are tried again.
func TestNoticesThatCannotBeWritten(t *testing.T) {
	o := newNoticeFixture(t)
	refuse := true
	o.cluster.PrependReactor("create", "events", func(clienttesting.Action) (bool, runtime.Object, error) {
		if refuse {
			return true, nil, errors.New("exceeded quota")
		}
		return false, nil, nil
	})
	o.finished("a")
	o.announces(time.Second)
	if marks, _ := o.Tracker.MarksToStore(testbuilders.Home); len(marks) > 0 {
		t.Errorf("must store %+v", marks)
	}
	refuse = false
	if got := o.announces(retryNotices); len(got) != 1 {
		t.Errorf("got %v", notes(got))
	}
}

// TestNoticesOfWhatMustNotBeNamed are about the policy, and name no object.
func TestNoticesOfWhatMustNotBeNamed(t *testing.T) {
	o := newNoticeFixture(t)
	f := testbuilders.Job("secret-name").Fact()
	f.Resource = gc.ResourceSecrets
	d := view.DeletionNotice{Fact: f, Policy: types.NamespacedName{Namespace: testbuilders.Home, Name: "p"}, PolicyUID: "uid-p", Rule: "r"}
	batches := o.batchesOf(noticeKey{d.PolicyUID, testbuilders.Home}, []view.DeletionNotice{d})
	if len(batches) != 1 || batches[0].object != nil || strings.Contains(batches[0].note, "secret-name") ||
		!strings.Contains(batches[0].note, "secrets") {
		t.Errorf("got %+v", batches)
	}
}

// TestNoticesTakeTurns: namespaces with many notices do not keep others from theirs.
func TestNoticesTakeTurns(t *testing.T) {
	n := noticeWriter{}
	seen := sets.New[string]()
	for range 3 {
		first := n.turns([]string{"a", "b", "c"})[0]
		n.last = first
		seen.Insert(first)
	}
	if seen.Len() != 3 {
		t.Errorf("first were only %v", sets.List(seen))
	}
}

// TestNoticeNames: the same notices have the same name, whoever writes them, until an object is due at another time.
func TestNoticeNames(t *testing.T) {
	o := newNoticeFixture(t)
	o.finished("a")
	all := o.Tracker.NoticesToGive(testbuilders.Home, 10, o.clock.Now())
	later := o.Tracker.NoticesToGive(testbuilders.Home, 10, o.clock.Now().Add(30*time.Second))
	if len(all) != 1 || noticeID(all) != noticeID(later) {
		t.Errorf("got %v and %v", all, later)
	}
	later[0].Due = later[0].Due.Add(time.Hour)
	if noticeID(all) == noticeID(later) {
		t.Error("another time has the same name")
	}
}
