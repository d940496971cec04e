// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package platforms installs custom resources of batch platforms in a cluster of a test. No controller of theirs runs: a test plays it.
package platforms

import (
	"context"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
)

// Definitions is the resource of CustomResourceDefinitions.
var Definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// Resource is a custom resource with a status subresource.
type Resource struct {
	Group, Kind, Plural string
	// Versions are served. Objects are stored in the first.
	Versions []string
	// Spec and Status are the schemas of fields that controllers and lifecycles read, by name. All other fields are preserved.
	Spec, Status map[string]any
}

// Name returns the name of the resource as policies write it.
func (r Resource) Name() string { return r.Plural + "." + r.Group }

// GroupVersionResource returns the resource in the stored version.
func (r Resource) GroupVersionResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: r.Group, Version: r.Versions[0], Resource: r.Plural}
}

// Definition returns the CustomResourceDefinition.
func (r Resource) Definition() *unstructured.Unstructured {
	var versions []any
	for i, version := range r.Versions {
		versions = append(versions, map[string]any{
			"name": version, "served": true, "storage": i == 0, "subresources": map[string]any{"status": map[string]any{}},
			"schema": map[string]any{"openAPIV3Schema": object(map[string]any{"spec": object(r.Spec), "status": object(r.Status)})},
		})
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": Definitions.GroupVersion().String(), "kind": "CustomResourceDefinition",
		// Groups below k8s.io are protected: such a definition names the pull request in which its API was approved.
		"metadata": map[string]any{"name": r.Name(), "annotations": map[string]any{"api-approved.kubernetes.io": "unapproved, for a test"}},
		"spec": map[string]any{
			"group": r.Group, "scope": "Namespaced", "versions": versions,
			"names": map[string]any{
				"plural": r.Plural, "singular": strings.ToLower(r.Kind), "kind": r.Kind, "listKind": r.Kind + "List",
			},
		},
	}}
}

// object returns the schema of an object with these fields. Other fields are preserved.
func object(fields map[string]any) map[string]any {
	out := map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
	if len(fields) > 0 {
		out["properties"] = fields
	}
	return out
}

// Install creates the definitions that do not exist, and waits until the cluster serves the resources.
func Install(ctx context.Context, client dynamic.Interface, resources ...Resource) error {
	for _, r := range resources {
		_, err := client.Resource(Definitions).Create(ctx, r.Definition(), metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("creating the definition of %s: %w", r.Name(), err)
		}
	}
	for _, r := range resources {
		err := wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(ctx context.Context) (bool, error) {
			_, err := client.Resource(r.GroupVersionResource()).List(ctx, metav1.ListOptions{Limit: 1})
			if apierrors.IsNotFound(err) {
				err = nil
				return false, err
			}
			return err == nil, err
		})
		if err != nil {
			return fmt.Errorf("listing %s: %w", r.Name(), err)
		}
	}
	return nil
}
