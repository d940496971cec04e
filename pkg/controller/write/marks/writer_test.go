// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package marks

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/winnow-dev/winnow/pkg/controller/engine/knowledge"
	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
)

// TestWrites: each write is on top of what was observed, and marks without objects are deleted.
func TestWrites(t *testing.T) {
	bubble(t, func(o *fixture) {
		o.want("a", of("a", "marks-0", "", 2), of("a", "marks-1", "7", 3), of("a", "marks-2", "8", 0))
		defer o.lead()()
		o.wantWrites(0, "create a/marks-0@ 2", "delete a/marks-2@8", "update a/marks-1@7 3")
		o.wantWrites(time.Minute)
		o.want("a", of("a", "marks-0", "9", 1))
		o.wantWrites(flushEvery, "update a/marks-0@9 1")
		if got, want := o.results(), "ok 4, conflict 0, failed 0"; got != want {
			o.Errorf("got %s, want %s", got, want)
		}
	})
}

// TestPace: a namespace whose marks change all the time is written every ten seconds.
func TestPace(t *testing.T) {
	bubble(t, func(o *fixture) {
		defer o.lead()()
		for range 60 {
			o.want("a", of("a", "marks-0", "7", 1))
			time.Sleep(time.Second)
		}
		if got := len(o.after(0)); got != 6 {
			o.Errorf("%d writes in a minute", got)
		}
	})
}

// TestBudget: there are five writes a second, after the first ten, while the API server is slow, and large marks count as several. Every
// namespace has its turn.
func TestBudget(t *testing.T) {
	for objects, cost := range map[int]int{1: 1, knowledge.MaxMarks: 1 + knowledge.MaxMarks/perWrite} {
		bubble(t, func(o *fixture) {
			o.answers(func(string) error {
				time.Sleep(slow)
				return nil
			})
			const namespaces = 150
			for i := range namespaces {
				ns := fmt.Sprint("ns-", i)
				o.want(ns, of(ns, "marks-0", "7", objects))
			}
			defer o.lead()()
			written := len(o.after(2 * time.Second))
			if fair := (most + 2*slowest) / cost; written < fair-1 || written > fair+1 {
				o.Errorf("%d writes in the first two seconds, want about %d", written, fair)
			}
			for range 4 {
				n := len(o.after(6 * time.Second))
				if fair := 6 * slowest / cost; n < fair-1 || n > fair+1 {
					o.Errorf("%d writes in six seconds, want about %d", n, fair)
				}
				written += n
			}
			if written += len(o.after(namespaces * time.Duration(cost) * time.Second / slowest)); written != namespaces {
				o.Errorf("%d writes in all", written)
			}
		})
	}
}

// TestBurst: the first ten writes go at once, and large marks count as several.
func TestBurst(t *testing.T) {
	for objects, cost := range map[int]int{1: 1, knowledge.MaxMarks: 1 + knowledge.MaxMarks/perWrite} {
		bubble(t, func(o *fixture) {
			for i := range 150 {
				ns := fmt.Sprint("ns-", i)
				o.want(ns, of(ns, "marks-0", "7", objects))
			}
			defer o.lead()()
			if got := len(o.after(0)); got != most/cost {
				o.Errorf("%d writes at once, want %d", got, most/cost)
			}
		})
	}
}

