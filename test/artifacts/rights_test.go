// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package artifacts

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/winnow-dev/winnow/test/cluster"
)

const (
	allVerbs = "get list watch create update patch delete deletecollection"
	// verbApprove is Winnow's own, see artifacts/install/11-user-roles.yaml.
	verbApprove = " approve"
)

// user is whom rights are asked for.
type user struct {
	name   string
	groups []string
}

func serviceAccount(name string) user {
	return user{
		name:   "system:serviceaccount:" + namespace + ":" + name,
		groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, "system:authenticated"},
	}
}

// TestRightsAreExact asks for every verb on every resource of the cluster: Winnow may do what is listed here and nothing
// else, except what every ServiceAccount may.
func TestRightsAreExact(t *testing.T) {
	want := wantedRights(t)
	if diff := cmp.Diff(want, rights(t, "winnow", "team-a")); diff != "" {
		t.Errorf("rights in a namespace of users (-want +got):\n%s", diff)
	}
	want["leases.coordination.k8s.io"] = "create" // the others by name, see below
	if diff := cmp.Diff(want, rights(t, "winnow", namespace)); diff != "" {
		t.Errorf("rights in %s (-want +got):\n%s", namespace, diff)
	}
}

// wantedRights are those of artifacts/install in a namespace of users, as rights returns them.
func wantedRights(t *testing.T) map[string]string {
	t.Helper()
	want := map[string]string{
		"apiservices.apiregistration.k8s.io":             "list",
		"cronjobs.batch":                                 "get list watch",
		"customresourcedefinitions.apiextensions.k8s.io": "list watch",
		"events.events.k8s.io":                           "create",
		"flowschemas.flowcontrol.apiserver.k8s.io":       "get list watch",
		"jobs.batch": "get list watch delete",
		"mutatingadmissionpolicies.admissionregistration.k8s.io":       "get list watch",
		"mutatingadmissionpolicybindings.admissionregistration.k8s.io": "get list watch",
		"mutatingwebhookconfigurations.admissionregistration.k8s.io":   "get list watch",
		"namespaces":                          "get list watch",
		"objectcopies.internal.gc.winnow.dev": "get list create update delete",
		"pods":                                "get list watch delete",
		"prioritylevelconfigurations.flowcontrol.apiserver.k8s.io":       "get list watch",
		"recordchunks.internal.gc.winnow.dev":                            "get list create update delete",
		"resourcequotas":                                                 "list watch",
		"storedcleanuppolicies.internal.gc.winnow.dev":                   "get list watch create update delete",
		"storedclustercleanuppolicies.internal.gc.winnow.dev":            "get list watch create update delete",
		"storedresourcelifecycles.internal.gc.winnow.dev":                "get list watch create update delete",
		"subjectaccessreviews.authorization.k8s.io":                      "create",
		"tokenreviews.authentication.k8s.io":                             "create",
		"usagemarks.internal.gc.winnow.dev":                              "list watch create update delete",
		"validatingadmissionpolicies.admissionregistration.k8s.io":       "get list watch",
		"validatingadmissionpolicybindings.admissionregistration.k8s.io": "get list watch",
		"validatingwebhookconfigurations.admissionregistration.k8s.io":   "get list watch",
	}
	if !cluster.Since(t, "1.36", "it does not serve MutatingAdmissionPolicies in v1") {
		delete(want, "mutatingadmissionpolicies.admissionregistration.k8s.io")
		delete(want, "mutatingadmissionpolicybindings.admissionregistration.k8s.io")
	}
	return want
}

// rights returns the verbs that a ServiceAccount of Winnow, but not every other, may use on each resource in a namespace and on
// cluster-scoped resources.
func rights(t *testing.T, account, in string) map[string]string {
	t.Helper()
	_, lists, err := client.Discovery().ServerGroupsAndResources()
	if err != nil && !strings.Contains(err.Error(), "gc.winnow.dev/v1alpha1") { // nobody serves it here
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			t.Fatal(err)
		}
		for _, resource := range list.APIResources {
			if granted := verbs(t, account, in, version.Group, resource.Name); granted != "" {
				found[version.WithResource(resource.Name).GroupResource().String()] = granted
			}
		}
	}
	return found
}

func verbs(t *testing.T, account, in, group, resource string) string {
	t.Helper()
	resource, subresource, _ := strings.Cut(resource, "/")
	var granted []string
	for _, verb := range strings.Fields(allVerbs) {
		asked := authorizationv1.ResourceAttributes{Namespace: in, Verb: verb, Group: group, Resource: resource, Subresource: subresource}
		if may(t, serviceAccount(account), asked) && !may(t, serviceAccount("default"), asked) {
			granted = append(granted, verb)
		}
	}
	return strings.Join(granted, " ")
}

