// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/test/winnow"
)

// inStorage reaches what Winnow stores in the cluster's API, as nobody but Winnow may write it.
func inStorage(t *testing.T, resource, ns string) dynamic.ResourceInterface {
	t.Helper()
	config, err := suite.UserConfig(winnow.User, "system:serviceaccounts", "system:serviceaccounts:"+winnow.Namespace)
	must(t, err)
	client, err := dynamic.NewForConfig(config)
	must(t, err)
	return client.Resource(schema.GroupVersionResource{Group: "internal.gc.winnow.dev", Version: "v1alpha1", Resource: resource}).Namespace(ns)
}

// TestUnreadablePolicy: a policy with a field that this version does not know, as a newer one leaves it behind, holds its own
// namespace and no other, also after a restart, and why is told there; it is not written over, and can be deleted.
func TestUnreadablePolicy(t *testing.T) {
	ns, other := newNamespace(t), newNamespace(t)
	finishedJobs(t, ns, 1)
	createPolicy(t, ns, "newer", v1alpha1.CleanupPolicySpec{TTLAfterFinished: ttl("1h")})
	createPolicy(t, ns, "plain", v1alpha1.CleanupPolicySpec{TTLAfterFinished: ttl("1s")})
	waitStatus(t, ns, "newer", func(s *v1alpha1.CleanupPolicyStatus) bool { return s.Candidates == 1 })
	damage(t, ns, "newer", `"ttlAfterFinished":"1h"`, `"ttlAfterFinished":"0s","unlessSomethingNew":true`)
	waitStatus(t, ns, "plain", func(s *v1alpha1.CleanupPolicyStatus) bool {
		message := s.Conditions[0].Message
		return s.Held == 1 && strings.Contains(message, "PolicyUnreadable") &&
			strings.Contains(message, "policy "+ns+`/newer: strict decoding error: unknown field "spec.unlessSomethingNew"`)
	})
	waitStatus(t, ns, "newer", func(s *v1alpha1.CleanupPolicyStatus) bool { return s.Conditions[0].Reason == "PolicyUnreadable" })
	for round := range 2 {
		if round == 1 {
			kill(t, server.Replicas...)
			for _, r := range server.Replicas {
				must(t, r.Start(whole))
			}
		}
		name := fmt.Sprintf("round-%d", round)
		finish(t, createJob(t, other, job(name, unmanaged)), time.Now())
		if round == 0 {
			createPolicy(t, other, "p", v1alpha1.CleanupPolicySpec{TTLAfterFinished: ttl("0s")})
		}
		waitJobs(t, other, 0)
	}
	expectDeletions(t, ns)
	if payload, _ := stored(t, ns, "newer"); !strings.Contains(payload, "unlessSomethingNew") {
		t.Errorf("what a newer version wrote was lost: %s", payload)
	}
	_, err := gc.CleanupPolicies(ns).Get(t.Context(), "newer", metav1.GetOptions{}) // Unlike kubectl, it waits until Winnow can be reached.
	must(t, err)
	if _, stderr, err := suite.Kubectl(t.Context(), "delete", "cleanuppolicy", "newer", "-n", ns); err != nil {
		t.Errorf("it cannot be deleted: %v %s", err, stderr)
	}
	expectDeletions(t, ns, "jobs/job-0000 plain/default")
}

// stored returns the stored form of a policy, or of a cluster policy if ns is empty, and what replaces it unless somebody else has written
// it meanwhile.
func stored(t *testing.T, ns, name string) (payload string, replace func(payload string) error) {
	t.Helper()
	if *inEtcd {
		return storedInEtcd(t, ns, name)
	}
	resource := "storedcleanuppolicies"
	if ns == "" {
		resource = "storedclustercleanuppolicies"
	}
	object, err := inStorage(t, resource, ns).Get(t.Context(), name, metav1.GetOptions{})
	must(t, err)
	payload, _, err = unstructured.NestedString(object.Object, "payload")
	must(t, err)
	return payload, func(payload string) error {
		must(t, unstructured.SetNestedField(object.Object, payload, "payload"))
		_, err := inStorage(t, resource, ns).Update(t.Context(), object, metav1.UpdateOptions{})
		return err
	}
}

// damage replaces a part of the stored form of a policy.
func damage(t *testing.T, ns, name, old, replacement string) {
	t.Helper()
	eventually(t, func(context.Context) string { // Status is written meanwhile.
		payload, replace := stored(t, ns, name)
		changed := strings.Replace(payload, old, replacement, 1)
		if changed == payload {
			t.Fatalf("%q is no part of %s", old, payload)
		}
		if err := replace(changed); err != nil {
			return err.Error()
		}
		return ""
	})
}

// TestPolicyChangedPastTheAPI: what somebody wrote into the stored policy takes effect, though its generation is the same.
func TestPolicyChangedPastTheAPI(t *testing.T) {
	ns := newNamespace(t)
	finishedJobs(t, ns, 1)
	createPolicy(t, ns, "p", v1alpha1.CleanupPolicySpec{TTLAfterFinished: ttl("1h")})
	waitStatus(t, ns, "p", func(s *v1alpha1.CleanupPolicyStatus) bool { return s.Candidates == 1 && s.ObservedGeneration == 1 })
	expectDeletions(t, ns)
	damage(t, ns, "p", `"ttlAfterFinished":"1h"`, `"ttlAfterFinished":"1s"`)
	waitJobs(t, ns, 0)
	expectDeletions(t, ns, "jobs/job-0000 p/default")
}

// TestMisplacedPolicy: a stored policy that says that it belongs to another namespace deletes nothing there.
func TestMisplacedPolicy(t *testing.T) {
	needsBuiltinStorage(t, "who may write to an etcd may do everything, and an etcd has no namespaces")
	ns, victim := newNamespace(t), newNamespace(t)
	finishedJobs(t, victim, 1)
	createPolicy(t, victim, "keep", v1alpha1.CleanupPolicySpec{TTLAfterFinished: ttl("never")})
	createPolicy(t, ns, "p", v1alpha1.CleanupPolicySpec{TTLAfterFinished: ttl("0s")})
	damage(t, ns, "p", `"namespace":"`+ns+`"`, `"namespace":"`+victim+`"`)
	must(t, gc.CleanupPolicies(victim).Delete(t.Context(), "keep", metav1.DeleteOptions{}))
	afterwards(t, 0)
	expectDeletions(t, victim)
	if left := len(jobNames(t, victim)); left != 1 {
		t.Errorf("%d Jobs are left, want 1", left)
	}
	must(t, gc.CleanupPolicies(ns).Delete(t.Context(), "p", metav1.DeleteOptions{}))
}
