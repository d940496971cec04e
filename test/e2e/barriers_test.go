// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/test/winnow"
)

// TestFrozenWatchOfPolicies: while the watch of policies reports nothing, although its connection is open, nothing is deleted that a change
// forbids. With the watch deletions go on, by the policies as they are now.
func TestFrozenWatchOfPolicies(t *testing.T) {
	needsBuiltinStorage(t, "the proxy freezes watches of the cluster's API")
	proxy, replica := behindProxy(t)
	for resource, c := range map[string]struct {
		forbid, allow func(g group, ns string)
	}{
		"storedcleanuppolicies": {
			func(_ group, ns string) { setTTL(t, ns, "never") },
			func(_ group, ns string) { setTTL(t, ns, "0s") },
		},
		"storedclustercleanuppolicies": {
			func(g group, _ string) { g.change(t, `{"guardrails": {"suspendAll": true}}`) },
			func(g group, _ string) { g.change(t, `{"guardrails": {"suspendAll": false}}`) },
		},
	} {
		g := newGroup()
		ns := g.namespace(t)
		g.govern(t, v1alpha1.ClusterCleanupPolicySpec{})
		createPolicy(t, ns, "p", v1alpha1.CleanupPolicySpec{TTLAfterFinished: ttl("0s")})
		finish(t, createJob(t, ns, job("before", unmanaged)), time.Now())
		expectDeletions(t, ns, "jobs/before p/default")

		thaw := proxy.Freeze(resource)
		c.forbid(g, ns)
		expireReadings(t)
		finish(t, createJob(t, ns, job("after", unmanaged)), time.Now())
		moreReadings(t, replica, "disagreed", 3) // It says that its memory is behind.
		expectDeletions(t, ns, "jobs/before p/default")
		thaw()
		afterwards(t, 0)
		expectDeletions(t, ns, "jobs/before p/default")
		c.allow(g, ns)
		expectDeletions(t, ns, "jobs/before p/default", "jobs/after p/default")
	}
}

func setTTL(t *testing.T, ns string, s v1alpha1.TTL) {
	t.Helper()
	changePolicy(t, ns, "p", fmt.Sprintf(`{"ttlAfterFinished":%q}`, s))
}

// TestBarriers: they stand among the stored policies and say what they are, no request for policies shows them, and what is removed of them
// comes back and costs nothing.
func TestBarriers(t *testing.T) {
	needsBuiltinStorage(t, "an etcd tells the progress of its watches without barriers")
	const name = "barrier.internal.gc.winnow.dev"
	ns := newNamespace(t)
	createPolicy(t, ns, "p", v1alpha1.CleanupPolicySpec{TTLAfterFinished: ttl("0s")})
	var want []string
	for _, round := range []string{"first", "second"} {
		expireReadings(t)
		finish(t, createJob(t, ns, job(round, unmanaged)), time.Now())
		want = append(want, "jobs/"+round+" p/default")
		expectDeletions(t, ns, want...)
		for _, resource := range []string{"storedcleanuppolicies.internal.gc.winnow.dev", "storedclustercleanuppolicies.internal.gc.winnow.dev"} {
			out, _, err := suite.Kubectl(t.Context(), "describe", resource, name, "-n", winnow.Namespace)
			if err != nil || !strings.Contains(out, "This is not a policy") {
				t.Errorf("%s: %v %s", resource, err, out)
			}
			_, stderr, err := suite.Kubectl(t.Context(), "delete", resource, name, "-n", winnow.Namespace)
			if err != nil {
				t.Errorf("%s: %v %s", resource, err, stderr)
			}
		}
	}
	for _, args := range [][]string{{"get", "cup,ccup", "-A", "-o", "name"}, {"get", "cup", "-n", winnow.Namespace, "-o", "name", "--chunk-size=1"}} {
		if out, _, err := suite.Kubectl(t.Context(), args...); err != nil || strings.Contains(out, name) {
			t.Errorf("%v: %v %s", args, err, out)
		}
	}
	policy := &v1alpha1.CleanupPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := gc.CleanupPolicies(ns).Create(t.Context(), policy, metav1.CreateOptions{}); !apierrors.IsBadRequest(err) {
		t.Errorf("a policy of that name: %v", err)
	}
}
