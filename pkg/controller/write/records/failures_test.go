// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package records

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
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
	"k8s.io/apimachinery/pkg/types"
)

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
	s.want("a", 3, 5)
	if s.objects["a/records-0000000001"] == nil {
		t.Error("the number does not say that a chunk is missing")
	}
	s.clock.Step(rememberWritten + time.Second)
	// It can also go between the GET and the PUT.
	s.before = func(request string) error {
		if strings.HasPrefix(request, "update") {
			clear(s.objects)
		}
		return nil
	}
	add(w, "a", 5, 7)
	w.flush(t.Context())
	w.flush(t.Context())
	s.want("a", 5, 7)
	if s.objects["a/records-0000000002"] == nil {
		t.Error("the number does not say that a second chunk is missing")
	}
}

// TestAnotherNamespace: records that wait reach no other namespace of the same name.
func TestAnotherNamespace(t *testing.T) {
	for _, uid := range []types.UID{"ns-2", ""} {
		s := newStore(t)
		w := s.writer()
		add(w, "a", 0, 3)
		s.uid = uid
		s.clock.Step(checkAfter + time.Second)
		w.flush(t.Context())
		if pending, gone := w.buffer.len(), s.counted("gone"); pending != 0 || gone != 3 || len(s.objects) > 0 {
			t.Errorf("namespace %q: %d wait, %d are gone, %d chunks are stored", uid, pending, gone, len(s.objects))
		}
	}
	s := newStore(t) // A remembered chunk is gone with its namespace, and the record does not wait.
	w := s.writer()
	add(w, "a", 0, 3)
	w.flush(t.Context())
	clear(s.objects)
	s.uid = "ns-2"
	add(w, "a", 3, 5)
	w.flush(t.Context())
	if gone := s.counted("gone"); gone != 2 || len(s.objects) > 0 {
		t.Errorf("%d are gone, %d chunks are stored", gone, len(s.objects))
	}
	o := order("a", 7)
	o.NamespaceUID = "ns-2"
	w.Add(o, now, false)
	w.flush(t.Context())
	s.want("a", 7, 8)
}

// TestUnserved: without the custom resource, records are dropped.
func TestUnserved(t *testing.T) {
	s := newStore(t)
	s.before = func(string) error {
		return apierrors.NewGenericServerResponse(404, "GET", Resource.GroupResource(), "", "404 page not found", 0, true)
	}
	w := s.writer()
	add(w, "a", 0, 3)
	add(w, "b", 0, 3)
	w.flush(t.Context())
	if pending, unserved := w.buffer.len(), s.counted("unserved"); pending != 0 || unserved != 6 {
		t.Errorf("%d wait, %d are unserved", pending, unserved)
	}
	if _, err := (&Reader{s.Config}).Records(t.Context(), all("a", 10)); !errors.Is(err, errUnserved) {
		t.Errorf("got %v", err)
	}
}

// TestAFailingNamespace: where writes fail, records wait for ten minutes, and others are stored.
func TestAFailingNamespace(t *testing.T) {
	for name, fails := range map[string]string{"writes": "create a/", "lists, forbidden": "list a/"} {
		s := newStore(t)
		s.before = func(request string) error {
			if strings.HasPrefix(request, fails) {
				return apierrors.NewForbidden(Resource.GroupResource(), "", errors.New("exceeded quota"))
			}
			return nil
		}
		w := s.writer()
		for i := range 3 {
			w.Add(order("a", i), now, false)
			w.Add(order(fmt.Sprint("b-", i), 0), now, false)
		}
		w.flush(t.Context())
		s.clock.Step(giveUpAfter - time.Second)
		w.flush(t.Context())
		if pending, stored := w.buffer.len(), s.counted("stored"); pending != 3 || stored != 3 {
			t.Errorf("%s: %d wait, %d are stored", name, pending, stored)
		}
		s.clock.Step(2 * time.Second)
		w.Add(order("a", 9), now, false)
		w.flush(t.Context())
		if pending, dropped := w.buffer.len(), s.counted("dropped"); pending != 1 || dropped != 3 {
			t.Errorf("%s: afterwards %d wait, %d are dropped", name, pending, dropped)
		}
	}
}

// TestNoAnswer: if chunks cannot be listed, a round ends, and records wait.
func TestNoAnswer(t *testing.T) {
	s := newStore(t)
	s.before = func(string) error { return errors.New("connection refused") }
	w := s.writer()
	for i := range 100 {
		add(w, fmt.Sprint("ns-", i), 0, 1)
	}
	w.flush(t.Context())
	if len(s.requests) > workers || w.buffer.len() != 100 {
		t.Errorf("%d requests, %d records wait", len(s.requests), w.buffer.len())
	}
}

// TestLongLost: a write whose answer was lost is found after many others, because all chunks are read that may have it.
func TestLongLost(t *testing.T) {
	s := newStore(t)
	one, two := s.writer(), s.writer()
	lost := true
	s.after = func(request string) error {
		if lost && strings.HasPrefix(request, "create") {
			return errors.New("connection reset")
		}
		return nil
	}
	add(one, "a", 0, 100)
	one.flush(t.Context())
	lost = false
	add(two, "a", 100, 500)
	two.flush(t.Context())
	one.flush(t.Context())
	s.want("a", 0, 500)
}

// TestFailedUpdate: if a write on top of a remembered chunk fails, or its answer is lost, the same round writes what is missing.
func TestFailedUpdate(t *testing.T) {
	for _, lost := range []bool{false, true} {
		s := newStore(t)
		w := s.writer()
		add(w, "a", 0, 5)
		w.flush(t.Context())
		failed := false
		fail := func(request string) error {
			if failed || !strings.HasPrefix(request, "update") {
				return nil
			}
			failed = true
			return errors.New("connection reset")
		}
		if lost {
			s.after = fail
		} else {
			s.before = fail
		}
		add(w, "a", 5, 10)
		w.flush(t.Context())
		s.want("a", 0, 10)
		if _, sizes := s.stored("a"); !failed || !slices.Equal(sizes, []int{10}) {
			t.Errorf("lost %t: a write failed: %t; got chunks of %v", lost, failed, sizes)
		}
	}
}

func zipped(text string) string {
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	_, err := zip.Write([]byte(text))
	if err = errors.Join(err, zip.Close()); err != nil {
		panic(err)
	}
	return base64.StdEncoding.EncodeToString(out.Bytes())
}

// TestOtherNames: objects that are no chunks change nothing.
func TestOtherNames(t *testing.T) {
	s := newStore(t)
	w := s.writer()
	add(w, "a", 0, 3)
	w.flush(t.Context())
	for _, name := range []string{"records-7", "records-00000000009", "other", "records--000000009"} {
		o := s.objects["a/records-0000000000"].DeepCopy()
		o.SetName(name)
		s.objects["a/"+name] = o
	}
	if chunks, err := list(t.Context(), s.Metadata, "a"); err != nil || len(chunks) != 1 {
		t.Errorf("got %d chunks, %v", len(chunks), err)
	}
}

// TestGarbage: a chunk that cannot be read stays as it is, and another one follows.
func TestGarbage(t *testing.T) {
	for _, change := range []map[string]any{
		{fieldFormat: "v2+zstd"}, {fieldRecords: "!"}, {fieldRecords: "AAAA"}, {fieldRecords: ""}, {fieldFormat: nil},
		{fieldRecords: zipped("null")}, {fieldRecords: zipped("[{}")}, {fieldRecords: zipped("[] []")},
		{fieldRecords: zipped("[" + strings.Repeat("{},", maxRecords) + "{}]")},
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
