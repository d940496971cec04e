// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"strings"
	"testing"

	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
	"k8s.io/utils/clock"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
)

// TestApprovals: the log and an event on the policy say who approved which holds, also after the request has ended.
func TestApprovals(t *testing.T) {
	client, written := fake.NewClientset(), make(chan *eventsv1.Event, 1)
	client.PrependReactor("create", "events", func(action clienttesting.Action) (bool, runtime.Object, error) {
		e := action.(clienttesting.CreateAction).GetObject().(*eventsv1.Event)
		written <- e
		return true, e, nil
	})
	logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true)))
	ctx, cancel := context.WithCancel(klog.NewContext(t.Context(), logger))
	approvals{client, "replica-1", clock.RealClock{}}.told(ctx, gc.Approval{
		Policy: &gc.CleanupPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "p", UID: "uid"}}, User: "olga",
		Holds: []gc.PolicyHold{{ID: "5f3c", Namespace: "team-a", Objects: 7}, {ID: "8a1f"}},
	})
	cancel()
	e := <-written
	if r := e.Regarding; e.Namespace != "team-a" || e.Type != "Normal" || e.Reason != "Approved" || r.Kind != "CleanupPolicy" ||
		r.Name != "p" || r.UID != "uid" || e.Note != `"olga" approved 5f3c (7 in team-a), 8a1f` || e.ReportingInstance != "replica-1" {
		t.Errorf("got %+v", e)
	}
	log := logger.GetSink().(ktesting.Underlier).GetBuffer().String()
	for _, want := range []string{
		"Approved", `policy="cleanuppolicies.gc.winnow.dev/p"`, `namespace="team-a"`, `user="olga"`, `holds=["5f3c","8a1f"]`,
	} {
		if !strings.Contains(log, want) {
			t.Errorf("no %s in %s", want, log)
		}
	}
}
