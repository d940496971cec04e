// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package testpolicy has what the tests of the registries share: a policy, and a request that records warnings.
package testpolicy

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/warning"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
)

// Request is the context of one, and where its warnings go.
func Request(subresource string) (context.Context, *Warnings) {
	w := &Warnings{}
	ctx := genericapirequest.WithNamespace(context.Background(), "team-a")
	ctx = genericapirequest.WithRequestInfo(ctx, &genericapirequest.RequestInfo{
		APIGroup: gc.GroupName, APIVersion: "v1alpha1", Resource: "cleanuppolicies", Subresource: subresource,
	})
	return warning.WithWarningRecorder(ctx, w), w
}

// Warnings records them.
type Warnings struct{ Texts []string }

// AddWarning implements warning.Recorder.
func (w *Warnings) AddWarning(_, text string) { w.Texts = append(w.Texts, text) }

// TTL returns a pointer to it.
func TTL(s gc.TTL) *gc.TTL { return &s }

// Stored is a policy as it comes out of storage.
func Stored() *gc.CleanupPolicy {
	return &gc.CleanupPolicy{
		ObjectMeta: metav1.ObjectMeta{
			Name: "defaults", Namespace: "team-a", UID: "uid", ResourceVersion: "7", Generation: 3, CreationTimestamp: metav1.Now(),
			Labels: map[string]string{"team": "a"}, Annotations: map[string]string{"note": "kept"},
		},
		Spec: gc.CleanupPolicySpec{
			Mode: gc.ModeEnforce, AnnotationTTL: gc.AnnotationExtendOnly, TTLAfterFinished: TTL("1h"),
			Rules: []gc.CleanupRule{{
				Name: "failures", TTL: TTL("7d"), Dependents: gc.DependentsWithOwner, PropagationPolicy: metav1.DeletePropagationBackground,
				ManagedElsewhere: gc.ManagedElsewhereHold,
			}},
		},
		Status: gc.CleanupPolicyStatus{Candidates: 12},
	}
}
