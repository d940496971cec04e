// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
)

// testTTLAnnotation: by one recipe, an annotation on a Job, Pod, ConfigMap or Secret is enough to have it deleted in time, and nothing else is
// deleted.
func testTTLAnnotation(t *testing.T) {
	text, err := os.ReadFile("../../artifacts/recipes/ttl-annotation.yaml")
	must(t, err)
	recipe := &v1alpha1.ClusterCleanupPolicy{}
	must(t, yaml.UnmarshalStrict(text, recipe))

	g := newGroup()
	ns := g.namespace(t)
	annotated := map[string]string{annotationTTL: "2s"}
	createJob(t, ns, job("annotated", func(j *batchv1.Job) { j.Annotations = annotated }))
	createJob(t, ns, job("plain"))
	createPod(t, ns, pod("annotated", func(p *corev1.Pod) { p.Annotations = annotated }))
	createPod(t, ns, pod("plain"))
	createConfigMap(t, ns, "annotated", func(m *metav1.ObjectMeta) { m.Annotations = annotated })
	createConfigMap(t, ns, "plain")
	createConfigMap(t, ns, "used", func(m *metav1.ObjectMeta) { m.Annotations = annotated })
	createSecret(t, ns, "annotated", func(s *corev1.Secret) { s.Annotations = annotated })
	createPod(t, ns, mounting("user", "used"))
	waitJobFinished(t, ns, "plain")

	g.govern(t, recipe.Spec)
	expectDeletions(t, ns,
		"configmaps/annotated "+string(g)+"/unused", "jobs/annotated "+string(g)+"/finished", "pods/annotated "+string(g)+"/finished",
		"secrets/annotated "+string(g)+"/unused")
	waitReason(t, ns, "configmaps/used", "InUse", "pods/user refers to it")
	waitReason(t, ns, "jobs.batch/plain", "NoPolicy", "")
}
