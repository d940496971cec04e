// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package copies

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/winnow-dev/winnow/pkg/controller/rules/deletion"
)

// TestEnded: the copy of an object that was not deleted is removed, unless it is not certain that no DELETE can delete it any more.
func TestEnded(t *testing.T) {
	sent := func(o deletion.Outcome) deletion.Result { return deletion.Result{Outcome: o} }
	notSent := func(o deletion.Outcome) deletion.Result { return deletion.Result{Outcome: o, NotSent: true} }
	for name, c := range map[string]struct {
		before func(s *store, w *Writer, o *deletion.Order)
		result deletion.Result
		stays  bool
	}{
		"accepted":                        {nil, sent(deletion.Accepted), true},
		"somebody else has deleted it":    {nil, sent(deletion.NotFound), true},
		"no answer":                       {nil, sent(deletion.Unknown), true},
		"an error of the server":          {nil, deletion.Result{Outcome: deletion.Refused, ServerError: true}, true},
		"it asks to wait":                 {nil, sent(deletion.RetryLater), true},
		"refused":                         {nil, sent(deletion.Refused), false},
		"unauthorized":                    {nil, sent(deletion.Unauthorized), false},
		"a conflict":                      {nil, sent(deletion.Conflict), false},
		"it must not be deleted any more": {nil, notSent(deletion.Released), false},
		"no answer to an earlier try": {func(s *store, w *Writer, o *deletion.Order) {
			s.keep(w, o)
			w.Ended(s.Context(), o, sent(deletion.Unknown))
		}, sent(deletion.Refused), true},
		"no answer to an earlier try, minutes ago": {func(s *store, w *Writer, o *deletion.Order) {
			s.keep(w, o)
			w.Ended(s.Context(), o, sent(deletion.Unknown))
			s.clock.Step(settledAfter)
		}, sent(deletion.Refused), false},
		"an earlier try of another replica": {func(s *store, _ *Writer, o *deletion.Order) {
			s.keep(NewWriter(s.Config), o)
		}, sent(deletion.Refused), true},
		"the server asked to wait before": {func(s *store, w *Writer, o *deletion.Order) {
			s.keep(w, o)
			w.Ended(s.Context(), o, sent(deletion.RetryLater))
		}, sent(deletion.Refused), false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t)
			s.PerNamespace = 1
			w, o := NewWriter(s.Config), order("a", "m0", 1)
			if c.before != nil {
				c.before(s, w, o)
			}
			if got := s.keep(w, o); got != deletion.Accepted {
				t.Fatalf("got %s", got)
			}
			w.Ended(t.Context(), o, c.result)
			if stays := len(s.objects) == 1; stays != c.stays {
				t.Errorf("it stays: %t", stays)
			}
			if got := s.keep(w, order("a", "m1", 1)); (got == deletion.Accepted) == c.stays {
				t.Errorf("the next copy: got %s", got)
			}
			if w.Ended(t.Context(), o, sent(deletion.Refused)); c.result.Outcome != deletion.RetryLater && (len(s.names("a")) != 1) {
				t.Errorf("copies of %q", s.names("a"))
			}
		})
	}
}

// TestEndedByAnotherReplica: a replica that no longer leads does not remove the copy that the leader needs for its DELETE, whether the leader
// has found the same state or not.
func TestEndedByAnotherReplica(t *testing.T) {
	s := newStore(t)
	old, leader, o := NewWriter(s.Config), NewWriter(s.Config), order("a", "m0", 1)
	s.keep(old, o)
	s.keep(leader, o)
	old.Ended(t.Context(), o, deletion.Result{Outcome: deletion.Refused})
	if len(s.objects) != 1 {
		t.Error("the copy is gone")
	}
}

// TestReuse: the copy of an earlier try is used again, if this replica has stored the same state lately, and the copy is still there.
func TestReuse(t *testing.T) {
	for name, c := range map[string]struct {
		change func(s *store, w *Writer, o *deletion.Order)
		again  bool // it is stored
	}{
		"the same":          {func(*store, *Writer, *deletion.Order) {}, false},
		"a newer state":     {func(_ *store, _ *Writer, o *deletion.Order) { o.Fact.ResourceVersion = 2 }, true},
		"kept for longer":   {func(_ *store, _ *Writer, o *deletion.Order) { o.KeepCopy = 2 * week }, true},
		"minutes later":     {func(s *store, _ *Writer, _ *deletion.Order) { s.clock.Step(2 * slack) }, true},
		"another namespace": {func(_ *store, _ *Writer, o *deletion.Order) { o.NamespaceUID = "other" }, true},
		"it was removed":    {func(s *store, _ *Writer, _ *deletion.Order) { clear(s.objects) }, true},
		"another led":       {func(_ *store, w *Writer, _ *deletion.Order) { w.Forget() }, true},
		"another stored it": {func(s *store, _ *Writer, o *deletion.Order) { s.keep(NewWriter(s.Config), o); s.count("") }, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t)
			w, o := NewWriter(s.Config), order("a", "m0", 1)
			s.keep(w, o)
			w.Ended(t.Context(), o, deletion.Result{Outcome: deletion.RetryLater})
			s.count("")
			c.change(s, w, o)
			until, refused := w.Keep(t.Context(), o, []byte(contentOf("m0", "1")))
			if refused != nil || until.Before(s.clock.Now().Add(o.KeepCopy)) {
				t.Errorf("kept until %s, %+v", until, refused)
			}
			again := false
			for _, r := range s.requests {
				again = again || strings.HasPrefix(r, "create") || strings.HasPrefix(r, "update")
			}
			if again != c.again || len(s.objects) != 1 {
				t.Errorf("stored again: %t, %d copies", again, len(s.objects))
			}
		})
	}
}

