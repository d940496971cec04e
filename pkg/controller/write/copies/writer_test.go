// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package copies

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/rules/deletion"
)

// TestKeep: a copy is stored as it was read, until the promised time and a little longer, and can be read again.
func TestKeep(t *testing.T) {
	s := newStore(t)
	w, r := NewWriter(s.Config), Reader{Config: s.Config}
	o := order("a", "settings", 7)
	o.Kind.Finishes = true
	until, refused := w.Keep(t.Context(), o, []byte(contentOf("settings", "7")))
	if refused != nil || until.Before(now.Add(week)) || until.After(now.Add(week+2*slack)) {
		t.Fatalf("kept until %s, %+v", until, refused)
	}
	got, err := r.Content(t.Context(), "a", "uid-settings")
	if err != nil {
		t.Fatal(err)
	}
	want := gc.RecordObject{Resource: gc.ResourceConfigMaps, Name: "settings", UID: "uid-settings", ResourceVersion: "7"}
	if status := got.Status; status.Object != want || status.Content != contentOf("settings", "7") || !status.RunsAgain || status.Bytes == 0 ||
		!status.ExpirationTime.Time.Equal(until) || !status.CopyTime.Time.Equal(now) {
		t.Errorf("got %+v", status)
	}
	if n := s.count("create"); n != 1 {
		t.Errorf("%d writes", n)
	}
}

// TestKeepAgain: the copy of the next try replaces the one before. A replica that no longer leads does not replace a newer one.
func TestKeepAgain(t *testing.T) {
	s := newStore(t)
	w, r, old := NewWriter(s.Config), Reader{Config: s.Config}, NewWriter(s.Config)
	for _, version := range []uint64{7, 7, 10} {
		s.clock.Step(time.Hour)
		if got := s.keep(w, order("a", "settings", version)); got != deletion.Accepted {
			t.Errorf("version %d: got %s", version, got)
		}
	}
	s.clock.Step(time.Minute)
	if got := s.keep(old, order("a", "settings", 9)); got != deletion.Unknown {
		t.Errorf("another replica: got %s", got)
	}
	got, err := r.Content(t.Context(), "a", "uid-settings")
	if err != nil || got.Status.Content != contentOf("settings", "10") || got.Status.ExpirationTime.Time.Before(now.Add(week+3*time.Hour)) {
		t.Errorf("got %+v, %v", got, err)
	}
	if names := s.names("a"); len(names) != 1 {
		t.Errorf("there are copies of %q", names)
	}
	// A store that has gone back in time has older versions. They are copied when no DELETE of the newer one can be under way any more.
	s.clock.Step(settledAfter)
	if got := s.keep(w, order("a", "settings", 9)); got != deletion.Accepted {
		t.Errorf("after the store has gone back: got %s", got)
	}
}

// TestRefusals: without a stored copy, no DELETE may be sent, and the refusal says why.
func TestRefusals(t *testing.T) {
	noise := make([]byte, maxCompressed+1000)
	_, _ = rand.Read(noise) // It never fails.
	gone := &metav1.Status{Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}}}
	gone.Code, gone.Reason = 403, metav1.StatusReasonForbidden
	unserved := apierrors.NewGenericServerResponse(404, "create", Resource.GroupResource(), "", "page not found", 0, true)
	for name, c := range map[string]struct {
		object   []byte
		resource string
		err      error
		outcome  deletion.Outcome
		detail   string
	}{
		"large, but it shrinks":    {[]byte(strings.Repeat("a", 3<<20)), "", nil, deletion.Accepted, ""},
		"too large":                {noise, "", nil, deletion.CopyTooLarge, "a copy may have 524288"},
		"far too large":            {make([]byte, maxContent+1), "", nil, deletion.CopyTooLarge, "rule without keepCopy"},
		"the store finds it large": {nil, "", apierrors.NewRequestEntityTooLargeError("limit is 10"), deletion.CopyTooLarge, "a copy may have"},
		"a Secret":                 {nil, gc.ResourceSecrets, nil, deletion.Refused, "Winnow does not read the data of Secrets"},
		"a Pod":                    {nil, gc.ResourcePods, nil, deletion.Refused, "only of ConfigMaps and custom resources"},
		"a custom resource":        {nil, "widgets.example.com", nil, deletion.Accepted, ""},
		"the namespace goes":       {nil, "", &apierrors.StatusError{ErrStatus: *gone}, deletion.Unknown, "the namespace is being deleted"},
		"no storage":               {nil, "", unserved, deletion.Unknown, "see artifacts/storage"},
		"no right":                 {nil, "", apierrors.NewForbidden(Resource.GroupResource(), "x", errors.New("no")), deletion.Unknown, "cannot be stored"},
		"no answer":                {nil, "", context.DeadlineExceeded, deletion.Unknown, "its copy cannot be stored"},
		"too many requests":        {nil, "", apierrors.NewTooManyRequests("busy", 7), deletion.RetryLater, "its copy cannot be stored"},
		"unavailable":              {nil, "", apierrors.NewServiceUnavailable("busy"), deletion.RetryLater, "its copy cannot be stored"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t)
			s.before = func(request string) error {
				if strings.HasPrefix(request, "create") {
					return c.err
				}
				return nil
			}
			o := order("a", "x", 1)
			if c.resource != "" {
				o.Fact.Resource = c.resource
			}
			if c.object == nil {
				c.object = []byte(contentOf("x", "1"))
			}
			_, refused := NewWriter(s.Config).Keep(t.Context(), o, c.object)
			switch {
			case c.outcome == deletion.Accepted && refused == nil:
			case refused == nil || refused.Outcome != c.outcome || !refused.NotSent || !strings.Contains(refused.Detail, c.detail):
				t.Errorf("got %+v", refused)
			}
			if has := len(s.objects) == 1; has != (c.outcome == deletion.Accepted) {
				t.Errorf("stored: %t", has)
			}
		})
	}
}

