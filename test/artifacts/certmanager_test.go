// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package artifacts

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// TestCertManagerFits checks by name that what cert-manager makes is what the server mounts and the APIService trusts;
// there is no cert-manager to ask here.
func TestCertManagerFits(t *testing.T) {
	certificate := find(t, "../../artifacts/cert-manager", "Certificate", "winnow-serving-cert")
	if got := certificate.GetNamespace(); got != namespace {
		t.Errorf("the Certificate is in namespace %q, want %q", got, namespace)
	}
	if names, _, _ := unstructured.NestedStringSlice(certificate.Object, "spec", "dnsNames"); len(names) != 1 ||
		names[0] != "winnow.winnow-system.svc" {
		t.Errorf("the Certificate is for %q, kube-apiserver asks for winnow.winnow-system.svc", names)
	}
	made, _, _ := unstructured.NestedString(certificate.Object, "spec", "secretName")
	volumes, _, _ := unstructured.NestedSlice(find(t, install, "Deployment", "winnow").Object, "spec", "template", "spec", "volumes")
	if len(volumes) != 1 {
		t.Fatalf("the Deployment has %d volumes, want the Secret alone", len(volumes))
	}
	if mounted, _, _ := unstructured.NestedString(volumes[0].(map[string]any), "secret", "secretName"); mounted != made {
		t.Errorf("the Deployment mounts Secret %q, the Certificate makes %q", mounted, made)
	}
	const apiService, inject = "v1alpha1.gc.winnow.dev", "cert-manager.io/inject-ca-from"
	plain, injected := find(
		t,
		"../../artifacts",
		"APIService",
		apiService,
	), find(
		t,
		"../../artifacts/cert-manager",
		"APIService",
		apiService,
	)
	if got, want := injected.GetAnnotations()[inject], namespace+"/"+certificate.GetName(); got != want {
		t.Errorf("the APIService asks for the authority of %q, want %q", got, want)
	}
	injected.SetAnnotations(nil)
	if diff := cmp.Diff(plain, injected); diff != "" {
		t.Errorf("without cert-manager, the APIService differs in more than the annotation (-without +with):\n%s", diff)
	}
}

// find returns an object of the manifests in dir.
func find(t *testing.T, dir, kind, name string) *unstructured.Unstructured {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096); ; {
			object := &unstructured.Unstructured{}
			if err := decoder.Decode(object); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			if object.GetKind() == kind && object.GetName() == name {
				return object
			}
		}
	}
	t.Fatalf("there is no %s %s in %s", kind, name, dir)
	return nil
}
