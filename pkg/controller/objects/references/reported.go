// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package references

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/winnow-dev/winnow/pkg/expressions"
)

// Reported returns the Reader that finds the PersistentVolumeClaims, ServiceAccounts and Services to which objects of a resource of
// Kubernetes itself refer. It is nil if they refer to none, and for custom resources. It is for reports: nothing is deleted by what it
// finds.
func Reported(resource string) *Reader { return reportedReaders[resource] }

// ReportedUndeclared returns the Reader that finds the same in custom resources, as Undeclared finds ConfigMaps and Secrets.
func ReportedUndeclared() *Reader {
	r := Undeclared()
	r.of = reported
	return r
}

var reportedReaders = func() map[string]*Reader {
	out := make(map[string]*Reader, len(reportedTable))
	for resource, rules := range reportedTable {
		r := fromRules(rules)
		r.of = 0
		for _, rule := range rules {
			r.of |= rule.to
		}
		r.fields = expressions.Union(r.fields, [][]string{{"metadata", "labels"}}, alsoRead[resource])
		out[resource] = r
	}
	return out
}()

// alsoRead are the fields that reports read besides references: whether a Pod runs, and which Services select the Pods of a template.
var alsoRead = func() map[string][][]string {
	out := map[string][][]string{"pods": {{"status", "phase"}}}
	for _, field := range ContainerStatuses {
		out["pods"] = append(out["pods"], []string{"status", field, "state"})
	}
	for resource, template := range PodTemplates {
		out[resource] = [][]string{append(slices.Clone(template), "metadata", "labels")}
	}
	return out
}()

// ContainerStatuses are the fields of the status of a Pod that say whether its containers run.
var ContainerStatuses = []string{"initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses"}

// PodTemplates are the paths of the template for Pods in resources of Kubernetes.
var PodTemplates = map[string][]string{
	"podtemplates":             {"template"},
	"replicationcontrollers":   {"spec", "template"},
	"daemonsets.apps":          {"spec", "template"},
	"deployments.apps":         {"spec", "template"},
	"replicasets.apps":         {"spec", "template"},
	"statefulsets.apps":        {"spec", "template"},
	"jobs.batch":               {"spec", "template"},
	"cronjobs.batch":           {"spec", "jobTemplate", "spec", "template"},
	"controllerrevisions.apps": {"data", "spec", "template"}, // of StatefulSets and DaemonSets
}

// reportedTable has the rules of each resource. A rule with a kind says what it is for as well. A test compares it with the types of
// k8s.io/api.
var reportedTable = map[string][]rule{
	"pods":                     under("spec", reportedPodSpec),
	"podtemplates":             under("template.spec", reportedPodSpec),
	"replicationcontrollers":   under("spec.template.spec", reportedPodSpec),
	"daemonsets.apps":          under("spec.template.spec", reportedPodSpec),
	"deployments.apps":         under("spec.template.spec", reportedPodSpec),
	"replicasets.apps":         under("spec.template.spec", reportedPodSpec),
	"jobs.batch":               under("spec.template.spec", reportedPodSpec),
	"cronjobs.batch":           under("spec.jobTemplate.spec.template.spec", reportedPodSpec),
	"controllerrevisions.apps": under("data.spec.template.spec", reportedPodSpec),
	"statefulsets.apps": append(under("spec.template.spec", reportedPodSpec),
		rule{path: parse("spec.serviceName"), to: Services},
		rule{path: parse("spec.volumeClaimTemplates[].metadata.name"), to: PersistentVolumeClaims, how: inClaimTemplate},
	),

	// The source of a claim is copied until the claim is bound.
	"persistentvolumeclaims": {
		{path: parse("spec.dataSource.name"), to: PersistentVolumeClaims, kind: true, unless: parse("spec.volumeName")},
		{
			path: parse("spec.dataSourceRef.name"), to: PersistentVolumeClaims, kind: true, namespace: "namespace",
			unless: parse("spec.volumeName"),
		},
	},

	"rolebindings.rbac.authorization.k8s.io":        subjects,
	"clusterrolebindings.rbac.authorization.k8s.io": subjects,
	// The token of a ServiceAccount can be used outside the cluster.
	"secrets": {{path: path{{key: "metadata"}, {key: "annotations"}, {key: corev1.ServiceAccountNameKey}}, to: ServiceAccounts}},

	"ingresses.networking.k8s.io": {
		{path: parse("spec.defaultBackend.service.name"), to: Services},
		{path: parse("spec.rules[].http.paths[].backend.service.name"), to: Services},
	},
	"validatingwebhookconfigurations.admissionregistration.k8s.io": {
		{path: parse("webhooks[].clientConfig.service.name"), to: Services, namespace: "namespace"},
	},
	"mutatingwebhookconfigurations.admissionregistration.k8s.io": {
		{path: parse("webhooks[].clientConfig.service.name"), to: Services, namespace: "namespace"},
	},
	"customresourcedefinitions.apiextensions.k8s.io": {
		{path: parse("spec.conversion.webhook.clientConfig.service.name"), to: Services, namespace: "namespace"},
	},
	"apiservices.apiregistration.k8s.io": {{path: parse("spec.service.name"), to: Services, namespace: "namespace"}},
}

// reportedPodSpec has the rules of a PodSpec. The claim of an ephemeral volume has the Pod as its owner.
var reportedPodSpec = []rule{
	{path: parse("volumes[].persistentVolumeClaim.claimName"), to: PersistentVolumeClaims},
	{path: parse("serviceAccountName"), to: ServiceAccounts},
	{path: parse("subdomain"), to: Services},
}

// subjects has the rules of bindings of roles.
var subjects = []rule{
	{path: parse("subjects[].name"), to: ServiceAccounts, kind: true, namespace: "namespace"},
	{path: parse("subjects[].name"), to: ServiceAccounts, how: inUser},
}
