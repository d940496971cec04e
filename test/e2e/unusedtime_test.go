// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
)

// mounting is a Pod that runs, and mounts a ConfigMap.
func mounting(name, configMap string) *corev1.Pod {
	of := template("user", configMap)
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: of.Spec}
}

// deletePod deletes a Pod at once, and returns when it was still there.
func deletePod(t *testing.T, ns, name string) time.Time {
	t.Helper()
	before := time.Now()
	must(t, kube.CoreV1().Pods(ns).Delete(t.Context(), name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}))
	return before
}

// unusedSince waits until a candidate says since when the object is unused, and returns that.
func unusedSince(t *testing.T, ns, object string) time.Time {
	t.Helper()
	var since time.Time
	eventually(t, func(ctx context.Context) string {
		const path = "jsonpath={.items[0].status.after} {.items[0].status.since}"
		out, stderr, err := suite.Kubectl(ctx, "get", "cand", "-n", ns, "-o", path, "--field-selector=object="+object)
		if err != nil {
			return stderr
		}
		after, at, _ := strings.Cut(out, " ")
		since, err = time.Parse(time.RFC3339, at)
		if err != nil || after != "Unused" || since.Year() < 2000 {
			return fmt.Sprintf("%s is unused since %q, after %q", object, at, after)
		}
		return ""
	})
	return since
}

// shorten has the policy of unusedAfter delete at once.
func shorten(t *testing.T, ns string) {
	t.Helper()
	rules, err := json.Marshal(unusedAfter("0s").Rules)
	must(t, err)
	changePolicy(t, ns, "p", fmt.Sprintf(`{"rules": %s}`, rules))
}

// testUnusedUsedAgain: what is used again is kept, and its time starts anew when that ends. Whoever extends it is heard.
func testUnusedUsedAgain(t *testing.T) {
	ns := newNamespace(t)
	h := watchHistory(t, ns)
	createConfigMap(t, ns, "again")
	createConfigMap(t, ns, "extended", func(m *metav1.ObjectMeta) { m.Annotations = map[string]string{annotationTTL: "1h"} })
	const keep = 20 * time.Second // It is long enough for what the test does until the ConfigMap is used.
	createUnusedPolicy(t, ns, unusedAfter(v1alpha1.TTL(keep.String())))
	first := unusedSince(t, ns, "configmaps/again")
	createPod(t, ns, mounting("user", "again"))
	waitReason(t, ns, "configmaps/again", "InUse", "pods/user refers to it")
	afterwards(t, time.Until(first.Add(keep))) // It would have been deleted by now.
	expectDeletions(t, ns)
	ended := deletePod(t, ns, "user")
	since := unusedSince(t, ns, "configmaps/again") // It is in whole seconds, and rounded up.
	if since.Before(ended.Truncate(time.Second)) || since.After(time.Now().Add(time.Second)) {
		t.Errorf("it is unused since %v, and the Pod was deleted at %v", since, ended)
	}
	expectDeletions(t, ns, "configmaps/again p/unused")
	if at := deletions(t, ns)[0].RequestReceivedTimestamp; at.Sub(ended) < keep-time.Second {
		t.Errorf("it was deleted at %v, and used until %v", at, ended)
	}
	waitReason(t, ns, "configmaps/extended", "NotDue", "")
	h.expectUnusedOnly(t)
}

// testUnusedHeldAbove: a change that makes too many unused objects due at once waits for approval, whether it changes a policy or creates one.
func testUnusedHeldAbove(t *testing.T) {
	g := newGroup()
	g.govern(t, v1alpha1.ClusterCleanupPolicySpec{Guardrails: holdAbove(5)})
	for _, change := range []func(ns string){
		func(ns string) { createUnusedPolicy(t, ns, unusedAfter("0s")) },
		func(ns string) {
			createUnusedPolicy(t, ns, unusedAfter("1h"))
			unusedSince(t, ns, "configmaps/old-0")
			shorten(t, ns)
		},
	} {
		ns := g.namespace(t)
		var want []string
		for i := range 10 {
			name := fmt.Sprint("old-", i)
			createConfigMap(t, ns, name)
			want = append(want, "configmaps/"+name+" p/unused")
		}
		change(ns)
		status := waitStatus(t, ns, "p", func(s *v1alpha1.CleanupPolicyStatus) bool { return isHeld(s, ns, 10) })
		afterwards(t, 0)
		expectDeletions(t, ns)
		approve(t, status)
		expectDeletions(t, ns, want...)
	}
}
