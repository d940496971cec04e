// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"errors"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/pkg/controller/rules/freshness"
)

// reporting is a reporter of a cluster with objects of runs.example.com, which counts how often they were listed.
type reporting struct {
	*world
	reporter
	objects int64
	err     error
	lists   int
}

func newReporting(t *testing.T, cluster *cluster, l *v1alpha1.ResourceLifecycle) *reporting {
	t.Helper()
	w := newWorld(t, cluster)
	r := &reporting{world: w, reporter: reporter{w.Follower, map[string]*usage{}, map[freshness.Revision]metav1.Condition{}}}
	w.definitions.PrependReactor("list", "runs", func(clienttesting.Action) (bool, runtime.Object, error) {
		r.lists++
		if r.err != nil {
			return true, nil, r.err
		}
		list := &metav1.List{}
		if r.objects > 1 {
			list.RemainingItemCount = ptr.To(r.objects - 1)
		}
		if r.objects > 0 {
			m := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
			list.Items = append(list.Items, runtime.RawExtension{Object: m})
		}
		return true, list, nil
	})
	if _, err := w.own.GcV1alpha1().ResourceLifecycles().Create(t.Context(), l, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return r
}

// status observes and reports once, and returns the status that was written.
func (r *reporting) status() v1alpha1.ResourceLifecycleStatus {
	r.t.Helper()
	if err := r.world.start(r.t.Context()); err != nil {
		r.t.Fatal(err)
	}
	r.report(r.t.Context())
	l, err := r.own.GcV1alpha1().ResourceLifecycles().Get(r.t.Context(), runs, metav1.GetOptions{})
	if err != nil {
		r.t.Fatal(err)
	}
	return l.Status
}

func condition(t *testing.T, s v1alpha1.ResourceLifecycleStatus, kind string) string {
	t.Helper()
	c := meta.FindStatusCondition(s.Conditions, kind)
	if c == nil {
		t.Fatalf("no condition %s", kind)
	}
	return string(c.Status) + " " + c.Reason + ": " + c.Message
}

// references is a lifecycle that says what is referred to.
func references(names string, finishes bool) *v1alpha1.ResourceLifecycle {
	l := runLifecycle(1)
	if !finishes {
		l.Spec.Finished = nil
	}
	l.Spec.References = []v1alpha1.LifecycleReference{{To: v1alpha1.ReferenceToSecrets, Names: names}}
	return l
}

func TestConditionsOfALifecycle(t *testing.T) {
	served := func() *cluster { return new(cluster).serve("example.com", "v1", "runs") }
	broken := runLifecycle(1)
	broken.Spec.Finished.When = "object.status.done ="
	for name, c := range map[string]struct {
		cluster               *cluster
		lifecycle             *v1alpha1.ResourceLifecycle
		err                   error
		accepted, established string
	}{
		"served": {served(), runLifecycle(1), nil, "True Accepted: ", "True Served: The cluster serves the resource."},
		"broken": {served(), broken, nil, "False LifecycleUnreadable: No object of the resource is deleted, ", "True Served: "},
		"not served": {
			new(cluster).serve("example.com", "v1", "run"), runLifecycle(1), nil, "True Accepted: ",
			`False NotServed: The cluster does not serve runs.example.com. The lifecycle applies as soon as it does. Did you mean "run.example.com"?`,
		},
		"cluster-scoped, and says what is referred to": {
			new(cluster).serve("example.com", "v1", "cluster:runs"), references("'a'", false), nil, "True Accepted: ", "True Served: The cluster serves the resource.",
		},
		"cluster-scoped, and says both": {
			new(cluster).serve("example.com", "v1", "cluster:runs"), references("'a'", true), nil, "True Accepted: ",
			"True Served: The cluster serves the resource. But spec.finished has no effect: runs.example.com is cluster-scoped",
		},
		"not watched, and says what is referred to": {
			new(cluster).serve("example.com", "v1", "unwatched:runs"), references("'a'", false), nil, "True Accepted: ",
			`False NotSupported: The lifecycle has no effect: runs.example.com does not support the verb "watch"`,
		},
		"broken references": {
			served(), references("object.a =", false), nil,
			"False LifecycleUnreadable: Each object may refer to every ConfigMap and Secret of its namespace, because ", "True Served: ",
		},
		"broken references, and a finish": {
			served(), references("object.a =", true), nil,
			"False LifecycleUnreadable: No object of the resource is deleted, and each object may refer to every ConfigMap and Secret of its namespace, because ", "True Served: ",
		},
		"cluster-scoped": {
			new(cluster).serve("example.com", "v1", "cluster:runs"), runLifecycle(1), nil, "True Accepted: ",
			"False NotSupported: The lifecycle has no effect: runs.example.com is cluster-scoped",
		},
		"no permission": {
			served(), runLifecycle(1), apierrors.NewForbidden(schema.GroupResource{Resource: "runs"}, "", errors.New("no")), "True Accepted: ",
			"True Served: The cluster serves the resource. Winnow may not list it; to let Winnow clean it up: " + gc.GrantAdvice(runs),
		},
	} {
		r := newReporting(t, c.cluster, c.lifecycle)
		r.err = c.err
		s := r.status()
		for kind, want := range map[string]string{gc.ConditionAccepted: c.accepted, gc.ConditionEstablished: c.established} {
			if got := condition(t, s, kind); !strings.HasPrefix(got, want) {
				t.Errorf("%s: %s, want %s", name, got, want)
			}
		}
	}
}

// TestCounts: objects are counted from time to time, and a resource is unused since the first count that found none.
func TestCounts(t *testing.T) {
	r := newReporting(t, new(cluster).serve("example.com", "v1", "runs"), runLifecycle(1))
	start := r.world.clock.Now().Truncate(time.Second)
	expect := func(step string, objects int64, unusedSince time.Time, lists int) {
		t.Helper()
		s := r.status()
		if s.Objects == nil || *s.Objects != objects || r.lists != lists {
			t.Errorf("%s: %v objects, listed %d times", step, ptr.Deref(s.Objects, -1), r.lists)
		}
		if s.UnusedSince == nil != unusedSince.IsZero() || s.UnusedSince != nil && !s.UnusedSince.Time.Equal(unusedSince) {
			t.Errorf("%s: unused since %v, want %v", step, s.UnusedSince, unusedSince)
		}
	}
	later := func() { r.world.clock.Step(countEvery) }
	expect("none", 0, start, 1)
	r.objects = 7
	expect("counted a moment ago", 0, start, 1)
	later()
	expect("some", 7, time.Time{}, 2)
	r.objects = 0
	later()
	unused := start.Add(2 * countEvery)
	expect("none again", 0, unused, 3)
	later()
	expect("still none", 0, unused, 4)
	r.used = map[string]*usage{}
	later()
	expect("another leader", 0, unused, 5)
	r.err = errors.New("no connection")
	later()
	expect("not counted", 0, unused, 6)
	r.err = apierrors.NewForbidden(schema.GroupResource{Resource: "runs"}, "", errors.New("no"))
	later()
	if s := r.status(); s.Objects != nil || r.lists != 7 {
		t.Errorf("forbidden: %v objects, listed %d times", s.Objects, r.lists)
	}
	r.err, r.objects = nil, 3
	r.world.clock.Step(countAgain)
	expect("allowed", 3, time.Time{}, 8)
	r.cluster.set(new(cluster).serve("other.example.com", "v1", "things"))
	if s := r.status(); s.Objects != nil || s.UnusedSince != nil || len(r.used) > 0 {
		t.Errorf("not served: %+v", s)
	}
}
