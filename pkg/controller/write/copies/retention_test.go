// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package copies

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/rules/deletion"
)

// TestRetention: copies are served and stored until they expire, and not while clocks are in doubt.
func TestRetention(t *testing.T) {
	s := newStore(t)
	w, r := NewWriter(s.Config), Reader{Config: s.Config}
	day := order("a", "day", 1)
	day.KeepCopy = 24 * time.Hour
	s.keep(w, day)
	s.keep(w, order("a", "week", 1))
	s.keep(w, order("b", "week", 1))
	check := func(what string, want, served []string) {
		t.Helper()
		if err := w.sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := s.names("a"); !slices.Equal(got, want) {
			t.Errorf("%s: stored are %q, want %q", what, got, want)
		}
		page, err := r.Copies(t.Context(), everything("a"))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for i := range page.Items {
			got = append(got, page.Items[i].Status.Object.Name)
		}
		if !slices.Equal(got, served) {
			t.Errorf("%s: served are %q, want %q", what, got, served)
		}
	}
	check("at once", []string{"day", "week"}, []string{"day", "week"})
	s.clock.Step(24*time.Hour + 2*slack)
	s.doubt = true
	check("in doubt", []string{"day", "week"}, []string{"week"})
	if _, err := r.Content(t.Context(), "a", "uid-day"); !apierrors.IsNotFound(err) || !strings.Contains(err.Error(), "cleanupcopies") {
		t.Errorf("an expired copy is served: %v", err)
	}
	s.doubt = false
	check("after a day", []string{"week"}, []string{"week"})
	s.objects["a/uid-week"].SetAnnotations(map[string]string{annotationResource: gc.ResourceConfigMaps, annotationNamespace: "a"})
	s.clock.Step(10 * week)
	check("its time cannot be read", []string{""}, []string{""})
	if got := s.names("b"); len(got) > 0 {
		t.Errorf("in b: %q", got)
	}
}

// TestExpiredMakeRoom: copies that have expired do not keep others out until the leader looks for them.
func TestExpiredMakeRoom(t *testing.T) {
	s := newStore(t)
	s.PerNamespace = 1
	w := NewWriter(s.Config)
	s.keep(w, order("a", "m0", 1))
	s.clock.Step(week + 2*slack)
	s.doubt = true
	if got := s.keep(w, order("a", "m1", 1)); got != deletion.CopyQuotaExceeded {
		t.Errorf("in doubt: got %s", got)
	}
	s.doubt = false
	s.clock.Step(recountAfter)
	if got := s.keep(w, order("a", "m1", 1)); got != deletion.Accepted || !slices.Equal(s.names("a"), []string{"m1"}) {
		t.Errorf("got %s, copies of %q", got, s.names("a"))
	}
}

// TestSelect: field selectors and permissions choose copies, and errors are passed on.
func TestSelect(t *testing.T) {
	s := newStore(t)
	w, r := NewWriter(s.Config), Reader{Config: s.Config}
	s.keep(w, order("a", "m0", 1))
	s.keep(w, order("a", "m1", 1))
	widget := order("a", "m0", 1)
	widget.Fact.Resource, widget.Fact.UID = "widgets.example.com", "uid-w"
	s.keep(w, widget)
	for selector, want := range map[string]int{
		"":                              2, // Widgets are hidden.
		"object=m0":                     1,
		"object=configmaps/m0":          1,
		"object=widgets.example.com/m0": 0,
		"object!=m0":                    1,
		"resource=configmaps":           2,
		"metadata.name=uid-m1":          1,
		"metadata.namespace=b":          0,
	} {
		q := everything("a")
		q.Fields = fields.ParseSelectorOrDie(selector)
		q.MayList = func(_ context.Context, resource string) (bool, error) { return resource == gc.ResourceConfigMaps, nil }
		page, err := r.Copies(t.Context(), q)
		if err != nil || len(page.Items) != want {
			t.Errorf("%s: got %d copies, %v", selector, len(page.Items), err)
		}
	}
	q := everything("a")
	q.MayList = func(context.Context, string) (bool, error) { return false, errors.New("no answer") }
	if _, err := r.Copies(t.Context(), q); err == nil {
		t.Error("it is not known what the caller may list, and copies are served")
	}
	s.before = func(string) error { return apierrors.NewNotFound(Resource.GroupResource(), "") }
	if _, err := r.Copies(t.Context(), everything("a")); err == nil || !strings.Contains(err.Error(), "artifacts/storage") {
		t.Errorf("without storage: %v", err)
	}
}

// TestGarbage: what Winnow has not written is not read.
func TestGarbage(t *testing.T) {
	for _, change := range []map[string]any{
		{fieldFormat: "v2"}, {fieldFormat: nil}, {fieldContent: "!"}, {fieldContent: ""}, {fieldContent: "AAAA"}, {fieldContent: nil},
	} {
		s := newStore(t)
		s.keep(NewWriter(s.Config), order("a", "m0", 1))
		for key, value := range change {
			s.objects["a/uid-m0"].Object[key] = value
		}
		r := Reader{Config: s.Config}
		if _, err := r.Content(t.Context(), "a", "uid-m0"); err == nil || !strings.Contains(err.Error(), "a/uid-m0 cannot be read") {
			t.Errorf("%v: got %v", change, err)
		}
	}
}

// TestNames: the copy of an object with an odd UID has a name too, and two UIDs never share one.
func TestNames(t *testing.T) {
	names := map[string]types.UID{}
	for _, uid := range []types.UID{"8c4b9f3e-3f0a-4d0e-9f0f-1b2c3d4e5f60", "A", "a", "a/b", "../a", "", types.UID(strings.Repeat("x", 300)), "ä"} {
		name := nameOf(uid)
		if len(name) > 63 || strings.ContainsAny(name, "/.% ") || name == "" {
			t.Errorf("%q: %q", uid, name)
		}
		if other, taken := names[name]; taken {
			t.Errorf("%q and %q have the name %q", uid, other, name)
		}
		names[name] = uid
	}
}