// TestRecreatedNamespace: what was stored for a namespace is not read in another one of the same name, and not stored if nobody could know.
func TestRecreatedNamespace(t *testing.T) {
	s := newStore(t)
	w, r := NewWriter(s.Config), Reader{Config: s.Config}
	s.keep(w, order("a", "m0", 1))
	read := func() (copies int, errs []error) {
		page, err := r.Copies(t.Context(), everything("a"))
		_, one := r.Copy(t.Context(), "a", "uid-m0")
		_, content := r.Content(t.Context(), "a", "uid-m0")
		return len(page.Items), []error{err, one, content}
	}
	if n, errs := read(); n != 1 || errors.Join(errs...) != nil {
		t.Errorf("got %d copies, %v", n, errs)
	}
	s.recreated = "-again"
	if n, errs := read(); n != 0 || errs[0] != nil || !apierrors.IsNotFound(errs[1]) || !apierrors.IsNotFound(errs[2]) {
		t.Errorf("recreated: got %d copies, %v", n, errs)
	}
	s.recreated, s.namespaceErr = "", errors.New("no answer")
	if n, errs := read(); n != 0 || errs[0] == nil || errs[1] == nil || errs[2] == nil {
		t.Errorf("no answer: got %d copies, %v", n, errs)
	}
	o := order("a", "m1", 1)
	o.NamespaceUID = ""
	if got := s.keep(w, o); got != deletion.Unknown || len(s.objects) != 1 {
		t.Errorf("the namespace is not known: got %s", got)
	}
}

// TestFull: it is known without a request that a namespace has as many copies as it may have, until one expires, or for some minutes.
func TestFull(t *testing.T) {
	for name, c := range map[string]struct {
		keep, after time.Duration
		quota       int
		full        bool
	}{
		"full":                        {week, time.Second, 2, true},
		"there is room":               {week, time.Second, 3, false},
		"minutes later":               {week, fullMost, 2, false},
		"before the first expires":    {time.Minute, time.Minute, 2, true},
		"after the first has expired": {time.Minute, time.Minute + slack, 2, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t)
			s.PerNamespace = c.quota
			w := NewWriter(s.Config)
			if w.Full(order("a", "m0", 1)) != nil {
				t.Error("full before anything is known")
			}
			for _, object := range []string{"m0", "m1", "m2"} {
				o := order("a", object, 1)
				o.KeepCopy = c.keep
				s.keep(w, o)
				s.clock.Step(recountAfter / 2)
			}
			s.clock.Step(c.after)
			s.count("")
			got := w.Full(order("a", "m3", 1))
			if full := got != nil && got.Outcome == deletion.CopyQuotaExceeded && got.NotSent; full != c.full || len(s.requests) > 0 {
				t.Errorf("got %+v after %q", got, s.requests)
			}
			if w.Full(order("b", "m3", 1)) != nil {
				t.Error("another namespace is full")
			}
		})
	}
}

// TestOtherObject: the copy of another object with the same UID is not replaced.
func TestOtherObject(t *testing.T) {
	s := newStore(t)
	w, o := NewWriter(s.Config), order("a", "m0", 1)
	s.keep(w, o)
	other := order("a", "m1", 2)
	other.Fact.UID = o.Fact.UID
	if got := s.keep(w, other); got != deletion.Unknown || len(s.names("a")) != 1 || s.names("a")[0] != "m0" {
		t.Errorf("got %s, copies of %q", got, s.names("a"))
	}
}

// TestShutdown: after its end, a context allows no more requests, except the write that is under way.
func TestShutdown(t *testing.T) {
	s := newStore(t)
	w, o := NewWriter(s.Config), order("a", "m0", 1)
	ctx, cancel := context.WithCancel(t.Context())
	s.before = func(request string) error {
		if strings.HasPrefix(request, "create") {
			cancel()
		}
		return nil
	}
	if _, refused := w.Keep(ctx, o, []byte(contentOf("m0", "1"))); refused != nil || len(s.objects) != 1 {
		t.Errorf("got %+v, %d copies", refused, len(s.objects))
	}
	s.count("")
	w.Ended(ctx, o, deletion.Result{Outcome: deletion.Refused})
	if _, refused := w.Keep(ctx, order("a", "m1", 1), []byte(contentOf("m1", "1"))); refused == nil || s.count("create")+s.count("delete") > 0 {
		t.Errorf("got %+v, requests %q", refused, s.requests)
	}
}

// TestExpiredList: a list that takes so long that the server has forgotten its beginning goes on from where it was.
func TestExpiredList(t *testing.T) {
	s := newStore(t)
	w := NewWriter(s.Config)
	s.keep(w, order("a", "m0", 1))
	s.clock.Step(2 * week)
	expired := apierrors.NewResourceExpired("too old")
	expired.ErrStatus.ListMeta.Continue = "next"
	lists := 0
	s.before = func(request string) error {
		if strings.HasPrefix(request, "list") {
			if lists++; lists == 1 {
				return expired
			}
		}
		return nil
	}
	if err := w.sweep(t.Context()); err != nil || len(s.objects) > 0 || lists != 2 {
		t.Errorf("got %v, %d copies after %d lists", err, len(s.objects), lists)
	}
}