// TestFollowsTheServer: the faster the API server answers, the more writes there are, and failures slow them down.
func TestFollowsTheServer(t *testing.T) {
	for name, c := range map[string]struct {
		takes time.Duration
		err   error
		want  int // a second
	}{
		"at once":           {0, nil, fastest},
		"quickly":           {10 * time.Millisecond, nil, fastest},
		"in 25 ms":          {25 * time.Millisecond, nil, 20},
		"slowly":            {time.Second / slowest, nil, slowest},
		"with errors":       {0, apierrors.NewInternalError(errors.New("etcdserver: request timed out")), slowest},
		"late, with errors": {50 * time.Millisecond, apierrors.NewInternalError(errors.New("etcdserver: request timed out")), slowest},
	} {
		bubble(t, func(o *fixture) {
			o.answers(func(string) error {
				time.Sleep(c.takes)
				return c.err
			})
			for i := range 2000 {
				ns := fmt.Sprint("ns-", i)
				o.want(ns, of(ns, "marks-0", "7", 1))
			}
			defer o.lead()()
			o.after(10 * time.Second)
			if got := len(o.after(10 * time.Second)); got < 10*c.want-2 || got > 10*c.want+2 {
				o.Errorf("%s: %d writes in ten seconds, want %d", name, got, 10*c.want)
			}
		})
	}
}

// TestConflict: after a conflict the writer stores what must be stored then.
func TestConflict(t *testing.T) {
	for name, err := range map[string]error{
		"update": apierrors.NewConflict(Resource.GroupResource(), "marks-0", errors.New("changed")),
		"create": apierrors.NewAlreadyExists(Resource.GroupResource(), "marks-0"),
	} {
		bubble(t, func(o *fixture) {
			o.answers(func(namespace string) error {
				if namespace == "a" {
					return err
				}
				return nil
			})
			o.want("a", of("a", "marks-0", "7", 1), of("a", "marks-1", "8", 1))
			o.want("b", of("b", "marks-0", "9", 1))
			defer o.lead()()
			o.wantWrites(0, "update a/marks-0@7 1", "update a/marks-1@8 1", "update b/marks-0@9 1")
			o.answers(func(string) error { return nil })
			o.want("a", of("a", "marks-0", "10", 2))
			o.wantWrites(flushEvery, "update a/marks-0@10 2")
			o.wantWrites(time.Minute)
			if got, want := o.results(), "ok 2, conflict 2, failed 0"; got != want || o.logs.String() != "" {
				o.Errorf("%s: got %s, want %s; logs %s", name, got, want, o.logs)
			}
		})
	}
}

