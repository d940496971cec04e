// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/test/winnow"
)

const labelProtected = "gc.winnow.dev/protected"

// replayed is why a test of a replayed policy needs the built-in storage.
const replayed = "the proxy replays watches of the cluster's API"

// TestReplayedWatches: a watch that reports older states once more changes nothing of what is deleted, and of what is kept.
func TestReplayedWatches(t *testing.T) {
	proxy, replica := behindProxy(t)
	for round := 1; !replayAll(t, proxy, replica); round++ {
		if round == 3 {
			t.Fatalf("policies and namespaces were listed again in each of %d rounds", round)
		}
	}
}

// replayAll is a round of TestReplayedWatches. It returns false if the replica has listed policies and namespaces again: if watches are slow, it
// does so by itself, and then a deletion shows nothing.
func replayAll(t *testing.T, proxy *winnow.Proxy, replica *winnow.Replica) bool {
	t.Helper()
	before, err := replica.Log()
	must(t, err)
	for name, test := range map[string]func(*testing.T, *winnow.Proxy){
		"a policy before it was suspended":              testReplayedPolicy,
		"a cluster policy before it suspended all":      testReplayedClusterPolicy,
		"a namespace before it was protected":           testReplayedUnprotected,
		"a namespace while it was protected":            testReplayedProtected,
		"a Job before it was annotated, and one of old": testReplayedJobs,
	} {
		t.Run(name, func(t *testing.T) { test(t, proxy) })
	}
	log, err := replica.Log()
	must(t, err)
	for text, want := range map[string]bool{
		"Ignored what a watch has reported once more": true, "Observing everything anew": false,
		"Ignoring an older event of a watch": !*inEtcd, // of policies
	} {
		if strings.Contains(log, text) != want {
			t.Errorf("the log has %q: %v, want %v", text, !want, want)
		}
	}
	return !strings.Contains(log[len(before):], "Listing policies and namespaces again")
}

// suspended reports whether a policy holds one object because somebody has suspended deletions.
func suspended(s *v1alpha1.CleanupPolicyStatus) bool {
	for _, c := range s.Conditions {
		if c.Type == "Suspended" && c.Status == metav1.ConditionTrue {
			return s.Held == 1
		}
	}
	return false
}

func testReplayedPolicy(t *testing.T, proxy *winnow.Proxy) {
	needsBuiltinStorage(t, replayed)
	ns := newNamespace(t)
	createPolicy(t, ns, "p", v1alpha1.CleanupPolicySpec{TTLAfterFinished: ttl("0s")})
	finish(t, createJob(t, ns, job("before", unmanaged)), time.Now())
	expectDeletions(t, ns, "jobs/before p/default")
	older := proxy.Reported("storedcleanuppolicies", ns)
	changePolicy(t, ns, "p", `{"suspend": true}`)
	finish(t, createJob(t, ns, job("after", unmanaged)), time.Now())
	waitStatus(t, ns, "p", suspended)
	must(t, older.Replay())
	afterwards(t, 0)
	expectDeletions(t, ns, "jobs/before p/default")
	changePolicy(t, ns, "p", `{"suspend": false}`)
	expectDeletions(t, ns, "jobs/before p/default", "jobs/after p/default")
}

func testReplayedClusterPolicy(t *testing.T, proxy *winnow.Proxy) {
	needsBuiltinStorage(t, replayed)
	g := newGroup()
	ns := g.namespace(t)
	g.govern(t, v1alpha1.ClusterCleanupPolicySpec{TTLAfterFinished: ttl("0s")})
	decider := " " + string(g) + "/default"
	finish(t, createJob(t, ns, job("before", unmanaged)), time.Now())
	expectDeletions(t, ns, "jobs/before"+decider)
	older := proxy.Reported("storedclustercleanuppolicies", string(g))
	g.change(t, `{"guardrails": {"suspendAll": true}}`)
	finish(t, createJob(t, ns, job("after", unmanaged)), time.Now())
	g.waitStatus(t, suspended)
	must(t, older.Replay())
	afterwards(t, 0)
	expectDeletions(t, ns, "jobs/before"+decider)
	g.change(t, `{"guardrails": {"suspendAll": false}}`)
	expectDeletions(t, ns, "jobs/before"+decider, "jobs/after"+decider)
}

// protect sets the label that protects a namespace, and waits until Winnow knows.
func protect(t *testing.T, ns string) {
	t.Helper()
	labelNamespace(t, ns, labelProtected, "true")
	waitStatus(t, ns, "p", func(s *v1alpha1.CleanupPolicyStatus) bool {
		return len(s.Conditions) > 0 && strings.Contains(fmt.Sprint(s.Conditions), "NamespaceProtected")
	})
}

func testReplayedUnprotected(t *testing.T, proxy *winnow.Proxy) {
	ns := newNamespace(t)
	createPolicy(t, ns, "p", v1alpha1.CleanupPolicySpec{TTLAfterFinished: ttl("0s")})
	finish(t, createJob(t, ns, job("before", unmanaged)), time.Now())
	expectDeletions(t, ns, "jobs/before p/default")
	older := proxy.Reported("namespaces", ns)
	protect(t, ns)
	finish(t, createJob(t, ns, job("after", unmanaged)), time.Now())
	must(t, older.Replay())
	afterwards(t, 0)
	expectDeletions(t, ns, "jobs/before p/default")
}

// testReplayedProtected: what is replayed must not stop deletions for ever.
func testReplayedProtected(t *testing.T, proxy *winnow.Proxy) {
	ns := newNamespace(t)
	createPolicy(t, ns, "p", v1alpha1.CleanupPolicySpec{TTLAfterFinished: ttl("0s")})
	protect(t, ns)
	older := proxy.Reported("namespaces", ns) // The last of them is protected.
	labelNamespace(t, ns, labelProtected, "")
	finish(t, createJob(t, ns, job("before", unmanaged)), time.Now())
	expectDeletions(t, ns, "jobs/before p/default")
	must(t, older.Replay())
	finish(t, createJob(t, ns, job("after", unmanaged)), time.Now())
	expectDeletions(t, ns, "jobs/before p/default", "jobs/after p/default")
}

// testReplayedJobs: a DELETE of an older state would be refused, and there is none; nor is there a second one of a Job that is gone.
func testReplayedJobs(t *testing.T, proxy *winnow.Proxy) {
	ns := newNamespace(t)
	createPolicy(t, ns, "p", v1alpha1.CleanupPolicySpec{TTLAfterFinished: ttl("1h")})
	for _, name := range []string{"kept", "gone"} {
		finish(t, createJob(t, ns, job(name, unmanaged)), time.Now())
	}
	waitStatus(t, ns, "p", func(s *v1alpha1.CleanupPolicyStatus) bool { return s.Candidates == 2 })
	older := proxy.Reported("jobs", ns)
	kubectl(t, "annotate", "job", "kept", "-n", ns, annotationKeepUntil+"="+time.Now().Add(2*time.Hour).UTC().Format(time.RFC3339))
	waitCandidate(t, ns, "jobs.batch/kept", annotationKeepUntil)
	setTTL(t, ns, "0s")
	expectDeletions(t, ns, "jobs/gone p/default")
	waitJobs(t, ns, 1)
	must(t, older.Replay())
	afterwards(t, 0)
	expectDeletions(t, ns, "jobs/gone p/default")
	waitStatus(t, ns, "p", func(s *v1alpha1.CleanupPolicyStatus) bool { return s.Candidates == 1 && s.Due == 0 })
}
