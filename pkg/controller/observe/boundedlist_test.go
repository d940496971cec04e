// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/winnow-dev/winnow/pkg/controller/internal/testkinds"
	"github.com/winnow-dev/winnow/pkg/controller/objects/kinds"
	"github.com/winnow-dev/winnow/pkg/controller/observe/decode"
)

// sizedObjects serves ConfigMaps of these sizes, page by page, and notes what was asked for.
type sizedObjects struct {
	t     *testing.T
	sizes []int

	lock   sync.Mutex
	limits []int
}

// ServeHTTP implements http.Handler.
func (s *sizedObjects) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	limit, err := strconv.Atoi(r.URL.Query().Get("limit"))
	if err != nil {
		s.t.Error(err)
	}
	first, _ := strconv.Atoi(r.URL.Query().Get("continue"))
	s.lock.Lock()
	s.limits = append(s.limits, limit)
	s.lock.Unlock()
	end := min(len(s.sizes), first+limit)
	list := corev1.ConfigMapList{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMapList"}, ListMeta: metav1.ListMeta{ResourceVersion: "9"},
	}
	if end < len(s.sizes) {
		list.Continue = strconv.Itoa(end)
	}
	for i, size := range s.sizes[first:end] {
		list.Items = append(list.Items, corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: strconv.Itoa(first + i), Namespace: "team-a", UID: "u", ResourceVersion: "1"},
			Data:       map[string]string{"text": strings.Repeat("x", size)},
		})
	}
	w.Header().Set("Content-Type", runtime.ContentTypeJSON)
	_ = json.NewEncoder(w).Encode(list) // The client may end it.
}

func sizes(n, size int) []int { return slices.Repeat([]int{size}, n) }

// TestPagesAreBoundedByBytes: whatever sizes objects have, each arrives once, and no page has more bytes than it may.
func TestPagesAreBoundedByBytes(t *testing.T) {
	const mega = 1 << 20
	for name, tc := range map[string]struct {
		sizes  []int
		limits []int
	}{
		"none":                       {nil, []int{16}},
		"small":                      {sizes(1200, 100), []int{16, 128, 500, 500, 500}},
		"large":                      {sizes(11, mega), []int{16, 2, 3, 3, 3}},
		"larger than a page":         {sizes(3, 10*mega), []int{16, 2, 1, 1, 1}},
		"small, and then large":      {slices.Concat(sizes(16, 100), sizes(9, mega)), []int{16, 128, 16, 2, 3, 3, 3}},
		"large, and then small":      {slices.Concat(sizes(3, mega), sizes(60, 100)), []int{16, 21, 168}},
		"as many as fit in one page": {sizes(16, mega/4), []int{16}},
	} {
		t.Run(name, func(t *testing.T) {
			objects := &sizedObjects{t: t, sizes: tc.sizes}
			server := httptest.NewServer(objects)
			defer server.Close()
			client, err := NewClient(&rest.Config{Host: server.URL, QPS: -1})
			if err != nil {
				t.Fatal(err)
			}
			kind := kinds.Custom(corev1.SchemeGroupVersion.WithKind("ConfigMap"), "configmaps", nil, kinds.Source{})
			reading := decode.NewReading(kind, testkinds.InTeamA(t, "object.data.text != ''"))
			seen := 0
			err = client.EachPage(t.Context(), reading, "team-a", "", func(page runtime.Object, _ metav1.ListInterface) error {
				bytes := 0
				defer func() {
					if bytes > pageBytes && meta.LenList(page) > 1 {
						t.Errorf("a page of %d objects has %d bytes", meta.LenList(page), bytes)
					}
				}()
				return meta.EachListItem(page, func(object runtime.Object) error {
					if got := object.(metav1.Object).GetName(); got != strconv.Itoa(seen) {
						return fmt.Errorf("got object %s, want %d", got, seen)
					}
					bytes += tc.sizes[seen]
					seen++
					return nil
				})
			})
			if err != nil || seen != len(tc.sizes) {
				t.Errorf("%d of %d objects, %v", seen, len(tc.sizes), err)
			}
			if !slices.Equal(objects.limits, tc.limits) {
				t.Errorf("limits %d, want %d", objects.limits, tc.limits)
			}
		})
	}
}

// TestUnboundedLists: a list without a limit, and one from the watch cache, is left as it is.
func TestUnboundedLists(t *testing.T) {
	for _, options := range []metav1.ListOptions{{}, {Limit: 500, ResourceVersion: "0"}} {
		var got []metav1.ListOptions
		list := bounded(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			got = append(got, options)
			if ctx.Value(answerSizeKey{}) != nil {
				t.Error("its answer is measured")
			}
			return &corev1.ConfigMapList{}, nil
		})
		if _, err := list(t.Context(), options); err != nil || !slices.Equal(got, []metav1.ListOptions{options}) {
			t.Errorf("asked for %+v, %v", got, err)
		}
	}
}

// TestPagesAtOnce: of all lists of a client, only so many pages are in memory.
func TestPagesAtOnce(t *testing.T) {
	slots := newPageSlots(2)
	var at, most atomic.Int64
	list := func(_ context.Context, options metav1.ListOptions) (runtime.Object, error) {
		for n := at.Add(1); ; {
			if m := most.Load(); n <= m || most.CompareAndSwap(m, n) {
				break
			}
		}
		out := &corev1.ConfigMapList{}
		if len(options.Continue) < 3 {
			out.Continue = options.Continue + "x"
		}
		return out, nil
	}
	done := make(chan error, 8)
	for range cap(done) {
		go func() {
			done <- eachPage(t.Context(), slots, list, pageSize, func(runtime.Object, metav1.ListInterface) error {
				at.Add(-1)
				return nil
			})
		}()
	}
	for range cap(done) {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if n := most.Load(); n < 1 || n > 2 || len(slots) != 0 {
		t.Errorf("%d pages at once, %d slots are taken", n, len(slots))
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	slots <- struct{}{}
	slots <- struct{}{}
	if err := eachPage(ctx, slots, list, pageSize, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("without a slot: %v", err)
	}
}
