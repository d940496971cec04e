// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"cmp"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/objects/kinds"
)

// served returns the resource of a kind: as a CustomResourceDefinition says, or in the plural of its kind.
func (m *Manifests) served(gvk schema.GroupVersionKind) kinds.Listed {
	out, _ := m.servedOrGuessed(gvk)
	return out
}

// servedOrGuessed also reports whether no CustomResourceDefinition says what the resource is.
func (m *Manifests) servedOrGuessed(gvk schema.GroupVersionKind) (out kinds.Listed, guessed bool) {
	out, guessed = kinds.Listed{
		Served:     kinds.Served{GroupVersionKind: gvk, Plural: plural(strings.ToLower(gvk.Kind))},
		Namespaced: !clusterScoped[gvk.GroupKind().String()],
	}, true
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
			guessed = false
		}
	}
	return out, guessed
}

// doubtful fails if a policy or lifecycle names a resource that may be the one of an object, but is not the guessed plural of its kind: no
// policy would be about the object, and the server would delete it.
func (m *Manifests) doubtful() error {
	named := m.named()
	if err := singular(named); err != nil {
		return err
	}
	for _, u := range m.Objects {
		gvk := u.GroupVersionKind()
		served, guessed := m.servedOrGuessed(gvk)
		if !guessed || named.Has(served.Resource()) {
			continue
		}
		for _, other := range sets.List(named) {
			if r := schema.ParseGroupResource(other); r.Group == gvk.Group && mayBePlural(strings.ToLower(gvk.Kind), r.Resource) {
				return fmt.Errorf("the resource of the kind %s may be %s or %s: to say which, add its CustomResourceDefinition, with spec.group, "+
					"spec.scope and spec.names", gvk.Kind, served.Resource(), other)
			}
		}
	}
	return nil
}

// singular fails if one of the resources is the singular of a resource with a built-in lifecycle.
func singular(named sets.Set[string]) error {
	catalog, err := newCatalog()
	if err != nil {
		return err
	}
	for _, resource := range sets.List(named) {
		r := schema.ParseGroupResource(resource)
		if meant := kinds.ResourceName(plural(r.Resource), r.Group); !catalog.BuiltIn(resource) && catalog.BuiltIn(meant) {
			return fmt.Errorf("there is no resource %q; did you mean %q?", resource, meant)
		}
	}
	return nil
}

// named returns the resources that policies and lifecycles name.
func (m *Manifests) named() sets.Set[string] {
	out := sets.New[string]()
	add := func(rules []gc.CleanupRule) {
		for i := range rules {
			out.Insert(rules[i].Resources...)
		}
	}
	for _, p := range m.Policies {
		add(p.Spec.Rules)
	}
	for _, p := range m.ClusterPolicies {
		add(p.Spec.Rules)
	}
	for _, l := range m.Lifecycles {
		out.Insert(l.Name)
	}
	return out
}

// mayBePlural reports whether a word may be the plural of a kind: it begins as the kind does, and is about as long.
func mayBePlural(kind, word string) bool {
	same := 0
	for same < min(len(kind), len(word)) && kind[same] == word[same] {
		same++
	}
	return same >= max(3, len(kind)-2) && len(word) <= len(kind)+3
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
	case strings.HasSuffix(kind, "s"), strings.HasSuffix(kind, "x"), strings.HasSuffix(kind, "ch"), strings.HasSuffix(kind, "sh"):
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
