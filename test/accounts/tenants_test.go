// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package accounts

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/test/cluster"
	"github.com/winnow-dev/winnow/test/winnow"
)

// deployer is an account with more rights than its users.
const deployer = "deployer"

// newTenants creates a namespace with accounts of different power, and a user for each column of the table in docs/accounts.md.
func newTenants(t *testing.T, ns string) {
	t.Helper()
	newTeam(t, ns)
	kubectl(t, "create", "serviceaccount", deployer, "-n", ns)
	kubectl(t, "create", "rolebinding", deployer, "-n", ns, "--clusterrole=admin", "--serviceaccount="+ns+":"+deployer)
	roles := `
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: policies}
rules:
- {apiGroups: [gc.winnow.dev], resources: [cleanuppolicies], verbs: [create]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: deletes}
rules:
- {apiGroups: [batch], resources: [jobs], verbs: [list, delete]}
- {apiGroups: [""], resources: [pods], verbs: [list, delete]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: lends}
rules:
- {apiGroups: [""], resources: [serviceaccounts], resourceNames: [deployer], verbs: [use]}
`
	_, stderr, err := suite.KubectlStdin(t.Context(), roles, "apply", "-n", ns, "-f", "-")
	if err != nil {
		t.Fatal(stderr)
	}
	bindings := map[string][]string{
		"editor": {"--clusterrole=edit", "--clusterrole=winnow-edit"}, "winnow-editor": {"--clusterrole=winnow-edit"},
		"writer": {"--role=policies", "--role=deletes"}, "lender": {"--role=policies", "--role=deletes", "--role=lends"},
		"edit": {"--clusterrole=edit"},
	}
	for user, roles := range bindings {
		for _, role := range roles {
			_, name, _ := strings.Cut(role, "=")
			kubectl(t, "create", "rolebinding", user+"-"+name, "-n", ns, role, "--user="+user)
		}
	}
	kubectl(t, "create", "clusterrolebinding", "operator-edit", "--clusterrole=edit", "--user=operator")
	kubectl(t, "create", "clusterrolebinding", "operator-winnow", "--clusterrole=winnow-operator", "--user=operator")
}

// tryPolicy creates a policy as a user, without storing it, and returns what the user is told.
func tryPolicy(t *testing.T, user, ns, account string, resources ...string) (told string, ok bool) {
	t.Helper()
	spec := map[string]any{"serviceAccountName": account, "ttlAfterFinished": "1h"}
	if len(resources) > 0 {
		rule := map[string]any{"name": "r", "resources": resources, "ttl": "1h"}
		if resources[0] == "configmaps" {
			rule["after"], rule["selector"] = "Created", map[string]any{"matchLabels": map[string]string{"a": "b"}}
		}
		spec = map[string]any{"serviceAccountName": account, "rules": []any{rule}}
	}
	kind := "CleanupPolicy"
	if ns == "" {
		kind, spec["mode"], spec["namespaceSelector"] = "ClusterCleanupPolicy", "Enforce", map[string]any{}
	}
	manifest, err := json.Marshal(map[string]any{
		"apiVersion": "gc.winnow.dev/v1alpha1", "kind": kind, "metadata": map[string]string{"name": "tried"}, "spec": spec,
	})
	must(t, err)
	args := []string{"create", "--dry-run=server", "-n", ns, "-f", "-"}
	if ns == "" {
		args = []string{"create", "--dry-run=server", "-f", "-"}
	}
	if user != "" {
		kubeconfig, err := suite.KubeconfigFor(user)
		must(t, err)
		args = append(args, "--kubeconfig", kubeconfig)
	}
	_, stderr, err := suite.KubectlStdin(t.Context(), string(manifest), args...)
	return stderr, err == nil
}

