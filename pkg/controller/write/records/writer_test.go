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

	"github.com/winnow-dev/winnow/pkg/controller/rules/deletion"
)

// TestChunks: records fill one chunk after the other. A chunk is read only once in a round, and chunks are listed only once while the last one
// is remembered.
func TestChunks(t *testing.T) {
	s := newStore(t)
	w := s.writer()
	add(w, "a", 0, 300)
	w.flush(t.Context())
	want := []string{"list a/", "create a/records-0000000000", "create a/records-0000000001", "create a/records-0000000002"}
	if !slices.Equal(s.requests, want) {
		t.Errorf("got %q, want %q", s.requests, want)
	}
	add(w, "a", 300, 700)
	add(w, "b", 0, 1)
	w.flush(t.Context())
	s.want("a", 0, 700)
	s.want("b", 0, 1)
	s.requests = nil
	add(w, "a", 700, 730)
	w.flush(t.Context())
	if want := []string{"get a/records-0000000006", "create a/records-0000000007"}; !slices.Equal(s.requests, want) {
		t.Errorf("got %q, want %q", s.requests, want)
	}
	s.requests = nil
	add(w, "a", 730, 740)
	w.flush(t.Context())
	s.clock.Step(rememberWritten + time.Second)
	add(w, "a", 740, 750)
	w.flush(t.Context())
	want = []string{"update a/records-0000000007", "get a/records-0000000007", "update a/records-0000000007"}
	if !slices.Equal(s.requests, want) {
		t.Errorf("got %q, want %q", s.requests, want)
	}
	add(w, "a", 750, 1200)
	w.flush(t.Context())
	s.want("a", 0, 1200)
	if _, sizes := s.stored("a"); !slices.Equal(sizes, []int{100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100}) {
		t.Errorf("got chunks of %v", sizes)
	}
	if got := s.counted("stored"); got != 1201 {
		t.Errorf("counted %d", got)
	}
	if w.buffer.len() != 0 {
		t.Errorf("%d records still wait", w.buffer.len())
	}
}

// TestRoundsEnd: a round writes each namespace once, although something else is deleted there during each write.
func TestRoundsEnd(t *testing.T) {
	s := newStore(t)
	w := s.writer()
	next := 0
	more := func(namespace string) {
		add(w, namespace, next, next+1)
		next++
	}
	for round := range 3 {
		for _, namespace := range []string{"a", "b"} {
			more(namespace)
		}
		s.requests = nil
		s.after = func(request string) error {
			if isWrite(request) {
				_, chunk, _ := strings.Cut(request, " ")
				more(chunk[:1])
			}
			return nil
		}
		w.flush(t.Context())
		writes := slices.DeleteFunc(s.requests, func(request string) bool { return !isWrite(request) })
		if len(writes) != 2 || w.buffer.len() != 2 {
			t.Fatalf("round %d sent %q, and %d records wait", round, writes, w.buffer.len())
		}
	}
}

// TestBusyNamespace: a round goes on in a namespace where so much waits that records would be dropped before the next one.
func TestBusyNamespace(t *testing.T) {
	s := newStore(t)
	w := s.writer()
	next := 0
	more := func(n int) {
		add(w, "a", next, next+n)
		next += n
	}
	more(1)
	s.after = func(request string) error {
		if isWrite(request) && next < 2*wakeAt {
			more(wakeAt)
		}
		return nil
	}
	w.flush(t.Context())
	if left := w.buffer.len(); next != 1+2*wakeAt || left >= wakeAt {
		t.Errorf("%d of %d records wait", left, next)
	}
}

// TestLeadsAgain: a replica that remembers a chunk which another one has removed since goes on behind the newest chunk.
func TestLeadsAgain(t *testing.T) {
	s := newStore(t)
	s.PerNamespace = 100
	one, two := s.writer(), s.writer()
	add(one, "a", 0, 5)
	one.flush(t.Context())
	add(two, "a", 5, 300)
	two.flush(t.Context())
	add(one, "a", 300, 308)
	one.flush(t.Context())
	names, _ := s.stored("a")
	if len(names) < 80 || len(names) > 100 || names[len(names)-1] != "job-307" {
		t.Errorf("%d records are stored, the last one is %s", len(names), names[len(names)-1])
	}
	chunks, err := list(t.Context(), s.Metadata, "a")
	if said := gaps(chunks); err != nil || len(said) > 0 {
		t.Errorf("who reads is told %q: %v", said, err)
	}
}

