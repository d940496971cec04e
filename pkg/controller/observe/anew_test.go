// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/rules/freshness"
	"github.com/winnow-dev/winnow/pkg/controller/write/marks"
)

// storeOlder has policy p stored with a TTL and a resource version that is older than what was seen.
func (o *observed) storeOlder(ttl gc.TTL) {
	o.Helper()
	older := &v1alpha1.CleanupPolicy{}
	p := testbuilders.Policy("p").Default(ttl).Version("1").Obj()
	if err := v1alpha1.Convert_gc_CleanupPolicy_To_v1alpha1_CleanupPolicy(p, older, nil); err != nil {
		o.Fatal(err)
	}
	if _, err := o.policies.Update(context.Background(), older, metav1.UpdateOptions{}); err != nil {
		o.Fatal(err)
	}
}

// alwaysWatched waits until what is always watched is watched for the nth time.
func (o *observed) alwaysWatched(n int) {
	o.Helper()
	o.until("all is watched again", func() bool {
		return watches(&o.gc.Fake, "cleanuppolicies") == n && watches(&o.gc.Fake, "clustercleanuppolicies") == n &&
			watches(&o.metadata.Fake, "namespaces") == n && watches(&o.marks.Fake, marks.Resource.Resource) == n
	})
}

// TestRelist: policies, namespaces and marks are listed again, and objects are not. What was seen before is not forgotten: a fake's lists
// have lower resource versions than its objects, so that the list of namespaces shows that the store has gone back.
func TestRelist(t *testing.T) {
	o := newObserved(t, testbuilders.Job("a").Complete(testbuilders.Now).Obj())
	var back atomic.Int32
	o.WentBack = func(err error) {
		if !strings.Contains(err.Error(), "the store of namespaces is at resourceVersion") {
			t.Error(err)
		}
		back.Add(1)
	}
	o.run()
	o.alwaysWatched(1)
	o.until("the namespace is known", func() bool {
		version, _ := o.Tracker.Newest(freshness.Namespaces)
		return version > 100
	})
	o.Relist()
	o.until("policies and marks are watched again", func() bool {
		return watches(&o.gc.Fake, "cleanuppolicies") == 2 && watches(&o.gc.Fake, "clustercleanuppolicies") == 2 &&
			watches(&o.marks.Fake, marks.Resource.Resource) == 2
	})
	o.until("namespaces are listed again", func() bool { return back.Load() > 0 })
	o.create(testbuilders.Policy("p").Default("0s"))
	o.until("the Job is due", func() bool { return o.due("p") == 1 })
	if n := o.watches("jobs"); n != 1 || !o.Synced() {
		t.Errorf("Jobs are watched for the %dth time, synced: %v", n, o.Synced())
	}
}

// TestObservesAnew: a watch reports an older state, which is ignored. A list shows that the store went back, so everything is listed again,
// and older states count.
func TestObservesAnew(t *testing.T) {
	o := newReferred(t, testbuilders.Job("done").Complete(testbuilders.Now).Obj(), mounting("a", "mounted"))
	o.WentBack = o.StartAnew
	o.serve("", nil, configMaps, secrets, pods, runs, racks)
	o.run()
	o.create(testbuilders.Policy("p").Default("0s"))
	o.create(testbuilders.Policy("unused").Rules(
		testbuilders.Rule("unused", "0s").For(gc.ResourceConfigMaps).Labelled("app", "web").AfterUnused()))
	o.until("the Job is due", func() bool { return o.due("p") == 1 })
	o.becomes("mounted", "InUse", "pods/a refers to it")
	o.becomes("plain", "Expired", "")
	jobs, pods := o.watches("jobs"), o.watches("pods")
	o.storeOlder("1h")
	o.until("the older policy counts", func() bool { return o.due("p") == 0 })
	o.alwaysWatched(2)
	o.watched(jobs+1, "jobs")
	o.watched(pods+1, "pods")
	o.becomes("mounted", "InUse", "pods/a refers to it")
	o.becomes("plain", "Expired", "")
	o.until("all are listed", o.Synced)
	if version, anew := o.Tracker.Newest(freshness.Policies); anew != 1 || version > 100 {
		t.Errorf("memory is at version %d, and was observed anew %d times", version, anew)
	}
}
