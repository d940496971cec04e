// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// testUnusedTenant: somebody who may create and patch everything in a namespace, and delete nothing, can neither have Winnow delete anything
// earlier nor make a used object look unused. A label can only put an object under a rule whose author chose that label.
func testUnusedTenant(t *testing.T) {
	ns := newNamespace(t)
	h := watchHistory(t, ns)
	tenant := asUser(t, "patcher-"+ns, ns)
	kubectl(t, "create", "role", "patcher", "-n", ns, "--verb=get,list,watch,create,update,patch",
		"--resource=secrets,configmaps,pods,cleanuppolicies.gc.winnow.dev,cleanupcandidates.gc.winnow.dev")
	kubectl(t, "create", "rolebinding", "patcher", "-n", ns, "--role=patcher", "--user=patcher-"+ns)
	may := func(args ...string) string {
		t.Helper()
		var stderr string
		eventually(t, func(ctx context.Context) string { // RBAC follows its objects after a moment.
			var err error
			if _, stderr, err = tenant(ctx, args...); err != nil {
				return stderr
			}
			return ""
		})
		return stderr
	}
	createConfigMap(t, ns, "unused")
	createConfigMap(t, ns, "other", func(m *metav1.ObjectMeta) { m.Labels["app"] = "other" })
	createConfigMap(t, ns, "used", func(m *metav1.ObjectMeta) { m.Labels["app"] = "other" })
	createPod(t, ns, mounting("user", "used"))
	createUnusedPolicy(t, ns, unusedAfter("1h"))
	dueTime := func(object string) string {
		return "dueTime: \"" + unusedSince(t, ns, object).Add(time.Hour).UTC().Format(time.RFC3339)
	}
	due := dueTime("configmaps/unused")

	may("annotate", "configmap", "unused", "used", "gc.winnow.dev/ttl=0s", "gc.winnow.dev/keep-until="+time.Now().UTC().Format(time.RFC3339))
	may("label", "--overwrite", "configmap", "other", "used", "app=web")
	may("patch", "configmap", "used", "--type=merge", "-p", `{"metadata": {"ownerReferences": null, "annotations": {"note": "nobody needs it"}}, "data": null}`)
	annotated, err := kube.CoreV1().ConfigMaps(ns).Get(t.Context(), "unused", metav1.GetOptions{})
	must(t, err)
	waitCandidate(t, ns, "configmaps/unused", "reason: NotDue", due, `resourceVersion: "`+annotated.ResourceVersion)
	waitCandidate(t, ns, "configmaps/other", "reason: NotDue", dueTime("configmaps/other"))
	waitReason(t, ns, "configmaps/used", "InUse", "pods/user refers to it")

	if out, _, err := tenant(t.Context(), "auth", "can-i", "patch", "usagemarks.internal.gc.winnow.dev"); err == nil {
		t.Errorf("the tenant may write since when objects are unused: %s", out)
	}
	refused := func(missing ...string) {
		t.Helper()
		eventually(t, func(ctx context.Context) string {
			kubeconfig, err := suite.KubeconfigFor("patcher-" + ns)
			must(t, err)
			_, stderr, err := suite.KubectlStdin(ctx, hostile, "--kubeconfig", kubeconfig, "-n", ns, "create", "-f", "-")
			for _, resource := range missing {
				if command := fmt.Sprintf("kubectl auth can-i delete %s -n %s", resource, ns); !strings.Contains(stderr, command) {
					return fmt.Sprintf("no %q: %v %s", command, err, stderr)
				}
			}
			if err == nil || strings.Count(stderr, "can-i delete") != len(missing) {
				return fmt.Sprintf("%v %s", err, stderr)
			}
			return ""
		})
	}
	refused("configmaps", "secrets")
	kubectl(t, "create", "role", "deleter", "-n", ns, "--verb=delete", "--resource=configmaps")
	kubectl(t, "create", "rolebinding", "deleter", "-n", ns, "--role=deleter", "--user=patcher-"+ns)
	refused("secrets")
	expectDeletions(t, ns)
	h.expectUnusedOnly(t)
}

const hostile = `
apiVersion: gc.winnow.dev/v1alpha1
kind: CleanupPolicy
metadata: {name: hostile}
spec:
  rules:
  - name: all
    resources: [configmaps, secrets]
    after: Unused
    ttl: 0s
    matchConditions: [{name: all, expression: "true"}]
`