// TestWhoMayName: nobody can lend a policy the power of an account that they may not use, and an account is no way around the rights of the
// author.
func TestWhoMayName(t *testing.T) {
	const ns = "tenants"
	newTenants(t, ns)
	mayNotUse := func(account string) string {
		return `a policy that acts as a ServiceAccount takes the verb "use" on that account. ` +
			"To check the missing permissions: kubectl auth can-i use serviceaccounts/" + account + " -n "
	}
	check := func(user, ns, account string, resources []string, refused string) {
		t.Helper()
		switch told, ok := tryPolicy(t, user, ns, account, resources...); {
		case ok != (refused == ""):
			t.Errorf("%s in %q as %s for %q: allowed %t: %s", user, ns, account, resources, ok, told)
		case !strings.Contains(told, refused):
			t.Errorf("%s in %q as %s for %q: told %q, want %q", user, ns, account, resources, told, refused)
		}
	}
	all, others := []string{"*"}, []string{"configmaps"}
	check("editor", ns, cleaner, nil, "")
	check("editor", ns, "default", nil, mayNotUse("default"))
	check("editor", ns, "default", nil, "kubectl auth can-i use serviceaccounts/default -n tenants")
	check("editor", ns, deployer, nil, mayNotUse(deployer))
	check("editor", ns, deployer, all, mayNotUse(deployer))
	check("editor", ns, "nobody", nil, mayNotUse("nobody"))
	check("winnow-editor", ns, cleaner, nil, "kubectl auth can-i delete jobs.batch -n tenants")
	check("winnow-editor", ns, deployer, all, mayNotUse(deployer))
	check("writer", ns, "", nil, "")
	check("writer", ns, cleaner, nil, mayNotUse(cleaner))
	check("lender", ns, deployer, nil, "")
	check("lender", ns, deployer, all, "")
	check("lender", ns, deployer, others, "kubectl auth can-i delete configmaps -n tenants")
	check("lender", ns, cleaner, nil, mayNotUse(cleaner))
	check("edit", ns, cleaner, nil, "cannot create resource")
	check("operator", "", cleaner, nil, "")
	check("operator", "", deployer, nil, "kubectl auth can-i use serviceaccounts/deployer --all-namespaces")

	t.Run("with optional/edit.yaml", func(t *testing.T) {
		const file = artifacts + "optional/edit.yaml"
		kubectl(t, "apply", "-f", file)
		t.Cleanup(func() {
			if _, stderr, err := suite.Kubectl(whole, "delete", "-f", file); err != nil {
				t.Error(stderr)
			}
		})
		eventuallyMay(t, "edit", "use serviceaccounts -n tenants")
		check("edit", ns, cleaner, nil, "")
		check("edit", ns, deployer, all, "")
		// That is no new power: with the role edit, they can act as the account anyway.
		eventuallyMay(t, "edit", "impersonate serviceaccounts/deployer -n tenants")
		eventuallyMay(t, "edit", "create serviceaccounts/deployer --subresource=token -n tenants")
	})
}

// TestNames: a value that is no name of an account is refused, also from an administrator.
func TestNames(t *testing.T) {
	ns := newNamespace(t, "names")
	for name, told := range map[string]string{
		"system:serviceaccount:kube-system:admin":            `without its namespace`,
		"system:serviceaccount:tenants:winnow-cleaner":       `did you mean "winnow-cleaner"?`,
		"tenants:winnow-cleaner":                             "without its namespace",
		"tenants/winnow-cleaner":                             "without its namespace",
		"winnow-cleaner\nImpersonate-Group: system:masters":  "spec.serviceAccountName: Invalid value",
		"winnow-cleaner\r\nImpersonate-User: system:masters": "spec.serviceAccountName: Invalid value",
		"*":                      "spec.serviceAccountName: Invalid value",
		"../winnow-cleaner":      "spec.serviceAccountName: Invalid value",
		"Winnow-Cleaner":         "spec.serviceAccountName: Invalid value",
		" winnow-cleaner":        "spec.serviceAccountName: Invalid value",
		strings.Repeat("a", 254): "spec.serviceAccountName",
	} {
		for _, in := range []string{ns, ""} {
			if got, ok := tryPolicy(t, "", in, name); ok || !strings.Contains(got, told) {
				t.Errorf("%q in %q: allowed %t, told %q, want %q", name, in, ok, got, told)
			}
		}
	}
}

// TestAccountOfOthers: a name always means an account of the namespace of the object, and Winnow acts only as accounts that its
// administrator has named.
func TestAccountOfOthers(t *testing.T) {
	t.Parallel()
	newTeam(t, "lends")
	borrower := newNamespace(t, "borrows")
	createPolicy(t, borrower, atOnce(cleaner))
	stranger := newNamespace(t, "strangers")
	kubectl(t, "create", "serviceaccount", "janitor", "-n", stranger)
	kubectl(t, "create", "rolebinding", "janitor", "--clusterrole=admin", "--serviceaccount=strangers:janitor", "-n", stranger)
	createPolicy(t, stranger, atOnce("janitor"))
	for _, ns := range []string{borrower, stranger} {
		finishedJob(t, ns, "done", time.Now())
	}
	waitReady(t, borrower, "Unauthorized", "ServiceAccount borrows/winnow-cleaner does not exist")
	waitReady(t, stranger, "Unauthorized", "ServiceAccount strangers/janitor", "add janitor to resourceNames in artifacts/optional/accounts")
	for _, ns := range []string{borrower, stranger} {
		waitCandidate(t, ns, "jobs.batch/done", "state: Held", "reason: Unauthorized")
		if sent := asAccount(t, ns, cleaner); len(sent) > 0 {
			t.Errorf("Winnow has sent %+v", sent)
		}
	}
}

