// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/engine/view"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

// apart is how much longer than policies demand a notice is out, because clocks may be apart.
const apart = 2 * time.Minute

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
	at := o.clock.Now().Add(2*time.Hour + apart).UTC()
	want := fmt.Sprintf("Winnow deletes this object at %s at the earliest. "+
		"To keep it for a week longer: kubectl annotate --overwrite jobs.batch a -n team-a gc.winnow.dev/keep-until=%s "+
		`(Expired by rule "r" of CleanupPolicy "p"; notice of rule "r" of CleanupPolicy "p")`,
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
	marks := o.Tracker.MarksToStore(t.Context(), testbuilders.Home, testbuilders.Now).All
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
	if marks := o.Tracker.MarksToStore(t.Context(), testbuilders.Home, testbuilders.Now).All; len(marks) != 1 || len(marks[0].Announced) != 300+fewNotices {
		t.Errorf("must store %d notices", len(marks[0].Announced))
	}
	if got := o.announces(15 * time.Second); len(got) != 1 || !strings.Contains(got[0].Note, "deletes 301 objects") {
		t.Errorf("got %v", notes(got))
	}
}

// TestNoticesThatCannotBeWritten are not given, and are tried again. Only an event that the API has just accepted counts: one of the same name
// may be from somebody else, and where no events are served nobody is told.
func TestNoticesThatCannotBeWritten(t *testing.T) {
	events := schema.GroupResource{Group: "events.k8s.io", Resource: "events"}
	for name, err := range map[string]error{
		"a quota": errors.New("exceeded quota"), "one of the same name": apierrors.NewAlreadyExists(events, "p.1"),
		"no events": apierrors.NewNotFound(events, ""),
	} {
		t.Run(name, func(t *testing.T) {
			o := newNoticeFixture(t)
			refuse := true
			o.cluster.PrependReactor("create", "events", func(clienttesting.Action) (bool, runtime.Object, error) {
				return refuse, nil, err
			})
			o.finished("a")
			o.announces(time.Second)
			if marks := o.Tracker.MarksToStore(t.Context(), testbuilders.Home, testbuilders.Now).All; len(marks) > 0 {
				t.Errorf("must store %+v", marks)
			}
			refuse = false
			if got := o.announces(retryNotices); len(got) != 1 {
				t.Errorf("got %v", notes(got))
			}
		})
	}
}

// TestNoticeWhileTheClockIsSetBack: the time at which the event was written is wrong, so the notice does not count.
func TestNoticeWhileTheClockIsSetBack(t *testing.T) {
	for name, happens := range map[string]func(o *fixture){
		"it is set back": func(o *fixture) { o.clock.SetTime(o.clock.Now().Add(-time.Hour)) },
		"it is in doubt": func(o *fixture) {
			now := o.clock.Now()
			o.Tracker.CompareClocks(now.Add(time.Hour), now, now)
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := newNoticeFixture(t)
			o.cluster.PrependReactor("create", "events", func(clienttesting.Action) (bool, runtime.Object, error) {
				happens(o)
				return false, nil, nil
			})
			o.finished("a")
			o.announces(time.Second)
			if marks := o.Tracker.MarksToStore(t.Context(), testbuilders.Home, testbuilders.Now).All; len(marks) > 0 {
				t.Errorf("must store %+v", marks)
			}
		})
	}
}

// TestNoticesOfManyNamespaces: namespaces with many notices, or whose events are refused, do not keep others from theirs.
func TestNoticesOfManyNamespaces(t *testing.T) {
	tracker := &noticesOnly{pending: map[string]map[types.UID]int{
		"a": {"p": 300, "q": 300, "r": 300, "s": 300}, "b": {"p": 1}, "c": {"p": 1, "q": 1}, "d": {"p": 300}, "e": {"p": 1},
	}}
	o := newNoticeFixture(t)
	o.Config.Tracker = tracker
	o.cluster.PrependReactor("create", "events", func(action clienttesting.Action) (bool, runtime.Object, error) {
		return action.GetNamespace() == "c", nil, errors.New("exceeded quota")
	})
	for range 4 {
		o.giveNotices(t.Context())
		o.clock.SetTime(o.clock.Now().Add(time.Second))
	}
	want := map[string]map[types.UID]int{"a": {}, "b": {}, "c": {"p": 1, "q": 1}, "d": {}, "e": {}}
	if !reflect.DeepEqual(tracker.pending, want) {
		t.Errorf("left: %v", tracker.pending)
	}
}

// noticesOnly is a tracker that has only notices to be given: how many, by their namespace and policy.
type noticesOnly struct {
	Tracker
	pending map[string]map[types.UID]int
}

func (n *noticesOnly) NoticeNamespaces() []string { return slices.Sorted(maps.Keys(n.pending)) }

func (n *noticesOnly) NoticesToGive(
	namespace string, pauses func(types.UID) bool, most int, now time.Time,
) (out []view.DeletionNotice) {
	for of, count := range n.pending[namespace] {
		for i := range count {
			f := testbuilders.Job("a").Fact()
			f.Namespace, f.UID = namespace, types.UID(fmt.Sprint(namespace, "/", of, "/", i))
			if !pauses(of) && len(out) < most {
				out = append(out, view.DeletionNotice{
					Fact: f, Policy: types.NamespacedName{Namespace: namespace, Name: string(of)}, PolicyUID: of,
					Announcement: policy.Announcement{Given: now, At: now},
				})
			}
		}
	}
	return out
}

func (n *noticesOnly) NoticesGiven(given map[types.UID]policy.Announcement, _ time.Time) bool {
	for uid := range given {
		of := strings.Split(string(uid), "/")
		delete(n.pending[of[0]], types.UID(of[1])) // All of a policy are given at once.
	}
	return true
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