// TestRightsByName covers what is granted for single objects.
func TestRightsByName(t *testing.T) {
	const extensions, admission = "apiextensions.k8s.io", "admissionregistration.k8s.io"
	for _, tc := range []struct {
		group, resource, namespace, name string
		verbs                            string
	}{
		{extensions, "customresourcedefinitions", "", "storedcleanuppolicies.internal.gc.winnow.dev", "get list watch"},
		{extensions, "customresourcedefinitions", "", "storedclustercleanuppolicies.internal.gc.winnow.dev", "get list watch"},
		{extensions, "customresourcedefinitions", "", "storedresourcelifecycles.internal.gc.winnow.dev", "get list watch"},
		{extensions, "customresourcedefinitions", "", "usagemarks.internal.gc.winnow.dev", "get list watch"},
		{extensions, "customresourcedefinitions", "", "recordchunks.internal.gc.winnow.dev", "get list watch"},
		{extensions, "customresourcedefinitions", "", "objectcopies.internal.gc.winnow.dev", "get list watch"},
		{extensions, "customresourcedefinitions", "", "others.example.com", "list watch"},
		{admission, "validatingadmissionpolicies", "", "storage.internal.gc.winnow.dev", "get list watch"},
		{admission, "validatingadmissionpolicies", "", "others", "get list watch"},
		{admission, "validatingadmissionpolicybindings", "", "storage.internal.gc.winnow.dev", "get list watch"},
		{admission, "validatingadmissionpolicybindings", "", "others", "get list watch"},
		{"", "configmaps", "kube-system", "extension-apiserver-authentication", "get list watch"},
		{"", "configmaps", "kube-system", "others", ""},
		{"coordination.k8s.io", "leases", namespace, "winnow", "get create update"},
		{"coordination.k8s.io", "leases", namespace, "others", "create"},
		{"", "secrets", namespace, "winnow-certificates", "get create update patch"},
		{"", "secrets", namespace, "others", ""},
		{"", "secrets", "team-a", "winnow-certificates", ""},
		{"apiregistration.k8s.io", "apiservices", "", "v1alpha1.gc.winnow.dev", "get list create patch delete"},
		{"apiregistration.k8s.io", "apiservices", "", "others", "list"},
		{"rbac.authorization.k8s.io", "clusterroles", "", "winnow:registration", "get"},
		{"rbac.authorization.k8s.io", "clusterroles", "", "winnow:controller", ""},
		{"rbac.authorization.k8s.io", "roles", namespace, "winnow:certificates", "get"},
		{"rbac.authorization.k8s.io", "roles", namespace, "winnow:leader-election", ""},
		{"", "namespaces", "", "team-a", "get list watch"},
		{"batch", "jobs", "team-a", "build-1", "get list watch delete"},
	} {
		var granted []string
		for _, verb := range strings.Fields(allVerbs) {
			if may(t, serviceAccount("winnow"), authorizationv1.ResourceAttributes{
				Namespace: tc.namespace, Verb: verb, Group: tc.group, Resource: tc.resource, Name: tc.name}) {
				granted = append(granted, verb)
			}
		}
		if got := strings.Join(granted, " "); got != tc.verbs {
			t.Errorf("%s.%s %s/%s: may %q, want %q", tc.resource, tc.group, tc.namespace, tc.name, got, tc.verbs)
		}
	}
}

// TestManageStorage: the optional rights suffice for server-side apply of the storage, which creates by name. Without them, not
// even Winnow can change the admission policy that restrains it.
func TestManageStorage(t *testing.T) {
	const optional = "../../artifacts/optional/manage-storage.yaml"
	winnow := serviceAccount("winnow")
	kubeconfig, err := shared.KubeconfigFor(winnow.name, winnow.groups...)
	if err != nil {
		t.Fatal(err)
	}
	apply := []string{
		"apply",
		"--kubeconfig",
		kubeconfig,
		"--server-side",
		"--force-conflicts",
		"--validate=false",
		"-f",
		"../../artifacts/storage/",
	}
	_, stderr, err := shared.Kubectl(t.Context(), apply...)
	if err == nil || strings.Count(stderr, "Forbidden") != 8 {
		t.Errorf("without the rights: error %v, want each of eight objects forbidden:\n%s", err, stderr)
	}
	kubectl(t, "apply", "-f", optional)
	defer kubectl(t, "delete", "-f", optional)
	eventually(t, func() error {
		_, _, err := shared.Kubectl(t.Context(), apply...)
		return err
	})
}

// TestMoreResources gives Winnow a right by the label, and takes it back with the role.
func TestMoreResources(t *testing.T) {
	asked := authorizationv1.ResourceAttributes{Namespace: "team-a", Verb: "delete", Resource: "configmaps"}
	becomes := func(want bool) {
		t.Helper()
		eventually(t, func() error {
			if got := may(t, serviceAccount("winnow"), asked); got != want {
				return fmt.Errorf("winnow may delete ConfigMaps: %v, want %v", got, want)
			}
			return nil
		})
	}
	becomes(false)
	kubectl(t, "create", "clusterrole", "more", "--verb=get,list,watch,delete", "--resource=configmaps")
	kubectl(t, "label", "clusterrole", "more", "gc.winnow.dev/aggregate-to-winnow=true")
	becomes(true)
	kubectl(t, "apply", "-k", install)
	if !may(t, serviceAccount("winnow"), asked) {
		t.Error("applying the manifests again takes the right away")
	}
	kubectl(t, "delete", "clusterrole", "more")
	becomes(false)
}

