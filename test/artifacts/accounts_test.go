// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package artifacts

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
)

const (
	cleaner     = "winnow-cleaner"
	onAccounts  = "impersonate:serviceaccount"
	onRequests  = "impersonate-on:serviceaccount:"
	accountFile = "../../artifacts/optional/accounts.yaml"
	olderFile   = "../../artifacts/optional/accounts-before-1.36.yaml"
	editFile    = "../../artifacts/optional/edit.yaml"
	noDelete    = "../../artifacts/no-delete/"
)

// apply applies manifests until the test ends.
func apply(t *testing.T, file string) {
	t.Helper()
	kubectl(t, "apply", "--validate=strict", "-f", file)
	t.Cleanup(func() {
		if _, stderr, err := shared.Kubectl(context.WithoutCancel(t.Context()), "delete", "-f", file); err != nil {
			t.Error(stderr)
		}
	})
}

// accountRight is "verb resource.group/name" in a namespace.
type accountRight struct{ namespace, right string }

func (r accountRight) attributes() authorizationv1.ResourceAttributes {
	verb, what, _ := strings.Cut(r.right, " ")
	what, name, _ := strings.Cut(what, "/")
	resource, group, _ := strings.Cut(what, ".")
	return authorizationv1.ResourceAttributes{Namespace: r.namespace, Verb: verb, Group: group, Resource: resource, Name: name}
}

// checkRights checks who may do what, first what is allowed, since the API server learns a moment later what was applied.
func checkRights(t *testing.T, who user, want map[accountRight]bool) {
	t.Helper()
	for _, pass := range []bool{true, false} {
		for right, allowed := range want {
			if allowed != pass {
				continue
			}
			eventually(t, func() error {
				if got := may(t, who, right.attributes()); got != allowed {
					return fmt.Errorf("%s may %s in %q: %t, want %t", who.name, right.right, right.namespace, got, allowed)
				}
				return nil
			})
		}
	}
}

// TestRightsOfAccounts: Winnow may act as accounts of one name, in every namespace, for three requests to Jobs and Pods.
func TestRightsOfAccounts(t *testing.T) {
	apply(t, accountFile)
	want := map[accountRight]bool{
		{"team-a", "get serviceaccounts/" + cleaner}:                                      true,
		{"team-a", "get serviceaccounts/default"}:                                         false,
		{"team-a", "list serviceaccounts"}:                                                false,
		{"team-a", onAccounts + " serviceaccounts.authentication.k8s.io/" + cleaner}:      true,
		{"kube-system", onAccounts + " serviceaccounts.authentication.k8s.io/" + cleaner}: true,
		{"team-a", onAccounts + " serviceaccounts.authentication.k8s.io/default"}:         false,
		{"team-a", onAccounts + " serviceaccounts.authentication.k8s.io"}:                 false,
		{"team-a", "impersonate serviceaccounts/" + cleaner}:                              false,
		{"", "impersonate:user-info users.authentication.k8s.io/admin"}:                   false,
		{"", "impersonate users/admin"}:                                                   false,
		{"team-a", "create serviceaccounts/token"}:                                        false,
		{"team-a", onRequests + "delete secrets"}:                                         false,
		{"team-a", onRequests + "delete configmaps"}:                                      false,
		{"team-a", onRequests + "get secrets"}:                                            false,
		{"team-a", "patch jobs.batch"}:                                                    false,
	}
	for _, resource := range []string{"jobs.batch", "pods"} {
		for _, verb := range strings.Fields(allVerbs) {
			want[accountRight{"team-a", onRequests + verb + " " + resource}] = verb == "get" || verb == "delete" || verb == "patch"
		}
	}
	checkRights(t, serviceAccount("winnow"), want)
}

// TestRightsBeforeConstrainedImpersonation: the older verb allows everything, so it is granted for one name.
func TestRightsBeforeConstrainedImpersonation(t *testing.T) {
	apply(t, olderFile)
	checkRights(t, serviceAccount("winnow"), map[accountRight]bool{
		{"team-a", "get serviceaccounts/" + cleaner}:         true,
		{"team-a", "impersonate serviceaccounts/" + cleaner}: true,
		{"team-a", "impersonate serviceaccounts/default"}:    false,
		{"team-a", "impersonate serviceaccounts"}:            false,
		{"", "impersonate users/admin"}:                      false,
		{"", "impersonate groups/system:masters"}:            false,
	})
}

