// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package gc

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupName is the API group of the cleanup API.
const GroupName = "gc.winnow.dev"

// SchemeGroupVersion is the internal group and version.
var SchemeGroupVersion = schema.GroupVersion{Group: GroupName, Version: runtime.APIVersionInternal}

var (
	schemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)
	// AddToScheme adds the internal types to a scheme.
	AddToScheme = schemeBuilder.AddToScheme
)

// Kind qualifies a kind with the group.
func Kind(kind string) schema.GroupKind { return SchemeGroupVersion.WithKind(kind).GroupKind() }

// Resource qualifies a resource with the group.
func Resource(resource string) schema.GroupResource {
	return SchemeGroupVersion.WithResource(resource).GroupResource()
}

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(
		SchemeGroupVersion, &CleanupPolicy{}, &CleanupPolicyList{}, &ClusterCleanupPolicy{}, &ClusterCleanupPolicyList{},
		&ResourceLifecycle{}, &ResourceLifecycleList{}, &CleanupCandidate{}, &CleanupCandidateList{}, &CleanupReview{},
		&ClusterCleanupReview{}, &CleanupRecord{}, &CleanupRecordList{}, &CleanupCopy{}, &CleanupCopyList{},
	)
	return nil
}
