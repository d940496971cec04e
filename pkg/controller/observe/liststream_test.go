// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/objects/facts"
)

// answer is the answer to one call of a reflector: an error, a page or events. If closed is set, a watch ends after its events, otherwise
// with its context.
type answer struct {
	err    error
	page   *corev1.PodList
	events []watch.Event
	closed bool
	// late delays a page until the caller no longer waits for it.
	late bool
}

// scripted is an API server that gives one answer after the other, and a log of what the reflector did with them.
type scripted struct {
	answers []answer
	lists   int
	failing bool // the last reported error was not nil

	lock  sync.Mutex
	log   []string
	calls []metav1.ListOptions
}

func (s *scripted) logf(format string, args ...any) {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.log = append(s.log, fmt.Sprintf(format, args...))
}

// next returns the answer to a call. After the last answer, it returns a watch without events.
func (s *scripted) next(options metav1.ListOptions) answer {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.calls = append(s.calls, options)
	if len(s.answers) == 0 {
		return answer{}
	}
	a := s.answers[0]
	s.answers = s.answers[1:]
	return a
}

func (s *scripted) list(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	a := s.next(options)
	if a.late {
		<-ctx.Done()
		time.Sleep(time.Second)
	}
	return a.page, a.err
}

func (s *scripted) watch(_ context.Context, options metav1.ListOptions) (watch.Interface, error) {
	a := s.next(options)
	if a.err != nil {
		return nil, a.err
	}
	w := watch.NewFakeWithChanSize(len(a.events), false)
	for _, e := range a.events {
		w.Action(e.Type, e.Object)
	}
	if a.closed {
		w.Stop()
	}
	return w, nil
}

// recordedList logs what a tracker would get.
type recordedList struct {
	*scripted
	number int
}

// Add implements List.
func (l *recordedList) Add(page []*facts.Compact, _ time.Time) {
	if len(page) > 2 {
		l.logf("add to %d: %d objects", l.number, len(page))
		return
	}
	names := make([]string, len(page))
	for i, k := range page {
		names[i] = k.Name()
	}
	l.logf("add to %d: %s", l.number, strings.Join(names, " "))
}

// End implements List.
func (l *recordedList) End(resourceVersion uint64, _ time.Time) {
	l.logf("end %d at %d", l.number, resourceVersion)
}

// Abandon implements List.
func (l *recordedList) Abandon(time.Time) { l.logf("abandon %d", l.number) }

// observed runs a reflector until it has used all answers, and returns the log.
func (s *scripted) observed(t *testing.T) []string {
	defer func(handlers []utilruntime.ErrorHandler) { utilruntime.ErrorHandlers = handlers }(utilruntime.ErrorHandlers)
	utilruntime.ErrorHandlers = nil // The handlers wait in real time, which would be decades in the time of synctest.
	synctest.Test(t, func(t *testing.T) {
		stream := &listStream[*facts.Compact]{
			lister: s.list, watcher: s.watch, pages: newPageSlots(1), now: time.Now,
			report: func(ctx context.Context, err error) {
				if ctx.Err() == nil && (err != nil || s.failing) {
					s.logf("report: %v", err)
					s.failing = err != nil
				}
			},
			begin: func() List[*facts.Compact] {
				s.lists++
				s.logf("begin %d", s.lists)
				return &recordedList{scripted: s, number: s.lists}
			},
			reduce: reducePod,
			atOnce: pageSize,
			remove: func(k *facts.Compact) { s.logf("remove %s", k.Name()) },
		}
		sink := &sink[*facts.Compact]{
			reduce: reducePod, upsert: func(k *facts.Compact) { s.logf("upsert %s", k.Name()) }, remove: stream.remove,
			replace: func(all []*facts.Compact, rv string) {
				if len(all) > 0 {
					t.Errorf("the reflector has %d objects", len(all))
				}
				stream.end(rv)
			},
		}
		ctx, cancel := context.WithCancel(t.Context())
		var reflector sync.WaitGroup
		runReflector(ctx, &reflector, "pods", stream.listWatch(), &corev1.Pod{}, sink)
		time.Sleep(time.Minute)
		cancel()
		reflector.Wait()
		stream.stop()
		s.logf("stopped")
		time.Sleep(time.Minute)
	})
	return s.log
}

func pod(name, version string) *corev1.Pod { return testbuilders.Pod(name).Version(version).Obj() }

func added(names ...string) []watch.Event {
	var out []watch.Event
	for _, name := range names {
		out = append(out, watch.Event{Type: watch.Added, Object: pod(name, "1")})
	}
	return out
}

func addedMany(n int) (out []watch.Event) {
	for i := range n {
		out = append(out, added(fmt.Sprint("pod-", i))...)
	}
	return out
}

// ended returns the initial events of a watch, with the bookmark that ends them.
func ended(events []watch.Event, version string) []watch.Event {
	end := pod("", version)
	end.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
	return append(slices.Clone(events), watch.Event{Type: watch.Bookmark, Object: end})
}

func page(next, version string, pods ...*corev1.Pod) *corev1.PodList {
	out := &corev1.PodList{ListMeta: metav1.ListMeta{Continue: next, ResourceVersion: version}}
	for _, p := range pods {
		out.Items = append(out.Items, *p)
	}
	return out
}

var (
	noStreams = apierrors.NewBadRequest("no streams")
	expired   = apierrors.NewResourceExpired("too old")
)