// TestRightsWithoutDelete: Winnow has all rights but those to delete and change objects of users.
func TestRightsWithoutDelete(t *testing.T) {
	kubectl(t, "apply", "--validate=strict", "-k", noDelete)
	t.Cleanup(func() {
		for _, undo := range [][]string{{"apply", "-k", install}, {"delete", "-f", noDelete + "accounts.yaml"}} {
			if _, stderr, err := shared.Kubectl(context.WithoutCancel(t.Context()), undo...); err != nil {
				t.Error(stderr)
			}
		}
	})
	want := wantedRights(t)
	want["jobs.batch"], want["pods"] = "get list watch", "get list watch"
	eventually(t, func() error { // The API server learns of the role a moment later.
		if got := verbs(t, "winnow", "team-a", "batch", "jobs"); got != want["jobs.batch"] {
			return fmt.Errorf("winnow may %q Jobs", got)
		}
		return nil
	})
	if diff := cmp.Diff(want, rights(t, "winnow", "team-a")); diff != "" {
		t.Errorf("rights in a namespace of users (-want +got):\n%s", diff)
	}
	checkRights(t, serviceAccount("winnow"), map[accountRight]bool{
		{"team-a", onAccounts + " serviceaccounts.authentication.k8s.io/" + cleaner}: true,
		{"team-a", onRequests + "delete jobs.batch"}:                                 true,
	})
	if args := kubectl(t, "get", "deployment/winnow", "-n", namespace, "-o", "jsonpath={.spec.template.spec.containers[0].args}"); !strings.Contains(
		args, "--require-service-account",
	) {
		t.Errorf("the flags are %s", args)
	}
}

// TestRightsOfCleaner: an account with the role for accounts may do what Winnow sends as it, and nothing else.
func TestRightsOfCleaner(t *testing.T) {
	kubectl(t, "create", "namespace", "cleaned")
	kubectl(t, "create", "serviceaccount", cleaner, "-n", "cleaned")
	kubectl(t, "create", "rolebinding", cleaner, "--clusterrole="+cleaner, "--serviceaccount=cleaned:"+cleaner, "-n", "cleaned")
	account := user{"system:serviceaccount:cleaned:" + cleaner, []string{"system:serviceaccounts", "system:serviceaccounts:cleaned"}}
	want := map[accountRight]bool{
		{"team-a", "delete jobs.batch"}: false, {"cleaned", "delete configmaps"}: false, {"cleaned", "get secrets"}: false,
	}
	for _, resource := range []string{"jobs.batch", "pods"} {
		for _, verb := range strings.Fields(allVerbs) {
			want[accountRight{"cleaned", verb + " " + resource}] = verb == "get" || verb == "delete" || verb == "patch"
		}
	}
	checkRights(t, account, want)
}

// TestWhoMayUseAccounts: the roles of Winnow allow authors the accounts with the name that Winnow knows. Who has the role edit may act as
// every account of the namespace without Winnow, so the file that lets them write policies allows them every account.
func TestWhoMayUseAccounts(t *testing.T) {
	const ns = "uses"
	kubectl(t, "create", "namespace", ns)
	for _, role := range []string{"view", "edit", "admin", "winnow-edit", "winnow-operator"} {
		kubectl(t, "create", "rolebinding", role, "-n", ns, "--clusterrole="+role, "--user=uses-"+role)
	}
	kubectl(t, "create", "clusterrolebinding", "uses-operator", "--clusterrole=winnow-operator", "--user=uses-everywhere")
	uses := func(role, account string) (user, accountRight) {
		return user{name: "uses-" + role}, accountRight{ns, "use serviceaccounts/" + account}
	}
	check := func(role, account string, want bool) {
		t.Helper()
		who, right := uses(role, account)
		checkRights(t, who, map[accountRight]bool{right: want})
	}
	for _, role := range []string{"view", "edit", "admin"} {
		check(role, cleaner, false)
		check(role, "default", false)
	}
	for _, role := range []string{"winnow-edit", "winnow-operator", "everywhere"} {
		check(role, cleaner, true)
		check(role, "default", false)
	}
	checkRights(t, user{name: "uses-everywhere"}, map[accountRight]bool{
		{"", "use serviceaccounts/" + cleaner}: true, {"", "use serviceaccounts"}: false,
	})
	apply(t, editFile)
	check("view", "default", false)
	for _, role := range []string{"edit", "admin"} {
		check(role, "default", true)
		checkRights(t, user{name: "uses-" + role}, map[accountRight]bool{{ns, "impersonate serviceaccounts/default"}: true})
	}
}
