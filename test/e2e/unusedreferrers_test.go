// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// sleepers refer to a ConfigMap or Secret, and have no Pods.
const sleepers = `
apiVersion: batch/v1
kind: CronJob
metadata: {name: suspended}
spec:
  schedule: "* * * * *"
  suspend: true
  jobTemplate: {spec: {template: {spec: {
    restartPolicy: Never,
    initContainers: [{name: i, image: none, env: [{name: A, valueFrom: {configMapKeyRef: {name: of-cronjob, key: k}}}]}],
    containers: [{name: c, image: none}]}}}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: suspended}
spec:
  suspend: true
  template: {spec: {restartPolicy: Never, containers: [{name: c, image: none, envFrom: [{secretRef: {name: of-job, optional: true}}]}]}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: zero}
spec:
  replicas: 0
  selector: {matchLabels: {app: zero}}
  template:
    metadata: {labels: {app: zero}}
    spec:
      containers: [{name: c, image: none}]
      volumes: [{name: v, projected: {sources: [{configMap: {name: of-deployment}}]}}]
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: builder}
imagePullSecrets: [{name: of-account}]
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web}
spec:
  tls: [{hosts: [example.com], secretName: of-ingress}]
  defaultBackend: {service: {name: web, port: {number: 80}}}
`

// testUnusedSleepers: what has no Pods keeps what it refers to, until it is deleted. A large immutable Secret goes like any other.
func testUnusedSleepers(t *testing.T) {
	ns := newNamespace(t)
	h := watchHistory(t, ns)
	apply := func(args ...string) {
		t.Helper()
		if _, stderr, err := suite.KubectlStdin(t.Context(), sleepers, append(args, "-n", ns, "-f", "-")...); err != nil {
			t.Fatal(stderr)
		}
	}
	apply("apply")
	used := map[string]string{ // by "resource/name", what uses it
		"configmaps/of-cronjob": "cronjobs.batch/suspended", "configmaps/of-deployment": "s.apps/zero", // the Deployment or its ReplicaSet
		"secrets/of-job": "jobs.batch/suspended", "secrets/of-account": "serviceaccounts/builder", "secrets/of-ingress": "ingresses.networking.k8s.io/web",
	}
	for object := range used {
		if resource, name, _ := strings.Cut(object, "/"); resource == "secrets" {
			createSecret(t, ns, name)
		} else {
			createConfigMap(t, ns, name)
		}
	}
	createSecret(t, ns, "large", func(s *corev1.Secret) {
		s.Immutable, s.Data = new(true), map[string][]byte{"data": bytes.Repeat([]byte("x"), corev1.MaxSecretSize)}
	})
	createUnusedPolicy(t, ns, unusedAfter("2s"))
	want := []string{"secrets/large p/unused"}
	expectDeletions(t, ns, want...)
	for object, by := range used {
		waitReason(t, ns, object, "InUse", by)
		want = append(want, object+" p/unused")
	}
	expectDeletions(t, ns, want[0])
	apply("delete")
	expectDeletions(t, ns, want...)
	h.expectUnusedOnly(t)
}
