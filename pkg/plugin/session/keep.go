// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
)

// endingStates are the states of objects that Winnow is going to delete.
var endingStates = []v1alpha1.CandidateState{
	v1alpha1.CandidateWaiting, v1alpha1.CandidateNotified, v1alpha1.CandidateDue, v1alpha1.CandidateHeld,
}

// HowToKeep says how to keep an object that Winnow is going to delete, or who can; empty if there is nothing to keep it from, or if
// Kubernetes itself deletes it.
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
	command := t.Command("keep") + " --for 7d"
	may, err := cluster.May(ctx, "patch", schema.ParseGroupResource(t.Object.Resource), t.Object.Namespace)
	if err != nil || may {
		return "To keep it for longer: " + command, err
	}
	return "You may not change it, but " + WhoMayChange(t.Object.Resource) + " can keep it for longer: " + command, nil
}

// WhoMayChange says who may annotate an object of a resource, for those who may not.
func WhoMayChange(resource string) string {
	if slices.Contains(gc.DefaultResources(), resource) {
		return "somebody with the role edit"
	}
	return "somebody who may change it"
}
