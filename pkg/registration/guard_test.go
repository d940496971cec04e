// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	clocktesting "k8s.io/utils/clock/testing"
)

// guarded is a Guard whose Run is played by its test, and the APIService that it guards.
type guarded struct {
	*Guard
	services *services
	clock    *clocktesting.FakeClock
	asked    error
	leaving  bool
	told     int
}

func newGuarded() *guarded {
	g := &guarded{
		services: &services{stored: &apiregistrationv1.APIService{ObjectMeta: metav1.ObjectMeta{Name: Name, UID: "1", ResourceVersion: "1"}}},
		clock:    clocktesting.NewFakeClock(noon), asked: apierrors.NewServiceUnavailable("no replica"),
	}
	g.Guard = &Guard{
		APIServices: g.services, After: 10 * time.Minute, Clock: g.clock,
		Ask:       func(context.Context) error { return g.asked },
		Leaving:   func(context.Context) (bool, error) { return g.leaving, nil },
		Withdrawn: func(context.Context, *apiregistrationv1.APIService, string) { g.told++ },
	}
	return g
}

// lookFor looks every ten seconds for a while, and reports whether the APIService is still there.
func (g *guarded) lookFor(d time.Duration) bool {
	for ; d > 0; d -= guardEvery {
		_ = g.check(quiet)
		g.clock.Step(guardEvery)
	}
	return g.services.stored != nil
}

// TestWithdraw: without any answer for ten minutes, and not a look earlier.
func TestWithdraw(t *testing.T) {
	g := newGuarded()
	if !g.lookFor(10 * time.Minute) {
		t.Fatal("withdrawn too early")
	}
	if g.lookFor(guardEvery) || g.told != 1 {
		t.Errorf("not withdrawn; told %d times", g.told)
	}
	if g.lookFor(time.Hour); g.told != 1 {
		t.Error("withdrawn when there was nothing")
	}
}

// TestNotWithdrawn: one answer, or not knowing, in nine minutes each, keeps the APIService for ever.
func TestNotWithdrawn(t *testing.T) {
	refused := errors.New("connection refused")
	for name, c := range map[string]struct{ begin, end func(*guarded) }{
		"available": {func(g *guarded) { g.services.answered = true }, func(g *guarded) { g.services.answered = false }},
		"an answer": {func(g *guarded) { g.asked = nil }, nil},
		"an answer that the guard may not see": {
			func(g *guarded) {
				g.asked = apierrors.NewForbidden(apiregistrationv1.Resource("apiservices"), Name, refused)
			}, nil,
		},
		"an error of Winnow": {func(g *guarded) { g.asked = apierrors.NewInternalError(refused) }, nil},
		"too many requests":  {func(g *guarded) { g.asked = apierrors.NewTooManyRequests("later", 1) }, nil},
		"kube-apiserver goes away": {func(g *guarded) {
			g.asked = refused
			g.lookFor(guardPause + guardEvery)
		}, nil},
		"kube-apiserver is not there": {func(g *guarded) {
			g.services.err = refused
			g.lookFor(guardPause + guardEvery)
		}, func(g *guarded) { g.services.err = nil }},
		"the guard was stopped": {func(g *guarded) { g.clock.Step(2 * guardPause) }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGuarded()
			unanswered := g.asked
			for range 5 {
				if !g.lookFor(9 * time.Minute) {
					t.Fatal("withdrawn")
				}
				c.begin(g)
				_ = g.check(quiet)
				if g.asked = unanswered; c.end != nil {
					c.end(g)
				}
			}
		})
	}
}