func TestListStream(t *testing.T) {
	failed := expired.Status()
	failure := watch.Event{Type: watch.Error, Object: &failed}
	for name, tc := range map[string]struct {
		answers []answer
		want    []string
	}{
		"streamed, then watched": {
			[]answer{{events: append(ended(added("a", "b"), "7"), watch.Event{Type: watch.Modified, Object: pod("a", "8")},
				watch.Event{Type: watch.Deleted, Object: pod("b", "9")})}},
			[]string{"begin 1", "add to 1: a b", "end 1 at 7", "upsert a", "remove b", "stopped"},
		},
		"streamed, nothing": {[]answer{{events: ended(nil, "7")}}, []string{"begin 1", "end 1 at 7", "stopped"}},
		"streamed, many": {
			[]answer{{events: ended(addedMany(2*pageSize+1), "7")}},
			[]string{"begin 1", "add to 1: 500 objects", "add to 1: 500 objects", "add to 1: pod-1000", "end 1 at 7", "stopped"},
		},
		"streamed, with changes meanwhile": {
			[]answer{{events: ended(append(added("a", "b"), watch.Event{Type: watch.Bookmark, Object: pod("", "3")},
				watch.Event{Type: watch.Modified, Object: pod("a", "4")}, watch.Event{Type: watch.Deleted, Object: pod("b", "5")},
				added("c")[0]), "7")}},
			[]string{"begin 1", "add to 1: 3 objects", "remove b", "add to 1: c", "end 1 at 7", "stopped"},
		},
		"streamed, with an unreadable object": {
			[]answer{{events: ended(append(added("a"), watch.Event{Type: watch.Added, Object: pod("bad", "x")}, added("b")[0]), "7")}},
			[]string{"begin 1", "add to 1: a b", "end 1 at 7", "stopped"},
		},
		"a stream that fails is repeated": {
			[]answer{{events: append(addedMany(pageSize+1), failure)}, {events: ended(added("a", "b"), "9")}},
			[]string{
				"begin 1", "add to 1: 500 objects", "report: too old", "abandon 1",
				"begin 2", "report: <nil>", "add to 2: a b", "end 2 at 9", "stopped",
			},
		},
		"a stream that breaks off is followed by a list": {
			[]answer{{events: addedMany(pageSize + 1), closed: true}, {page: page("", "9", pod("a", "1"))}},
			[]string{
				"begin 1", "add to 1: 500 objects", "report: the connection was lost before all objects were listed", "abandon 1",
				"begin 2", "report: <nil>", "add to 2: a", "end 2 at 9", "stopped",
			},
		},
		"a stream that never ends": {
			[]answer{{events: addedMany(pageSize + 1)}},
			[]string{"begin 1", "add to 1: 500 objects", "report: not all objects were listed", "abandon 1", "stopped"},
		},
		"an observed resource, listed again": {
			[]answer{{events: append(ended(added("a"), "7"), failure)}, {events: ended(added("b"), "9")}},
			[]string{"begin 1", "add to 1: a", "end 1 at 7", "begin 2", "add to 2: b", "end 2 at 9", "stopped"},
		},
		"refused": {
			[]answer{{err: noStreams}, {err: errors.New("no right")}, {events: ended(added("a"), "7")}},
			[]string{"report: no streams", "report: no right", "begin 1", "report: <nil>", "add to 1: a", "end 1 at 7", "stopped"},
		},
		"in pages": {
			[]answer{
				{err: noStreams},
				{page: page("next", "7", pod("a", "1"), pod("bad", "x"), pod("b", "1"))},
				{page: page("", "7", pod("c", "1"))},
				{events: []watch.Event{{Type: watch.Added, Object: pod("d", "8")}}},
			},
			[]string{"report: no streams", "begin 1", "report: <nil>", "add to 1: a b", "add to 1: c", "end 1 at 7", "upsert d", "stopped"},
		},
		"pages that expire are listed again": {
			[]answer{
				{err: noStreams}, {page: page("next", "7", pod("a", "1"))}, {err: expired},
				{page: page("next", "9", pod("b", "8"))}, {page: page("", "9", pod("c", "1"))},
			},
			[]string{
				"report: no streams", "begin 1", "report: <nil>", "add to 1: a", "report: too old", "report: too old", "abandon 1",
				"begin 2", "report: <nil>", "add to 2: b", "add to 2: c", "end 2 at 9", "stopped",
			},
		},
		"a page too late": {
			[]answer{{err: noStreams}, {page: page("next", "7", pod("a", "1"))}, {page: page("", "7", pod("b", "1")), late: true}},
			[]string{
				"report: no streams", "begin 1", "report: <nil>", "add to 1: a", "report: not all objects were listed", "abandon 1", "stopped",
			},
		},
		"the first page too late": {
			[]answer{{err: noStreams}, {page: page("", "7", pod("a", "1")), late: true}}, []string{"report: no streams", "stopped"},
		},
		"at a version that cannot be read": {
			[]answer{{events: ended(added("a"), "x")}}, []string{"begin 1", "add to 1: a", "end 1 at 0", "stopped"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := &scripted{answers: tc.answers}
			if got := s.observed(t); !slices.Equal(got, tc.want) {
				t.Errorf("got  %q\nwant %q", got, tc.want)
			}
		})
	}
}

// TestListsInPages: whatever the reflector asks for, no answer has all objects, and all pages have the same version.
func TestListsInPages(t *testing.T) {
	s := &scripted{answers: []answer{
		{err: noStreams}, {page: page("next", "7", pod("a", "1"))}, {page: page("", "7")}, {err: expired},
		{err: noStreams}, {page: page("", "9")},
	}}
	s.observed(t)
	var got []string
	for _, o := range s.calls {
		if o.SendInitialEvents == nil && !o.AllowWatchBookmarks {
			got = append(got, fmt.Sprintf("%d from %q at %q%s", o.Limit, o.Continue, o.ResourceVersion, o.ResourceVersionMatch))
		}
	}
	if want := []string{`500 from "" at ""`, `500 from "next" at ""`, `500 from "" at ""`}; !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}
