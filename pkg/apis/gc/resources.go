// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package gc

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
)

const (
	// ResourceAll stands in a rule of a cluster policy for all resources that have a lifecycle.
	ResourceAll = "*"

	// ResourceForm says how to name a resource.
	ResourceForm = `name the resource as "resource.group", for example "workflows.argoproj.io"`
)

// neverGroups are API groups whose resources policies cannot name: permissions, API machinery, other aggregated servers, and Winnow's own.
// A group with a longer name, such as "snapshot.metrics.k8s.io", is another group.
var neverGroups = sets.New(
	"rbac.authorization.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io", "admissionregistration.k8s.io",
	"flowcontrol.apiserver.k8s.io", "metrics.k8s.io", "custom.metrics.k8s.io", "external.metrics.k8s.io",
	GroupName, "internal."+GroupName,
)

// neverResources are the resources of other groups that are too dangerous to delete, or cluster-scoped. Each line has the plural, the kind
// in lower case and the short name, which people write too. A custom resource in another group may share a name.
var neverResources = map[string]sets.Set[string]{
	"": sets.New(
		"namespaces", "namespace", "ns",
		"nodes", "node", "no",
		"persistentvolumes", "persistentvolume", "pv",
		"persistentvolumeclaims", "persistentvolumeclaim", "pvc",
		"serviceaccounts", "serviceaccount", "sa",
	),
	"apps": sets.New("controllerrevisions", "controllerrevision"),
	"certificates.k8s.io": sets.New(
		"certificatesigningrequests", "certificatesigningrequest", "csr",
		"clustertrustbundles", "clustertrustbundle",
	),
	"coordination.k8s.io": sets.New("leases", "lease"),
	"node.k8s.io":         sets.New("runtimeclasses", "runtimeclass"),
	"scheduling.k8s.io":   sets.New("priorityclasses", "priorityclass", "pc"),
	"storage.k8s.io": sets.New(
		"storageclasses", "storageclass", "sc",
		"csidrivers", "csidriver", "csinodes", "csinode",
		"volumeattachments", "volumeattachment",
		"volumeattributesclasses", "volumeattributesclass", "vac",
	),
}

// neverNames are the names of resources that are never deleted, for names without a group.
var neverNames = sets.New(
	"roles", "role", "rolebindings", "rolebinding",
	"clusterroles", "clusterrole", "clusterrolebindings", "clusterrolebinding",
	"customresourcedefinitions", "customresourcedefinition", "crds", "crd",
	"apiservices", "apiservice",
	"mutatingwebhookconfigurations", "mutatingwebhookconfiguration",
	"validatingwebhookconfigurations", "validatingwebhookconfiguration",
	"mutatingadmissionpolicies", "mutatingadmissionpolicy",
	"mutatingadmissionpolicybindings", "mutatingadmissionpolicybinding",
	"validatingadmissionpolicies", "validatingadmissionpolicy",
	"validatingadmissionpolicybindings", "validatingadmissionpolicybinding",
	"cleanuppolicies", "cleanuppolicy", "cup",
	"clustercleanuppolicies", "clustercleanuppolicy", "ccup",
	"resourcelifecycles", "resourcelifecycle", "rlc",
	"cleanupcandidates", "cleanupcandidate", "cand",
	"cleanupreviews", "cleanupreview",
	"clustercleanupreviews", "clustercleanupreview",
	"cleanuprecords", "cleanuprecord", "crec",
	"cleanupcopies", "cleanupcopy", "ccopy",
	"storedcleanuppolicies", "storedcleanuppolicy",
	"storedclustercleanuppolicies", "storedclustercleanuppolicy",
	"storedresourcelifecycles", "storedresourcelifecycle",
	"usagemarks",
	"recordchunks", "recordchunk",
	"objectcopies", "objectcopy",
).Union(allOf(neverResources))

func allOf(resources map[string]sets.Set[string]) sets.Set[string] {
	all := sets.New[string]()
	for _, names := range resources {
		all = all.Union(names)
	}
	return all
}

// coreResources are the resources without a group that can be named.
var coreResources = sets.New(
	ResourcePods, ResourceEvents, "configmaps", "endpoints", "limitranges", "podtemplates", "replicationcontrollers", "secrets", "services",
)

