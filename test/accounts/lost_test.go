// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package accounts

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"

	"github.com/winnow-dev/winnow/test/cluster"
	"github.com/winnow-dev/winnow/test/jobs"
)

// TestRightIsLost: 3,000 Jobs are due, and the account loses its right while Winnow deletes them. No request succeeds once the API server
// knows, the policy and the candidates say it, and Winnow goes on once the right is given back by the command of the message.
func TestRightIsLost(t *testing.T) {
	const n = 3000
	ns := newTeam(t, "lost")
	createPolicy(t, ns, atOnce(cleaner))
	created, err := jobs.Create(t.Context(), kube, ns, n)
	must(t, err)
	due := time.Now().Add(20 * time.Second) // Most or all of them are due at the same time.
	must(t, jobs.Finish(t.Context(), kube, created, func(int) time.Time { return due }))
	eventually(t, func(ctx context.Context) string {
		if got := countJobs(ctx, t, ns); got > n-n/10 {
			return fmt.Sprintf("only %d Jobs are deleted", n-got)
		}
		return ""
	})
	must(t, kube.RbacV1().RoleBindings(ns).Delete(t.Context(), cleaner, metav1.DeleteOptions{}))
	refused := waitRefused(t, ns)

	message := waitReady(t, ns, "Unauthorized", "kubectl auth can-i delete jobs.batch -n lost --as=system:serviceaccount:lost:winnow-cleaner")
	left, err := kube.BatchV1().Jobs(ns).List(t.Context(), metav1.ListOptions{})
	must(t, err)
	if len(left.Items) == 0 {
		t.Fatal("all Jobs were deleted before the right was lost")
	}
	waitCandidate(t, ns, "jobs.batch/"+left.Items[0].Name, "reason: Unauthorized", "ServiceAccount lost/winnow-cleaner may not delete jobs.batch")
	late := 0
	for _, e := range succeeded(asAccount(t, ns, cleaner), "delete") {
		if e.RequestReceivedTimestamp.After(refused) {
			late++
		}
	}
	if got := countJobs(t.Context(), t, ns); late > 0 || got != len(left.Items) {
		t.Errorf("%d Jobs were deleted without the right, and %d of %d are left", late, got, len(left.Items))
	}
	t.Logf("%d Jobs were deleted before, and %d requests were refused", n-len(left.Items), requests(t, ns, 403))

	_, grant, _ := strings.Cut(message, "To grant it: ")
	runCommands(t, grant)
	waitJobs(t, ns, 0)
	waitReady(t, ns, "Enforcing")
}

// waitRefused waits until the API server says that the account may not delete Jobs, and returns when it said so. No request that it
// receives later has the right.
func waitRefused(t *testing.T, ns string) time.Time {
	t.Helper()
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User:               serviceaccount.MakeUsername(ns, cleaner),
		Groups:             []string{"system:serviceaccounts", "system:serviceaccounts:" + ns, "system:authenticated"},
		ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: ns, Verb: "delete", Group: "batch", Resource: "jobs"},
	}}
	for {
		answer, err := kube.AuthorizationV1().SubjectAccessReviews().Create(t.Context(), review, metav1.CreateOptions{})
		must(t, err)
		if !answer.Status.Allowed {
			return time.Now()
		}
	}
}

// requests returns how many DELETE requests of Winnow in a namespace were answered with a status code.
func requests(t *testing.T, ns string, code int32) int {
	t.Helper()
	events, err := suite.Audit(func(e *cluster.AuditEvent) bool {
		return cluster.DeletesBy("winnow")(e) && e.ObjectRef.Namespace == ns && e.ResponseStatus != nil && e.ResponseStatus.Code == code
	})
	must(t, err)
	return len(events)
}

// TestAccountIsDeleted: its RoleBinding stays, so that the API server would go on. Winnow stops, says so, and goes on once the account is
// created again.
func TestAccountIsDeleted(t *testing.T) {
	t.Parallel()
	ns := newTeam(t, "deleted")
	createPolicy(t, ns, atOnce(cleaner))
	finishedJob(t, ns, "before", time.Now())
	waitJobs(t, ns, 0)
	kubectl(t, "delete", "serviceaccount", cleaner, "-n", ns)
	message := waitReady(t, ns, "Unauthorized", "Will delete nothing", "ServiceAccount deleted/winnow-cleaner does not exist")
	finishedJob(t, ns, "after", time.Now())
	waitCandidate(t, ns, "jobs.batch/after", "state: Held", "reason: Unauthorized", "does not exist")
	_, grant, _ := strings.Cut(message, "To create it: ")
	runCommands(t, grant)
	waitJobs(t, ns, 0)
	waitReady(t, ns, "Enforcing")
	expectDeleted(t, ns, cleaner, "jobs/before", "jobs/after")
}

// TestOtherPoliciesGoOn: an account without rights stops its policy alone, and says what is missing before anything is due.
func TestOtherPoliciesGoOn(t *testing.T) {
	t.Parallel()
	ns, other := newNamespace(t, "without"), newTeam(t, "beside")
	kubectl(t, "create", "serviceaccount", cleaner, "-n", ns)
	spec := atOnce(cleaner)
	*spec.TTLAfterFinished = "1h"
	createPolicy(t, ns, spec)
	createPolicy(t, other, atOnce(cleaner))
	for _, n := range []string{ns, other} {
		finishedJob(t, n, "done", time.Now())
	}
	waitJobs(t, other, 0)
	message := waitReady(t, ns, "Unauthorized", "Will delete nothing", "kubectl auth can-i delete jobs.batch -n without --as=system:serviceaccount:without:winnow-cleaner")
	waitCandidate(t, ns, "jobs.batch/done", "state: Waiting", "When it is due, it will be held (Unauthorized)")
	_, grant, _ := strings.Cut(message, "To grant it: ")
	runCommands(t, grant)
	waitReady(t, ns, "Enforcing")
}