// TestGone: what is gone is not written again, unless the tracker says so.
func TestGone(t *testing.T) {
	terminating := apierrors.NewForbidden(Resource.GroupResource(), "marks-0", errors.New("namespace a is being terminated"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	for name, err := range map[string]error{
		"marks": apierrors.NewNotFound(Resource.GroupResource(), "marks-0"), "namespace": terminating,
	} {
		bubble(t, func(o *fixture) {
			o.answers(func(string) error { return err })
			o.want("a", of("a", "marks-0", "7", 1))
			defer o.lead()()
			o.wantWrites(0, "update a/marks-0@7 1")
			o.wantWrites(time.Minute)
			if got, want := o.results(), "ok 0, conflict 1, failed 0"; got != want {
				o.Errorf("%s: got %s, want %s", name, got, want)
			}
		})
	}
}

// TestNotServed: if the API server does not serve marks, because their CustomResourceDefinition was deleted, nothing says when it serves
// them again.
func TestNotServed(t *testing.T) {
	bubble(t, func(o *fixture) {
		o.answers(func(string) error {
			return apierrors.NewGenericServerResponse(http.StatusNotFound, "post", Resource.GroupResource(), "", "404 page not found", 0, true)
		})
		o.want("a", of("a", "marks-0", "", 1))
		defer o.lead()()
		o.wantWrites(0, "create a/marks-0@ 1")
		o.answers(func(string) error { return nil })
		o.wantWrites(flushEvery, "create a/marks-0@ 1")
		if got, want := o.results(), "ok 1, conflict 0, failed 1"; got != want || !strings.Contains(o.logs.String(), "Cannot store") {
			o.Errorf("got %s, want %s; logs %s", got, want, o.logs)
		}
	})
}

// TestFailure: a failed write is tried again, and is logged once a minute for each namespace.
func TestFailure(t *testing.T) {
	bubble(t, func(o *fixture) {
		o.answers(func(string) error {
			return apierrors.NewForbidden(Resource.GroupResource(), "marks-0", errors.New("RBAC says no"))
		})
		o.want("a", of("a", "marks-0", "", 1))
		o.want("b", of("b", "marks-0", "", 1))
		defer o.lead()()
		if got := len(o.after(3*time.Minute - time.Second)); got != 36 {
			o.Errorf("%d writes in three minutes", got)
		}
		if logs := o.logs.String(); strings.Count(logs, `"a/marks-0"`) != 3 || strings.Count(logs, `"b/marks-0"`) != 3 || strings.Count(logs, "\n") != 6 {
			o.Errorf("logs: %s", logs)
		}
		o.answers(func(string) error { return nil })
		o.wantWrites(flushEvery, "create a/marks-0@ 1", "create b/marks-0@ 1")
		o.wantWrites(time.Minute)
		if got, want := o.results(), "ok 2, conflict 0, failed 36"; got != want {
			o.Errorf("got %s, want %s", got, want)
		}
	})
}

// TestUnknown: nothing is written while it is not known what is unused, and afterwards it is.
func TestUnknown(t *testing.T) {
	bubble(t, func(o *fixture) {
		o.unknown.Insert("a")
		o.want("a")
		defer o.lead()()
		o.wantWrites(time.Minute)
		o.known("a", of("a", "marks-0", "", 1))
		o.wantWrites(flushEvery, "create a/marks-0@ 1")
	})
}

// TestLosesTheLease: nothing is written after that. If this replica leads again, it writes the rest.
func TestLosesTheLease(t *testing.T) {
	bubble(t, func(o *fixture) {
		var all []string
		for i := range 30 {
			ns := fmt.Sprint("ns-", i)
			o.want(ns, of(ns, "marks-0", "", 1))
			all = append(all, "create "+ns+"/marks-0@ 1")
		}
		end := o.lead()
		written := o.after(time.Second)
		end()
		o.wantWrites(time.Minute)
		defer o.lead()()
		written = append(written, o.after(time.Minute)...)
		slices.Sort(written)
		slices.Sort(all)
		if diff := cmp.Diff(all, written); diff != "" {
			o.Errorf("wrote (-want +got):\n%s", diff)
		}
	})
}

// TestEndsInTheMiddle: a write that is cut off when the lease is lost is not counted as a failure, and is tried again.
func TestEndsInTheMiddle(t *testing.T) {
	bubble(t, func(o *fixture) {
		ctx, cancel := context.WithCancel(o.Context())
		o.answers(func(string) error {
			cancel()
			return ctx.Err()
		})
		o.want("a", of("a", "marks-0", "", 1), of("a", "marks-1", "", 1))
		o.Writer.Run(ctx)
		o.wantWrites(0, "create a/marks-0@ 1")
		if got, want := o.results(), "ok 0, conflict 0, failed 0"; got != want {
			o.Errorf("got %s, want %s", got, want)
		}
		if got := slices.Collect(maps.Keys(o.pending)); !slices.Equal(got, []string{"a"}) {
			o.Errorf("pending: %q", got)
		}
	})
}

// TestTurn: a namespace with many marks writes a few of them in each flush, all in turn, so that others have their turn too.
func TestTurn(t *testing.T) {
	bubble(t, func(o *fixture) {
		var all []*memory.Marks
		for i := range 7 {
			all = append(all, of("a", fmt.Sprint("marks-", i), "", 1))
		}
		o.want("a", all...)
		defer o.lead()()
		written := map[string]bool{}
		for range 4 {
			writes := o.after(flushEvery)
			if len(writes) > 2*turn {
				o.Errorf("writes %q at once", writes)
			}
			for _, write := range writes {
				written[write] = true
			}
		}
		if len(written) != len(all) {
			o.Errorf("wrote only %v", slices.Sorted(maps.Keys(written)))
		}
	})
}
