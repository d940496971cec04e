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
			w.Add(order(namespace, i), now.Add(time.Duration(at-1000)*time.Second))
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
	w.Add(other, now)
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

// TestOldRecords: what is older than the retention is not served, and whole chunks of it are removed.
func TestOldRecords(t *testing.T) {
	s := newStore(t)
	s.PerNamespace = 20
	w := s.writer()
	for i, days := range []int{40, 35, 33, 29, 1, 0} { // 2 in a chunk
		w.Add(order("a", i), now.AddDate(0, 0, -days))
	}
	w.flush(t.Context())
	page, err := (&Reader{s.Config}).Records(t.Context(), all("", 10))
	if err != nil || len(page.Items) != 3 {
		t.Errorf("got %d records, %v", len(page.Items), err)
	}
	newRemover(s.Config, w.limit).sweep(t.Context())
	s.want("a", 2, 6)
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

// TestSurplus: which chunks are removed.
func TestSurplus(t *testing.T) {
	for name, c := range map[string]struct {
		counts, ages []int // ages in days; -1 if not known
		limit, want  int
	}{
		"few and young":              {[]int{5, 5}, []int{2, 1}, 10, 0},
		"one too many":               {[]int{5, 5, 1}, []int{2, 1, 0}, 10, 1},
		"none allowed":               {[]int{5, 5}, []int{2, 1}, 0, 2},
		"old":                        {[]int{5, 5, 5}, []int{40, 31, 0}, 100, 2},
		"unknown":                    {[]int{0, 5}, []int{-1, 1}, 10, 0},
		"unknown before what is old": {[]int{0, 5, 5}, []int{-1, 31, 1}, 10, 2},
	} {
		var chunks []chunk
		for i, count := range c.counts {
			k := chunk{number: uint64(i), count: count}
			if c.ages[i] >= 0 {
				k.newest = now.AddDate(0, 0, -c.ages[i])
			}
			chunks = append(chunks, k)
		}
		if got := surplus(chunks, c.limit, now.AddDate(0, 0, -30)); len(got) != c.want {
			t.Errorf("%s: removed %d chunks, want %d", name, len(got), c.want)
		}
	}
}
