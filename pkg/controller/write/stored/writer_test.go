// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package stored

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/testutil"
	"k8s.io/utils/clock"
)

var (
	namespaced = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "lists"}
	clusters   = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "clusterlists"}
)

// fixture is a writer of a resource, and what it requested.
type fixture struct {
	*testing.T
	*Writer
	requests []string
}

// newFixture returns a writer whose requests are all answered with err.
func newFixture(t *testing.T, resource schema.GroupVersionResource, err error) *fixture {
	o := &fixture{T: t}
	client := fake.NewSimpleDynamicClient(runtime.NewScheme())
	client.PrependReactor("*", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		o.requests = append(o.requests, describe(t, action))
		return true, &unstructured.Unstructured{}, err
	})
	writes := metrics.NewCounterVec(&metrics.CounterOpts{Name: "writes"}, []string{"result"})
	metrics.NewKubeRegistry().MustRegister(writes)
	o.Writer = NewWriter(Config{
		Resource: resource, Client: client, Clock: clock.RealClock{}, Budget: rate.NewLimiter(rate.Inf, 1), Writes: writes, Failure: "Cannot store",
	})
	return o
}

// describe returns a request in one line.
func describe(t *testing.T, action clienttesting.Action) string {
	at := fmt.Sprintf("%s %s %s/", action.GetVerb(), action.GetResource().Resource, action.GetNamespace())
	switch a := action.(type) {
	case clienttesting.DeleteAction:
		return at + a.GetName() + "@" + *a.GetDeleteOptions().Preconditions.ResourceVersion
	case clienttesting.UpdateAction: // And a CreateAction.
		object, err := meta.Accessor(a.GetObject())
		if err != nil {
			t.Error(err)
			return ""
		}
		return at + object.GetName() + "@" + object.GetResourceVersion()
	}
	t.Errorf("unexpected %v", action)
	return ""
}

// object is one that was observed in a version; empty if it was not.
func object(namespace, version string) *unstructured.Unstructured {
	out := &unstructured.Unstructured{Object: map[string]any{}}
	out.SetNamespace(namespace)
	out.SetName("a")
	out.SetResourceVersion(version)
	return out
}

// TestWrite: each write is on top of what was observed, in a namespace or in the cluster.
func TestWrite(t *testing.T) {
	for want, c := range map[string]struct {
		resource schema.GroupVersionResource
		change   Change
	}{
		"create lists home/a@":      {namespaced, Change{Object: object("home", "")}},
		"update lists home/a@7":     {namespaced, Change{Object: object("home", "7")}},
		"delete lists home/a@7":     {namespaced, Change{Object: object("home", "7"), Delete: true}},
		"create clusterlists /a@":   {clusters, Change{Object: object("", "")}},
		"update clusterlists /a@18": {clusters, Change{Object: object("", "18")}},
		"delete clusterlists /a@18": {clusters, Change{Object: object("", "18"), Delete: true}},
	} {
		o := newFixture(t, c.resource, nil)
		if err := o.Write(t.Context(), c.change); err != nil || !slices.Equal(o.requests, []string{want}) {
			t.Errorf("%v: got %q, want %s", err, o.requests, want)
		}
	}
}

// TestAnswers: the error says whether the object is gone, and each answer is counted.
func TestAnswers(t *testing.T) {
	kind := clusters.GroupResource()
	terminating := apierrors.NewForbidden(kind, "a", errors.New("namespace home is being terminated"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	for name, c := range map[string]struct {
		err    error
		result string
		gone   bool
	}{
		"stored":           {nil, "ok", false},
		"changed":          {apierrors.NewConflict(kind, "a", errors.New("changed")), "conflict", false},
		"exists":           {apierrors.NewAlreadyExists(kind, "a"), "conflict", false},
		"gone":             {apierrors.NewNotFound(kind, "a"), "conflict", true},
		"namespace is not": {terminating, "conflict", true},
		"not served":       {apierrors.NewGenericServerResponse(http.StatusNotFound, "post", kind, "", "not found", 0, true), "failed", false},
		"forbidden":        {apierrors.NewForbidden(kind, "a", errors.New("RBAC says no")), "failed", false},
	} {
		o := newFixture(t, clusters, c.err)
		if err := o.Write(t.Context(), Change{Object: object("", "7")}); !errors.Is(err, c.err) || Gone(err) != c.gone {
			t.Errorf("%s: got %v, gone %v", name, err, Gone(err))
		}
		want := map[string]float64{"ok": 0, "conflict": 0, "failed": 0}
		want[c.result] = 1
		got := maps.Clone(want)
		for result := range got {
			value, err := testutil.GetCounterMetricValue(o.Writes.WithLabelValues(result))
			if err != nil {
				t.Fatal(err)
			}
			got[result] = value
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: counted (-want +got):\n%s", name, diff)
		}
	}
}

// TestNoBudget: without budget nothing is requested until ctx ends, and the write must be tried again.
func TestNoBudget(t *testing.T) {
	o := newFixture(t, clusters, nil)
	o.Budget = rate.NewLimiter(rate.Every(time.Hour), 2)
	ctx, cancel := context.WithCancel(t.Context())
	if err := o.Write(ctx, Change{Object: object("", "7"), Cost: 2}); err != nil {
		t.Errorf("not written within the budget: %v", err)
	}
	cancel()
	if err := o.Write(ctx, Change{Object: object("", "8"), Cost: 1}); err == nil || len(o.requests) != 1 {
		t.Errorf("%v: got %q", err, o.requests)
	}
}

// TestConfirm: nothing is requested unless it is confirmed, after the budget has allowed it.
func TestConfirm(t *testing.T) {
	o := newFixture(t, clusters, nil)
	refused := errors.New("the lease names another replica")
	o.Budget = rate.NewLimiter(rate.Every(time.Hour), 1)
	confirmed := 0
	o.Confirm = func(context.Context) error { confirmed++; return refused }
	if err := o.Write(t.Context(), Change{Object: object("", "7"), Cost: 1}); !errors.Is(err, refused) || len(o.requests) > 0 {
		t.Errorf("%v: got %q", err, o.requests)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := o.Write(ctx, Change{Object: object("", "7"), Cost: 1}); err == nil || confirmed != 1 {
		t.Errorf("%v: asked %d times", err, confirmed)
	}
}

// TestHangs: a request that is not answered ends.
func TestHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newFixture(t, clusters, nil)
		o.Confirm = func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		}
		if err := o.Write(t.Context(), Change{Object: object("", "7"), Cost: 1}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
	})
}
