// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupName is the API group of the cleanup API.
const GroupName = "gc.winnow.dev"

// SchemeGroupVersion is the group and this version.
var SchemeGroupVersion = schema.GroupVersion{Group: GroupName, Version: "v1alpha1"}

var (
	// SchemeBuilder collects what adds this version to a scheme; generated code registers itself in it.
	SchemeBuilder      runtime.SchemeBuilder
	localSchemeBuilder = &SchemeBuilder
	// AddToScheme adds this version to a scheme.
	AddToScheme = localSchemeBuilder.AddToScheme
)

func init() {
	localSchemeBuilder.Register(addKnownTypes, RegisterDefaults, addFieldLabelConversions)
}

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
	metav1.AddToGroupVersion(scheme, SchemeGroupVersion)
	return nil
}

func addFieldLabelConversions(scheme *runtime.Scheme) error {
	for kind, labels := range map[string][]string{
		"CleanupPolicy":        {"metadata.name", "metadata.namespace", "spec.mode"},
		"ClusterCleanupPolicy": {"metadata.name", "spec.mode"},
		"ResourceLifecycle":    {"metadata.name"},
		"CleanupCandidate":     {"metadata.name", "metadata.namespace", "object", "policy", "resource", "state"},
		"CleanupRecord":        {"metadata.name", "metadata.namespace", "object", "policy", "resource", "since"},
		"CleanupCopy":          {"metadata.name", "metadata.namespace", "object", "resource"},
	} {
		err := scheme.AddFieldLabelConversionFunc(SchemeGroupVersion.WithKind(kind), func(label, value string) (string, string, error) {
			if slices.Contains(labels, label) {
				return label, value, nil
			}
			return "", "", fmt.Errorf("%q is not a field selector of %s: use one of %q", label, kind, labels)
		})
		if err != nil {
			return err
		}
	}
	return nil
}
