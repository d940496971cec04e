// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
)

// TestProtectedNamespaces: nothing is deleted in Winnow's own namespace, in the namespace of its Lease, and in the namespaces of the flag.
func TestProtectedNamespaces(t *testing.T) {
	o := parse(t, "--protected-namespaces=ci,db", "--leader-elect-resource-namespace=ops")
	got := o.Controller.controllerConfig("winnow-system").ProtectedNamespaces
	for _, want := range []string{"winnow-system", "ops", "ci", "db"} {
		if !slices.Contains(got, want) {
			t.Errorf("%s is not protected, only %q", want, got)
		}
	}
	if len(got) != 4 {
		t.Errorf("protected: %q", got)
	}
}

// TestDefaultHoldAbove: without flags, a change that makes more than 1,000 objects of a namespace due is held.
func TestDefaultHoldAbove(t *testing.T) {
	if got := parse(t).Controller.controllerConfig("winnow-system").HoldAbove; got != 1000 {
		t.Errorf("holds above %d", got)
	}
	if got := parse(t, "--default-hold-above=7").Controller.controllerConfig("winnow-system").HoldAbove; got != 7 {
		t.Errorf("with the flag it holds above %d", got)
	}
}

// TestDefaultHoldAboveTotal: without flags, one that makes more than 5,000 due in all namespaces together is held.
func TestDefaultHoldAboveTotal(t *testing.T) {
	if got := parse(t).Controller.controllerConfig("winnow-system").HoldAboveTotal; got != 5000 {
		t.Errorf("holds above %d", got)
	}
	if got := parse(t, "--default-hold-above-total=7").Controller.controllerConfig("winnow-system").HoldAboveTotal; got != 7 {
		t.Errorf("with the flag it holds above %d", got)
	}
}

// TestStartSuspended: Winnow deletes by the first policy of a team unless it is told to wait for an operator.
func TestStartSuspended(t *testing.T) {
	if parse(t).Controller.controllerConfig("winnow-system").StartSuspended {
		t.Error("starts suspended without the flag")
	}
	if !parse(t, "--start-suspended").Controller.controllerConfig("winnow-system").StartSuspended {
		t.Error("does not start suspended with the flag")
	}
}

// TestNoCandidatesBeforeTheControllerKnows: an empty list would say that nothing is going to be deleted.
func TestNoCandidatesBeforeTheControllerKnows(t *testing.T) {
	f := &questions{}
	if _, err := f.CandidateResources(""); !errors.Is(err, errStarting) {
		t.Errorf("without a controller: %v", err)
	}
	if _, err := f.Candidates(t.Context(), gc.CandidateQuery{}); !errors.Is(err, errStarting) {
		t.Errorf("candidates without a controller: %v", err)
	}
	nowhere := &rest.Config{Host: "https://127.0.0.1:1"}
	controller, err := newController(nowhere, nowhere, nil, "replica", "winnow-system", parse(t).Controller)
	if err != nil {
		t.Fatal(err)
	}
	f.controller.Store(controller)
	if _, err := f.CandidateResources(""); err == nil || !strings.Contains(err.Error(), "try again in a few seconds") {
		t.Errorf("before the first lists: %v", err)
	}
}

// TestNoForecastBeforeTheControllerKnows: an approval cannot rely on what nobody knows yet.
func TestNoForecastBeforeTheControllerKnows(t *testing.T) {
	f := &questions{}
	if got := f.Forecast(t.Context(), gc.PolicyChange{}); got.Complete || len(got.Lines) > 0 {
		t.Errorf("without a controller: %+v", got)
	}
	controller, err := newController(
		&rest.Config{Host: "https://127.0.0.1:1"},
		&rest.Config{Host: "https://127.0.0.1:1"},
		nil, "replica", "winnow-system",
		parse(t).Controller,
	)
	if err != nil {
		t.Fatal(err)
	}
	f.controller.Store(controller)
	if got := f.Forecast(t.Context(), gc.PolicyChange{After: &gc.CleanupPolicy{}}); got.Complete || len(got.Lines) > 0 {
		t.Errorf("before the first lists: %+v", got)
	}
}
