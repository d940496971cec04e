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
func (o *fixture) goBack() {
	now := o.clock.Now()
	o.Tracker.StartAnew(now)
	o.Tracker.ReplacePolicies([]*gc.CleanupPolicy{testbuilders.Policy("p").Default("1h").Generation(1).Version("2").Obj()}, "3", now)
	o.Tracker.ReplaceClusterPolicies(nil, "3", now)
	o.Tracker.ReplaceNamespaces([]*metav1.PartialObjectMetadata{testbuilders.Namespace(testbuilders.Home, "1", "team", "a")}, "3", now)
}

func (o *fixture) storeWentBack() (events []eventsv1.Event) {
	o.Helper()
	l, err := o.cluster.EventsV1().Events("").List(o.Context(), metav1.ListOptions{})
	if err != nil {
		o.Fatal(err)
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
	o := newFixture(t, testbuilders.Policy("p").Default("2h").Generation(2).Version("100"))
	failing := true
	o.cluster.PrependReactor("create", "events", func(clienttesting.Action) (bool, runtime.Object, error) {
		return failing, nil, errors.New("not ready")
	})
	o.goBack()
	o.flushEvents(t.Context())
	if n := len(o.storeWentBack()); n > 0 {
		t.Fatalf("%d events", n)
	}
	failing = false
	o.flushEvents(t.Context())
	told := o.storeWentBack()
	if len(told) != 2 || told[0].Regarding.Kind == told[1].Regarding.Kind {
		t.Fatalf("these events: %+v", told)
	}
	for _, e := range told {
		if kind := e.Regarding.Kind; kind != "CleanupPolicy" && kind != "Namespace" || e.Regarding.UID == "" || e.Namespace != testbuilders.Home {
			t.Errorf("an event on %+v in %s", e.Regarding, e.Namespace)
		}
	}
	other := newFixture(t, testbuilders.Policy("p").Default("2h").Generation(2).Version("100"))
	other.cluster, other.Events = o.cluster, o.cluster
	other.clock.SetTime(o.clock.Now().Add(time.Second))
	other.goBack()
	other.flushEvents(t.Context())
	if n := len(o.storeWentBack()); n != 2 || len(other.wentBack) > 0 {
		t.Errorf("%d events, and another replica has still to write %d", n, len(other.wentBack))
	}
}

// TestStoreWentBackLongAgo: nobody is told of what can no longer be told in time.
func TestStoreWentBackLongAgo(t *testing.T) {
	o := newFixture(t, testbuilders.Policy("p").Default("2h").Generation(2).Version("100"))
	o.goBack()
	o.clock.SetTime(o.clock.Now().Add(wentBackFor + time.Second))
	o.flushEvents(t.Context())
	if n := len(o.storeWentBack()); n > 0 || len(o.wentBack) > 0 {
		t.Errorf("%d events, and %d are to come", n, len(o.wentBack))
	}
}
