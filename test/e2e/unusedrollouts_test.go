// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilrand "k8s.io/apimachinery/pkg/util/rand"
)

// template has Pods that run until they are deleted, and mount a ConfigMap.
func template(app, configMap string) corev1.PodTemplateSpec {
	spec := podSpec()
	spec.RestartPolicy = corev1.RestartPolicyAlways
	spec.TerminationGracePeriodSeconds = new(int64(0))
	spec.Volumes = []corev1.Volume{configMapVolume(configMap)}
	return corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": app}}, Spec: spec}
}

func configMapVolume(name string) corev1.Volume {
	return corev1.Volume{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
		LocalObjectReference: corev1.LocalObjectReference{Name: name},
	}}}
}

// mount is a patch that has the template of a workload mount another ConfigMap.
func mount(configMap string) []byte {
	return fmt.Appendf(nil, `[{"op": "replace", "path": "/spec/template/spec/volumes/0/configMap/name", "value": %q}]`, configMap)
}

// testUnusedRollout: a Deployment gets a ConfigMap with a new name for each of fifty generations, as kustomize does it, some before the one
// before has rolled out, and is rolled back in between to the oldest revision that is left. ConfigMaps go once no ReplicaSet names them.
func testUnusedRollout(t *testing.T) {
	ns := newNamespace(t)
	h := watchHistory(t, ns)
	// It is long enough for the time between the creation of a ConfigMap and the change of the Deployment.
	createUnusedPolicy(t, ns, unusedAfter("4s"))
	deployments := kube.AppsV1().Deployments(ns)
	var names []string
	for generation := range 50 {
		name := fmt.Sprintf("web-%d-%s", generation, utilrand.String(8))
		names = append(names, name)
		createConfigMap(t, ns, name)
		if generation == 0 {
			_, err := deployments.Create(t.Context(), &appsv1.Deployment{
				ObjectMeta: metav1.ObjectMeta{Name: "web"},
				Spec: appsv1.DeploymentSpec{
					Replicas: new(int32(2)), RevisionHistoryLimit: new(int32(3)), Selector: matching(map[string]string{"app": "web"}),
					Template: template("web", name),
				},
			}, metav1.CreateOptions{})
			must(t, err)
		} else {
			_, err := deployments.Patch(t.Context(), "web", types.JSONPatchType, mount(name), metav1.PatchOptions{})
			must(t, err)
		}
		if generation%10 == 9 {
			waitRolledOut(t, ns, name)
			rollBack(t, ns)
		}
	}
	kept, gone := h.inUse(t, names...)
	if len(kept) != 4 { // The current ReplicaSet, and three older ones.
		t.Errorf("%d ConfigMaps are in use: %v", len(kept), kept)
	}
	var want []string
	for _, name := range gone {
		want = append(want, "configmaps/"+name+" p/unused")
	}
	expectDeletions(t, ns, want...)
	for _, name := range kept {
		waitReason(t, ns, "configmaps/"+name, "InUse", "refer")
	}
	expectDeletions(t, ns, want...)
	h.expectUnusedOnly(t)
}

// rollBack rolls a Deployment back to its oldest revision, whose ConfigMap must be there, and waits until it has.
func rollBack(t *testing.T, ns string) {
	t.Helper()
	list, err := kube.AppsV1().ReplicaSets(ns).List(t.Context(), metav1.ListOptions{})
	must(t, err)
	revision := func(r appsv1.ReplicaSet) (n int) {
		_, err := fmt.Sscan(r.Annotations["deployment.kubernetes.io/revision"], &n)
		must(t, err)
		return n
	}
	oldest := slices.MinFunc(list.Items, func(a, b appsv1.ReplicaSet) int { return revision(a) - revision(b) })
	kubectl(t, "rollout", "undo", "deployment/web", "-n", ns, fmt.Sprint("--to-revision=", revision(oldest)))
	name := oldest.Spec.Template.Spec.Volumes[0].ConfigMap.Name
	waitRolledOut(t, ns, name)
	if _, err := kube.CoreV1().ConfigMaps(ns).Get(t.Context(), name, metav1.GetOptions{}); err != nil {
		t.Errorf("after a rollback to revision %d of %d: %v", revision(oldest), len(list.Items), err)
	}
}

// waitRolledOut waits until all Pods of a Deployment mount a ConfigMap, and those before are gone, with the ReplicaSets that are too old.
func waitRolledOut(t *testing.T, ns, configMap string) {
	t.Helper()
	eventually(t, func(ctx context.Context) string {
		d, err := kube.AppsV1().Deployments(ns).Get(ctx, "web", metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		if s := d.Status; s.ObservedGeneration != d.Generation || s.UpdatedReplicas != 2 || s.Replicas != 2 || s.AvailableReplicas != 2 {
			return fmt.Sprintf("the Deployment has not rolled out: %+v", s)
		}
		list, err := kube.AppsV1().ReplicaSets(ns).List(ctx, metav1.ListOptions{})
		if err != nil || len(list.Items) > 4 {
			return fmt.Sprintf("%d ReplicaSets are left, %v", len(list.Items), err)
		}
		pods, err := kube.CoreV1().Pods(ns).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err.Error()
		}
		for i := range pods.Items {
			if p := &pods.Items[i]; p.Spec.Volumes[0].ConfigMap.Name != configMap || !strings.HasPrefix(p.Name, "web-") {
				return "there is still Pod " + p.Name
			}
		}
		return ""
	})
}
