// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"cmp"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/winnow-dev/winnow/pkg/controller/objects/kinds"
)

// served returns the resource of a kind: as a CustomResourceDefinition says, or in the plural of its kind.
func (m *Manifests) served(gvk schema.GroupVersionKind) kinds.Listed {
	out := kinds.Listed{
		Served:     kinds.Served{GroupVersionKind: gvk, Plural: plural(strings.ToLower(gvk.Kind))},
		Namespaced: !clusterScoped[gvk.GroupKind().String()],
	}
	for _, u := range m.Objects {
		if u.GetKind() != "CustomResourceDefinition" {
			continue
		}
		text := func(path ...string) string {
			s, _, _ := unstructured.NestedString(u.Object, path...)
			return s
		}
		if text("spec", "group") == gvk.Group && text("spec", "names", "kind") == gvk.Kind {
			out.Plural, out.Namespaced = cmp.Or(text("spec", "names", "plural"), out.Plural), text("spec", "scope") != "Cluster"
		}
	}
	return out
}

// plural returns the plural that almost all kinds have.
func plural(kind string) string {
	const vowels = "aeiou"
	stem, y := strings.CutSuffix(kind, "y")
	switch {
	case kind == "endpoints":
		return kind
	case y && stem != "" && !strings.ContainsAny(stem[len(stem)-1:], vowels):
		return stem + "ies"
	case strings.HasSuffix(kind, "s"), strings.HasSuffix(kind, "x"), strings.HasSuffix(kind, "ch"):
		return kind + "es"
	}
	return kind + "s"
}

// clusterScoped are the kinds of Kubernetes that are not in namespaces, as "Kind.group".
var clusterScoped = map[string]bool{
	"Namespace": true, "Node": true, "PersistentVolume": true,
	"APIService.apiregistration.k8s.io": true, "CustomResourceDefinition.apiextensions.k8s.io": true,
	"ClusterRole.rbac.authorization.k8s.io": true, "ClusterRoleBinding.rbac.authorization.k8s.io": true,
	"StorageClass.storage.k8s.io": true, "CSIDriver.storage.k8s.io": true, "CSINode.storage.k8s.io": true,
	"VolumeAttachment.storage.k8s.io": true, "VolumeAttributesClass.storage.k8s.io": true,
	"IngressClass.networking.k8s.io": true, "IPAddress.networking.k8s.io": true, "ServiceCIDR.networking.k8s.io": true,
	"GatewayClass.gateway.networking.k8s.io": true, "DeviceClass.resource.k8s.io": true, "ResourceSlice.resource.k8s.io": true,
	"PriorityClass.scheduling.k8s.io": true, "RuntimeClass.node.k8s.io": true,
	"CertificateSigningRequest.certificates.k8s.io": true, "ClusterTrustBundle.certificates.k8s.io": true,
	"FlowSchema.flowcontrol.apiserver.k8s.io": true, "PriorityLevelConfiguration.flowcontrol.apiserver.k8s.io": true,
	"ValidatingWebhookConfiguration.admissionregistration.k8s.io":   true,
	"MutatingWebhookConfiguration.admissionregistration.k8s.io":     true,
	"ValidatingAdmissionPolicy.admissionregistration.k8s.io":        true,
	"ValidatingAdmissionPolicyBinding.admissionregistration.k8s.io": true,
	"MutatingAdmissionPolicy.admissionregistration.k8s.io":          true,
	"MutatingAdmissionPolicyBinding.admissionregistration.k8s.io":   true,
}
