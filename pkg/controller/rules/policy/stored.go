// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
)

// Stored is the part of an observed policy of either kind that is remembered; it must not be changed. A cluster policy has no namespace.
type Stored struct {
	*metav1.ObjectMeta
	Mode    gc.PolicyMode
	Suspend bool
	Status  *gc.CleanupPolicyStatus
}

// StoredOf returns the part of a policy of either kind that is remembered.
func StoredOf(p metav1.Object) Stored {
	switch p := p.(type) {
	case *gc.ClusterCleanupPolicy:
		return Stored{&p.ObjectMeta, p.Spec.Mode, p.Spec.Suspend, &p.Status}
	case *gc.CleanupPolicy:
		return Stored{&p.ObjectMeta, p.Spec.Mode, p.Spec.Suspend, &p.Status}
	}
	return Stored{ObjectMeta: &metav1.ObjectMeta{}, Status: &gc.CleanupPolicyStatus{}}
}

// NamespacedName returns the name of the policy.
func (s Stored) NamespacedName() types.NamespacedName {
	return types.NamespacedName{Namespace: s.Namespace, Name: s.Name}
}

// Title names the policy in a command.
func (s Stored) Title() string { return gc.PolicyTitle(s.Namespace, s.Name) }

// ShortTitle names the policy in a sentence.
func (s Stored) ShortTitle() string { return strings.TrimPrefix(s.NamespacedName().String(), "/") }
