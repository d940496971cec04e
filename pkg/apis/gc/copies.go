// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package gc

import (
	"context"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/sets"
)

// CopyFields are the field selectors of copies, besides metadata.name and metadata.namespace. FieldObject also takes a name without a
// resource.
var CopyFields = []string{FieldObject, FieldResource}

// +k8s:deepcopy-gen=false

// CopyQuery says which copies to return. It is never served.
type CopyQuery struct {
	// Namespace is empty for all namespaces.
	Namespace string
	// MayList reports whether the caller may see that there are copies of objects of a resource. It is asked for every copy.
	MayList func(ctx context.Context, resource string) (bool, error)
	Fields  fields.Selector
	// Limit and Continue are those of the list of what is stored.
	Limit    int64
	Continue string
}

// +k8s:deepcopy-gen=false

// CopyPage is a part of a list of copies, without their contents. It is never served.
type CopyPage struct {
	metav1.ListMeta
	Items []CleanupCopy
}

// kubernetesGroups are the API groups of Kubernetes itself, besides the one without a name. Other groups that end in k8s.io, such as
// "snapshot.storage.k8s.io", are of custom resources.
var kubernetesGroups = sets.New(
	"admissionregistration.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io", "apps", "authentication.k8s.io",
	"authorization.k8s.io", "autoscaling", "batch", "certificates.k8s.io", "coordination.k8s.io", "discovery.k8s.io", "events.k8s.io",
	"extensions", "flowcontrol.apiserver.k8s.io", "imagepolicy.k8s.io", "internal.apiserver.k8s.io", "networking.k8s.io", "node.k8s.io",
	"policy", "rbac.authorization.k8s.io", "resource.k8s.io", "scheduling.k8s.io", "storage.k8s.io", "storagemigration.k8s.io",
)

// CopyRefusal returns why no copies of the objects of a resource are kept; empty if they can be.
func CopyRefusal(resource string) string {
	_, group, _ := strings.Cut(resource, ".")
	switch {
	case resource == ResourceConfigMaps:
		return ""
	case resource == ResourceSecrets:
		return "cannot be copied, because Winnow does not read the data of Secrets"
	case strings.Contains(resource, ResourceAll):
		return "names no resource, and copies are only of ConfigMaps and custom resources"
	case group == "", kubernetesGroups.Has(group):
		return "cannot be copied, because copies are only of ConfigMaps and custom resources"
	}
	return ""
}
