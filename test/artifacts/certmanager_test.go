// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package artifacts

import (
	"bytes"
	"errors"
	"io"
	"path"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// TestCertManagerFits checks by name that Winnow reads the files that cert-manager makes; there is no cert-manager to ask here.
func TestCertManagerFits(t *testing.T) {
	built := kubectl(t, "kustomize", "../../artifacts/cert-manager")
	certificate := find(t, built, "Certificate", "winnow-serving-cert")
	if got := certificate.GetNamespace(); got != namespace {
		t.Errorf("the Certificate is in namespace %q, want %q", got, namespace)
	}
	if names, _, _ := unstructured.NestedStringSlice(certificate.Object, "spec", "dnsNames"); len(names) != 1 ||
		names[0] != "winnow.winnow-system.svc" {
		t.Errorf("the Certificate is for %q, kube-apiserver asks for winnow.winnow-system.svc", names)
	}
	made, _, _ := unstructured.NestedString(certificate.Object, "spec", "secretName")

	deployment := &appsv1.Deployment{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(find(t, built, "Deployment", "winnow").Object, deployment); err != nil {
		t.Fatal(err)
	}
	pod := deployment.Spec.Template.Spec
	if len(pod.Volumes) != 1 || pod.Volumes[0].Secret.SecretName != made || pod.Volumes[0].Secret.Items != nil {
		t.Fatalf("the Deployment has the volumes %v, want all of Secret %q", pod.Volumes, made)
	}
	container := pod.Containers[0]
	if len(container.VolumeMounts) != 1 || container.VolumeMounts[0].Name != pod.Volumes[0].Name {
		t.Fatalf("the Deployment mounts %v", container.VolumeMounts)
	}
	for flag, key := range map[string]string{"--tls-cert-file": "tls.crt", "--tls-private-key-file": "tls.key", "--tls-ca-file": "ca.crt"} {
		if want := flag + "=" + path.Join(container.VolumeMounts[0].MountPath, key); !slices.Contains(container.Args, want) {
			t.Errorf("the Deployment has the flags %q, want %s", container.Args, want)
		}
	}
	if strings.Contains(built, "winnow:certificates") {
		t.Error("Winnow may write Secrets, which it need not with cert-manager")
	}
}

// find returns an object of manifests.
func find(t *testing.T, manifests, kind, name string) *unstructured.Unstructured {
	t.Helper()
	for decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader([]byte(manifests)), 4096); ; {
		object := &unstructured.Unstructured{}
		if err := decoder.Decode(object); errors.Is(err, io.EOF) {
			t.Fatalf("there is no %s %s", kind, name)
		} else if err != nil {
			t.Fatal(err)
		}
		if object.GetKind() == kind && object.GetName() == name {
			return object
		}
	}
}