// TestQuota: the namespace whose copies take all the room gets no more. Other namespaces do, and an older copy of the same object is
// replaced.
func TestQuota(t *testing.T) {
	s := newStore(t)
	s.PerNamespace = 3
	w := NewWriter(s.Config)
	for i, want := range []deletion.Outcome{deletion.Accepted, deletion.Accepted, deletion.Accepted, deletion.CopyQuotaExceeded} {
		if got := s.keep(w, order("a", fmt.Sprint("m", i), 1)); got != want {
			t.Errorf("copy %d: got %s, want %s", i, got, want)
		}
	}
	if got := s.keep(w, order("a", "m1", 2)); got != deletion.Accepted {
		t.Errorf("a newer copy of the same object: got %s", got)
	}
	if got := s.keep(w, order("b", "m1", 1)); got != deletion.Accepted {
		t.Errorf("another namespace: got %s", got)
	}
	if got := s.names("a"); !slices.Equal(got, []string{"m0", "m1", "m2"}) {
		t.Errorf("there are copies of %q", got)
	}
	// While there is no room, the copies are not listed for each object.
	s.count("")
	for range 5 {
		s.keep(w, order("a", "m3", 1))
	}
	if n := s.count("list"); n != 0 {
		t.Errorf("listed %d times", n)
	}
	// Another leader counts what is stored. So does this one, once somebody may have made room.
	if got := s.keep(NewWriter(s.Config), order("a", "m3", 1)); got != deletion.CopyQuotaExceeded {
		t.Errorf("another leader: got %s", got)
	}
	delete(s.objects, "a/uid-m0")
	s.clock.Step(recountAfter)
	if got := s.keep(w, order("a", "m3", 1)); got != deletion.Accepted {
		t.Errorf("after somebody made room: got %s", got)
	}
}

// TestQuotaOfBytes: copies count with the room that they take.
func TestQuotaOfBytes(t *testing.T) {
	s := newStore(t)
	s.PerNamespace = 1000
	content, err := encode([]byte(contentOf("m0", "1")))
	if err != nil {
		t.Fatal(err)
	}
	s.BytesPerNamespace = int64(2 * len(content))
	w := NewWriter(s.Config)
	for i, want := range []deletion.Outcome{deletion.Accepted, deletion.Accepted, deletion.CopyQuotaExceeded} {
		if got := s.keep(w, order("a", fmt.Sprint("m", i), 1)); got != want {
			t.Errorf("copy %d: got %s, want %s", i, got, want)
		}
	}
	s.PerNamespace = 0
	if got := s.keep(NewWriter(s.Config), order("b", "m0", 1)); got != deletion.CopyQuotaExceeded {
		t.Errorf("without any room: got %s", got)
	}
}

