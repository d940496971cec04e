// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package references

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
)

// exempt are the types, names, labels and annotations of ConfigMaps and Secrets that are used without a reference, with the reason. A label
// or annotation without "=" counts with every value. The test says who took such objects for unused, or where their use is documented.
var exempt = struct{ types, names, labels, annotations map[string]string }{
	types: map[string]string{
		string(corev1.SecretTypeServiceAccountToken): "it is the token of a ServiceAccount",
		"bootstrap.kubernetes.io/token":              "it is a bootstrap token",
		"helm.sh/release.v1":                         "it is a release of Helm",
		"timoni.sh/instance":                         "it is an instance of Timoni",
		"cluster.x-k8s.io/secret":                    "Cluster API finds it by name",
		"istio.io/ca-root":                           "Istio finds it by name",
	},
	names: map[string]string{
		"kube-root-ca.crt":                                     "Kubernetes creates it in every namespace",
		"openshift-service-ca.crt":                             "OpenShift creates it in every namespace",
		"istio-ca-root-cert":                                   "Istio creates it in every namespace",
		"extension-apiserver-authentication":                   "API servers read it",
		"kube-apiserver-legacy-service-account-token-tracking": "Kubernetes reads it",
		"cluster-info":                                         "kubeadm reads it",
		"kubeadm-config":                                       "kubeadm reads it",
		"kubelet-config":                                       "kubeadm reads it",
		"aws-auth":                                             "EKS reads it",
		"cluster-autoscaler-status":                            "the cluster autoscaler writes it",
		"ingress-uid":                                          "the ingress controller of GKE reads it",
		"kubernetes-dashboard-settings":                        "the Kubernetes dashboard reads it",
		"kubernetes-dashboard-certs":                           "the Kubernetes dashboard reads it",
		"kubernetes-dashboard-csrf":                            "the Kubernetes dashboard reads it",
		"kubernetes-dashboard-key-holder":                      "the Kubernetes dashboard reads it",
		"velero-repo-credentials":                              "Velero decrypts backups with it",
		"argocd-initial-admin-secret":                          "Argo CD reads it",
	},
	labels: map[string]string{
		"owner=helm":                                   "it is a release of Helm",
		"OWNER=TILLER":                                 "it is a release of Helm",
		"argocd.argoproj.io/secret-type":               "Argo CD finds it by label",
		"app.kubernetes.io/part-of=argocd":             "Argo CD reads it",
		"sealedsecrets.bitnami.com/sealed-secrets-key": "Sealed Secrets finds it by label",
		"istio/multiCluster":                           "Istio finds it by label",
		"cluster.x-k8s.io/cluster-name":                "Cluster API finds it by name",
		"velero.io/plugin-config":                      "Velero finds it by label",
		"grafana_dashboard":                            "a sidecar of Grafana finds it by label",
		"grafana_datasource":                           "a sidecar of Grafana finds it by label",
		"grafana_alert":                                "a sidecar of Grafana finds it by label",
		"grafana_notifier":                             "a sidecar of Grafana finds it by label",
		"prometheus_rule":                              "a sidecar of Prometheus finds it by label",
		"fluentd_config":                               "a sidecar of Fluentd finds it by label",
		"k8sgpt.ai/dynamically-loaded":                 "a sidecar finds it by label",
		"konghq.com/secret":                            "Kong finds it by label",
		"konghq.com/credential":                        "Kong finds it by label",
		"external-secrets.io/type=webhook":             "External Secrets finds it by label",
		"strimzi.io/cluster":                           "Strimzi finds it by name",
		"applyset.kubernetes.io/id":                    "kubectl keeps in it what an ApplySet has",
		"kapp.k14s.io/is-app":                          "kapp keeps in it what an app has",
		"kapp.k14s.io/is-app-change":                   "kapp keeps in it what an app has",
		"cli-utils.sigs.k8s.io/inventory-id":           "kpt keeps in it what it has applied",
		"tfstate=true":                                 "it is a state of Terraform",
		"jenkins.io/credentials-type":                  "Jenkins finds it by label",
		"openpolicyagent.org/policy":                   "Open Policy Agent finds it by label",
		"openpolicyagent.org/data":                     "Open Policy Agent finds it by label",
		"generate.kyverno.io/clone-source":             "it is copied to other namespaces",
		"eck.k8s.elastic.co/owner-kind":                "Elastic Cloud on Kubernetes finds it by name",
	},
	annotations: map[string]string{
		"control-plane.alpha.kubernetes.io/leader":           "it elects a leader",
		"reflector.v1.k8s.emberstack.com/reflection-allowed": "it is copied to other namespaces",
		"replicator.v1.mittwald.de/replicate-to":             "it is copied to other namespaces",
		"replicator.v1.mittwald.de/replicate-to-matching":    "it is copied to other namespaces",
		"replicator.v1.mittwald.de/replication-allowed":      "it is copied to other namespaces",
		"kubed.appscode.com/sync":                            "it is copied to other namespaces",
		"kubernetes.io/service-account.name":                 "it is the token of a ServiceAccount",
		"cert-manager.io/allow-direct-injection":             "cert-manager injects it",
		"helm.sh/resource-policy=keep":                       "Helm must keep it",
		"argocd.argoproj.io/sync-options":                    "it has options of Argo CD",
		"kustomize.toolkit.fluxcd.io/prune=disabled":         "Flux must keep it",
	},
}

// Exempt returns why an object counts as used although nothing refers to it; empty if it does not. kind is ConfigMap or Secret. secretType
// is the type of a Secret, or empty if it is not known; see ExemptTypes.
func Exempt(kind schema.GroupKind, m *metav1.ObjectMeta, secretType string) string {
	if len(m.OwnerReferences) > 0 {
		return "it has an owner"
	}
	if len(m.Finalizers) > 0 && m.DeletionTimestamp == nil {
		return "it has a finalizer" // A delete could not be taken back.
	}
	if why := exempt.types[secretType]; why != "" {
		return why
	}
	if why := exempt.names[m.Name]; why != "" {
		return why
	}
	if why := marked(m.Labels, exempt.labels); why != "" {
		return why
	}
	if why := marked(m.Annotations, exempt.annotations); why != "" {
		return why
	}
	if tool := lifecycle.MarkedBy(kind, m); tool != "" { // A copy of a mark is enough here, because in doubt an object is used.
		return tool + " applied it"
	}
	return ""
}

// marked returns the reason of the first mark that is among the values.
func marked(values, marks map[string]string) string {
	for _, mark := range slices.Sorted(maps.Keys(marks)) {
		key, want, exact := strings.Cut(mark, "=")
		if value, ok := values[key]; ok && (!exact || value == want) {
			return marks[mark]
		}
	}
	return ""
}

// ExemptTypes returns the types of Secrets that are exempt, with the reason. The type of a Secret is not part of its metadata, but a list
// or watch of metadata can select it with the field selector "type=...".
func ExemptTypes() map[string]string { return maps.Clone(exempt.types) }
