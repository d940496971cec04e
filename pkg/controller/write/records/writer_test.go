// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package records

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/winnow-dev/winnow/pkg/controller/rules/deletion"
)

// TestChunks: records fill one chunk after the other, and a chunk is not read again while it is remembered.
func TestChunks(t *testing.T) {
	s := newStore(t)
	w := s.writer()
	add(w, "a", 0, 700)
	add(w, "b", 0, 1)
	w.flush(t.Context())
	s.want("a", 0, 700)
	s.want("b", 0, 1)
	s.requests = nil
	add(w, "a", 700, 1200)
	w.flush(t.Context())
	s.want("a", 0, 1200)
	if _, sizes := s.stored("a"); !slices.Equal(sizes, []int{500, 500, 200}) {
		t.Errorf("got chunks of %v", sizes)
	}
	if want := []string{"update a/records-0000000001", "list a/", "create a/records-0000000002"}; !slices.Equal(s.requests, want) {
		t.Errorf("got %q, want %q", s.requests, want)
	}
	if got := s.counted("stored"); got != 1201 {
		t.Errorf("counted %d", got)
	}
	if w.buffer.len() != 0 {
		t.Errorf("%d records still wait", w.buffer.len())
	}
}

// TestLostAnswers: if a write is carried out and its answer is lost, nothing is stored twice.
func TestLostAnswers(t *testing.T) {
	s := newStore(t)
	w := s.writer()
	for round := range 4 {
		add(w, "a", round*300, round*300+300)
		s.after = func(request string) error {
			if strings.HasPrefix(request, "create") || strings.HasPrefix(request, "update") {
				return errors.New("connection reset")
			}
			return nil
		}
		w.flush(t.Context())
		s.after = func(string) error { return nil }
		w.flush(t.Context())
		s.want("a", 0, round*300+300)
	}
	if w.buffer.len() != 0 {
		t.Errorf("%d records still wait", w.buffer.len())
	}
}

// TestTwoLeaders: two writers whose time overlaps store each record once, whatever they remember of the chunks.
func TestTwoLeaders(t *testing.T) {
	s := newStore(t)
	one, two := s.writer(), s.writer()
	next := 0
	for round := range 30 {
		for _, w := range []*Writer{one, two, one, two, two} {
			n := 1 + (round*37+next)%90
			add(w, "a", next, next+n)
			next += n
			w.flush(t.Context())
		}
	}
	for range 4 { // Each may find once that it must read again.
		one.flush(t.Context())
		two.flush(t.Context())
	}
	s.want("a", 0, next)
}

// TestNextLeader: a leader that has the same records, because it does not know whether they are stored, leaves them out.
func TestNextLeader(t *testing.T) {
	s := newStore(t)
	one, two := s.writer(), s.writer()
	add(one, "a", 0, 600)
	one.flush(t.Context())
	add(two, "a", 300, 700)
	two.flush(t.Context())
	s.want("a", 0, 700)
}

// TestGone: what became of a namespace, a chunk, or the resource.
func TestGone(t *testing.T) {
	terminating := apierrors.NewForbidden(Resource.GroupResource(), "r", errors.New("the namespace goes"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	unserved := apierrors.NewGenericServerResponse(404, "POST", schema.GroupResource{}, "", "404 page not found", 0, true)
	for name, c := range map[string]struct {
		err           error
		pending, gone int
	}{
		"a namespace that is gone": {apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "a"), 0, 3},
		"a namespace that goes":    {terminating, 0, 3},
		"an unserved resource":     {unserved, 3, 0},
		"an error":                 {errors.New("overloaded"), 3, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t)
			w := s.writer()
			s.before = func(request string) error {
				if strings.HasPrefix(request, "create") {
					return c.err
				}
				return nil
			}
			add(w, "a", 0, 3)
			w.flush(t.Context())
			if pending, gone := w.buffer.len(), s.counted("gone"); pending != c.pending || gone != c.gone {
				t.Errorf("%d wait and %d are gone, want %d and %d", pending, gone, c.pending, c.gone)
			}
		})
	}
}

// TestDeletedChunk: if somebody deletes the chunk that is remembered, the next records are stored all the same.
func TestDeletedChunk(t *testing.T) {
	s := newStore(t)
	w := s.writer()
	add(w, "a", 0, 3)
	w.flush(t.Context())
	clear(s.objects)
	add(w, "a", 3, 5)
	w.flush(t.Context())
	w.flush(t.Context())
	s.want("a", 3, 5)
}

