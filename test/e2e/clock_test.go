// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/test/winnow"
)

// behindProxy has one replica alone, which reaches the API server through a proxy, until the test ends. The others are back before that one
// goes: without any, the aggregator would refuse requests of the next test for a while.
func behindProxy(t *testing.T) (*winnow.Proxy, *winnow.Replica) {
	t.Helper()
	proxy, err := server.NewProxy()
	must(t, err)
	t.Cleanup(func() { must(t, proxy.Close()) })
	others := slices.Clone(server.Replicas)
	replica, err := server.AddReplica(whole, "--kubeconfig="+proxy.Kubeconfig)
	if replica != nil {
		t.Cleanup(func() { must(t, replica.Retire()) })
	}
	must(t, err)
	kill(t, others...)
	return proxy, replica
}

// TestClockInDoubt: while the API server's clock is an hour off, ahead or behind, nothing is deleted, and the status says why. It
// passes by itself when the clock is right again.
func TestClockInDoubt(t *testing.T) {
	proxy, replica := behindProxy(t)
	for name, offset := range map[string]time.Duration{"ahead": time.Hour, "behind": -time.Hour} {
		ns := newNamespace(t)
		finish(t, createJob(t, ns, job("job", unmanaged)), time.Now())
		proxy.SetClock(offset)
		expireReadings(t)
		createPolicy(t, ns, "p", v1alpha1.CleanupPolicySpec{TTLAfterFinished: ttl("0s")})
		waitStatus(t, ns, "p", func(s *v1alpha1.CleanupPolicyStatus) bool {
			return len(s.Conditions) == 1 && s.Conditions[0].Reason == "ClockInDoubt" && s.Conditions[0].Status == metav1.ConditionFalse &&
				s.Held == 1
		})
		moreReadings(t, replica, "", 2)
		expectDeletions(t, ns)
		t.Logf("nothing is deleted with the clock %s", name)
		proxy.SetClock(0)
		expectDeletions(t, ns, "jobs/job p/default")
		waitStatus(t, ns, "p", func(s *v1alpha1.CleanupPolicyStatus) bool { return s.Conditions[0].Status == metav1.ConditionTrue })
	}
}
