// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
)

// placed is how another control plane places a Job, as which field manager.
type placed struct {
	mark    func(*batchv1.Job)
	manager string
}

func annotated(pairs ...string) func(*batchv1.Job) {
	return func(j *batchv1.Job) {
		if j.Annotations == nil {
			j.Annotations = map[string]string{}
		}
		for i := 0; i < len(pairs); i += 2 {
			j.Annotations[pairs[i]] = pairs[i+1]
		}
	}
}

func labelled(pairs ...string) func(*batchv1.Job) {
	return func(j *batchv1.Job) {
		if j.Labels == nil {
			j.Labels = map[string]string{}
		}
		for i := 0; i < len(pairs); i += 2 {
			j.Labels[pairs[i]] = pairs[i+1]
		}
	}
}

// createAs creates a Job as a field manager, and finishes it.
func createAs(ctx context.Context, ns, manager string, j *batchv1.Job) error {
	created, err := kube.BatchV1().Jobs(ns).Create(ctx, j, metav1.CreateOptions{FieldManager: manager})
	if err != nil {
		return err
	}
	completed(created, time.Now())
	_, err = kube.BatchV1().Jobs(ns).UpdateStatus(ctx, created, metav1.UpdateOptions{})
	return err
}

// TestManagedElsewhere: what a tool applied, and would apply again, is held unless the rule says otherwise. Marks that were copied along with
// a template do not count.
func TestManagedElsewhere(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t)
	flux := labelled("kustomize.toolkit.fluxcd.io/name", "shop", "kustomize.toolkit.fluxcd.io/namespace", "flux-system")
	helm := annotated("meta.helm.sh/release-name", "shop", "meta.helm.sh/release-namespace", ns)
	hook := annotated("argocd.argoproj.io/hook", "PreSync")
	inventory := annotated("config.k8s.io/owning-inventory", "shop")
	for name, p := range map[string]placed{
		"argo":                 {annotated("argocd.argoproj.io/tracking-id", "shop:batch/Job:"+ns+"/argo"), "argocd-controller"},
		"kapp":                 {annotated("kapp.k14s.io/identity", "v1;"+ns+"/batch/Job/kapp;batch/v1"), "kapp"},
		"config-sync":          {annotated("configsync.gke.io/resource-id", "batch_job_"+ns+"_config-sync", "configmanagement.gke.io/managed", "enabled"), "configsync"},
		"argo-hook":            {hook, "argocd-controller"},
		"helm":                 {helm, "helm"},
		"flux":                 {flux, "kustomize-controller"},
		"kpt":                  {inventory, "kubectl"},
		"apply-set":            {labelled("applyset.kubernetes.io/part-of", "applyset-x-v1"), "kubectl"},
		"argo-copied":          {annotated("argocd.argoproj.io/tracking-id", "shop:batch/Job:"+ns+"/argo"), "argocd-controller"},
		"hook-copied":          {hook, "controller"},
		"helm-copied":          {helm, "controller"},
		"flux-copied":          {flux, "controller"},
		"kpt-copied":           {inventory, "controller"},
		"flux-although-it-may": {func(j *batchv1.Job) { flux(j); j.Labels["delete"] = "yes" }, "kustomize-controller"},
		"plain":                {func(*batchv1.Job) {}, "controller"},
	} {
		must(t, createAs(t.Context(), ns, p.manager, job(name, unmanaged, p.mark)))
	}
	createPolicy(t, ns, "p", v1alpha1.CleanupPolicySpec{Rules: []v1alpha1.CleanupRule{
		{
			Name: "delete", Selector: matching(map[string]string{"delete": "yes"}), TTL: ttl("0s"),
			ManagedElsewhere: v1alpha1.ManagedElsewhereDelete,
		},
		{Name: "all", TTL: ttl("0s")},
	}})
	want := []string{"jobs/flux-although-it-may p/delete"}
	for _, name := range []string{"plain", "argo-copied", "hook-copied", "helm-copied", "flux-copied", "kpt-copied"} {
		want = append(want, "jobs/"+name+" p/all")
	}
	expectDeletions(t, ns, want...)
	status := waitStatus(t, ns, "p", func(s *v1alpha1.CleanupPolicyStatus) bool { return s.Held == 8 && s.Due == 8 && s.Deleted == 7 })
	if c := status.Conditions[0]; !strings.Contains(c.Message, "ManagedElsewhere") {
		t.Errorf("condition: %+v", c)
	}
	expectDeletions(t, ns, want...)
}

// TestDeploysUnderOneName: a pipeline applies a Job of the same name at each deploy, as soon as there is room.
func TestDeploysUnderOneName(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t)
	createPolicy(t, ns, "p", v1alpha1.CleanupPolicySpec{TTLAfterFinished: ttl("0s")})
	var want []string
	for i := range 6 {
		image := func(j *batchv1.Job) { j.Spec.Template.Spec.Containers[0].Image = fmt.Sprint("app:v", i) }
		must(t, createAs(t.Context(), ns, "kubectl", job("migrate", unmanaged, image)))
		want = append(want, "jobs/migrate p/default")
		expectDeletions(t, ns, want...)
		waitJobs(t, ns, 0)
	}
}

// The tests below stop replicas, so they are not parallel.

