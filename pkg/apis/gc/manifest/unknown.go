// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/pkg/apis/gc/validation"
)

// unknownField returns the error about an unknown field, with what was probably meant.
func unknownField(t reflect.Type, path *field.Path, name string) error {
	if now := NewName(path.String()); now != "" {
		return fmt.Errorf("unknown field %q: it was renamed to %q", path, now)
	}
	return fmt.Errorf("unknown field %q%s", path, meantField(t, path, name))
}

// meantField says what was probably meant by an unknown field of a type; empty if that is not clear.
func meantField(t reflect.Type, path *field.Path, name string) string {
	var known []string
	for _, f := range fieldsOf(t) {
		known = append(known, jsonName(f))
	}
	if t == selectorType && strings.HasSuffix(path.String(), ".namespaceSelector."+name) && slices.Contains(namesOfNamespaces, name) {
		return "; did you mean matchExpressions: [{key: kubernetes.io/metadata.name, operator: In, values: [...]}]?"
	}
	for _, meant := range foreign[name] {
		if slices.Contains(known, meant) {
			return fmt.Sprintf("; did you mean %q%s?", meant, withUnit[name])
		}
	}
	if meant := validation.Nearest(name, known); meant != "" {
		return fmt.Sprintf("; did you mean %q?", meant)
	}
	if t == selectorType {
		return fmt.Sprintf("; did you mean matchLabels: {%s: ...}?", name)
	}
	return elsewhere(t, name)
}

var selectorType = reflect.TypeFor[metav1.LabelSelector]()

// namesOfNamespaces are fields by which other projects select namespaces. A label selector selects them by the label that Kubernetes sets.
var namesOfNamespaces = []string{"name", "names", "matchNames", "namespace", "namespaces"}

// foreign are fields of Jobs, CronJobs and other projects, with the fields of Winnow that say the same.
var foreign = map[string][]string{
	"ttlSecondsAfterFinished":    {"ttlAfterFinished", "ttl"},
	"activeDeadlineSeconds":      {"activeDeadline"},
	"successfulJobsHistoryLimit": {"capacity"},
	"failedJobsHistoryLimit":     {"capacity"},
	"historyLimit":               {"capacity"},
	"labelSelector":              {"selector"},
	"dryRun":                     {"mode"},
}

// withUnit is for those of foreign that are numbers of seconds.
var withUnit = map[string]string{
	"ttlSecondsAfterFinished": `, with a unit, such as "1h"`,
	"activeDeadlineSeconds":   `, with a unit, such as "1h"`,
}

// places are the parts of policies, in the order in which elsewhere looks for a field.
var places = []struct {
	part reflect.Type
	name string
}{
	{reflect.TypeFor[v1alpha1.CleanupPolicySpec](), "the spec of a policy"},
	{reflect.TypeFor[v1alpha1.CleanupRule](), "a rule, in spec.rules"},
	{reflect.TypeFor[v1alpha1.ClusterCleanupPolicySpec](), "the spec of a ClusterCleanupPolicy"},
	{reflect.TypeFor[v1alpha1.Guardrails](), "spec.guardrails of a ClusterCleanupPolicy"},
	{reflect.TypeFor[v1alpha1.Capacity](), "capacity"},
	{reflect.TypeFor[v1alpha1.WaitFor](), "waitFor of a rule"},
	{reflect.TypeFor[v1alpha1.HoldAbove](), "spec.guardrails.holdAbove of a ClusterCleanupPolicy"},
}

// elsewhere says which other part of a policy has a field; empty if none has, or if t is no part of a policy.
func elsewhere(t reflect.Type, name string) string {
	ofPolicy := t == reflect.TypeFor[v1alpha1.CleanupPolicy]() || t == reflect.TypeFor[v1alpha1.ClusterCleanupPolicy]()
	for _, p := range places {
		ofPolicy = ofPolicy || p.part == t
	}
	if !ofPolicy {
		return ""
	}
	for _, p := range places {
		if _, has := fieldOf(p.part, name); has {
			return "; it is a field of " + p.name
		}
	}
	return ""
}