// TestWhatWinnowMayDo: as which accounts, and for which requests, kube-apiserver lets Winnow act. Somebody who takes over Winnow can do no
// more.
func TestWhatWinnowMayDo(t *testing.T) {
	ns := newTeam(t, "taken-over")
	kubectl(t, "create", "serviceaccount", deployer, "-n", ns)
	kubectl(t, "create", "rolebinding", "strong", "-n", ns, "--clusterrole=admin", "--serviceaccount="+ns+":"+cleaner,
		"--serviceaccount="+ns+":"+deployer)
	kubectl(t, "create", "secret", "generic", "password", "-n", ns)
	winnowConfig, err := suite.KubeconfigFor(winnow.User, "system:serviceaccounts", "system:serviceaccounts:"+winnow.Namespace)
	must(t, err)
	constrained := cluster.Since(t, "1.36", "the older verb allows Winnow every request as the accounts")
	for _, c := range []struct {
		as, request string
		allowed     bool
	}{
		{"taken-over:winnow-cleaner", "delete job done", true},
		{"taken-over:winnow-cleaner", "get pods any --ignore-not-found", true},
		{"taken-over:winnow-cleaner", "get pods", !constrained},
		{"taken-over:winnow-cleaner", "get secret password", !constrained},
		{"taken-over:winnow-cleaner", "create job new --image=any", !constrained},
		{"taken-over:winnow-cleaner", "create token deployer", !constrained},
		{"taken-over:deployer", "delete job done", false},
		{"kube-system:generic-garbage-collector", "delete job done", false},
		{"", "delete job done", false},
		{"", "get secret password", false},
		{"", "delete job done --as=admin --as-group=system:masters", false},
	} {
		finishedJobAgain(t, ns, "done")
		args := append(strings.Fields(c.request), "-n", ns, "--kubeconfig", winnowConfig)
		if c.as != "" {
			args = append(args, "--as=system:serviceaccount:"+c.as)
		}
		if _, stderr, err := suite.Kubectl(t.Context(), args...); (err == nil) != c.allowed {
			t.Errorf("%s as %q: allowed %t, want %t: %s", c.request, c.as, err == nil, c.allowed, stderr)
		} else if err != nil && !strings.Contains(stderr, "Forbidden") && !strings.Contains(stderr, "forbidden") {
			t.Errorf("%s as %q: %s", c.request, c.as, stderr)
		}
	}
}

// finishedJobAgain creates a finished Job unless it is still there.
func finishedJobAgain(t *testing.T, ns, name string) {
	t.Helper()
	if _, err := kube.BatchV1().Jobs(ns).Get(t.Context(), name, metav1.GetOptions{}); err != nil {
		finishedJob(t, ns, name, time.Now())
	}
}

// TestClusterPolicy acts in each namespace as the account of that namespace.
func TestClusterPolicy(t *testing.T) {
	t.Parallel()
	with, without := newTeam(t, "cluster-with"), newNamespace(t, "cluster-without")
	kubectl(t, "label", "namespace", with, without, "cleans=everywhere")
	for _, ns := range []string{with, without} {
		finishedJob(t, ns, "done", time.Now())
	}
	_, err := gc.ClusterCleanupPolicies().Create(t.Context(), &v1alpha1.ClusterCleanupPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "everywhere"},
		Spec: v1alpha1.ClusterCleanupPolicySpec{
			Mode: v1alpha1.ModeEnforce, ServiceAccountName: cleaner, TTLAfterFinished: new(v1alpha1.TTL("0s")),
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"cleans": "everywhere"}},
		},
	}, metav1.CreateOptions{})
	must(t, err)
	waitJobs(t, with, 0)
	expectDeleted(t, with, cleaner, "jobs/done")
	waitCandidate(t, without, "jobs.batch/done", "reason: Unauthorized", "ServiceAccount cluster-without/winnow-cleaner does not exist")
	if n := countJobs(t.Context(), t, without); n != 1 {
		t.Errorf("%d Jobs are left without an account", n)
	}
}

// eventuallyMay waits until a user has a right, because Kubernetes aggregates roles with a delay.
func eventuallyMay(t *testing.T, user, right string) {
	t.Helper()
	eventually(t, func(ctx context.Context) string {
		out, stderr, err := suite.Kubectl(ctx, append(append([]string{"auth", "can-i"}, strings.Fields(right)...), "--as="+user)...)
		if err != nil {
			return user + ": " + right + ": " + out + stderr
		}
		return ""
	})
}
