// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package testkinds has kinds, objects and match conditions for tests of what reads and decodes objects.
package testkinds

import (
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/objects/kinds"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
)

// Of returns the kind of a Job or Pod.
func Of(object any) *kinds.Kind {
	resource := gc.ResourceJobs
	if _, ok := object.(*corev1.Pod); ok {
		resource = gc.ResourcePods
	}
	k, err := kinds.Builtin().For(resource)
	if err != nil {
		panic(err)
	}
	return k
}

// Run is the kind of a custom resource, with a lifecycle or without.
func Run(t *testing.T, withLifecycle bool) *kinds.Kind {
	t.Helper()
	gvk := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Run"}
	if !withLifecycle {
		return kinds.Custom(gvk, "runs", nil, kinds.Source{})
	}
	l, err := lifecycle.Compile("runs.example.com", gvk.GroupKind(), &gc.ResourceLifecycleSpec{Finished: &gc.FinishedExpressions{
		When: "object.?status.phase.orValue('') == 'Done'", Succeeded: "true", At: "object.status.at",
	}})
	if err != nil {
		t.Fatal(err)
	}
	return kinds.Custom(gvk, "runs", l, kinds.Source{})
}

// TemplatedJob returns a typical Job, with a template and two managers of its fields.
func TemplatedJob(name string) *batchv1.Job {
	job := testbuilders.Job(name).Label("app", "train").Complete(testbuilders.Now).Obj()
	job.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"batch.kubernetes.io/controller-uid": string(job.UID)}}
	job.Spec.Template.Labels = map[string]string{"app": "train", "job-name": name, "batch.kubernetes.io/job-name": name}
	job.Spec.Template.Spec = corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever, ServiceAccountName: "train", SecurityContext: &corev1.PodSecurityContext{},
		Containers: []corev1.Container{{
			Name: "main", Image: "registry.example.com/train:1", Command: []string{"/bin/train", "--epochs=3"},
			Env: []corev1.EnvVar{{Name: "DATA", Value: "/data"}, {Name: "MODEL", Value: "small"}},
			Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{"cpu": resource.MustParse("1"), "memory": resource.MustParse("1Gi")},
			},
			VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/data"}},
		}},
		Volumes: []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
	}
	for _, manager := range []string{"kubectl", "kube-controller-manager"} {
		job.ManagedFields = append(job.ManagedFields, metav1.ManagedFieldsEntry{
			Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "batch/v1", FieldsType: "FieldsV1",
			FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:template":{"f:spec":{` + strings.Repeat(`"f:dnsPolicy":{},`, 30) + `".":{}}}}}`),
		})
	}
	return job
}
