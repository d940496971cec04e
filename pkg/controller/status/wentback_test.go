// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"errors"
	"testing"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
)

// goBack has the store go back to a state in which policy p and the namespace were others.
func (f *fixture) goBack() {
	now := f.clock.Now()
	f.Tracker.StartAnew(now)
	f.Tracker.ReplacePolicies([]*gc.CleanupPolicy{testbuilders.Policy("p").Default("1h").Generation(1).Version("2").Obj()}, "3", now)
	f.Tracker.ReplaceClusterPolicies(nil, "3", now)
	f.Tracker.ReplaceNamespaces([]*metav1.PartialObjectMetadata{testbuilders.Namespace(testbuilders.Home, "1", "team", "a")}, "3", now)
}

func (f *fixture) storeWentBack() (events []eventsv1.Event) {
	f.Helper()
	l, err := f.cluster.EventsV1().Events("").List(f.Context(), metav1.ListOptions{})
	if err != nil {
		f.Fatal(err)
	}
	for _, e := range l.Items {
		if e.Reason == reasonStoreWentBack {
			events = append(events, e)
		}
	}
	return events
}

// TestStoreWentBack: what has gone back is told in one event each, by whichever replica, also if the API server fails at first.
func TestStoreWentBack(t *testing.T) {
	f := newFixture(t, testbuilders.Policy("p").Default("2h").Generation(2).Version("100"))
	failing := true
	f.cluster.PrependReactor("create", "events", func(clienttesting.Action) (bool, runtime.Object, error) {
		return failing, nil, errors.New("not ready")
	})
	f.goBack()
	f.flushEvents(t.Context())
	if n := len(f.storeWentBack()); n > 0 {
		t.Fatalf("%d events", n)
	}
	failing = false
	f.flushEvents(t.Context())
	told := f.storeWentBack()
	if len(told) != 2 || told[0].Regarding.Kind == told[1].Regarding.Kind {
		t.Fatalf("these events: %+v", told)
	}
	for _, e := range told {
		if kind := e.Regarding.Kind; kind != "CleanupPolicy" && kind != "Namespace" || e.Regarding.UID == "" || e.Namespace != testbuilders.Home {
			t.Errorf("an event on %+v in %s", e.Regarding, e.Namespace)
		}
	}
	other := newFixture(t, testbuilders.Policy("p").Default("2h").Generation(2).Version("100"))
	other.cluster, other.Events = f.cluster, f.cluster
	other.clock.SetTime(f.clock.Now().Add(time.Second))
	other.goBack()
	other.flushEvents(t.Context())
	if n := len(f.storeWentBack()); n != 2 || len(other.wentBack) > 0 {
		t.Errorf("%d events, and another replica has still to write %d", n, len(other.wentBack))
	}
}

// TestStoreWentBackLongAgo: nobody is told of what can no longer be told in time.
func TestStoreWentBackLongAgo(t *testing.T) {
	f := newFixture(t, testbuilders.Policy("p").Default("2h").Generation(2).Version("100"))
	f.goBack()
	f.clock.SetTime(f.clock.Now().Add(wentBackFor + time.Second))
	f.flushEvents(t.Context())
	if n := len(f.storeWentBack()); n > 0 || len(f.wentBack) > 0 {
		t.Errorf("%d events, and %d are to come", n, len(f.wentBack))
	}
}