// TestRecreateLoop: a Job that somebody creates again whenever it was deleted is held when it has come back twice, also by the next leader.
func TestRecreateLoop(t *testing.T) {
	ns := newNamespace(t)
	createPolicy(t, ns, "p", v1alpha1.CleanupPolicySpec{TTLAfterFinished: ttl("0s")})
	var want []string
	for range 2 {
		finish(t, createJob(t, ns, job("again", unmanaged)), time.Now())
		want = append(want, "jobs/again p/default")
		expectDeletions(t, ns, want...)
		waitJobs(t, ns, 0)
	}
	finish(t, createJob(t, ns, job("again", unmanaged)), time.Now())
	status := waitStatus(t, ns, "p", func(s *v1alpha1.CleanupPolicyStatus) bool { return s.Held == 1 && s.Deleted == 2 })
	if c := status.Conditions[0]; !strings.Contains(c.Message, "RecreateLoop") || !strings.Contains(c.Message, "jobs.batch/again") ||
		strings.Count(c.Message, "managedElsewhere: Delete") != 1 {
		t.Errorf("condition: %+v", c)
	}
	waitPlugin(t, ns, 0, "1 with reason RecreateLoop", "report")
	kill(t, leader(t))
	finish(t, createJob(t, ns, job("plain", unmanaged)), time.Now())
	want = append(want, "jobs/plain p/default")
	expectDeletions(t, ns, want...)
	_, err := kube.BatchV1().Jobs(ns).Get(t.Context(), "again", metav1.GetOptions{})
	must(t, err)
}

// hubs are those that place objects in the clusters of others, and what each of them marks its objects with.
var hubs = map[string]placed{
	"multikueue": {labelled("kueue.x-k8s.io/multikueue-origin", "multikueue", "kueue.x-k8s.io/prebuilt-workload-name", "w"), "kueue"},
	"karmada": {func(j *batchv1.Job) {
		labelled("karmada.io/managed", "true", "work.karmada.io/permanent-id", "a")(j)
		annotated("work.karmada.io/name", "w", "work.karmada.io/namespace", "karmada-es-member1")(j)
	}, "karmada-controller-manager"},
	"ocm": {func(j *batchv1.Job) {
		j.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: "work.open-cluster-management.io/v1", Kind: "AppliedManifestWork", Name: "hub-w", UID: "5b0a3f0e-0000-4000-8000-000000000001",
		}}
	}, "work-agent"},
}

// recreate creates a Job, and again whenever it is missing, as a hub does, until the test ends.
func recreate(t *testing.T, ns, name string, p placed, change ...func(*batchv1.Job)) {
	t.Helper()
	ended := make(chan struct{})
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	t.Cleanup(func() { cancel(); <-ended })
	go func() {
		defer close(ended)
		err := wait.PollUntilContextCancel(ctx, 20*time.Millisecond, true, func(ctx context.Context) (bool, error) {
			_, err := kube.BatchV1().Jobs(ns).Get(ctx, name, metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				err = createAs(ctx, ns, p.manager, job(name, append([]func(*batchv1.Job){unmanaged, p.mark}, change...)...))
			}
			return false, err
		})
		if ctx.Err() == nil {
			t.Errorf("the hub of %s: %v", name, err)
		}
	}()
}

// TestHubs: what a hub runs here, and would run again, runs once, whatever the trigger is, while the network is cut and leaders are killed.
func TestHubs(t *testing.T) {
	ns := newNamespace(t)
	for name, p := range hubs {
		recreate(t, ns, name, p)
		recreate(t, ns, name+"-created", p, labelled("trigger", "created"))
	}
	waitJobs(t, ns, 2*len(hubs))
	first := uids(t, ns)
	proxy, cut := behindProxy(t)
	createPolicy(t, ns, "p", v1alpha1.CleanupPolicySpec{Rules: []v1alpha1.CleanupRule{
		{Name: "created", Resources: []string{"jobs.batch"}, Selector: matching(map[string]string{"trigger": "created"}), After: v1alpha1.AfterCreated, TTL: ttl("0s")},
		{Name: "all", TTL: ttl("0s")},
	}})
	var want []string
	// sentinel is deleted after everything else that would be.
	sentinel := func(name string) {
		finish(t, createJob(t, ns, job(name, unmanaged)), time.Now())
		want = append(want, "jobs/"+name+" p/all")
		expectDeletions(t, ns, want...)
	}
	sentinel("before")
	thaw := proxy.Freeze("jobs")
	finish(t, createJob(t, ns, job("meanwhile", unmanaged)), time.Now())
	thaw()
	want = append(want, "jobs/meanwhile p/all")
	expectDeletions(t, ns, want...)
	kill(t, cut)
	must(t, server.Replicas[0].Start(whole))
	sentinel("after")
	if got := uids(t, ns); !slices.Equal(got, first) {
		t.Errorf("the Jobs of the hubs were %v, now %v", first, got)
	}
	waitStatus(t, ns, "p", func(s *v1alpha1.CleanupPolicyStatus) bool { return int(s.Held) == len(first) })
}

// uids returns the UIDs of all Jobs.
func uids(t *testing.T, ns string) []types.UID {
	t.Helper()
	list, err := kube.BatchV1().Jobs(ns).List(t.Context(), metav1.ListOptions{})
	must(t, err)
	var out []types.UID
	for _, j := range list.Items {
		out = append(out, j.UID)
	}
	slices.Sort(out)
	return out
}
