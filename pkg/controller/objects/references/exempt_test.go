// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package references

import (
	"maps"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// sources are the reports of objects that were taken for unused, and the documents that say how they are used.
const (
	korConfigMaps = "https://github.com/yonahd/kor/blob/main/pkg/kor/exceptions/configmaps/configmaps.json"
	korSecrets    = "https://github.com/yonahd/kor/blob/main/pkg/kor/exceptions/secrets/secrets.json"
	sidecars      = "https://github.com/k8sgpt-ai/k8sgpt/pull/1602"
	argoCD        = "https://argo-cd.readthedocs.io/en/stable/operator-manual/declarative-setup/"
	clusterAPI    = "https://cluster-api.sigs.k8s.io/tasks/certs/using-custom-certificates"
	reflector     = "https://github.com/emberstack/kubernetes-reflector#readme"
	replicator    = "https://github.com/mittwald/kubernetes-replicator#readme"
	grafana       = "https://github.com/grafana/helm-charts/tree/main/charts/grafana#sidecar-for-dashboards"
)

func TestExempt(t *testing.T) {
	type values = map[string]string
	tested := map[string]bool{}
	for _, tc := range []struct {
		source      string
		mark        string // of exempt, and how the object has it
		secretType  string
		name        string
		labels      values
		annotations values
		want        string
	}{
		{korConfigMaps, "kube-root-ca.crt", "", "kube-root-ca.crt", nil, nil, "Kubernetes creates it in every namespace"},
		{korConfigMaps, "openshift-service-ca.crt", "", "openshift-service-ca.crt", nil, nil, "OpenShift creates it in every namespace"},
		{"https://istio.io/latest/docs/ops/diagnostic-tools/proxy-cmd/", "istio-ca-root-cert", "", "istio-ca-root-cert", nil, nil, "Istio creates it in every namespace"},
		{korConfigMaps, "extension-apiserver-authentication", "", "extension-apiserver-authentication", nil, nil, "API servers read it"},
		{korConfigMaps, "kube-apiserver-legacy-service-account-token-tracking", "", "kube-apiserver-legacy-service-account-token-tracking", nil, nil, "Kubernetes reads it"},
		{korConfigMaps, "cluster-info", "", "cluster-info", nil, nil, "kubeadm reads it"},
		{korConfigMaps, "kubeadm-config", "", "kubeadm-config", nil, nil, "kubeadm reads it"},
		{korConfigMaps, "kubelet-config", "", "kubelet-config", nil, nil, "kubeadm reads it"},
		{"https://github.com/yonahd/orphaned-configmaps/issues/2", "aws-auth", "", "aws-auth", nil, nil, "EKS reads it"},
		{korConfigMaps, "cluster-autoscaler-status", "", "cluster-autoscaler-status", nil, nil, "the cluster autoscaler writes it"},
		{korConfigMaps, "ingress-uid", "", "ingress-uid", nil, nil, "the ingress controller of GKE reads it"},
		{korConfigMaps, "kubernetes-dashboard-settings", "", "kubernetes-dashboard-settings", nil, nil, "the Kubernetes dashboard reads it"},
		{korSecrets, "kubernetes-dashboard-certs", "", "kubernetes-dashboard-certs", nil, nil, "the Kubernetes dashboard reads it"},
		{korSecrets, "kubernetes-dashboard-csrf", "", "kubernetes-dashboard-csrf", nil, nil, "the Kubernetes dashboard reads it"},
		{korSecrets, "kubernetes-dashboard-key-holder", "", "kubernetes-dashboard-key-holder", nil, nil, "the Kubernetes dashboard reads it"},
		{"https://argo-cd.readthedocs.io/en/stable/getting_started/", "argocd-initial-admin-secret", "", "argocd-initial-admin-secret", nil, nil, "Argo CD reads it"},

		{"https://kubernetes.io/docs/concepts/configuration/secret/#secret-types", "kubernetes.io/service-account-token", "kubernetes.io/service-account-token", "t", nil, nil, "it is the token of a ServiceAccount"},
		{korSecrets, "bootstrap.kubernetes.io/token", "bootstrap.kubernetes.io/token", "bootstrap-token-abcdef", nil, nil, "it is a bootstrap token"},
		{"https://github.com/derailed/popeye/issues/30", "helm.sh/release.v1", "helm.sh/release.v1", "sh.helm.release.v1.web.v1", nil, nil, "it is a release of Helm"},
		{clusterAPI, "cluster.x-k8s.io/secret", "cluster.x-k8s.io/secret", "c-kubeconfig", nil, nil, "Cluster API finds it by name"},
		{"https://istio.io/latest/docs/tasks/security/cert-management/plugin-ca-cert/", "istio.io/ca-root", "istio.io/ca-root", "istio-ca-secret", nil, nil, "Istio finds it by name"},

		{"https://timoni.sh/concepts/", "timoni.sh/instance", "timoni.sh/instance", "timoni.web", nil, nil, "it is an instance of Timoni"},
		{"https://velero.io/docs/main/file-system-backup/", "velero-repo-credentials", "", "velero-repo-credentials", nil, nil, "Velero decrypts backups with it"},
		{"https://helm.sh/docs/topics/advanced/#configmap-storage-backend", "owner=helm", "", "sh.helm.release.v1.web.v1", values{"owner": "helm"}, nil, "it is a release of Helm"},
		{"https://github.com/derailed/popeye/issues/30", "OWNER=TILLER", "", "web.v1", values{"OWNER": "TILLER"}, nil, "it is a release of Helm"},
		{argoCD, "argocd.argoproj.io/secret-type", "", "repo-1", values{"argocd.argoproj.io/secret-type": "repository"}, nil, "Argo CD finds it by label"},
		{argoCD, "app.kubernetes.io/part-of=argocd", "", "argocd-cm", values{"app.kubernetes.io/part-of": "argocd"}, nil, "Argo CD reads it"},
		{"https://github.com/bitnami-labs/sealed-secrets#readme", "sealedsecrets.bitnami.com/sealed-secrets-key", "kubernetes.io/tls", "sealed-secrets-keyx7", values{"sealedsecrets.bitnami.com/sealed-secrets-key": "active"}, nil, "Sealed Secrets finds it by label"},
		{"https://istio.io/latest/docs/setup/install/multicluster/", "istio/multiCluster", "", "istio-remote-secret-west", values{"istio/multiCluster": "true"}, nil, "Istio finds it by label"},
		{clusterAPI, "cluster.x-k8s.io/cluster-name", "kubernetes.io/tls", "cluster1-ca", values{"cluster.x-k8s.io/cluster-name": "cluster1"}, nil, "Cluster API finds it by name"},
		{"https://velero.io/docs/main/custom-plugins/#plugin-configuration", "velero.io/plugin-config", "", "restic-config", values{"velero.io/plugin-config": ""}, nil, "Velero finds it by label"},
		{sidecars, "grafana_dashboard", "", "board", values{"grafana_dashboard": "1"}, nil, "a sidecar of Grafana finds it by label"},
		{sidecars, "grafana_datasource", "", "source", values{"grafana_datasource": "1"}, nil, "a sidecar of Grafana finds it by label"},
		{grafana, "grafana_alert", "", "alert", values{"grafana_alert": "1"}, nil, "a sidecar of Grafana finds it by label"},
		{grafana, "grafana_notifier", "", "notifier", values{"grafana_notifier": "1"}, nil, "a sidecar of Grafana finds it by label"},
		{sidecars, "prometheus_rule", "", "rule", values{"prometheus_rule": "1"}, nil, "a sidecar of Prometheus finds it by label"},
		{sidecars, "fluentd_config", "", "config", values{"fluentd_config": "1"}, nil, "a sidecar of Fluentd finds it by label"},
		{sidecars, "k8sgpt.ai/dynamically-loaded", "", "other", values{"k8sgpt.ai/dynamically-loaded": "true"}, nil, "a sidecar finds it by label"},
		{"https://developer.konghq.com/operator/reference/secrets", "konghq.com/credential", "", "key", values{"konghq.com/credential": "key-auth"}, nil, "Kong finds it by label"},
		{"https://developer.konghq.com/operator/reference/secrets", "konghq.com/secret", "", "cert", values{"konghq.com/secret": "true"}, nil, "Kong finds it by label"},
		{"https://external-secrets.io/latest/provider/webhook/", "external-secrets.io/type=webhook", "", "hook", values{"external-secrets.io/type": "webhook"}, nil, "External Secrets finds it by label"},

		{"https://strimzi.io/docs/operators/latest/deploying#proc-installing-your-own-ca-certificates-str", "strimzi.io/cluster", "", "my-cluster-cluster-ca", values{"strimzi.io/cluster": "my-cluster", "strimzi.io/kind": "Kafka"}, nil, "Strimzi finds it by name"},
		{"https://kubernetes.io/docs/reference/labels-annotations-taints/#applyset-kubernetes-io-id", "applyset.kubernetes.io/id", "", "web", values{"applyset.kubernetes.io/id": "applyset-a-v1"}, nil, "kubectl keeps in it what an ApplySet has"},
		{"https://kubernetes.io/docs/reference/labels-annotations-taints/#applyset-kubernetes-io-part-of", "", "", "config", values{"applyset.kubernetes.io/part-of": "applyset-a-v1"}, nil, `ApplySet "applyset-a-v1" applied it`},
		{"https://carvel.dev/kapp/docs/latest/state-namespace/", "", "", "config-ver-1", values{"kapp.k14s.io/app": "1586387512"}, nil, `kapp app "1586387512" applied it`},
		{"https://carvel.dev/kapp/docs/latest/state-namespace/", "kapp.k14s.io/is-app", "", "web", values{"kapp.k14s.io/is-app": ""}, nil, "kapp keeps in it what an app has"},
		{"https://carvel.dev/kapp/docs/latest/state-namespace/", "kapp.k14s.io/is-app-change", "", "web-change-x7", values{"kapp.k14s.io/is-app-change": ""}, nil, "kapp keeps in it what an app has"},
		{"https://github.com/kubernetes-sigs/cli-utils#readme", "cli-utils.sigs.k8s.io/inventory-id", "", "inventory-1", values{"cli-utils.sigs.k8s.io/inventory-id": "a"}, nil, "kpt keeps in it what it has applied"},
		{"https://developer.hashicorp.com/terraform/language/backend/kubernetes", "tfstate=true", "", "tfstate-default-web", values{"tfstate": "true", "tfstateWorkspace": "default"}, nil, "it is a state of Terraform"},
		{"https://jenkinsci.github.io/kubernetes-credentials-provider-plugin/", "jenkins.io/credentials-type", "", "login", values{"jenkins.io/credentials-type": "usernamePassword"}, nil, "Jenkins finds it by label"},
		{"https://github.com/open-policy-agent/kube-mgmt#readme", "openpolicyagent.org/policy", "", "rules", values{"openpolicyagent.org/policy": "rego"}, nil, "Open Policy Agent finds it by label"},
		{"https://github.com/open-policy-agent/kube-mgmt#readme", "openpolicyagent.org/data", "", "teams", values{"openpolicyagent.org/data": "opa"}, nil, "Open Policy Agent finds it by label"},
		{"https://kyverno.io/docs/policy-types/cluster-policy/generate/", "generate.kyverno.io/clone-source", "", "source", values{"generate.kyverno.io/clone-source": ""}, nil, "it is copied to other namespaces"},
		{"https://github.com/elastic/cloud-on-k8s/blob/main/pkg/controller/common/reconciler/secret.go", "eck.k8s.elastic.co/owner-kind", "", "logs-es-elastic-user", values{"eck.k8s.elastic.co/owner-kind": "Elasticsearch"}, nil, "Elastic Cloud on Kubernetes finds it by name"},

		{"https://github.com/kubernetes/kubernetes/pull/117558", "control-plane.alpha.kubernetes.io/leader", "", "lock", nil, values{"control-plane.alpha.kubernetes.io/leader": "{}"}, "it elects a leader"},
		{reflector, "reflector.v1.k8s.emberstack.com/reflection-allowed", "", "source", nil, values{"reflector.v1.k8s.emberstack.com/reflection-allowed": "true"}, "it is copied to other namespaces"},
		{replicator, "replicator.v1.mittwald.de/replicate-to", "", "source", nil, values{"replicator.v1.mittwald.de/replicate-to": "a,b"}, "it is copied to other namespaces"},
		{replicator, "replicator.v1.mittwald.de/replicate-to-matching", "", "source", nil, values{"replicator.v1.mittwald.de/replicate-to-matching": "a=b"}, "it is copied to other namespaces"},
		{replicator, "replicator.v1.mittwald.de/replication-allowed", "", "source", nil, values{"replicator.v1.mittwald.de/replication-allowed": "true"}, "it is copied to other namespaces"},
		{"https://github.com/config-syncer/config-syncer#readme", "kubed.appscode.com/sync", "", "source", nil, values{"kubed.appscode.com/sync": ""}, "it is copied to other namespaces"},
		{"https://cert-manager.io/docs/concepts/ca-injector/#injecting-ca-data-from-a-secret-resource", "cert-manager.io/allow-direct-injection", "", "ca", nil, values{"cert-manager.io/allow-direct-injection": "true"}, "cert-manager injects it"},
		{"https://github.com/kubernetes-sigs/cli-utils#readme", "", "", "config", nil, values{"config.k8s.io/owning-inventory": "a"}, `kpt inventory "a" applied it`},
		{"https://github.com/zitadel/zitadel-charts/pull/506", "helm.sh/resource-policy=keep", "", "iam-admin", nil, values{"helm.sh/resource-policy": "keep"}, "Helm must keep it"},
		{"https://github.com/redhat-appstudio/infra-deployments/pull/3472", "argocd.argoproj.io/sync-options", "", "signing-secrets", nil, values{"argocd.argoproj.io/sync-options": "Prune=false"}, "it has options of Argo CD"},
		{"https://fluxcd.io/flux/components/kustomize/kustomizations/#prune", "kustomize.toolkit.fluxcd.io/prune=disabled", "", "keep", nil, values{"kustomize.toolkit.fluxcd.io/prune": "disabled"}, "Flux must keep it"},
		{"https://kubernetes.io/docs/reference/labels-annotations-taints/#kubernetes-io-service-account-name", "kubernetes.io/service-account.name", "", "token", nil, values{"kubernetes.io/service-account.name": "default"}, "it is the token of a ServiceAccount"},

		{"DESIGN.md, section 7", "", "", "web", nil, values{"meta.helm.sh/release-name": "web", "meta.helm.sh/release-namespace": "team-a"}, `Helm release "team-a/web" applied it`},
		{"a value that is another one", "", "Opaque", "web", values{"owner": "team-a", "app.kubernetes.io/part-of": "shop"}, values{"example.com/a": "b"}, ""},
	} {
		t.Run(tc.source+" "+tc.name, func(t *testing.T) {
			tested[tc.mark] = true
			m := &metav1.ObjectMeta{Namespace: "team-a", Name: tc.name, Labels: tc.labels, Annotations: tc.annotations}
			kind := schema.GroupKind{Kind: "ConfigMap"}
			if got := Exempt(kind, m, tc.secretType); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
			m.OwnerReferences = []metav1.OwnerReference{{Kind: "Certificate", Name: "web"}}
			if got := Exempt(kind, m, tc.secretType); got != "it has an owner" {
				t.Errorf("with an owner: got %q", got)
			}
		})
	}
	for _, marks := range []map[string]string{exempt.types, exempt.names, exempt.labels, exempt.annotations} {
		for mark := range marks {
			if !tested[mark] {
				t.Errorf("no case of %s", mark)
			}
		}
	}
	if got := ExemptTypes(); !maps.Equal(got, exempt.types) {
		t.Errorf("got %v", got)
	}
}