// TestTotal: the copies of all namespaces together have a limit, and the leader counts what others have stored.
func TestTotal(t *testing.T) {
	s := newStore(t)
	content, err := encode([]byte(contentOf("m0", "1")))
	if err != nil {
		t.Fatal(err)
	}
	s.BytesTotal = int64(3 * len(content))
	old := NewWriter(s.Config)
	s.keep(old, order("a", "m0", 1))
	w := NewWriter(s.Config)
	if err := w.sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i, want := range []deletion.Outcome{deletion.Accepted, deletion.Accepted, deletion.CopyQuotaExceeded} {
		if got := s.keep(w, order("b", fmt.Sprint("m", i), 1)); got != want {
			t.Errorf("copy %d: got %s, want %s", i, got, want)
		}
	}
	s.count("")
	if full := w.Full(order("c", "m0", 1)); full == nil || full.Outcome != deletion.CopyQuotaExceeded || s.count("") > 0 {
		t.Errorf("got %+v", full)
	}
	if got := s.keep(w, order("b", "m0", 2)); got != deletion.Accepted {
		t.Errorf("a newer copy: got %s", got)
	}
	w.Ended(t.Context(), order("b", "m1", 1), deletion.Result{Outcome: deletion.Refused})
	if full := w.Full(order("c", "m0", 1)); full != nil {
		t.Errorf("after one was removed: got %+v", full)
	}
	s.clock.Step(2 * week)
	if err := w.sweep(t.Context()); err != nil || w.rooms.bytes != 0 || len(s.objects) > 0 {
		t.Errorf("%d bytes of %d copies after all have expired, %v", w.rooms.bytes, len(s.objects), err)
	}
}

// TestLargerThanTheQuota: for such an object, no room would be enough.
func TestLargerThanTheQuota(t *testing.T) {
	s := newStore(t)
	s.BytesPerNamespace = 10
	if got := s.keep(NewWriter(s.Config), order("a", "m0", 1)); got != deletion.CopyTooLarge {
		t.Errorf("got %s", got)
	}
}

// TestLostAnswers: a copy whose write has no answer is counted if it is stored, and the DELETE waits.
func TestLostAnswers(t *testing.T) {
	for _, committed := range []bool{false, true} {
		s := newStore(t)
		s.PerNamespace = 1
		w := NewWriter(s.Config)
		fail := func(request string) error {
			if strings.HasPrefix(request, "create") {
				return apierrors.NewInternalError(errors.New("no answer"))
			}
			return nil
		}
		if committed {
			s.after = fail
		} else {
			s.before = fail
		}
		if got := s.keep(w, order("a", "m0", 1)); got != deletion.Unknown {
			t.Errorf("committed %t: got %s", committed, got)
		}
		s.before, s.after = func(string) error { return nil }, func(string) error { return nil }
		want := deletion.Accepted
		if committed {
			want = deletion.CopyQuotaExceeded
		}
		if got := s.keep(w, order("a", "m1", 1)); got != want {
			t.Errorf("committed %t: the next copy: got %s, want %s", committed, got, want)
		}
	}
}

// TestRoomOfConcurrentWrites: copies that are being written count.
func TestRoomOfConcurrentWrites(t *testing.T) {
	r := rooms{quota: usage{2, 100}, most: 1000}
	one := usage{1, 10}
	r.count("a", usage{}, usage{}, now, time.Time{})
	for i, want := range []bool{true, true, false} {
		if full, _ := r.reserve("a", one, usage{}); (full == "") != want {
			t.Errorf("copy %d: %q", i, full)
		}
	}
	r.settle("a", one, usage{}, notStored)
	if full, _ := r.reserve("a", one, usage{}); full != "" {
		t.Errorf("after a failure: %s", full)
	}
	before := r.written("a")
	r.settle("a", one, usage{}, stored)
	r.settle("a", one, usage{}, stored)
	r.count("a", usage{}, before, now, time.Time{}) // The list began before both were stored.
	if full, _ := r.reserve("a", one, usage{}); full == "" {
		t.Error("both are stored, and there is room for another one")
	}
	if full, _ := r.reserve("a", one, one); full != "" {
		t.Errorf("replacing an older copy needs no more room: %s", full)
	}
	if r.forget(); r.of("a").listed != (time.Time{}) {
		t.Error("it is not counted again")
	}
	for i := range mostRooms + 10 {
		r.count(fmt.Sprint(i), usage{}, usage{}, now, time.Time{})
	}
	if len(r.byNS) > mostRooms || r.byNS["a"] == nil {
		t.Errorf("%d namespaces are remembered; one with a write under way: %t", len(r.byNS), r.byNS["a"] != nil)
	}
}