// TestChangedChunk: a writer that remembers a chunk adds to what another one has added to it since.
func TestChangedChunk(t *testing.T) {
	s := newStore(t)
	one, two := s.writer(), s.writer()
	add(one, "a", 0, 5)
	one.flush(t.Context())
	add(two, "a", 5, 10)
	two.flush(t.Context())
	add(one, "a", 10, 15)
	one.flush(t.Context())
	s.want("a", 0, 15)
	if _, sizes := s.stored("a"); !slices.Equal(sizes, []int{15}) {
		t.Errorf("got chunks of %v", sizes)
	}
}

// TestSharedChunks: a writer that begins all chunks counts what another one adds to them, so that the limit is not exceeded.
func TestSharedChunks(t *testing.T) {
	s := newStore(t)
	s.PerNamespace = 200 // In chunks of 20.
	one, next := s.writer(), 0
	for range 30 {
		two := s.writer() // It remembers nothing, so it removes nothing.
		for _, turn := range []struct {
			writer *Writer
			adds   int
		}{{one, 5}, {two, 10}, {one, 5}} {
			add(turn.writer, "a", next, next+turn.adds)
			next += turn.adds
			for turn.writer.buffer.len() > 0 { // It may find out that it must read again.
				turn.writer.flush(t.Context())
			}
		}
		if names, _ := s.stored("a"); len(names) > s.PerNamespace {
			t.Fatalf("there are %d records after %d", len(names), next)
		}
	}
}

// TestLostAnswers: if a write is carried out and its answer is lost, nothing is stored twice.
func TestLostAnswers(t *testing.T) {
	s := newStore(t)
	w := s.writer()
	for round := range 4 {
		add(w, "a", round*300, round*300+300)
		s.after = func(request string) error {
			if isWrite(request) {
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

// TestDeletedAgain: an object that came back from a backup, and was deleted again, has a record of each deletion.
func TestDeletedAgain(t *testing.T) {
	s := newStore(t)
	w := s.writer()
	for version := range uint64(2) {
		o := order("a", 0)
		o.Fact.ResourceVersion = version
		for range 2 { // The second one repeats the first.
			w.Add(o, now, false)
			w.flush(t.Context())
		}
	}
	if names, _ := s.stored("a"); len(names) != 2 {
		t.Errorf("there are %d records", len(names))
	}
}

// TestFull: nothing waits when the buffer is full, and what is dropped is counted.
func TestFull(t *testing.T) {
	s := newStore(t)
	w := s.writer()
	add(w, "a", 0, mostOfNamespace+7)
	if pending, dropped := w.buffer.len(), s.counted("dropped"); pending != mostOfNamespace || dropped != 7 {
		t.Errorf("of a namespace, %d wait and %d were dropped", pending, dropped)
	}
	for i := range maxPending / mostOfNamespace {
		add(w, fmt.Sprint("b-", i), 0, mostOfNamespace-1)
	}
	add(w, "c", 0, 5)
	if pending, dropped := w.buffer.len(), s.counted("dropped"); pending != maxPending || dropped != 7+2000-10+5 {
		t.Errorf("of all, %d wait and %d were dropped", pending, dropped)
	}
	w.Flush(t.Context())
	s.want("c", 0, 5)
	if names, _ := s.stored("a"); slices.Contains(names, "job-6") || !slices.Contains(names, fmt.Sprint("job-", mostOfNamespace+6)) {
		t.Error("not the oldest ones were dropped")
	}
}

// TestFlush: a leader that ends writes everything at once, more than the budget allows, although its context has ended.
func TestFlush(t *testing.T) {
	const namespaces = 3 * most // The time of the fake API server grows with the square.
	s := newStore(t)
	w := NewWriter(s.Config)
	for i := range namespaces {
		add(w, fmt.Sprintf("ns-%d", i), 0, 1)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	w.Flush(ended)
	if w.buffer.len() != 0 || s.counted("stored") != namespaces {
		t.Errorf("%d records still wait", w.buffer.len())
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
	page, err := (&Reader{Config: s.Config}).Records(t.Context(), all("a", 10))
	if err != nil || !slices.Contains(page.Missing, keepsNone) {
		t.Errorf("who asks is told %q: %v", page.Missing, err)
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
