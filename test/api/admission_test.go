// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestNamespaceLifecycle(t *testing.T) {
	t.Parallel()
	contains(t, refused(t, manifest("nowhere", "a", `{ttlAfterFinished: 1h}`), "create", "-f", "-"), `namespaces "nowhere" not found`)
	ns := namespace(t)
	for i := range 5 {
		create(t, ns, fmt.Sprintf("p%d", i), `{ttlAfterFinished: 1h}`)
	}
	kubectl(t, "delete", "namespace", ns, "--timeout=60s")
	contains(t, refused(t, "", "get", "namespace", ns), "not found")
	kubectl(t, "create", "namespace", ns)
	if left := kubectl(t, "get", "cup,storedcleanuppolicies.internal.gc.winnow.dev", "-n", ns, "-o", "name"); left != "" {
		t.Errorf("the namespace came back with %s", left)
	}
}

// TestAdmissionPolicyOfTheCluster: what an administrator demands of built-in kinds can be demanded of policies too.
func TestAdmissionPolicyOfTheCluster(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	kubectlStdin(t, `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: no-quick-deletion}
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: [gc.winnow.dev], apiVersions: ["*"], operations: [CREATE, UPDATE], resources: [cleanuppolicies]}
  validations:
  - {expression: "!has(object.spec.ttlAfterFinished) || object.spec.ttlAfterFinished != '13h'", message: thirteen hours bring bad luck}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: no-quick-deletion}
spec: {policyName: no-quick-deletion, validationActions: [Deny]}
`, "apply", "-f", "-")
	unlucky := manifest(ns, "a", `{ttlAfterFinished: 13h}`)
	eventually(t, 30*time.Second, func(ctx context.Context) error {
		_, stderr, err := shared.KubectlStdin(ctx, unlucky, "create", "--dry-run=server", "-f", "-")
		if err == nil || !strings.Contains(stderr, "thirteen hours bring bad luck") {
			return fmt.Errorf("not refused by the policy: %s %v", stderr, err)
		}
		return nil
	})
	create(t, ns, "a", `{ttlAfterFinished: 12h}`)
	contains(t, refused(t, "", "patch", "cup", "a", "-n", ns, "--type=merge", "-p", `{"spec":{"ttlAfterFinished":"13h"}}`), "bad luck")
}

// TestRoles: who may edit or view a namespace may edit or view its policies, and nobody but Winnow writes a status.
func TestRoles(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	as := map[string][]string{}
	for _, role := range []string{"view", "edit"} {
		user := role + "-user"
		path, err := shared.KubeconfigFor(user)
		if err != nil {
			t.Fatal(err)
		}
		as[role] = []string{"--kubeconfig", path, "-n", ns}
		kubectl(t, "create", "rolebinding", role, "-n", ns, "--clusterrole="+role, "--user="+user)
		eventually(t, 30*time.Second, func(ctx context.Context) error { // the roles are aggregated, and denials cached
			_, _, err := shared.Kubectl(ctx, append(as[role], "get", "cup")...)
			return err
		})
	}
	eventually(t, 30*time.Second, func(ctx context.Context) error {
		_, _, err := shared.KubectlStdin(ctx, manifest(ns, "a", `{ttlAfterFinished: 1h}`), append(as["edit"], "apply", "-f", "-")...)
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
	} {
		contains(t, refused(t, "", append(as[tc.role], tc.args...)...), "(Forbidden)", tc.want)
	}
	kubectl(t, append(as["edit"], "delete", "cup", "a")...)
}

// TestAuthor: who may write policies and not delete Pods cannot have Pods deleted by a policy.
func TestAuthor(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	path, err := shared.KubeconfigFor("author")
	if err != nil {
		t.Fatal(err)
	}
	kubectl(t, "create", "role", "author", "-n", ns, "--verb=get,create,patch,update", "--resource=cleanuppolicies.gc.winnow.dev")
	kubectl(t, "create", "role", "jobs", "-n", ns, "--verb=list,delete", "--resource=jobs.batch")
	for _, role := range []string{"author", "jobs"} {
		kubectl(t, "create", "rolebinding", role, "-n", ns, "--role="+role, "--user=author")
	}
	ofJobs := manifest(ns, "a", `{rules: [{name: jobs, resources: [jobs.batch], ttl: 1h}]}`)
	as := []string{"--kubeconfig", path, "apply", "-f", "-"}
	eventually(t, 30*time.Second, func(ctx context.Context) error { // denials are cached
		_, _, err := shared.KubectlStdin(ctx, ofJobs, as...)
		return err
	})
	for _, how := range [][]string{as, append(as, "--server-side", "--force-conflicts"), append(as, "--dry-run=server")} {
		for _, name := range []string{"a", "new"} {
			contains(t, refused(t, manifest(ns, name, `{ttlAfterFinished: 1h}`), how...), "(Forbidden)",
				fmt.Sprintf("kubectl auth can-i list pods -n %s; kubectl auth can-i delete pods -n %s", ns, ns))
		}
	}
	kubectl(t, "label", "cup", "a", "-n", ns, "--kubeconfig", path, "team=blue")
	contains(t, refused(t, manifest(ns, "new", `{ttlAfterFinished: 1}`), as...), "TTL") // what is wrong comes first
}
