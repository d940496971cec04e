// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestUnusedManyNames: a namespace whose ConfigMaps have more names than Winnow keeps holds its own objects and those that it names in other
// namespaces, and no others, until the ConfigMap with the most names is gone.
func TestUnusedManyNames(t *testing.T) {
	grantReferrers(t)
	crowd, shop := newNamespace(t), newNamespace(t)
	for i := range 8 {
		createConfigMap(t, crowd, fmt.Sprint("names-", i), withNames(i, 30_000, ""))
	}
	createConfigMap(t, crowd, "most-names", withNames(9, 45_000, shop+"/named "+shop+"/later"))
	createConfigMap(t, crowd, "mine")
	createConfigMap(t, shop, "named")
	createConfigMap(t, shop, "unused")
	createUnusedPolicy(t, crowd, unusedAfter("2s"))
	createUnusedPolicy(t, shop, unusedAfter("2s"))
	expectDeletions(t, shop, "configmaps/unused p/unused")
	waitReason(t, shop, "configmaps/named", "InUse", "an object outside the namespace refers to it")
	waitReason(t, crowd, "configmaps/mine", "ReferrersUnknown", "may refer to everything in the namespace: the objects of the namespace have more than 250000 names together")

	createConfigMap(t, shop, "later")
	createConfigMap(t, shop, "new")
	expectDeletions(t, shop, "configmaps/unused p/unused", "configmaps/new p/unused")
	waitReason(t, shop, "configmaps/later", "InUse", "an object outside the namespace refers to it")
	expectDeletions(t, crowd)

	must(t, kube.CoreV1().ConfigMaps(crowd).Delete(t.Context(), "most-names", metav1.DeleteOptions{}))
	expectDeletions(t, crowd, "configmaps/mine p/unused")
	expectDeletions(t, shop, "configmaps/unused p/unused", "configmaps/new p/unused", "configmaps/named p/unused", "configmaps/later p/unused")
}

// withNames gives a ConfigMap so many names of four letters and digits in an annotation, and others. It is under no rule.
func withNames(which, n int, others string) func(*metav1.ObjectMeta) {
	const first, each = 36 * 36 * 36, 50_000
	names := []string{others}
	for i := range n {
		names = append(names, strconv.FormatInt(int64(first+which*each+i), 36))
	}
	return func(m *metav1.ObjectMeta) {
		m.Labels, m.Annotations = nil, map[string]string{"example.com/names": strings.Join(names, " ")}
	}
}
