// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package inorder

import (
	"context"
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	clocktesting "k8s.io/utils/clock/testing"
)

// server answers one list or watch after the other.
type server struct {
	version string // of lists
	lists   int
	refuses bool
	events  []watch.Event
}

func (s *server) list(context.Context, metav1.ListOptions) (runtime.Object, error) {
	s.lists++
	return &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: s.version}}, nil
}

func (s *server) watch(context.Context, metav1.ListOptions) (watch.Interface, error) {
	if s.refuses {
		return nil, fmt.Errorf("dial: %w", syscall.ECONNREFUSED)
	}
	w := watch.NewFakeWithChanSize(len(s.events), false)
	for _, e := range s.events {
		w.Action(e.Type, e.Object)
	}
	w.Stop()
	return w, nil
}

func pod(name, version string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: version}}
}

func event(kind watch.EventType, version string) watch.Event {
	return watch.Event{Type: kind, Object: pod("", version)}
}

func initialEnd(version string) watch.Event {
	e := event(watch.Bookmark, version)
	e.Object.(*corev1.Pod).Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
	return e
}

func newOrder() (o *Order, wentBack *int) {
	n := 0
	return New("pods", clocktesting.NewFakePassiveClock(time.Unix(1, 0)), func(error) { n++ }), &n
}

// seen returns what passes of a watch: kinds and versions, and the reasons of errors.
func seen(t *testing.T, o *Order, s *server, options metav1.ListOptions) []string {
	t.Helper()
	w, err := o.ListWatch(s.list, s.watch).WatchFuncWithContext(t.Context(), options)
	if err != nil {
		return []string{string(apierrors.ReasonForError(err))}
	}
	var out []string
	for e := range w.ResultChan() {
		if status, ok := e.Object.(*metav1.Status); ok {
			out = append(out, string(status.Reason))
			continue
		}
		out = append(out, string(e.Type)+" "+e.Object.(*corev1.Pod).ResourceVersion)
	}
	return out
}

// TestWatch: a watch that begins after a list of version 10 passes on what is newer than all before, and bookmarks that are as new. A replay
// is no sign that the store has gone back as long as a consistent list is as new.
func TestWatch(t *testing.T) {
	const added, modified, deleted, bookmark = watch.Added, watch.Modified, watch.Deleted, watch.Bookmark
	for name, c := range map[string]struct {
		events []watch.Event
		stored string // the version of consistent lists after the first one; "" for 99
		want   []string
		back   bool
	}{
		"in order": {
			events: []watch.Event{event(added, "11"), event(modified, "12"), event(bookmark, "15"), event(deleted, "16")},
			want:   []string{"ADDED 11", "MODIFIED 12", "BOOKMARK 15", "DELETED 16"},
		},
		"replays": {
			events: []watch.Event{
				event(modified, "12"), event(modified, "11"), event(modified, "12"), event(added, "3"), event(deleted, "9"), event(modified, "13"),
			},
			want: []string{"MODIFIED 12", "MODIFIED 13"},
		},
		"replays of what the list had": {events: []watch.Event{event(added, "10"), event(deleted, "8")}},
		"a bookmark that is as new":    {events: []watch.Event{event(bookmark, "10")}, want: []string{"BOOKMARK 10"}},
		"an older bookmark":            {events: []watch.Event{event(bookmark, "9"), event(added, "11")}, want: []string{"ADDED 11"}},
		"versions that are no numbers": {events: []watch.Event{event(added, "x"), event(added, "")}, want: []string{"ADDED x", "ADDED "}},
		"the store went back": {
			events: []watch.Event{event(bookmark, "9")}, stored: "9", want: []string{"InternalError"}, back: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			o, wentBack := newOrder()
			s := &server{version: "10", events: c.events}
			if _, err := o.ListWatch(s.list, s.watch).ListWithContextFunc(t.Context(), metav1.ListOptions{}); err != nil {
				t.Fatal(err)
			}
			if s.version = "99"; c.stored != "" {
				s.version = c.stored
			}
			if got := seen(t, o, s, metav1.ListOptions{ResourceVersion: "10"}); !slices.Equal(got, c.want) {
				t.Errorf("passed on %q, want %q", got, c.want)
			}
			if (*wentBack > 0) != c.back {
				t.Errorf("went back: %d times", *wentBack)
			}
			if s.lists > 2 {
				t.Errorf("%d lists for replays within a second", s.lists-1)
			}
		})
	}
}

// TestList: a list that is older than what was seen is refused. If it was consistent, the store has gone back; otherwise the reflector lists
// again, consistently.
func TestList(t *testing.T) {
	for name, c := range map[string]struct {
		version string
		options metav1.ListOptions
		expired bool
		back    bool
	}{
		"newer":                       {version: "11"},
		"as new":                      {version: "10"},
		"older, consistent":           {version: "9", back: true},
		"older, of any version":       {version: "9", options: metav1.ListOptions{ResourceVersion: "0"}, expired: true},
		"older, asked for a newer":    {version: "9", options: metav1.ListOptions{ResourceVersion: "10"}, expired: true},
		"a version that is no number": {version: "x"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, streamed := range []bool{false, true} {
				o, wentBack := newOrder()
				s := &server{version: "10"}
				lw := o.ListWatch(s.list, s.watch)
				if _, err := lw.ListWithContextFunc(t.Context(), metav1.ListOptions{}); err != nil {
					t.Fatal(err)
				}
				s.version = c.version
				if streamed {
					s.events = []watch.Event{event(watch.Added, "5"), event(watch.Added, "3"), initialEnd(c.version)}
					options := c.options
					options.SendInitialEvents = new(true)
					got := seen(t, o, s, options)
					last := got[len(got)-1]
					if (last == string(metav1.StatusReasonExpired)) != c.expired || (last == string(metav1.StatusReasonInternalError)) != c.back {
						t.Errorf("streamed %q", got)
					}
				} else if _, err := lw.ListWithContextFunc(t.Context(), c.options); apierrors.IsResourceExpired(err) != c.expired ||
					(err != nil) != (c.expired || c.back) {
					t.Errorf("listed with %v", err)
				}
				if (*wentBack > 0) != c.back {
					t.Errorf("streamed %v: went back %d times", streamed, *wentBack)
				}
			}
		})
	}
}

// TestRefusedConnections: an API server that was away may have been started on another store. What its watch would go on from may be
// another history, so a list follows.
func TestRefusedConnections(t *testing.T) {
	o, _ := newOrder()
	s := &server{version: "10", refuses: true}
	lw := o.ListWatch(s.list, s.watch)
	goOn := metav1.ListOptions{ResourceVersion: "10"}
	if _, err := lw.ListWithContextFunc(t.Context(), metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	seen(t, o, s, goOn)
	s.refuses = false
	if got := seen(t, o, s, goOn); !slices.Equal(got, []string{string(metav1.StatusReasonExpired)}) {
		t.Errorf("goes on with %q", got)
	}
	if _, err := lw.ListWithContextFunc(t.Context(), goOn); err != nil {
		t.Fatal(err)
	}
	s.events = []watch.Event{event(watch.Added, "11")}
	if got := seen(t, o, s, goOn); !slices.Equal(got, []string{"ADDED 11"}) {
		t.Errorf("after a list it has %q", got)
	}
}
