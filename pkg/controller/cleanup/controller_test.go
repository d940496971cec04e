// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package cleanup

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/objects/facts"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
	"github.com/winnow-dev/winnow/pkg/controller/tracker"
)

// TestConfigReachesTheTracker: the protected namespaces and limits of Config apply to objects.
func TestConfigReachesTheTracker(t *testing.T) {
	hour := gc.TTL("1h")
	nowhere := &rest.Config{Host: "https://127.0.0.1:1"}
	for name, tc := range map[string]struct {
		config    Config
		closed    policy.Reason
		due, held int64
	}{
		"protected":                  {config: Config{ProtectedNamespaces: []string{testbuilders.Home}, HoldAbove: -1, HoldAboveTotal: -1}, closed: policy.ReasonNamespaceProtected},
		"as many as allowed":         {config: Config{HoldAbove: 3, HoldAboveTotal: -1}, due: 3},
		"more than allowed":          {config: Config{HoldAbove: 2, HoldAboveTotal: -1}, due: 3, held: 3},
		"more than allowed in total": {config: Config{HoldAbove: -1, HoldAboveTotal: 2}, due: 3, held: 3},
	} {
		tc.config.Cluster, tc.config.Loopback = nowhere, nowhere
		c, err := New(tc.config)
		if err != nil {
			t.Fatal(err)
		}
		tr := c.replica.(*tracker.Tracker)
		tr.ReplacePolicies(nil, "", testbuilders.Now)
		tr.ReplaceClusterPolicies([]*gc.ClusterCleanupPolicy{{
			ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "p", Generation: 1},
			Spec: gc.ClusterCleanupPolicySpec{
				Mode: gc.ModeEnforce, NamespaceSelector: &metav1.LabelSelector{}, AnnotationTTL: gc.AnnotationExtendOnly, TTLAfterFinished: &hour,
			},
		}}, "", testbuilders.Now)
		tr.ReplaceNamespaces([]*metav1.PartialObjectMetadata{testbuilders.Namespace(testbuilders.Home, "1")}, "", testbuilders.Now)
		tr.SetPolicy(
			testbuilders.Policy("idle").Obj(),
			testbuilders.Now,
		) // Its report says whether the namespace is excluded.
		tr.ReplaceCronJobs(nil, testbuilders.Now)
		var all []*facts.Compact
		for _, name := range []string{"a", "b", "c"} {
			all = append(all, facts.Compress(testbuilders.Job(name).Complete(testbuilders.Now.Add(-2*time.Hour)).Fact()))
		}
		list(tr, gc.ResourcePods)
		list(tr, gc.ResourceJobs, all...)
		r, own := tr.Reports("")[0], tr.Reports(testbuilders.Home)[0]
		if own.Excluded != tc.closed || r.Due != tc.due || r.Held != tc.held {
			t.Errorf(
				"%s: closed: %q, %d due, %d of them held: %v; want %q, %d, %d",
				name,
				own.Excluded,
				r.Due,
				r.Held,
				r.HeldByReason,
				tc.closed,
				tc.due,
				tc.held,
			)
		}
	}
}
