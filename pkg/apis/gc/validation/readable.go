// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
)

// ValidateReadable refuses to overwrite or copy a policy that this version does not understand fully, because the rest would be lost. The
// policy old is nil if policy is new.
func ValidateReadable(policy, old metav1.Object) field.ErrorList {
	if old != nil {
		if why := gc.Unreadable(old); why != "" {
			return field.ErrorList{
				field.Forbidden(field.NewPath("spec"), "this version of Winnow does not understand all of the stored object, "+
					"and writing it would lose the rest ("+why+"); install the version that wrote it, or delete and recreate it"),
			}
		}
	}
	if _, copied := policy.GetAnnotations()[gc.AnnotationUnreadable]; copied {
		return field.ErrorList{
			field.Forbidden(
				field.NewPath("metadata", "annotations").Key(gc.AnnotationUnreadable),
				"Winnow sets this annotation on an object "+
					"that it does not fully understand, so this copy is incomplete; remove the annotation if the copy has everything you want",
			),
		}
	}
	return nil
}
