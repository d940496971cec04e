// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"fmt"
	"strings"
	"testing"
)

func TestNamespaceLifecycle(t *testing.T) {
	t.Parallel()
	nowhere := scope{ofNamespace, t, "nowhere"}
	contains(t, refused(t, nowhere.manifest("a", `{ttlAfterFinished: 1h}`), "create", "-f", "-"), `namespaces "nowhere" not found`)
	p := scoped(t, ofNamespace)
	for i := range 5 {
		p.create(fmt.Sprintf("p%d", i), `{ttlAfterFinished: 1h}`)
	}
	kubectl(t, "delete", "namespace", p.id, "--timeout=5m")
	contains(t, refused(t, "", "get", "namespace", p.id), "not found")
	kubectl(t, "create", "namespace", p.id)
	if left := kubectl(t, "get", "cup,storedcleanuppolicies.internal.gc.winnow.dev", "-n", p.id, "-o", "name"); left != "" {
		t.Errorf("the namespace came back with %s", left)
	}
}

// TestAdmissionPolicyOfTheCluster: what an administrator demands of built-in kinds can be demanded of policies too.
func TestAdmissionPolicyOfTheCluster(t *testing.T) {
	forEachKind(t, func(t *testing.T, p scope) {
		kubectlStdin(t, strings.NewReplacer("NAME", p.id, "RESOURCE", p.plural).Replace(`
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: NAME}
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: [gc.winnow.dev], apiVersions: ["*"], operations: [CREATE, UPDATE], resources: [RESOURCE]}
  validations:
  - {expression: "!has(object.spec.ttlAfterFinished) || object.spec.ttlAfterFinished != '13h'", message: thirteen hours bring bad luck}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: NAME}
spec: {policyName: NAME, validationActions: [Deny]}
`), "apply", "-f", "-")
		unlucky := p.manifest("a", `{ttlAfterFinished: 13h}`)
		eventually(t, func(ctx context.Context) error {
			_, stderr, err := shared.KubectlStdin(ctx, unlucky, "create", "--dry-run=server", "-f", "-")
			if err == nil || !strings.Contains(stderr, "thirteen hours bring bad luck") {
				return fmt.Errorf("not refused by the policy: %s %v", stderr, err)
			}
			return nil
		})
		p.create("a", `{ttlAfterFinished: 12h}`)
		contains(t, refused(t, "", p.on("patch", "a", "--type=merge", "-p", `{"spec":{"ttlAfterFinished":"13h"}}`)...), "bad luck")
	})
}

// TestRoles: users who may edit or view a namespace may edit or view its policies, and nobody but Winnow writes a status.
func TestRoles(t *testing.T) {
	t.Parallel()
	p := scoped(t, ofNamespace)
	ns := p.id
	as := map[string][]string{}
	for _, role := range []string{"view", "edit"} {
		user := role + "-user"
		path, err := shared.KubeconfigFor(user)
		if err != nil {
			t.Fatal(err)
		}
		as[role] = []string{"--kubeconfig", path, "-n", ns}
		kubectl(t, "create", "rolebinding", role, "-n", ns, "--clusterrole="+role, "--user="+user)
		eventually(t, func(ctx context.Context) error { // the roles are aggregated, and denials cached
			_, _, err := shared.Kubectl(ctx, append(as[role], "get", "cup")...)
			return err
		})
	}
	eventually(t, func(ctx context.Context) error {
		_, _, err := shared.KubectlStdin(ctx, p.manifest("a", `{ttlAfterFinished: 1h}`), append(as["edit"], "apply", "-f", "-")...)
		return err
	})
	for _, tc := range []struct {
		role string
		args []string
		want string
	}{
		{"view", []string{"label", "cup", "a", "team=blue"}, `User "view-user" cannot patch resource "cleanuppolicies"`},
		{"view", []string{"delete", "cup", "a"}, `User "view-user" cannot delete resource "cleanuppolicies"`},
		{"edit", []string{"patch", "cup", "a", "--subresource=status", "--type=merge", "-p", "{}"}, `resource "cleanuppolicies/status" in API group`},
		{"edit", []string{"get", "cup", "--all-namespaces"}, `cannot list resource "cleanuppolicies" in API group "gc.winnow.dev" at the cluster scope`},
		{"edit", []string{"get", "storedcleanuppolicies.internal.gc.winnow.dev"}, "cannot list resource"},
		{"view", []string{"get", "ccup"}, `cannot list resource "clustercleanuppolicies" in API group "gc.winnow.dev" at the cluster scope`},
		{"edit", []string{"delete", "ccup", "--all"}, `cannot list resource "clustercleanuppolicies" in API group "gc.winnow.dev" at the cluster scope`},
	} {
		contains(t, refused(t, "", append(as[tc.role], tc.args...)...), "(Forbidden)", tc.want)
	}
	kubectl(t, append(as["edit"], "delete", "cup", "a")...)
}