// TestGarbage: a chunk that cannot be read stays as it is, and another one follows.
func TestGarbage(t *testing.T) {
	for _, change := range []map[string]any{
		{fieldFormat: "v2+zstd"}, {fieldRecords: "!"}, {fieldRecords: "AAAA"}, {fieldRecords: ""}, {fieldFormat: nil},
	} {
		s := newStore(t)
		w := s.writer()
		add(w, "a", 0, 3)
		w.flush(t.Context())
		broken := s.objects["a/records-0000000000"]
		for field, value := range change {
			broken.Object[field] = value
		}
		s.put(broken)
		version := broken.GetResourceVersion()
		w = s.writer()
		add(w, "a", 3, 5)
		w.flush(t.Context())
		if got := s.objects["a/records-0000000000"].GetResourceVersion(); got != version {
			t.Errorf("%v: the chunk was changed", change)
		}
		s.want("a", 3, 5)
		page, err := (&Reader{s.Config}).Records(t.Context(), all("a", 10))
		if err != nil || len(page.Items) != 2 || len(page.Missing) != 1 || !strings.Contains(page.Missing[0], "a/records-0000000000 cannot be read") {
			t.Errorf("%v: got %d records, %q, %v", change, len(page.Items), page.Missing, err)
		}
	}
}

// TestFull: nothing waits when the buffer is full, and what is dropped is counted.
func TestFull(t *testing.T) {
	s := newStore(t)
	w := s.writer()
	add(w, "a", 0, maxPending+7)
	if pending, dropped := w.buffer.len(), s.counted("dropped"); pending != maxPending || dropped != 7 {
		t.Errorf("%d wait and %d were dropped", pending, dropped)
	}
	w.Flush(t.Context())
	add(w, "a", maxPending+7, maxPending+8)
	if pending, dropped := w.buffer.len(), s.counted("dropped"); pending != 1 || dropped != 7 {
		t.Errorf("afterwards, %d wait and %d were dropped", pending, dropped)
	}
}

// TestFlush: a leader that ends writes everything at once, more than the budget allows, although its context has ended.
func TestFlush(t *testing.T) {
	s := newStore(t)
	w := NewWriter(s.Config)
	for i := range 10 * most {
		add(w, fmt.Sprintf("ns-%d", i), 0, 1)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	begun := time.Now()
	w.Flush(ended)
	if w.buffer.len() != 0 || s.counted("stored") != 10*most {
		t.Errorf("%d records still wait after %s", w.buffer.len(), time.Since(begun))
	}
}

// TestNoRecords: with a limit of 0, there are none.
func TestNoRecords(t *testing.T) {
	s := newStore(t)
	s.PerNamespace = 0
	w := s.writer()
	add(w, "a", 0, 3)
	w.Flush(t.Context())
	if len(s.requests) > 0 {
		t.Errorf("got %q", s.requests)
	}
}

// TestLimit: a namespace never has more records than the limit, and the oldest go.
func TestLimit(t *testing.T) {
	for _, limit := range []int{1, 7, 10, 95, 1000} {
		s := newStore(t)
		s.PerNamespace = limit
		w := s.writer()
		step := max(1, limit/30)
		for i := 0; i < 3*limit; i += step {
			add(w, "a", i, min(i+step, 3*limit))
			w.flush(t.Context())
			if names, _ := s.stored("a"); len(names) > limit {
				t.Fatalf("limit %d: %d records", limit, len(names))
			}
		}
		names, _ := s.stored("a")
		s.want("a", 3*limit-len(names), 3*limit)
		if len(names) < limit-2*max(1, limit/10) {
			t.Errorf("limit %d: only %d records are left", limit, len(names))
		}
	}
}

// TestRecordsOfOrders: what a record says.
func TestRecordsOfOrders(t *testing.T) {
	o := order("a", 1)
	o.Since, o.Due = now.Add(-2*time.Hour), now.Add(-time.Hour)
	o.PolicyGeneration, o.Rule, o.Account, o.ApprovedHold = 7, "fast", "cleaner", "abc"
	r := newRecord(o, now.Add(1234567*time.Nanosecond))
	if r.Policy.Kind != "CleanupPolicy" || r.Policy.Generation != 7 || r.Policy.Rule != "fast" || r.ServiceAccountName != "cleaner" ||
		r.ApprovedHold != "abc" || r.Object.Name != "job-1" || !r.DueTime.Time.Equal(o.Due) || !r.Since.Time.Equal(o.Since) {
		t.Errorf("got %+v", r)
	}
	if got := r.DeletionTime.Nanosecond(); got != 1234000 {
		t.Errorf("got %d ns", got)
	}
	cluster := deletion.Order{Fact: o.Fact}
	if r := newRecord(&cluster, now); r.Policy.Kind != "ClusterCleanupPolicy" || r.DueTime != nil || r.Owner != nil {
		t.Errorf("got %+v", r)
	}
}
