// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package accounts

import (
	"context"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
)

// TestRequired: who must name an account and names none deletes nothing, and is told where to write it; by the flags, and by a guardrail. A
// default account is as good as one in the policy.
func TestRequired(t *testing.T) {
	ns, guarded, missing := newTeam(t, "nameless"), newTeam(t, "guarded"), newNamespace(t, "missing")
	kubectl(t, "label", "namespace", guarded, "accounts=required")
	for _, n := range []string{ns, guarded, missing} {
		createPolicy(t, n, atOnce(""))
		finishedJob(t, n, "done", time.Now())
	}
	waitReady(t, ns, "Unauthorized", "Winnow runs with --require-service-account; set spec.serviceAccountName")
	waitCandidate(t, ns, "jobs.batch/done", "state: Held", "reason: Unauthorized")

	_, err := gc.ClusterCleanupPolicies().Create(t.Context(), &v1alpha1.ClusterCleanupPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "required"},
		Spec: v1alpha1.ClusterCleanupPolicySpec{
			Mode: v1alpha1.ModeEnforce, Guardrails: &v1alpha1.Guardrails{RequireServiceAccount: true},
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"accounts": "required"}},
		},
	}, metav1.CreateOptions{})
	must(t, err)
	restart(t, "--require-service-account=false")
	waitReady(t, ns, "Unauthorized", "Winnow may not delete them. Missing permission: kubectl auth can-i delete jobs.batch -n nameless")
	waitReady(t, guarded, "Unauthorized", `ClusterCleanupPolicy "required" requires an account (spec.guardrails.requireServiceAccount)`)
	if n := requests(t, guarded, 200); n > 0 {
		t.Errorf("%d Jobs were deleted", n)
	}
	kubectl(t, "patch", "cup", "p", "-n", guarded, "--type=merge", `--patch={"spec": {"serviceAccountName": "winnow-cleaner"}}`)
	waitJobs(t, guarded, 0)
	expectDeleted(t, guarded, cleaner, "jobs/done")

	restart(t, "--default-service-account="+cleaner)
	waitJobs(t, ns, 0)
	waitReady(t, missing, "Unauthorized", "ServiceAccount missing/winnow-cleaner does not exist")
	if n := countJobs(t.Context(), t, missing); n != 1 {
		t.Errorf("%d Jobs are left without an account", n)
	}
	restart(t)
}

// restart replaces all replicas by two with other flags. They outlive the test.
func restart(t *testing.T, flags ...string) {
	t.Helper()
	before := slices.Clone(server.Replicas)
	for range before {
		_, err := server.AddReplica(whole, flags...)
		must(t, err)
	}
	for _, r := range before {
		must(t, r.Retire())
	}
	must(t, server.WaitAvailable(context.WithoutCancel(t.Context())))
}
