// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package records

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
)

// TestPages: whatever the size of the pages, they have each record once, by namespace and the newest first.
func TestPages(t *testing.T) {
	s := newStore(t)
	s.PerNamespace = 100 // 10 records in a chunk
	random := rand.New(rand.NewPCG(1, 2))
	var want []string
	for _, namespace := range []string{"a", "b", "c"} {
		w := s.writer()
		n := 40 + random.IntN(50)
		times := map[int]int{}
		for i := range n {
			at := i/3*3 + random.IntN(9) // Equal times, and chunks that overlap.
			times[i] = at
			w.Add(order(namespace, i), now.Add(time.Duration(at-1000)*time.Second), false)
			if random.IntN(4) == 0 {
				w.flush(t.Context())
			}
		}
		w.flush(t.Context())
		s.want(namespace, 0, n)
		numbers := make([]int, n)
		for i := range numbers {
			numbers[i] = i
		}
		slices.SortFunc(numbers, func(x, y int) int {
			if times[x] != times[y] {
				return times[y] - times[x]
			}
			return x - y
		})
		for _, i := range numbers {
			want = append(want, fmt.Sprintf("%s/job-%d", namespace, i))
		}
	}
	for _, limit := range []int{1, 2, 7, 10, 33, 1000} {
		var got []string
		for q := all("", limit); ; {
			page, err := (&Reader{s.Config}).Records(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			if len(page.Items) > limit || len(page.Missing) > 0 {
				t.Fatalf("a page of %d has %d records, %q", limit, len(page.Items), page.Missing)
			}
			for i := range page.Items {
				got = append(got, page.Items[i].Namespace+"/"+page.Items[i].Status.Object.Name)
			}
			if page.Next == nil {
				break
			}
			q.After = *page.Next
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("pages of %d (-want +got):\n%s", limit, diff)
		}
	}
}

// TestFewReads: the first page reads only the newest chunks.
func TestFewReads(t *testing.T) {
	s := newStore(t)
	s.PerNamespace = 1000 // 100 records in a chunk
	w := s.writer()
	add(w, "a", 0, 1000)
	w.flush(t.Context())
	s.requests = nil
	if _, err := (&Reader{s.Config}).Records(t.Context(), all("a", 50)); err != nil {
		t.Fatal(err)
	}
	if want := []string{"list a/", "get a/records-0000000009"}; !slices.Equal(s.requests, want) {
		t.Errorf("got %q, want %q", s.requests, want)
	}
}

// TestSelectors: what field selectors select.
func TestSelectors(t *testing.T) {
	s := newStore(t)
	w := s.writer()
	add(w, "a", 0, 3)
	other := order("a", 1)
	other.Fact.Resource, other.Fact.UID, other.Policy.Name = "pods", "pod", "q"
	w.Add(other, now, false)
	w.flush(t.Context())
	for selector, want := range map[string]string{
		"":                                   "pods/job-1 jobs.batch/job-2 jobs.batch/job-1 jobs.batch/job-0",
		"object=job-1":                       "pods/job-1 jobs.batch/job-1",
		"object=jobs.batch/job-1":            "jobs.batch/job-1",
		"object!=job-1":                      "jobs.batch/job-2 jobs.batch/job-0",
		"resource=pods":                      "pods/job-1",
		"policy=q":                           "pods/job-1",
		"policy!=q,object=jobs.batch/job-2":  "jobs.batch/job-2",
		"metadata.name=pod":                  "pods/job-1",
		"metadata.namespace=b":               "",
		"metadata.namespace=a,resource=pods": "pods/job-1",
	} {
		q := all("a", 10)
		q.Fields = fields.ParseSelectorOrDie(selector)
		page, err := (&Reader{s.Config}).Records(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for i := range page.Items {
			got = append(got, page.Items[i].Status.Object.Resource+"/"+page.Items[i].Status.Object.Name)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: got %q, want %q", selector, got, want)
		}
	}
}

// TestHidden: records of resources that the caller may not list are hidden, and the caller is asked about them whatever is selected.
func TestHidden(t *testing.T) {
	s := newStore(t)
	w := s.writer()
	add(w, "a", 0, 3)
	w.flush(t.Context())
	asked := 0
	q := all("a", 10)
	q.Fields = fields.OneTermEqualSelector(gc.FieldObject, "absent")
	q.MayList = func(context.Context, string) (bool, error) {
		asked++
		return false, nil
	}
	if page, err := (&Reader{s.Config}).Records(t.Context(), q); err != nil || len(page.Items) > 0 || asked != 3 {
		t.Errorf("got %d records after %d questions, %v", len(page.Items), asked, err)
	}
	q.MayList = func(context.Context, string) (bool, error) { return false, errors.New("no answer") }
	if _, err := (&Reader{s.Config}).Records(t.Context(), q); err == nil {
		t.Error("got no error")
	}
}

// TestManyChunks: a request reads only so many chunks, and its pages have each record once all the same.
func TestManyChunks(t *testing.T) {
	s := newStore(t)
	s.PerNamespace = 30 // 3 records in a chunk
	s.before = func(request string) error {
		if strings.HasPrefix(request, "delete") {
			return errors.New("nothing is removed")
		}
		return nil
	}
	for _, namespace := range []string{"a", "b"} {
		w := s.writer()
		for i := range 300 {
			w.Add(order(namespace, i), now.Add(-time.Duration(i)*time.Minute), false)
		}
		w.flush(t.Context())
		s.want(namespace, 0, 300)
	}
	for _, selector := range []string{"", "object=job-150", "object=absent"} {
		got, requests := 0, 0
		q := all("", 1000)
		q.Fields = fields.ParseSelectorOrDie(selector)
		for {
			s.requests = nil
			page, err := (&Reader{s.Config}).Records(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			reads := 0
			for _, request := range s.requests {
				if strings.HasPrefix(request, "get") {
					reads++
				}
			}
			if reads > chunksOfRequest+1 {
				t.Fatalf("%q: a request read %d chunks", selector, reads)
			}
			got, requests = got+len(page.Items), requests+1
			if page.Next == nil {
				break
			}
			q.After = *page.Next
		}
		if want := map[string]int{"": 600, "object=job-150": 2}[selector]; got != want || requests < 200/chunksOfRequest {
			t.Errorf("%q: got %d records in %d requests, want %d", selector, got, requests, want)
		}
	}
}

// TestSince: older chunks are not read.
func TestSince(t *testing.T) {
	s := newStore(t)
	w := s.writer()
	for i := range 250 {
		w.Add(order("a", i), now.Add(time.Duration(i-250)*time.Minute), false)
	}
	w.flush(t.Context())
	s.requests = nil
	q := all("a", 1000)
	q.Since = now.Add(-60 * time.Minute)
	q.Fields = fields.OneTermEqualSelector(gc.FieldSince, "the same")
	page, err := (&Reader{s.Config}).Records(t.Context(), q)
	if err != nil || len(page.Items) != 60 {
		t.Errorf("got %d records, %v", len(page.Items), err)
	}
	if want := []string{"list a/", "get a/records-0000000002", "get a/records-0000000001"}; !slices.Equal(s.requests, want) {
		t.Errorf("got %q, want %q", s.requests, want)
	}
}

// TestDeletedTwice: an object that came back from a backup, and was deleted again, has its newest record.
func TestDeletedTwice(t *testing.T) {
	s := newStore(t)
	w := s.writer()
	w.Add(order("a", 1), now.Add(-time.Hour), false)
	w.flush(t.Context())
	add(w, "a", 100, 250) // Other chunks.
	w.flush(t.Context())
	w.Add(order("a", 1), now, true)
	w.flush(t.Context())
	q := all("a", 1000)
	q.Fields = fields.OneTermEqualSelector("metadata.name", "uid-a-00001")
	page, err := (&Reader{s.Config}).Records(t.Context(), q)
	if err != nil || len(page.Items) != 1 || !page.Items[0].Status.DeletionTime.Time.Equal(now) || !page.Items[0].Status.AnswerLost {
		t.Errorf("got %+v, %v", page.Items, err)
	}
}

// TestMissingChunks: readers are told that somebody deleted a chunk, unless it was the oldest.
func TestMissingChunks(t *testing.T) {
	s := newStore(t)
	s.PerNamespace = 100
	w := s.writer()
	add(w, "a", 0, 60)
	w.flush(t.Context())
	delete(s.objects, "a/records-0000000000")
	read := func() []string {
		page, err := (&Reader{s.Config}).Records(t.Context(), all("a", 100))
		if err != nil {
			t.Fatal(err)
		}
		return page.Missing
	}
	if got := read(); len(got) > 0 {
		t.Errorf("got %q", got)
	}
	delete(s.objects, "a/records-0000000002")
	delete(s.objects, "a/records-0000000003")
	if got := read(); len(got) != 1 || !strings.Contains(got[0], "somebody has deleted 2 recordchunks") {
		t.Errorf("got %q", got)
	}
}
