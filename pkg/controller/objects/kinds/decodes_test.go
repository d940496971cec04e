// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
)

// TestDecodes: the fields of the Go types, of whatever type they are, and everything below a type that encodes itself as JSON.
func TestDecodes(t *testing.T) {
	for resource, paths := range map[string]map[string]bool{
		gc.ResourceJobs: {
			"": true, "kind": true, "apiVersion": true, "metadata.name": true, "metadata.labels.a/b": true, "metadata.newer": false,
			"metadata.creationTimestamp": true, "metadata.creationTimestamp.x": true, "spec.suspend": true, "spec.newer": false,
			"spec.template.spec.nodeName": true, "spec.template.spec.newer": false, "spec.template.spec.containers": true,
			"status.conditions": true, "newer": false, "spec.podFailurePolicy.rules": true, "spec.podFailurePolicy.newer": false,
			"status.conditions.type": true, "status.conditions.newer": false, "spec.template.spec.containers.env.valueFrom.newer": false,
		},
		gc.ResourcePods: {"spec.overhead.cpu": true, "status.phase": true, "status.newer": false, "spec.securityContext.runAsUser": true},
	} {
		k, err := Builtin().For(resource)
		if err != nil {
			t.Fatal(err)
		}
		for path, want := range paths {
			var keys []string
			if path != "" {
				keys = strings.Split(path, ".")
			}
			if got := k.Decodes(keys); got != want {
				t.Errorf("%s decode %q: %t", resource, path, got)
			}
		}
	}
	custom := &Kind{New: func() runtime.Object { return &unstructured.Unstructured{} }}
	if !custom.Decodes([]string{"spec", "anything"}) {
		t.Error("objects without a Go type lack a field")
	}
}
