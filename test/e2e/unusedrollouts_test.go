// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"maps"
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
	createUnusedPolicy(t, ns, unusedAfter("20s"))
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

// testUnusedHelmUpgrades: releases of Helm are kept, whether their type or their label says what they are, and so is what a release applied.
// What its StatefulSet and DaemonSet mount otherwise is kept as long as a ControllerRevision names it.
func testUnusedHelmUpgrades(t *testing.T) {
	ns := newNamespace(t)
	h := watchHistory(t, ns)
	spec := unusedAfter("20s") // As above.
	spec.Rules[0].Selector, spec.Rules[0].MatchConditions = nil, when("object.metadata.name != ''")
	createUnusedPolicy(t, ns, spec)
	const versions = 4
	var names []string
	for version := 1; version <= versions; version++ {
		createRelease(t, ns, version)
		for _, app := range []string{"db", "agent"} {
			name := fmt.Sprintf("%s-v%d-%s", app, version, utilrand.String(8))
			names = append(names, name)
			createConfigMap(t, ns, name)
			upgrade(t, ns, app, name, version == 1)
		}
		waitUpgraded(t, ns, names[len(names)-2], names[len(names)-1])
	}
	kept, gone := h.inUse(t, names...)
	if len(kept) != 4 { // The current revision, and one older one.
		t.Errorf("%d ConfigMaps are in use: %v", len(kept), kept)
	}
	var want []string
	for _, name := range gone {
		want = append(want, "configmaps/"+name+" p/unused")
	}
	expectDeletions(t, ns, want...)
	for version := 1; version <= versions; version++ {
		release := fmt.Sprintf("secrets/sh.helm.release.v1.web.v%d", version)
		waitReason(t, ns, release, "InUse", "it is a release of Helm")
		waitReason(t, ns, release+".copy", "InUse", "it is a release of Helm")
		waitReason(t, ns, fmt.Sprintf("configmaps/chart-v%d", version), "InUse", fmt.Sprintf("Helm release %q applied it", ns+"/web"))
	}
	waitReason(t, ns, "configmaps/kube-root-ca.crt", "InUse", "Kubernetes creates it in every namespace")
	for _, app := range []string{"statefulset/db", "daemonset/agent"} {
		kubectl(t, "rollout", "undo", app, "-n", ns)
	}
	waitUpgraded(t, ns, kept[0], kept[1])
	expectDeletions(t, ns, want...)
	h.expectUnusedOnly(t)
}

// createRelease creates what Helm stores of a version of a release, once with the type and once with the label only, and a ConfigMap of
// its chart.
func createRelease(t *testing.T, ns string, version int) {
	t.Helper()
	name := fmt.Sprintf("sh.helm.release.v1.web.v%d", version)
	createSecret(t, ns, name, func(s *corev1.Secret) { s.Type = "helm.sh/release.v1" })
	createSecret(t, ns, name+".copy", func(s *corev1.Secret) {
		s.Labels = map[string]string{"name": "web", "owner": "helm", "status": "superseded", "version": fmt.Sprint(version)}
	})
	createConfigMap(t, ns, fmt.Sprintf("chart-v%d", version), func(m *metav1.ObjectMeta) {
		m.Labels["app.kubernetes.io/managed-by"] = "Helm"
		m.Annotations = map[string]string{"meta.helm.sh/release-name": "web", "meta.helm.sh/release-namespace": ns}
	})
}

// upgrade creates the StatefulSet db or the DaemonSet agent, or has it mount another ConfigMap.
func upgrade(t *testing.T, ns, app, configMap string, create bool) {
	t.Helper()
	apps, meta, labels := kube.AppsV1(), metav1.ObjectMeta{Name: app}, matching(map[string]string{"app": app})
	limit, pods := new(int32(1)), template(app, configMap)
	var err error
	switch {
	case create && app == "db":
		_, err = apps.StatefulSets(ns).Create(t.Context(), &appsv1.StatefulSet{
			ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{Selector: labels, RevisionHistoryLimit: limit, Template: pods},
		}, metav1.CreateOptions{})
	case create:
		_, err = apps.DaemonSets(ns).Create(t.Context(), &appsv1.DaemonSet{
			ObjectMeta: meta, Spec: appsv1.DaemonSetSpec{Selector: labels, RevisionHistoryLimit: limit, Template: pods},
		}, metav1.CreateOptions{})
	case app == "db":
		_, err = apps.StatefulSets(ns).Patch(t.Context(), app, types.JSONPatchType, mount(configMap), metav1.PatchOptions{})
	default:
		_, err = apps.DaemonSets(ns).Patch(t.Context(), app, types.JSONPatchType, mount(configMap), metav1.PatchOptions{})
	}
	must(t, err)
}

// waitUpgraded waits until all Pods of the StatefulSet db and of the DaemonSet agent mount these ConfigMaps, and no more than two revisions of
// each are left.
func waitUpgraded(t *testing.T, ns, db, agent string) {
	t.Helper()
	eventually(t, func(ctx context.Context) string {
		d, err := kube.AppsV1().DaemonSets(ns).Get(ctx, "agent", metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		pods, err := kube.CoreV1().Pods(ns).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err.Error()
		}
		ready := map[string]int32{}
		for i := range pods.Items {
			if p := &pods.Items[i]; p.Status.Phase == corev1.PodRunning {
				ready[p.Spec.Volumes[0].ConfigMap.Name]++
			}
		}
		if nodes := d.Status.DesiredNumberScheduled; nodes == 0 || !maps.Equal(ready, map[string]int32{db: 1, agent: nodes}) {
			return fmt.Sprintf("the Pods mount %v", ready)
		}
		revisions, err := kube.AppsV1().ControllerRevisions(ns).List(ctx, metav1.ListOptions{})
		if err != nil || len(revisions.Items) > 4 {
			return fmt.Sprintf("%d revisions are left, %v", len(revisions.Items), err)
		}
		return ""
	})
}
