// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package cleanup

import (
	"context"
	"errors"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/rules/freshness"
)

func TestRead(t *testing.T) {
	want := freshness.ConsistentRead{
		Began: testbuilders.Now, ServerTime: testbuilders.Now.Add(5 * time.Second),
		Policies: freshness.Contents{
			Version:   "1",
			Revisions: map[types.NamespacedName]freshness.Revision{named: {UID: "uid-p", Version: "1"}},
		},
		ClusterPolicies: freshness.Contents{Version: "1", Revisions: map[types.NamespacedName]freshness.Revision{}},
		Namespaces: freshness.Contents{Version: "1", Revisions: map[types.NamespacedName]freshness.Revision{
			{Name: testbuilders.Home}: {UID: "ns-team-a", Version: "1"},
		}},
	}
	for name, c := range map[string]struct {
		arrange func(*world)
		change  func(*freshness.ConsistentRead)
		lists   int
	}{
		"policies listed": {func(*world) {}, func(*freshness.ConsistentRead) {}, 2},
		"barriers written": {
			func(w *world) { w.writeBarriers(answer("7", nil), answer("8", nil)) },
			func(r *freshness.ConsistentRead) {
				r.Policies, r.ClusterPolicies = freshness.Contents{Version: "7"}, freshness.Contents{Version: "8"}
			},
			0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, want := newWorld(t), want
			c.arrange(w)
			c.change(&want)
			w.time.Step(5 * time.Second)
			got, err := w.reader.read(context.Background(), testbuilders.Now)
			got.ServerTime = got.ServerTime.UTC()
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("read %+v, %v, want %+v", got, err, want)
			}
			if n := w.requests("GET "+policiesPath) + w.requests("GET "+clusterPoliciesPath); n != c.lists {
				t.Errorf("%d lists of policies, want %d", n, c.lists)
			}
		})
	}
}

// answer returns a function that writes a barrier with this result.
func answer(version string, err error) func(context.Context) (string, error) {
	return func(context.Context) (string, error) { return version, err }
}

// TestReadFails: a reading fails if any part of it fails, or if another replica holds the Lease.
func TestReadFails(t *testing.T) {
	other := "replica-2"
	fails := func(path string) func(*world) {
		return func(w *world) { w.on("GET "+path, func() int { return http.StatusInternalServerError }) }
	}
	refused := errors.New("refused")
	for name, c := range map[string]struct {
		change func(*world)
		want   string
		is     error
	}{
		"the policies fail":             {fails(policiesPath), "reading cleanuppolicies: ", nil},
		"the cluster policies fail":     {fails(clusterPoliciesPath), "reading clustercleanuppolicies: ", nil},
		"the barrier fails":             {func(w *world) { w.writeBarriers(answer("", refused), answer("8", nil)) }, "reading the barrier of cleanuppolicies: ", refused},
		"the cluster barrier fails":     {func(w *world) { w.writeBarriers(answer("7", nil), answer("", refused)) }, "reading the barrier of clustercleanuppolicies: ", refused},
		"the namespaces fail":           {fails(namespacesPath), "reading namespaces: ", nil},
		"the lifecycles fail":           {fails(lifecyclesPath), "reading resourcelifecycles: ", nil},
		"the lifecycles differ":         {func(w *world) { w.reader.confirmLifecycles = answerLifecycles(refused) }, "refused", refused},
		"the Lease fails":               {fails(leasePath), "reading lease: ", nil},
		"there is no Lease":             {func(w *world) { w.on("GET "+leasePath, func() int { return http.StatusNotFound }) }, "reading lease: ", nil},
		"another replica has the Lease": {func(w *world) { w.holder = &other }, "reading lease: ", errNotLeading},
		"no replica has the Lease":      {func(w *world) { w.holder = nil }, "reading lease: ", errNotLeading},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			c.change(w)
			got, err := w.reader.read(context.Background(), testbuilders.Now)
			if err == nil || !strings.HasPrefix(err.Error(), c.want) || c.is != nil && !errors.Is(err, c.is) {
				t.Errorf("read with %v", err)
			}
			if !reflect.DeepEqual(got, freshness.ConsistentRead{}) {
				t.Errorf("read %+v", got)
			}
		})
	}
	t.Run("without an election", func(t *testing.T) {
		w := newWorld(t)
		w.reader.election.LeaderElect, w.holder = false, &other
		if _, err := w.reader.read(context.Background(), testbuilders.Now); err != nil || w.requests("GET "+leasePath) != 0 {
			t.Errorf("read the Lease, with %v", err)
		}
	})
}
