// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/objects/references"
)

// Reporting returns what may refer to PersistentVolumeClaims, ServiceAccounts or Services, for reports; nil if the objects of the resource
// refer to none. A custom resource may refer to all that it names.
func Reporting(l Listed) *Referrer {
	r := &Referrer{Listed: l, Reader: references.Reported(l.Resource())}
	switch {
	case l.Resource() == gc.ResourceSecrets:
		r.FieldSelector = "type=" + string(corev1.SecretTypeServiceAccountToken)
	case r.Reader != nil:
	case ofKubernetes(l.Served), NeverRefers(l.Group), tell.Has(l.Group):
		return nil
	default:
		r.Reader = reportedUndeclared
	}
	return r
}

var reportedUndeclared = references.ReportedUndeclared()

// tell are groups whose objects name what they tell of or copy, and do not use it: reports on objects, volumes as their driver sees them,
// snapshots and backups. A snapshot or copy that is being made is a finalizer of the claim. Groups are compared whole.
var tell = sets.New(
	"wgpolicyk8s.io", "openreports.io", "reports.kyverno.io", "aquasecurity.github.io", // policy and security reports
	"longhorn.io",
	"snapshot.storage.k8s.io", "groupsnapshot.storage.k8s.io", "velero.io",
)

// OfCustomResource reports whether what a Referrer of Reporting refers to is not declared: whatever is in the object may be a name.
func (r *Referrer) OfCustomResource() bool { return r.Reader == reportedUndeclared }