// observedResources are not deleted, because decisions on other objects depend on them: CronJobs own Jobs, and quotas are limits.
var observedResources = sets.New("cronjobs.batch", "resourcequotas")

var apiVersion = regexp.MustCompile(`^v[0-9]+((alpha|beta)[0-9]+)?$`)

// ResourceRefusal returns why neither a policy nor a lifecycle can name a resource, and what to write instead; empty if they can. Whether
// the cluster serves the resource is another question.
func ResourceRefusal(r string) string {
	if r == ResourceJobs || r == ResourcePods {
		return ""
	}
	canonical := canonicalResource(r)
	switch {
	case strings.TrimSpace(r) == "":
		return "must not be empty; " + ResourceForm
	case strings.Contains(r, "*"):
		return "wildcards are not allowed; " + ResourceForm
	case isNever(r, canonical):
		return "is never deleted by Winnow" + whoReports(canonical)
	}
	if meant := meantResource(r); meant != "" {
		return fmt.Sprintf("%s; did you mean %q?", ResourceForm, meant)
	}
	_, group, _ := strings.Cut(canonical, ".")
	switch {
	case len(validation.IsDNS1123Subdomain(canonical)) > 0:
		return "is not the name of a resource; " + ResourceForm
	case observedResources.Has(canonical):
		return "cannot be deleted by policies, because Winnow reads these objects to decide on others"
	case group == "" && !coreResources.Has(canonical):
		return `needs an API group; ` + ResourceForm + `; "kubectl api-resources" shows names and groups`
	case canonical != r:
		return fmt.Sprintf("%s; did you mean %q?", ResourceForm, canonical)
	}
	return ""
}

// whoReports names the command that reports unused objects of a resource that is never deleted; empty if there is none.
func whoReports(canonical string) string {
	switch canonical {
	case "persistentvolumeclaims", "persistentvolumeclaim", "pvc":
		return `; "kubectl winnow unused pvc" reports those that nothing uses`
	case "serviceaccounts", "serviceaccount", "sa":
		return `; "kubectl winnow unused sa" reports those that nothing names`
	}
	return ""
}

// canonicalResource returns "resource.group" in lower case for a name that may contain a version.
func canonicalResource(r string) string {
	resource, group, _ := strings.Cut(strings.ToLower(strings.TrimSpace(r)), ".")
	if first, rest, _ := strings.Cut(group, "."); apiVersion.MatchString(first) || first == "core" && rest == "" {
		group = rest
	}
	return strings.TrimSuffix(resource+"."+group, ".")
}

// isNever reports whether a name is one of a resource that is never deleted, or another spelling of it.
func isNever(r, canonical string) bool {
	resource, group, _ := strings.Cut(canonical, ".")
	if neverGroups.Has(group) || neverResources[group].Has(resource) || group == "" && neverNames.Has(resource) {
		return true
	}
	written := strings.ToLower(strings.TrimSpace(r)) // Perhaps with an apiVersion, such as "v1/nodes".
	before, _, slashed := strings.Cut(written, "/")
	return slashed && (neverGroups.Has(before) || neverNames.HasAny(words(written)...))
}

// meantResource returns jobs.batch, pods or events for another spelling of it ("Job", "batch/v1", "pods.v1", "po"), or empty. The API
// serves Events in two groups, and they are the same objects.
func meantResource(r string) string {
	words := words(strings.ToLower(r))
	words = slices.DeleteFunc(words, func(w string) bool { return apiVersion.MatchString(w) || w == "core" })
	allIn := func(known ...string) bool {
		return len(words) > 0 && sets.New(known...).HasAll(words...)
	}
	switch {
	case allIn("job", "jobs", "batch"):
		return ResourceJobs
	case allIn("pod", "pods", "po"):
		return ResourcePods
	case r != ResourceEvents && (allIn("event", "events", "ev") || canonicalResource(r) == "events.events.k8s.io"):
		return ResourceEvents
	}
	return ""
}

// words splits at the separators between a resource, a version and a group.
func words(r string) []string {
	return strings.FieldsFunc(r, func(c rune) bool { return !unicode.IsLetter(c) && !unicode.IsDigit(c) })
}
