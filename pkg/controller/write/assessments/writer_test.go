// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package assessments

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/winnow-dev/winnow/pkg/controller/rules/assessment"
)

// TestWrites: each write is on top of what was observed, at once, and an object without contents is deleted.
func TestWrites(t *testing.T) {
	bubble(t, func(o *fixture) {
		defer o.lead()()
		o.want(holding("holds-0", "", 2), holding("holds-1", "7", 3), &assessment.Object{Name: "holds-2", ResourceVersion: "8"})
		o.wantWrites(0, "create holds-0@", "update holds-1@7", "delete holds-2@8")
		o.wantSaid("holds-0: ", "holds-1: ", "holds-2: ")
		o.want(holding("holds-0", "9", 1))
		o.wantWrites(0, "update holds-0@9")
		o.wantWrites(time.Minute)
		if got, want := o.results(), "ok 4, conflict 0, failed 0"; got != want {
			o.Errorf("got %s, want %s", got, want)
		}
	})
}

// TestBudget: there are five writes a second, after the first ten.
func TestBudget(t *testing.T) {
	bubble(t, func(o *fixture) {
		var all []*assessment.Object
		for i := range 40 {
			all = append(all, holding(fmt.Sprint("holds-", i), "7", 1))
		}
		defer o.lead()()
		o.want(all...)
		if got := len(o.after(0)); got != most {
			o.Errorf("%d writes at once", got)
		}
		for range 4 {
			if got := len(o.after(time.Second)); got != budget {
				o.Errorf("%d writes in a second", got)
			}
		}
	})
}

// TestConflict: after a conflict the writer waits a moment for the watch, and then writes what must be stored then.
func TestConflict(t *testing.T) {
	for name, err := range map[string]error{
		"update": apierrors.NewConflict(Resource.GroupResource(), "holds-0", errors.New("changed")),
		"create": apierrors.NewAlreadyExists(Resource.GroupResource(), "holds-0"),
		"delete": apierrors.NewNotFound(Resource.GroupResource(), "holds-0"),
	} {
		bubble(t, func(o *fixture) {
			o.answers(func(name string) error {
				if name == "holds-0" {
					return err
				}
				return nil
			})
			defer o.lead()()
			o.want(holding("holds-0", "7", 1), holding("holds-1", "8", 1))
			o.wantWrites(0, "update holds-0@7", "update holds-1@8")
			o.wantSaid("holds-0: "+err.Error(), "holds-1: ")
			o.answers(succeed)
			o.want(holding("holds-0", "10", 2))
			o.wantWrites(retryFirst, "update holds-0@10")
			o.wantSaid("holds-0: ")
			o.wantWrites(time.Minute)
			if got, want := o.results(), "ok 2, conflict 1, failed 0"; got != want || o.logs.String() != "" || o.relists > 0 {
				o.Errorf("%s: got %s, want %s; listed again %d times; logs %s", name, got, want, o.relists, o.logs)
			}
		})
	}
}

// TestNotReported: if the watch does not report what was written, all are listed again every five seconds or so.
func TestNotReported(t *testing.T) {
	bubble(t, func(o *fixture) {
		defer o.lead()()
		o.want(holding("holds-0", "7", 1))
		o.wantWrites(0, "update holds-0@7")
		o.answers(func(string) error {
			return apierrors.NewConflict(Resource.GroupResource(), "holds-0", errors.New("changed"))
		})
		o.after(reportedWithin - time.Millisecond)
		o.want(holding("holds-0", "7", 1))
		o.after(0)
		if o.relists > 0 {
			o.Error("listed again too soon")
		}
		o.after(time.Minute)
		if o.relists < 6 || o.relists > 12 {
			o.Errorf("listed again %d times in a minute", o.relists)
		}
		before := o.relists
		o.want(holding("holds-0", "8", 1)) // The watch reports the next version now, and so on.
		o.after(retryMost)
		o.answers(succeed)
		for version := range 10 {
			o.want(holding("holds-0", fmt.Sprint(10+version), 1))
			o.after(reportedWithin)
		}
		if o.relists != before {
			o.Error("listed again though the watch reports everything")
		}
	})
}

// TestFailure: a failed write is tried again, later each time, is logged once a minute, and the tracker is told.
func TestFailure(t *testing.T) {
	denied := apierrors.NewForbidden(Resource.GroupResource(), "holds-0", errors.New("RBAC says no"))
	bubble(t, func(o *fixture) {
		o.answers(func(string) error { return denied })
		defer o.lead()()
		o.want(holding("holds-0", "7", 1))
		write := "update holds-0@7"
		o.wantWrites(0, write)
		o.wantSaid("holds-0: " + denied.Error())
		o.wantWrites(retryFirst, write)
		o.wantWrites(2*retryFirst, write)
		if got := len(o.after(3*time.Minute - time.Second)); got < 35 || got > 42 {
			o.Errorf("%d writes in three minutes", got)
		}
		if logs := o.logs.String(); strings.Count(logs, "RBAC says no") != 3 || strings.Count(logs, "\n") != 3 {
			o.Errorf("logs: %s", logs)
		}
		o.do(func() { o.said = nil })
		o.answers(succeed)
		o.wantWrites(retryMost, write)
		o.wantSaid("holds-0: ")
		o.want(holding("holds-0", "8", 1))
		o.wantWrites(0, "update holds-0@8")
	})
}

// TestNotConfirmed: nothing is written unless the Lease names this replica.
func TestNotConfirmed(t *testing.T) {
	bubble(t, func(o *fixture) {
		o.confirmed = errors.New("reading lease: it names another replica")
		defer o.lead()()
		o.want(holding("holds-0", "7", 1))
		o.wantWrites(time.Second)
		o.do(func() {
			if len(o.said) == 0 || !strings.Contains(o.said[0], "it names another replica") {
				o.Errorf("told of failures: %q", o.said)
			}
			o.confirmed = nil
		})
		o.wantWrites(retryMost, "update holds-0@7")
	})
}

// TestLosesTheLease: nothing is written after that, also not if writes have failed before.
func TestLosesTheLease(t *testing.T) {
	bubble(t, func(o *fixture) {
		o.answers(func(string) error { return errors.New("etcdserver: no leader") })
		end := o.lead()
		o.want(holding("holds-0", "7", 1))
		o.wantWrites(0, "update holds-0@7")
		end()
		o.answers(succeed)
		o.wantWrites(time.Minute)
		defer o.lead()()
		o.wantWrites(0, "update holds-0@7")
	})
}

// TestEndsInTheMiddle: a write that is cut off when the lease is lost is no failure, and the next ones are not made.
func TestEndsInTheMiddle(t *testing.T) {
	bubble(t, func(o *fixture) {
		ctx, cancel := context.WithCancel(o.Context())
		o.answers(func(string) error {
			cancel()
			return ctx.Err()
		})
		o.want(holding("holds-0", "", 1), holding("holds-1", "", 1))
		o.Writer.Run(ctx)
		o.wantWrites(0, "create holds-0@")
		o.wantSaid()
		if got, want := o.results(), "ok 0, conflict 0, failed 0"; got != want {
			o.Errorf("got %s, want %s", got, want)
		}
	})
}
