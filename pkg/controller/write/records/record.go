// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package records stores which objects Winnow deleted, in the cluster's own API, and reads it; see artifacts/storage.
package records

import (
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/pkg/controller/rules/deletion"
)

// record is a deletion as it is stored. Lateness is not.
type record = v1alpha1.CleanupRecordStatus

// resolution is the resolution of the times of records.
const resolution = time.Microsecond

// newRecord describes the deletion that the API server accepted at a time.
func newRecord(o *deletion.Order, at time.Time) record {
	f := o.Fact
	r := record{
		Object: v1alpha1.RecordObject{
			Resource: f.Resource, Name: f.Name, UID: f.UID, ResourceVersion: strconv.FormatUint(f.ResourceVersion, 10),
		},
		Policy: v1alpha1.RecordPolicy{
			Kind: gc.KindCleanupPolicy, Name: o.Policy.Name, UID: o.PolicyUID, Generation: o.PolicyGeneration, Rule: o.Rule,
		},
		After: v1alpha1.After(o.After), Since: microTime(o.Since), Outcome: v1alpha1.Outcome(f.Outcome), Reason: string(o.Reason),
		WaitTimedOut: o.WaitTimedOut, DueTime: microTime(o.Due), DeletionTime: *microTime(at), PropagationPolicy: o.Propagation,
		ServiceAccountName: o.Account, ApprovedHold: o.ApprovedHold, CopyExpirationTime: microTime(o.CopyUntil),
	}
	if o.Policy.Namespace == "" {
		r.Policy.Kind = gc.KindClusterCleanupPolicy
	}
	if c := f.Controller; c != nil {
		r.Owner = &v1alpha1.RecordOwner{Kind: c.GroupKind.String(), Name: c.Name, UID: c.UID}
	}
	return r
}

// microTime returns nil for the zero time.
func microTime(t time.Time) *metav1.MicroTime {
	if t.IsZero() {
		return nil
	}
	return &metav1.MicroTime{Time: t.UTC().Truncate(resolution)}
}
