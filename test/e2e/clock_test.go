// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
)

// TestClockInDoubt: while the API server's clock is an hour off, ahead or behind, nothing is deleted, and the status says why. It
// passes by itself when the clock is right again.
func TestClockInDoubt(t *testing.T) {
	proxy, err := server.NewProxy()
	must(t, err)
	t.Cleanup(func() { must(t, proxy.Close()) })
	kill(t, server.Replicas...)
	replica, err := server.AddReplica(whole, "--kubeconfig="+proxy.Kubeconfig)
	if replica != nil {
		t.Cleanup(func() { must(t, replica.Retire()) })
	}
	must(t, err)
	for name, offset := range map[string]time.Duration{"ahead": time.Hour, "behind": -time.Hour} {
		ns := newNamespace(t)
		finish(t, createJob(t, ns, job("job", unmanaged)), time.Now())
		proxy.SetClock(offset)
		settle(t, time.Second) // What was read before allows deletes for less than that.
		createPolicy(t, ns, "p", v1alpha1.CleanupPolicySpec{TTLAfterFinished: ttl("0s")})
		waitStatus(t, ns, "p", func(s *v1alpha1.CleanupPolicyStatus) bool {
			return len(s.Conditions) == 1 && s.Conditions[0].Reason == "ClockInDoubt" && s.Conditions[0].Status == metav1.ConditionFalse &&
				s.Held == 1
		})
		settle(t, time.Second)
		expectDeletions(t, ns)
		t.Logf("nothing is deleted with the clock %s", name)
		proxy.SetClock(0)
		expectDeletions(t, ns, "jobs/job p/default")
		waitStatus(t, ns, "p", func(s *v1alpha1.CleanupPolicyStatus) bool { return s.Conditions[0].Status == metav1.ConditionTrue })
	}
}
