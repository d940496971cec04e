// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
)

// marks are those of GitOps tools and Helm, by the name of a Job that carries them. A tracking id that names another object was
// copied along with its template.
func marks(ns string) map[string]func(*batchv1.Job) {
	annotated := func(pairs ...string) func(*batchv1.Job) {
		return func(j *batchv1.Job) {
			for i := 0; i < len(pairs); i += 2 {
				j.Annotations[pairs[i]] = pairs[i+1]
			}
		}
	}
	return map[string]func(*batchv1.Job){
		"argo":        annotated("argocd.argoproj.io/tracking-id", "shop:batch/Job:"+ns+"/argo"),
		"argo-copied": annotated("argocd.argoproj.io/tracking-id", "shop:batch/Job:"+ns+"/argo"),
		"argo-hook":   annotated("argocd.argoproj.io/hook", "PreSync"),
		"helm":        annotated("meta.helm.sh/release-name", "shop", "meta.helm.sh/release-namespace", ns),
		"flux": func(j *batchv1.Job) {
			j.Labels["kustomize.toolkit.fluxcd.io/name"], j.Labels["kustomize.toolkit.fluxcd.io/namespace"] = "shop", "flux-system"
		},
		"flux-helm": func(j *batchv1.Job) {
			j.Labels["helm.toolkit.fluxcd.io/name"], j.Labels["helm.toolkit.fluxcd.io/namespace"] = "shop", "flux-system"
		},
		"plain": func(*batchv1.Job) {},
	}
}

// TestManagedElsewhere: what a GitOps tool or Helm applied, and would apply again, is held unless the rule says otherwise.
func TestManagedElsewhere(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t)
	for name, mark := range marks(ns) {
		finish(t, createJob(t, ns, job(name, unmanaged, mark)), time.Now())
	}
	createPolicy(t, ns, "p", v1alpha1.CleanupPolicySpec{Rules: []v1alpha1.CleanupRule{
		{
			Name:             "flux",
			Selector:         matching(map[string]string{"kustomize.toolkit.fluxcd.io/name": "shop"}),
			TTL:              ttl("0s"),
			ManagedElsewhere: v1alpha1.ManagedElsewhereDelete,
		},
		{Name: "all", TTL: ttl("0s")},
	}})
	want := []string{"jobs/plain p/all", "jobs/argo-copied p/all", "jobs/flux p/flux"}
	expectDeletions(t, ns, want...)
	status := waitStatus(t, ns, "p", func(s *v1alpha1.CleanupPolicyStatus) bool { return s.Held == 4 && s.Due == 4 && s.Deleted == 3 })
	if c := status.Conditions[0]; !strings.Contains(c.Message, "ManagedElsewhere") {
		t.Errorf("condition: %+v", c)
	}
	expectDeletions(t, ns, want...)
}

// TestRecreateLoop: a Job that somebody creates again under its name whenever it was deleted is held at its third return.
func TestRecreateLoop(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t)
	createPolicy(t, ns, "p", v1alpha1.CleanupPolicySpec{TTLAfterFinished: ttl("0s")})
	var want []string
	for range 3 {
		finish(t, createJob(t, ns, job("again", unmanaged)), time.Now())
		want = append(want, "jobs/again p/default")
		expectDeletions(t, ns, want...)
		waitJobs(t, ns, 0)
	}
	finish(t, createJob(t, ns, job("again", unmanaged)), time.Now())
	status := waitStatus(t, ns, "p", func(s *v1alpha1.CleanupPolicyStatus) bool { return s.Held == 1 && s.Deleted == 3 })
	if c := status.Conditions[0]; !strings.Contains(c.Message, "RecreateLoop") || !strings.Contains(c.Message, "jobs.batch/again") {
		t.Errorf("condition: %+v", c)
	}
	afterwards(t, 0)
	expectDeletions(t, ns, want...)
	_, err := kube.BatchV1().Jobs(ns).Get(t.Context(), "again", metav1.GetOptions{})
	must(t, err)
}
