// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package unused

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/objects/references"
)

// The resources that can be reported, as kubectl names them.
const (
	Claims   = "persistentvolumeclaims"
	Accounts = "serviceaccounts"
	Services = "services"
)

// ofKubernetes are namespaces in which Kubernetes itself uses objects that nothing names.
var ofKubernetes = []string{metav1.NamespaceSystem, metav1.NamespacePublic, corev1.NamespaceNodeLease}

// AddClaim adds a claim. One that is being deleted is left out.
func (f *Finder) AddClaim(c *corev1.PersistentVolumeClaim) {
	if c.DeletionTimestamp != nil {
		return
	}
	claim := &Claim{
		Status: string(c.Status.Phase), StorageClass: storageClass(c),
		Requested: c.Spec.Resources.Requests.Storage().Value(), Capacity: c.Status.Capacity.Storage().Value(),
	}
	s := newSubject(Claims, references.PersistentVolumeClaims, &c.ObjectMeta)
	s.Claim = claim
	if i := slices.IndexFunc(c.Status.Conditions, func(c corev1.PersistentVolumeClaimCondition) bool {
		return c.Type == corev1.PersistentVolumeClaimUnused
	}); i >= 0 {
		s.said = &c.Status.Conditions[i]
		if s.said.Status == corev1.ConditionTrue {
			claim.NoPodSince = s.said.LastTransitionTime.UTC()
		}
	}
	s.keep(kept(&c.ObjectMeta, lifecycle.MarkedBy(schema.GroupKind{Kind: "PersistentVolumeClaim"}, &c.ObjectMeta)))
	if c.Labels["component"] == "singleuser-storage" {
		s.keep([]string{"JupyterHub mounts it when its user returns"})
	}
	f.add(s, stem(c.Name))
	for _, part := range partsOf(c.Name) {
		key := references.Reference{Namespace: c.Namespace, Name: part}
		f.parts[key] = append(f.parts[key], s)
	}
}

func storageClass(c *corev1.PersistentVolumeClaim) string {
	if name := c.Annotations[corev1.BetaStorageClassAnnotation]; name != "" {
		return name
	}
	return ptr.Deref(c.Spec.StorageClassName, "")
}

// AddAccount adds a ServiceAccount, unless Kubernetes itself needs it.
func (f *Finder) AddAccount(m *metav1.ObjectMeta) {
	if m.DeletionTimestamp != nil || m.Name == "default" || slices.Contains(ofKubernetes, m.Namespace) {
		return
	}
	s := newSubject(Accounts, references.ServiceAccounts, m)
	s.keep(kept(m, lifecycle.MarkedBy(schema.GroupKind{Kind: "ServiceAccount"}, m)))
	f.add(s)
}

// AddService adds a Service that selects Pods. The endpoints of others are not in the cluster, or somebody else sets them.
func (f *Finder) AddService(svc *corev1.Service) {
	if svc.DeletionTimestamp != nil || svc.Spec.Type == corev1.ServiceTypeExternalName || len(svc.Spec.Selector) == 0 ||
		slices.Contains(ofKubernetes, svc.Namespace) {
		return
	}
	s := newSubject(Services, references.Services, &svc.ObjectMeta)
	s.selector = labels.SelectorFromSet(svc.Spec.Selector)
	s.keep(kept(&svc.ObjectMeta, lifecycle.MarkedBy(schema.GroupKind{Kind: "Service"}, &svc.ObjectMeta)))
	// A custom resource may have a template of Pods with these labels, and not name the Service.
	aliases := make([]string, 0, len(svc.Spec.Selector))
	for _, value := range svc.Spec.Selector {
		aliases = append(aliases, value)
	}
	f.add(s, aliases...)
}

// Endpoints takes in that a Service has endpoints.
func (f *Finder) Endpoints(namespace, service string) {
	for _, s := range f.find(references.Reference{To: references.Services, Namespace: namespace, Name: service}) {
		if s.Name == service {
			s.use("its endpoints", false)
		}
	}
}

func newSubject(resource string, to references.To, m *metav1.ObjectMeta) *subject {
	return &subject{
		Object: Object{Resource: resource, Namespace: m.Namespace, Name: m.Name, Created: m.CreationTimestamp.UTC()}, to: to,
	}
}

func (s *subject) keep(by []string) {
	for _, why := range by {
		s.use(why, false)
	}
}
