// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package gc

import (
	"strings"
	"testing"
)

func TestResourceRefusal(t *testing.T) {
	for _, r := range []string{
		"jobs.batch", "pods", "configmaps", "secrets", "deployments.apps", "workflows.argoproj.io", "jobs.batch.volcano.sh", "jobs.example.com",
		"events.example.com", "roles.example.com", "pods.example.com", // Custom resources, not the ones of Kubernetes.
		"events", "csistoragecapacities.storage.k8s.io", "workloads.scheduling.k8s.io", "podcertificaterequests.certificates.k8s.io",
		// Groups are compared whole.
		"volumesnapshots.snapshot.storage.k8s.io", "roles.x.rbac.authorization.k8s.io", "controllerrevisions.kruise.apps", "leases.x.coordination.k8s.io",
		"storageclasses.x.storage.k8s.io", "things.x.apiextensions.k8s.io", "things.x.metrics.k8s.io", "runs.x.gc.winnow.dev", "things.x.admissionregistration.k8s.io",
		"things.x.apiregistration.k8s.io", "things.x.scheduling.k8s.io", "things.x.node.k8s.io", "things.x.certificates.k8s.io", "events.x.events.k8s.io",
		"things.x.flowcontrol.apiserver.k8s.io",
	} {
		if why := ResourceRefusal(r); why != "" {
			t.Errorf("%q is refused: %s", r, why)
		}
	}
	const jobs, pods, never, form = `did you mean "jobs.batch"?`, `did you mean "pods"?`, "is never deleted by Winnow", `name the resource as "resource.group"`
	for want, all := range map[string][]string{
		jobs: {"jobs", "Job", "job.batch", "batch/v1", "jobs.v1.batch", "batch/v1/jobs", "Jobs.Batch", " jobs.batch"},
		pods: {"pod", "Pods", "po", "pods.v1", "v1/pods", "pods.core", "pods."},
		never: {
			"namespaces", "Namespace", "namespaces.v1", "nodes", "node.core", "v1/nodes", "PersistentVolume", "pvc", "serviceaccounts", "Lease",
			"controllerrevisions.apps", "controllerrevisions.v1.apps", "apps/v1/controllerrevisions", "ControllerRevision", "priorityclass", "sc",
			"storageclasses.storage.k8s.io", "storage.k8s.io/v1/csinodes", "priorityclasses.scheduling.k8s.io", "runtimeclasses.v1.node.k8s.io",
			"certificatesigningrequests.certificates.k8s.io", "csr", "flowschemas.flowcontrol.apiserver.k8s.io", "pods.custom.metrics.k8s.io",
			"rolebindings.rbac.authorization.k8s.io", "leases.v1.coordination.k8s.io", "storageclass.storage.k8s.io",
			"roles.rbac.authorization.k8s.io", "clusterroles", "rbac.authorization.k8s.io/v1", "apiservices.apiregistration.k8s.io",
			"customresourcedefinitions.apiextensions.k8s.io", "customresourcedefinitions.v1.apiextensions.k8s.io", "crd",
			"validatingwebhookconfigurations", "mutatingadmissionpolicies.admissionregistration.k8s.io", "leases.coordination.k8s.io",
			"pods.metrics.k8s.io", "cleanuppolicies.gc.winnow.dev", "cup", "ccup", "rlc", "ClusterCleanupPolicy", "cand",
			"cleanupcandidates.gc.winnow.dev",
			"resourcelifecycles.gc.winnow.dev", "storedcleanuppolicies.internal.gc.winnow.dev", "storedresourcelifecycles", "usagemarks",
			"cleanuprecords", "crec", "recordchunks.internal.gc.winnow.dev",
			"cleanupcopies", "ccopy", "objectcopies.internal.gc.winnow.dev",
		},
		never + `; "kubectl winnow unused pvc" reports`: {"persistentvolumeclaims", "PersistentVolumeClaim", "pvc"},
		never + `; "kubectl winnow unused sa" reports`:  {"serviceaccounts", "serviceaccounts.v1"},
		`did you mean "workflows.argoproj.io"?`:         {"workflows.v1alpha1.argoproj.io", "Workflows.argoproj.io", "workflows.argoproj.io "},
		`did you mean "events"?`:                        {"Event", "events.v1", "v1/events", "ev", "events.events.k8s.io", "events.v1.events.k8s.io"},
		`did you mean "configmaps"?`:                    {"ConfigMaps", "configmaps.v1", "configmaps.core"},
		"must not be empty; " + form:                    {"", "  "},
		"wildcards are not allowed; " + form:            {"*", "*.batch"},
		"needs an API group; " + form:                   {"workflow", "Workflow", "workflows", "v1", "cm"},
		"is not the name of a resource":                 {"pods/status", "argoproj.io/v1alpha1", "..", "workflows_argoproj.io", "workflows argoproj.io"},
		"Winnow reads these objects":                    {"cronjobs.batch", "resourcequotas", "cronjobs.v1.batch"},
	} {
		for _, r := range all {
			if why := ResourceRefusal(r); !strings.Contains(why, want) {
				t.Errorf("%q: got %q, want %q", r, why, want)
			}
		}
	}
}