// TestUserRoles checks what users with the roles of the cluster and with ours may do with policies, once these are aggregated.
// Policies of the cluster are for those who have a role in all of it.
func TestUserRoles(t *testing.T) {
	const read, change, write = "get list watch", allVerbs, allVerbs + verbApprove
	for role, want := range map[string]userRights{
		"view":            {read, read, read},
		"edit":            {read, read, read},
		"admin":           {read, read, read},
		"winnow-view":     {read, read, read},
		"winnow-edit":     {write, "", ""},
		"winnow-operator": {"", write, change},
	} {
		t.Run(role, func(t *testing.T) { checkRole(t, "team-"+role, role, want) })
	}
	const optIn = "../../artifacts/optional/edit.yaml"
	kubectl(t, "apply", "-f", optIn)
	defer kubectl(t, "delete", "-f", optIn)
	for role, want := range map[string]userRights{
		"view":  {read, read, read},
		"edit":  {write, read, read},
		"admin": {write, read, read},
	} {
		t.Run("opt-in "+role, func(t *testing.T) { checkRole(t, "team-opt-in-"+role, role, want) })
	}
}

// userRights are the verbs for policies of a namespace, for cluster policies, and for lifecycles.
type userRights struct{ inNamespace, ofCluster, lifecycles string }

// clusterReviews returns the verbs for reviews of cluster policies. Whoever may read cluster policies may review drafts of them.
func (r userRights) clusterReviews() string {
	if r.ofCluster == "" {
		return ""
	}
	return "create"
}

// checkRole binds the role to one user in a namespace, and to another in all of the cluster.
func checkRole(t *testing.T, team, role string, want userRights) {
	t.Helper()
	kubectl(t, "create", "namespace", team)
	member, everywhere := user{name: team + "-member"}, user{name: team + "-everywhere"}
	kubectl(t, "create", "rolebinding", role, "-n", team, "--clusterrole="+role, "--user="+member.name)
	kubectl(t, "create", "clusterrolebinding", team, "--clusterrole="+role, "--user="+everywhere.name)
	for _, right := range []struct {
		who          user
		in, resource string
		want         string
	}{
		{member, team, "cleanuppolicies", want.inNamespace},
		{member, team, "cleanuppolicies/status", ""},
		{member, "team-other", "cleanuppolicies", ""},
		{member, team, "cleanupcandidates", "get list"},
		{member, "team-other", "cleanupcandidates", ""},
		{everywhere, "team-other", "cleanupcandidates", "get list"},
		{member, team, "cleanuprecords", "get list"},
		{member, "team-other", "cleanuprecords", ""},
		{everywhere, "team-other", "cleanuprecords", "get list"},
		{member, team, "cleanupcopies", "get list"},
		{member, "team-other", "cleanupcopies", ""},
		{everywhere, "team-other", "cleanupcopies", "get list"},
		{member, team, "cleanupreviews", "create"},
		{member, "team-other", "cleanupreviews", ""},
		{member, "", "clustercleanupreviews", ""},
		{everywhere, "", "clustercleanupreviews", want.clusterReviews()},
		{member, "", "clustercleanuppolicies", ""},
		{everywhere, "", "clustercleanuppolicies", want.ofCluster},
		{everywhere, "", "clustercleanuppolicies/status", ""},
		{member, "", "resourcelifecycles", ""},
		{everywhere, "", "resourcelifecycles", want.lifecycles},
		{everywhere, "", "resourcelifecycles/status", ""},
	} {
		eventually(t, func() error { return sameRights(t, right.who, right.in, right.resource, right.want) })
	}
}

func sameRights(t *testing.T, who user, in, resource, want string) error {
	t.Helper()
	resource, subresource, _ := strings.Cut(resource, "/")
	var granted []string
	for _, verb := range strings.Fields(allVerbs + verbApprove) {
		if may(t, who, authorizationv1.ResourceAttributes{
			Namespace: in, Verb: verb, Group: "gc.winnow.dev", Resource: resource, Subresource: subresource}) {
			granted = append(granted, verb)
		}
	}
	if got := strings.Join(granted, " "); got != want {
		return fmt.Errorf("%s may %q on %s/%s in %s, want %q", who.name, got, resource, subresource, in, want)
	}
	return nil
}

func may(t *testing.T, who user, asked authorizationv1.ResourceAttributes) bool {
	t.Helper()
	review, err := client.AuthorizationV1().SubjectAccessReviews().Create(t.Context(), &authorizationv1.SubjectAccessReview{
		Spec: authorizationv1.SubjectAccessReviewSpec{User: who.name, Groups: who.groups, ResourceAttributes: &asked},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return review.Status.Allowed
}

// eventually tries until there is no error, for half a minute.
func eventually(t *testing.T, try func() error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, 5*time.Minute, true, func(context.Context) (bool, error) {
		last = try()
		return last == nil, nil
	})
	if err != nil {
		t.Fatalf("%v: %v", err, last)
	}
}
