// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
)

// review is a manifest, the same as for a policy except for the kind.
const review = `{apiVersion: gc.winnow.dev/v1alpha1, kind: CleanupReview, metadata: {name: p}, spec: {%s}}`

// manifest returns the path of a file with this content.
func manifest(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "manifest.yaml")
	must(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

// reviewed returns the answer to a review of this spec, and the warnings.
func reviewed(ctx context.Context, as func(context.Context, ...string) (string, string, error), path string) (v1alpha1.CleanupReviewStatus, string, error) {
	var out v1alpha1.CleanupReview
	stdout, stderr, err := as(ctx, "create", "--validate=false", "-f", path, "-o", "yaml")
	if err == nil {
		err = yaml.UnmarshalStrict([]byte(stdout), &out)
	}
	return out.Status, stderr, err
}

// TestReviewOfTenants: what a draft would delete, to whom may list everything, to whom may list only Pods, and to a stranger. Nothing is
// stored, and nothing is deleted until the draft becomes a policy. Then exactly what was announced is deleted.
func TestReviewOfTenants(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t)
	finishedJobs(t, ns, 6)
	createFinishedPods(t, ns, []finishedPod{{name: "pod", phase: corev1.PodSucceeded}})
	createPolicy(t, ns, "p", v1alpha1.CleanupPolicySpec{TTLAfterFinished: ttl("1d")})
	viewer, counter, stranger := asUser(t, "viewer-"+ns, ns), asUser(t, "counter-"+ns, ns), asUser(t, "stranger-"+ns, ns)
	kubectl(t, "create", "rolebinding", "viewer", "-n", ns, "--clusterrole=view", "--user=viewer-"+ns)
	kubectl(t, "create", "role", "counter", "-n", ns, "--verb=list", "--resource=pods")
	kubectl(t, "create", "role", "reviewer", "-n", ns, "--verb=create", "--resource=cleanupreviews.gc.winnow.dev")
	kubectl(t, "create", "rolebinding", "counter", "-n", ns, "--role=counter", "--user=counter-"+ns)
	kubectl(t, "create", "rolebinding", "reviewer", "-n", ns, "--role=reviewer", "--user=counter-"+ns)

	draft := "ttlAfterFinished: 30m, rules: [{name: two, resources: [jobs.batch], capacity: {maxObjects: 2}}]"
	path := manifest(t, fmt.Sprintf(review, draft))
	var announced []string
	eventually(t, func(ctx context.Context) string {
		s, warnings, err := reviewed(ctx, viewer, path)
		announced = nil
		for _, o := range s.Sample {
			if o.DueTime == nil {
				announced = append(announced, strings.TrimSuffix(o.Resource, ".batch")+"/"+o.Name+" p/"+o.Rule)
			}
		}
		want := []v1alpha1.ReviewedRule{
			{Resource: "jobs.batch", Rule: "two", ReviewedCount: v1alpha1.ReviewedCount{Now: 4, Hour: 4, Day: 4, Week: 4}},
			{Resource: "pods", Rule: "default", ReviewedCount: v1alpha1.ReviewedCount{Hour: 1, Day: 1, Week: 1}},
		}
		const warning = "Warning: 4 Jobs in %s are over this capacity and would be deleted now"
		if err != nil || !s.Complete || !slices.Equal(s.Deletions, want) || !strings.Contains(warnings, fmt.Sprintf(warning, ns)) ||
			s.WithoutDraft.Day != 7 || s.WithDraft.Week != 5 || len(s.HiddenResources) > 0 {
			return fmt.Sprintf("the viewer gets %+v, %s, %v", s, warnings, err)
		}
		return ""
	})
	eventually(t, func(ctx context.Context) string {
		s, warnings, err := reviewed(ctx, counter, path)
		if err != nil || s.WithDraft.Week != 1 || !slices.Equal(s.HiddenResources, []string{"jobs.batch"}) || len(s.Sample) != 1 || strings.Contains(warnings, "Job") {
			return fmt.Sprintf("who may list Pods gets %+v, %s, %v", s, warnings, err)
		}
		return ""
	})
	if _, stderr, err := stranger(t.Context(), "create", "--validate=false", "-f", path); err == nil || !strings.Contains(stderr, "forbidden") {
		t.Errorf("a stranger: %s", stderr)
	}
	if stdout, stderr, err := viewer(t.Context(), "create", "--validate=false", "-f", path); err != nil || stdout != "cleanupreview.gc.winnow.dev/p created\n" {
		t.Errorf("kubectl create: %s %s", stdout, stderr)
	}
	p, err := gc.CleanupPolicies(ns).Get(t.Context(), "p", metav1.GetOptions{})
	must(t, err)
	if *p.Spec.TTLAfterFinished != "1d" {
		t.Errorf("the review has changed the policy: %+v", p.Spec)
	}
	expectDeletions(t, ns)
	kubectl(t, "apply", "-n", ns, "-f", manifest(t, strings.ReplaceAll(fmt.Sprintf(review, draft), "CleanupReview", "CleanupPolicy")))
	if len(announced) != 4 {
		t.Errorf("announced are %q, want 4 Jobs", announced)
	}
	expectDeletions(t, ns, announced...)
}

// TestReviewOfBadDrafts: errors name the field and the way out, as for a policy.
func TestReviewOfBadDrafts(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t)
	for spec, want := range map[string]string{
		"ttlAfterFinished: 1 week":                        `CleanupReview "p" is invalid: spec.ttlAfterFinished: Invalid value: "1 week"`,
		"ttlAfterFinishd: 1w":                             `unknown field "spec.ttlAfterFinishd"; did you mean "ttlAfterFinished"?`,
		"rules: [{name: a, resources: [job], ttl: 1h}]":   `spec.rules[0].resources[0]: Invalid value: "job"`,
		"rules: [{name: a, resources: [jobs.batch]}]":     "spec.rules[0].ttl: Required value",
		"rules: [{name: a, resources: [nodes], ttl: 1h}]": "is never deleted by Winnow",
	} {
		_, stderr, err := suite.Kubectl(t.Context(), "create", "--validate=false", "-n", ns, "-f", manifest(t, fmt.Sprintf(review, spec)))
		if err == nil || !strings.Contains(stderr, want) {
			t.Errorf("%s: got %s, want %s", spec, stderr, want)
		}
	}
	unserved := manifest(t, fmt.Sprintf(review, "rules: [{name: a, resources: [looms.example.dev], ttl: 1h}]"))
	stdout, stderr, err := suite.Kubectl(t.Context(), "create", "-n", ns, "-f", unserved)
	if err != nil || !strings.Contains(stderr, "the cluster does not serve looms.example.dev") {
		t.Errorf("a resource that is not served: %s %s", stdout, stderr)
	}
	nameless := manifest(t, "{apiVersion: gc.winnow.dev/v1alpha1, kind: CleanupReview, spec: {}}")
	if _, stderr, err := suite.Kubectl(t.Context(), "create", "-n", ns, "-f", nameless); err == nil || !strings.Contains(stderr, "metadata.name: Required value") {
		t.Errorf("without a name: %s", stderr)
	}
	if _, stderr, err := suite.Kubectl(t.Context(), "get", "cleanupreviews", "-n", ns); err == nil || !strings.Contains(stderr, "MethodNotAllowed") {
		t.Errorf("reviews can be read: %s", stderr)
	}
}
