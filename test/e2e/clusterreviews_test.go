// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
)

const clusterReview = `{apiVersion: gc.winnow.dev/v1alpha1, kind: ClusterCleanupReview, metadata: {name: %q}, spec: {%s}}`

// clusterReviewed returns the answer to a review of a cluster policy, and the warnings.
func clusterReviewed(
	ctx context.Context, as func(context.Context, ...string) (string, string, error), path string,
) (v1alpha1.ClusterCleanupReviewStatus, string, error) {
	var out v1alpha1.ClusterCleanupReview
	stdout, stderr, err := as(ctx, "create", "--validate=false", "-f", path, "-o", "yaml")
	if err == nil {
		err = yaml.UnmarshalStrict([]byte(stdout), &out)
	}
	return out.Status, stderr, err
}

// TestReviewOfClusterPolicy: somebody who may list everything sees all selected namespaces, and a tenant only the namespace in which it may
// list Jobs. Nothing in its answer names the other one. Nothing is stored, and nothing is deleted.
func TestReviewOfClusterPolicy(t *testing.T) {
	t.Parallel()
	label := map[string]string{"reviewed": fmt.Sprint("by-", strings.ToLower(t.Name()))}
	own, other := newLabelledNamespace(t, label), newLabelledNamespace(t, label)
	finishedJobs(t, own, 3)
	finishedJobs(t, other, 5)
	createPolicy(t, own, "p", v1alpha1.CleanupPolicySpec{TTLAfterFinished: ttl("1d")})
	tenant, stranger := asUser(t, "tenant-"+own, own), asUser(t, "stranger-"+own, own)
	kubectl(t, "create", "clusterrole", "reviewer-"+own, "--verb=create", "--resource=clustercleanupreviews.gc.winnow.dev")
	kubectl(t, "create", "clusterrolebinding", "reviewer-"+own, "--clusterrole=reviewer-"+own, "--user=tenant-"+own)
	kubectl(t, "create", "role", "lists", "-n", own, "--verb=list", "--resource=jobs.batch")
	kubectl(t, "create", "rolebinding", "lists", "-n", own, "--role=lists", "--user=tenant-"+own)

	path := manifest(t, fmt.Sprintf(clusterReview, "r-"+own, fmt.Sprintf(`mode: Preview, namespaceSelector: {matchLabels: {reviewed: %q}},
		guardrails: {ceilings: [{resources: [jobs.batch], maxObjects: 4}]}, rules: [{name: all, resources: [jobs.batch], ttl: 0s}]`,
		label["reviewed"])))
	eventually(t, func(ctx context.Context) string {
		s, warnings, err := clusterReviewed(ctx, suite.Kubectl, path)
		var names []string
		for _, ns := range s.Namespaces {
			names = append(names, ns.Namespace)
		}
		if err != nil || !s.Complete || !slices.Equal(names, []string{other, own}) || s.WithDraft.Now != 6 || s.WithoutDraft.Week != 3 ||
			len(s.Ceilings) != 1 || s.Ceilings[0].Objects != 8 || s.Ceilings[0].Over != 4 || !strings.Contains(warnings, "6 Jobs") {
			return fmt.Sprintf("who may list everything gets %+v, %s, %v", s, warnings, err)
		}
		return ""
	})
	eventually(t, func(ctx context.Context) string {
		s, warnings, err := clusterReviewed(ctx, tenant, path)
		if err != nil || s.Complete || len(s.Namespaces) != 1 || s.Namespaces[0].Namespace != own || s.WithoutDraft.Week != 3 ||
			!slices.Contains(s.HiddenResources, "jobs.batch") || strings.Contains(fmt.Sprintf("%+v%s", s, warnings), other) {
			return fmt.Sprintf("the tenant gets %+v, %s, %v", s, warnings, err)
		}
		return ""
	})
	_, stderr, err := stranger(t.Context(), "create", "--validate=false", "-f", path)
	if err == nil || !strings.Contains(stderr, "forbidden") {
		t.Errorf("a stranger: %s", stderr)
	}
	all, err := gc.ClusterCleanupPolicies().List(t.Context(), metav1.ListOptions{})
	must(t, err)
	if slices.ContainsFunc(all.Items, func(p v1alpha1.ClusterCleanupPolicy) bool { return p.Name == "r-"+own }) {
		t.Error("the draft is stored")
	}
	expectDeletions(t, own)
	expectDeletions(t, other)
}

// TestReviewOfBadClusterDrafts: errors name the field and the way out, as for a cluster policy.
func TestReviewOfBadClusterDrafts(t *testing.T) {
	t.Parallel()
	const invalid = `ClusterCleanupReview "p" is invalid: `
	for spec, want := range map[string]string{
		"ttlAfterFinished: 1h":                            invalid + "spec.namespaceSelector: Required value",
		"namespaceSelector: {}, ttlAfterFinished: 1 week": invalid + `spec.ttlAfterFinished: Invalid value: "1 week"`,
		"namespaceSelector: {}, ttlAfterFinishd: 1w":      `unknown field "spec.ttlAfterFinishd"; did you mean "ttlAfterFinished"?`,
	} {
		path := manifest(t, fmt.Sprintf(clusterReview, "p", spec))
		_, stderr, err := suite.Kubectl(t.Context(), "create", "--validate=false", "-f", path)
		if err == nil || !strings.Contains(stderr, want) {
			t.Errorf("%s: got %s, want %s", spec, stderr, want)
		}
	}
	_, stderr, err := suite.Kubectl(t.Context(), "get", "clustercleanupreviews")
	if err == nil || !strings.Contains(stderr, "MethodNotAllowed") {
		t.Errorf("reviews can be read: %s", stderr)
	}
}
