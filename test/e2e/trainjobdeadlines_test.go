// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/test/cluster"
	"github.com/winnow-dev/winnow/test/platforms"
)

// TestTrainJobDeadlines: the optional admission policy gives each new TrainJob a deadline, unless it has one. It changes no TrainJob later,
// as nobody can.
func TestTrainJobDeadlines(t *testing.T) {
	t.Parallel()
	if !cluster.Since(t, "1.36", "it does not serve MutatingAdmissionPolicies in v1") {
		t.SkipNow()
	}
	const manifest = "../../artifacts/optional/trainjob-deadlines.yaml"
	ns := newNamespace(t)
	client := customClient(t).Resource(platforms.TrainJobs.GroupVersionResource()).Namespace(ns)
	create := func(ctx context.Context, name string, spec map[string]any, options metav1.CreateOptions) (*unstructured.Unstructured, error) {
		u := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
		u.SetGroupVersionKind(kindOf(platforms.TrainJobs))
		u.SetName(name)
		return client.Create(ctx, u, options)
	}
	_, err := create(t.Context(), "before", map[string]any{}, metav1.CreateOptions{})
	must(t, err)
	if _, stderr, err := suite.Kubectl(t.Context(), "apply", "--validate=strict", "-f", manifest); err != nil {
		t.Fatal(stderr)
	}
	t.Cleanup(func() {
		if _, stderr, err := suite.Kubectl(whole, "delete", "-f", manifest); err != nil {
			t.Error(stderr)
		}
	})
	eventually(t, func(ctx context.Context) string { // The API server knows the policy after a moment.
		u, err := create(ctx, "new", map[string]any{}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err != nil {
			return err.Error()
		}
		return wantDeadline(u, 604800)
	})
	created, err := create(t.Context(), "new", map[string]any{}, metav1.CreateOptions{})
	must(t, err)
	own, err := create(t.Context(), "own", map[string]any{"activeDeadlineSeconds": int64(60)}, metav1.CreateOptions{})
	must(t, err)
	patch := func(name, patch string) (*unstructured.Unstructured, error) {
		return client.Patch(t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	}
	before, err := patch("before", `{"metadata":{"labels":{"note":"mine"}}}`)
	must(t, err)
	for _, wrong := range []string{wantDeadline(created, 604800), wantDeadline(own, 60), wantDeadline(before, 0)} {
		if wrong != "" {
			t.Error(wrong)
		}
	}
	if _, err = patch("new", `{"spec":{"activeDeadlineSeconds":5}}`); err == nil || !strings.Contains(err.Error(), "immutable") {
		t.Errorf("the deadline was changed later: %v", err)
	}
}

// wantDeadline says what is wrong with the deadline of a TrainJob; 0 stands for none.
func wantDeadline(u *unstructured.Unstructured, want int64) string {
	got, _, err := unstructured.NestedInt64(u.Object, "spec", "activeDeadlineSeconds")
	if err != nil || got != want {
		return fmt.Sprintf("%s has the deadline %d, want %d: %v", u.GetName(), got, want, err)
	}
	return ""
}
