// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
)

// endingStates are the states of objects that Winnow is going to delete.
var endingStates = []v1alpha1.CandidateState{
	v1alpha1.CandidateWaiting, v1alpha1.CandidateNotified, v1alpha1.CandidateDue, v1alpha1.CandidateHeld,
}

// HowToKeep says how to keep an object that Winnow is going to delete; empty if there is nothing to keep it from, if the caller may not
// annotate it, or if Kubernetes itself deletes it.
func (s *Session) HowToKeep(ctx context.Context, t *Target, c *v1alpha1.CleanupCandidate) (string, error) {
	if c == nil || !slices.Contains(endingStates, c.Status.State) {
		return "", nil
	}
	if by := c.Status.DecidedBy; by != nil && by.Mode == v1alpha1.ModePreview {
		return "", nil
	}
	if _, native, _ := unstructured.NestedInt64(t.Content.Object, "spec", "ttlSecondsAfterFinished"); native {
		return "", nil
	}
	cluster, err := s.Cluster()
	if err != nil {
		return "", err
	}
	if may, err := cluster.May(ctx, "patch", schema.ParseGroupResource(t.Object.Resource), t.Object.Namespace); err != nil || !may {
		return "", err
	}
	return fmt.Sprintf("To keep it for longer: kubectl winnow keep %s/%s -n %s --for 7d", t.Object.Resource, t.Object.Name,
		t.Object.Namespace), nil
}
