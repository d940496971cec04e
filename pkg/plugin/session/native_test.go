// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
)

// TestHistoryOfHiddenCronJobs: a CronJob that the caller may not read is not asked for, and the line says so.
func TestHistoryOfHiddenCronJobs(t *testing.T) {
	t.Setenv("KUBECONFIG", os.DevNull)
	for may, want := range map[bool]string{
		true:  "it keeps the last 3 successful and the last 1 failed",
		false: "How many it keeps is not known: you may not read it: kubectl auth can-i get cronjobs.batch -n team-a",
	} {
		asked := false
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			switch r.URL.Path {
			case "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews":
				w.WriteHeader(http.StatusCreated)
				_ = json.NewEncoder(w).Encode(map[string]any{
					"kind": "SelfSubjectAccessReview", "apiVersion": "authorization.k8s.io/v1", "status": map[string]any{"allowed": may},
				})
			case "/apis/batch/v1/namespaces/team-a/cronjobs/nightly":
				asked = true
				_ = json.NewEncoder(w).Encode(batchv1.CronJob{
					TypeMeta: metav1.TypeMeta{Kind: "CronJob", APIVersion: "batch/v1"}, ObjectMeta: metav1.ObjectMeta{Name: "nightly"},
				})
			default:
				t.Errorf("asked for %s", r.URL.Path)
			}
		}))
		defer server.Close()
		flags := genericclioptions.NewConfigFlags(true)
		flags.APIServer = &server.URL
		got, err := (&Session{Flags: flags}).history(t.Context(), "team-a", "nightly")
		if err != nil || asked != may || !strings.Contains(got, want) {
			t.Errorf("allowed %t: asked %t, %q, %v", may, asked, got, err)
		}
	}
}

func TestHistoryOfCronJobs(t *testing.T) {
	cj := &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{Name: "nightly"}}
	if got := historyOf(cj); !strings.Contains(got, "CronJob/nightly deletes its older Jobs itself: it keeps the last 3 successful and the last 1 failed") {
		t.Errorf("defaults: %s", got)
	}
	cj.Spec.SuccessfulJobsHistoryLimit, cj.Spec.FailedJobsHistoryLimit = new(int32(0)), new(int32(7))
	if got := historyOf(cj); !strings.Contains(got, "the last 0 successful and the last 7 failed") {
		t.Errorf("limits: %s", got)
	}
}

// TestWithOwner: what a controller owns goes with it, so the question is when the controller goes.
func TestWithOwner(t *testing.T) {
	for want, owner := range map[string]metav1.OwnerReference{
		"When Job/a is deleted, Kubernetes deletes it too. To see when that is: kubectl winnow why job.batch/a -n team-a": {
			APIVersion: "batch/v1", Kind: "Job", Name: "a",
		},
		"When Node/a is deleted, Kubernetes deletes it too.": {APIVersion: "v1", Kind: "Node", Name: "a"},
	} {
		if got := withOwner(&owner, "team-a"); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
