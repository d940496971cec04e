// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	usagemarks "github.com/winnow-dev/winnow/pkg/controller/write/marks"
	"github.com/winnow-dev/winnow/test/winnow"
)

// storedMarks reaches the marks of a namespace, as nobody but Winnow may write them.
func storedMarks(t *testing.T, ns string) dynamic.ResourceInterface {
	t.Helper()
	config, err := suite.UserConfig(winnow.User, "system:serviceaccounts", "system:serviceaccounts:"+winnow.Namespace)
	must(t, err)
	client, err := dynamic.NewForConfig(config)
	must(t, err)
	return client.Resource(usagemarks.Resource).Namespace(ns)
}

// waitMarks waits until exactly these ConfigMaps of a namespace have marks, and returns since when they are unused.
func waitMarks(t *testing.T, ns string, names ...string) map[string]time.Time {
	t.Helper()
	var found map[string]time.Time
	eventually(t, func(ctx context.Context) string {
		configMaps, err := kube.CoreV1().ConfigMaps(ns).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err.Error()
		}
		known := map[types.UID]string{}
		for _, cm := range configMaps.Items {
			known[cm.UID] = cm.Name
		}
		list, err := storedMarks(t, ns).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err.Error()
		}
		found = map[string]time.Time{}
		for i := range list.Items {
			m, err := usagemarks.Decode(&list.Items[i])
			must(t, err)
			for uid, since := range m.Unused {
				found[known[uid]] = since
			}
		}
		if got := slices.Sorted(maps.Keys(found)); !slices.Equal(got, names) {
			candidates, stderr, _ := suite.Kubectl(ctx, "get", "cand", "-n", ns, "-o", "yaml")
			return fmt.Sprintf("there are marks of %q, want %q; %s%s", got, names, candidates, stderr)
		}
		return ""
	})
	return found
}

// TestMarksOutliveWinnow: since when an object is unused, and since when a rule matches one, is still known after all replicas were killed.
func TestMarksOutliveWinnow(t *testing.T) {
	grantReferrers(t)
	checks := []func(){unusedBefore(t), matchedBefore(t)}
	kill(t, server.Replicas...)
	for _, r := range server.Replicas {
		must(t, r.Start(whole))
	}
	for _, check := range checks {
		check()
	}
}

// unusedBefore marks an object as unused. The returned function checks that after a restart the mark has the same time, and that it goes
// when its object is used or deleted.
func unusedBefore(t *testing.T) (check func()) {
	t.Helper()
	// Words in annotations of CustomResourceDefinitions count as names.
	const first, second = "settings-1", "settings-2"
	ns := newNamespace(t)
	createConfigMap(t, ns, first)
	createPolicy(t, ns, "p", unusedAfter("1h"))
	before := waitMarks(t, ns, first)
	return func() {
		t.Helper()
		createConfigMap(t, ns, second)
		if after := waitMarks(t, ns, first, second); !after[first].Equal(before[first]) || !after[second].After(before[first]) {
			t.Errorf("unused since %v, and before the restart %v", after, before)
		}
		_, err := kube.CoreV1().Pods(ns).Create(t.Context(), pod("user", func(p *corev1.Pod) {
			p.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{
				LocalObjectReference: corev1.LocalObjectReference{Name: second},
			}}}
		}), metav1.CreateOptions{})
		must(t, err)
		waitMarks(t, ns, first)
		must(t, kube.CoreV1().ConfigMaps(ns).Delete(t.Context(), first, metav1.DeleteOptions{}))
		waitMarks(t, ns)
		list, err := storedMarks(t, ns).List(t.Context(), metav1.ListOptions{})
		must(t, err)
		if len(list.Items) > 0 {
			t.Errorf("left: %v", list.Items)
		}
	}
}

// TestMarksThatNothingNeeds are deleted: no rule is about their objects, so nobody knows whether these are used in the meantime.
func TestMarksThatNothingNeeds(t *testing.T) {
	stored := storedMarks(t, newNamespace(t))
	for i, unused := range []map[string]any{{}, {"a": "2026-11-25T12:00:00Z"}} {
		_, err := stored.Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": usagemarks.Resource.GroupVersion().String(), "kind": "UsageMarks",
			"metadata": map[string]any{"name": fmt.Sprint("marks-", i)}, "unused": unused,
		}}, metav1.CreateOptions{})
		must(t, err)
	}
	eventually(t, func(ctx context.Context) string {
		list, err := stored.List(ctx, metav1.ListOptions{})
		must(t, err)
		if len(list.Items) > 0 {
			return fmt.Sprintf("%d marks are left", len(list.Items))
		}
		return ""
	})
}
