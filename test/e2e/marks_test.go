// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	usagemarks "github.com/winnow-dev/winnow/pkg/controller/marks"
	"github.com/winnow-dev/winnow/test/winnow"
)

// TestMarksThatNothingNeeds are deleted: no rule is about their objects, so nobody knows whether these are used in the meantime.
func TestMarksThatNothingNeeds(t *testing.T) {
	config, err := suite.UserConfig(winnow.User, "system:serviceaccounts", "system:serviceaccounts:"+winnow.Namespace)
	must(t, err)
	client, err := dynamic.NewForConfig(config)
	must(t, err)
	stored := client.Resource(usagemarks.Resource).Namespace(newNamespace(t))
	for i, unused := range []map[string]any{{}, {"a": "2026-11-25T12:00:00Z"}} {
		_, err := stored.Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": usagemarks.Resource.GroupVersion().String(), "kind": "UsageMarks",
			"metadata": map[string]any{"name": fmt.Sprint("marks-", i)}, "unused": unused,
		}}, metav1.CreateOptions{})
		must(t, err)
	}
	eventually(t, func(ctx context.Context) string {
		list, err := stored.List(ctx, metav1.ListOptions{})
		must(t, err)
		if len(list.Items) > 0 {
			return fmt.Sprintf("%d marks are left", len(list.Items))
		}
		return ""
	})
}