// TestUnanswered: what kube-apiserver says for a server that does not answer.
func TestUnanswered(t *testing.T) {
	for name, err := range map[string]error{
		"no endpoints": apierrors.NewServiceUnavailable("no endpoints"),
		"a timeout":    apierrors.NewTimeoutError("no answer", 1),
		"504":          apierrors.NewGenericServerResponse(http.StatusGatewayTimeout, "get", apiregistrationv1.Resource("apiservices"), Name, "", 0, true),
	} {
		g := newGuarded()
		if g.asked = err; !unanswered(g.ask(quiet)) {
			t.Errorf("%s is an answer", name)
		}
	}
	hung := newGuarded()
	ctx, cancel := context.WithCancel(quiet)
	hung.Ask = func(context.Context) error { cancel(); return context.Canceled }
	if !unanswered(hung.ask(ctx)) {
		t.Error("a request that hangs is an answer")
	}
}

// TestUntrusted: before Kubernetes 1.36, an APIService is available though kube-apiserver does not trust its certificate.
func TestUntrusted(t *testing.T) {
	g := newGuarded()
	g.services.answered = true
	g.asked = fmt.Errorf("%w: x509: certificate has expired: %w", errUntrusted, apierrors.NewServiceUnavailable("unable"))
	if g.lookFor(10*time.Minute + guardEvery) {
		t.Error("not withdrawn")
	}
}

// TestCreatedByAnother: what a GitOps tool creates again is withdrawn after a minute, unless it has answered.
func TestCreatedByAnother(t *testing.T) {
	g := newGuarded()
	stored := g.services.stored
	g.lookFor(10*time.Minute + guardEvery)
	g.services.stored = stored
	if !g.lookFor(arriving) || g.lookFor(guardEvery) {
		t.Error("not withdrawn after a minute")
	}
	g.services.stored, g.asked = stored, nil
	g.lookFor(guardEvery)
	g.asked = apierrors.NewServiceUnavailable("no replica")
	if !g.lookFor(10 * time.Minute) {
		t.Error("withdrawn too early, though it has answered")
	}
}

// TestFinalizer: what cannot be deleted is not withdrawn again and again.
func TestFinalizer(t *testing.T) {
	g := newGuarded()
	g.services.stored.DeletionTimestamp, g.services.stored.Finalizers = &metav1.Time{Time: noon}, []string{"example.com/keep"}
	if err := g.look(quiet); err == nil || !strings.Contains(err.Error(), `its finalizers ["example.com/keep"]`) {
		t.Errorf("got %v", err)
	}
}

// TestForgiven: a short time in which nothing can be found out does not begin the ten minutes anew.
func TestForgiven(t *testing.T) {
	g := newGuarded()
	g.lookFor(5 * time.Minute)
	g.services.err = errors.New("connection refused")
	g.lookFor(guardPause - guardEvery)
	g.services.err = nil
	if g.lookFor(5*time.Minute - guardPause + 3*guardEvery) {
		t.Error("not withdrawn")
	}
}

// TestChanged: what becomes available while kube-apiserver is asked is not withdrawn; other changes do not matter.
func TestChanged(t *testing.T) {
	for available, want := range map[bool]bool{true: true, false: false} {
		g := newGuarded()
		g.lookFor(10 * time.Minute)
		g.Ask = func(context.Context) error {
			g.services.stored.ResourceVersion, g.services.answered = "2", available
			return g.asked
		}
		if err := g.check(quiet); err != nil || (g.services.stored != nil) != want {
			t.Errorf("available: %v, withdrawn: %v; %v", available, g.services.stored == nil, err)
		}
	}
}

// TestGuardOfDeletedNamespace: the APIService goes at once, even if the guard has to end.
func TestGuardOfDeletedNamespace(t *testing.T) {
	g := newGuarded()
	g.services.answered, g.leaving = true, true
	if err := g.check(quiet); err != nil || g.services.stored != nil {
		t.Errorf("not withdrawn: %v", err)
	}
	g = newGuarded()
	g.services.answered, g.leaving = true, true
	ended, end := context.WithCancel(quiet)
	end()
	if g.Run(ended); g.services.stored != nil {
		t.Error("not withdrawn at the end")
	}
}
