// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
)

var supportedResources = []string{gc.ResourceJobs, gc.ResourcePods}

// neverResources are resources, kinds and short names, in lower case, that are too dangerous to delete.
var neverResources = sets.New(
	"namespaces", "namespace", "ns",
	"nodes", "node", "no",
	"persistentvolumes", "persistentvolume", "pv",
	"persistentvolumeclaims", "persistentvolumeclaim", "pvc",
	"serviceaccounts", "serviceaccount", "sa",
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
	"leases", "lease",
	"events", "event", "ev",
	"storageclasses", "storageclass", "sc",
	"priorityclasses", "priorityclass", "pc",
	"cleanuppolicies", "cleanuppolicy", "cup",
	"clustercleanuppolicies", "clustercleanuppolicy", "ccup",
	"storedcleanuppolicies", "storedcleanuppolicy",
	"storedclustercleanuppolicies", "storedclustercleanuppolicy",
)

// neverGroups are API groups whose resources policies cannot name: permissions, API machinery, cluster-scoped kinds, other aggregated
// servers, and Winnow's own.
var neverGroups = []string{
	"rbac.authorization.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io", "admissionregistration.k8s.io",
	"coordination.k8s.io", "events.k8s.io", "storage.k8s.io", "scheduling.k8s.io", "node.k8s.io", "certificates.k8s.io",
	"flowcontrol.apiserver.k8s.io", "metrics.k8s.io", "custom.metrics.k8s.io", "external.metrics.k8s.io",
	gc.GroupName, "internal." + gc.GroupName,
}

// resources returns the resources that a rule or a ceiling names, or the default.
func resources(named []string) sets.Set[string] {
	if len(named) == 0 {
		return sets.New(gc.DefaultResources()...)
	}
	return sets.New(named...)
}

func validateResources(resources []string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, r := range resources {
		path := path.Index(i)
		switch reason := refusal(r); {
		case reason != "":
			errs = append(errs, field.Invalid(path, r, reason))
		case slices.Contains(resources[:i], r):
			err := field.Duplicate(path, r)
			err.Detail = "name each resource once"
			errs = append(errs, err)
		}
	}
	return errs
}

// refusal returns why a policy cannot name a resource, and what to write instead; empty if it can.
func refusal(r string) string {
	const form = `supported resources are "` + gc.ResourceJobs + `" and "` + gc.ResourcePods + `"`
	switch {
	case slices.Contains(supportedResources, r):
		return ""
	case strings.TrimSpace(r) == "":
		return "must not be empty; " + form
	case strings.Contains(r, "*"):
		return "wildcards are not allowed: kinds that are installed later would be deleted too; " + form
	}
	if meant := meant(r); meant != "" {
		return fmt.Sprintf("%s; did you mean %q?", form, meant)
	}
	if isNever(r) {
		return "is never deleted by Winnow; " + form
	}
	return "is not supported; " + form
}

var apiVersion = regexp.MustCompile(`^v[0-9]+((alpha|beta)[0-9]+)?$`)

// meant returns the supported resource for another spelling of it ("Job", "batch/v1", "pods.v1", "po"), or empty.
func meant(r string) string {
	words := words(r)
	words = slices.DeleteFunc(words, func(w string) bool { return apiVersion.MatchString(w) || w == "core" })
	allOf := func(known ...string) bool {
		return len(words) > 0 && sets.New(known...).HasAll(words...)
	}
	switch {
	case allOf("job", "jobs", "batch"):
		return gc.ResourceJobs
	case allOf("pod", "pods", "po"):
		return gc.ResourcePods
	}
	return ""
}

func isNever(r string) bool {
	r = strings.ToLower(r)
	if slices.ContainsFunc(neverGroups, func(group string) bool {
		return strings.HasSuffix(r, "."+group) || strings.HasPrefix(r, group+"/")
	}) {
		return true
	}
	return neverResources.HasAny(words(r)...)
}

// words splits at the separators between a resource, a version and a group.
func words(r string) []string {
	return strings.FieldsFunc(strings.ToLower(r), func(c rune) bool { return !unicode.IsLetter(c) && !unicode.IsDigit(c) })
}
