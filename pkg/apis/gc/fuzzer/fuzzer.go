// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fuzzer fills the internal types with random values that a server could hold.
package fuzzer

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeserializer "k8s.io/apimachinery/pkg/runtime/serializer"
	"sigs.k8s.io/randfill"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
)

// Funcs sets the fields that have a default, since decoding would set them anyway.
func Funcs(runtimeserializer.CodecFactory) []any {
	return []any{
		func(s *gc.CleanupPolicySpec, c randfill.Continue) {
			c.FillNoCustom(s)
			s.Mode = oneOf(c, gc.ModeEnforce, gc.ModePreview)
			s.AnnotationTTL = oneOf(c, gc.AnnotationExtendOnly, gc.AnnotationAny, gc.AnnotationIgnore)
		},
		func(s *gc.ClusterCleanupPolicySpec, c randfill.Continue) {
			c.FillNoCustom(s)
			s.AnnotationTTL = oneOf(c, gc.AnnotationExtendOnly, gc.AnnotationAny, gc.AnnotationIgnore)
		},
		func(capacity *gc.Capacity, c randfill.Continue) {
			c.FillNoCustom(capacity)
			capacity.Per = oneOf(c, gc.CapacityPerNamespace, gc.CapacityPerOwner, gc.CapacityPerLabel)
		},
		func(r *gc.CleanupRule, c randfill.Continue) {
			c.FillNoCustom(r)
			r.Dependents = oneOf(c, gc.DependentsWithOwner, gc.DependentsAfterOwnerFinished, gc.DependentsOnceCounted)
			r.PropagationPolicy = oneOf(c, metav1.DeletePropagationBackground, metav1.DeletePropagationForeground)
			r.ManagedElsewhere = oneOf(c, gc.ManagedElsewhereHold, gc.ManagedElsewhereDelete)
			r.NoticeDelivery = oneOf(c, "", gc.NoticeDeliveryBestEffort, gc.NoticeDeliveryRequired)
		},
		func(w *gc.WaitFor, c randfill.Continue) {
			c.FillNoCustom(w)
			w.OnTimeout = oneOf(c, gc.WaitTimeoutKeep, gc.WaitTimeoutDelete)
		},
		func(s *gc.ResourceLifecycleSpec, c randfill.Continue) {
			c.FillNoCustom(s)
			s.Dependents = oneOf(c, gc.LifecycleLeaveToOwner, gc.LifecycleIndependent)
		},
	}
}

func oneOf[T any](c randfill.Continue, values ...T) T { return values[c.Intn(len(values))] }
