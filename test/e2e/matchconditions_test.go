// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	internal "github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
)

// when returns match conditions, which are named by their numbers.
func when(expressions ...string) []v1alpha1.MatchCondition {
	var out []v1alpha1.MatchCondition
	for i, e := range expressions {
		out = append(out, v1alpha1.MatchCondition{Name: "c" + string(rune('0'+i)), Expression: e})
	}
	return out
}

// TestMatchConditions: they read what Winnow does not decode otherwise. What fails is held, and a changed condition decides anew for
// objects that were there before.
func TestMatchConditions(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t)
	small := func(j *batchv1.Job) { j.Spec.Template.Labels["size"] = "small" }
	large := func(j *batchv1.Job) { j.Spec.Template.Labels["size"] = "large" }
	createJob(t, ns, job("small", small))
	createJob(t, ns, job("large", large))
	createJob(t, ns, job("unknown"))
	for _, name := range []string{"small", "large", "unknown"} {
		waitJobFinished(t, ns, name)
	}
	createPolicy(t, ns, "p", v1alpha1.CleanupPolicySpec{Rules: []v1alpha1.CleanupRule{
		{Name: "small", TTL: ttl("0s"), MatchConditions: when("object.spec.template.metadata.labels.size == 'small'")},
		{Name: "rest", TTL: ttl("never")},
	}})
	expectDeletions(t, ns, "jobs/small p/small")
	waitStatus(t, ns, "p", func(s *v1alpha1.CleanupPolicyStatus) bool {
		c := meta.FindStatusCondition(s.Conditions, internal.ConditionReady)
		return s.Held == 1 && c != nil && strings.Contains(c.Message, "no such key: size")
	})

	createJob(t, ns, job("later", small)) // The running watch brings it.
	expectDeletions(t, ns, "jobs/small p/small", "jobs/later p/small")

	changePolicy(t, ns, "p", `{"rules": [{"name": "small", "ttl": "0s", "matchConditions": [
		{"name": "large", "expression": "object.spec.template.metadata.?labels.?size.orValue('large') == 'large'"},
		{"name": "job", "expression": "object.kind == 'Job'"}]}]}`)
	expectDeletions(t, ns, "jobs/small p/small", "jobs/later p/small", "jobs/large p/small", "jobs/unknown p/small")
}

// TestMatchConditionsOfPods: of two namespaces with the same Pods, only the policy's is affected.
func TestMatchConditionsOfPods(t *testing.T) {
	t.Parallel()
	ns, other := newNamespace(t), newNamespace(t)
	scratch := func(p *corev1.Pod) { p.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "KIND", Value: "scratch"}} }
	for _, namespace := range []string{ns, other} {
		createPolicy(t, namespace, "defaults", v1alpha1.CleanupPolicySpec{TTLAfterFinished: ttl("never")})
		createPod(t, namespace, pod("scratch", scratch))
		createPod(t, namespace, pod("plain"))
	}
	createPolicy(t, ns, "p", v1alpha1.CleanupPolicySpec{Rules: []v1alpha1.CleanupRule{{
		Name: "scratch", TTL: ttl("0s"), Resources: []string{"pods"},
		MatchConditions: when("object.spec.containers.exists(c, has(c.env) && c.env.exists(e, e.value == 'scratch'))"),
	}}})
	must(t, gc.CleanupPolicies(ns).Delete(t.Context(), "defaults", metav1.DeleteOptions{}))
	expectDeletions(t, ns, "pods/scratch p/scratch")
	expectDeletions(t, other)
}

// TestMatchConditionsOfOthers: of a resource without a lifecycle the metadata is read, and everything once a condition reads more. Beside a
// lifecycle, conditions read their own fields, of objects of a megabyte too.
func TestMatchConditionsOfOthers(t *testing.T) {
	t.Parallel()
	client, ns, r := customClient(t), newNamespace(t), machine("planers", "v1")
	grant(t, r)
	grantByCommand(t, "configmaps")
	grantByCommand(t, "secrets")
	installCustom(t, client, r)
	createLifecycle(t, r, "object.status.at")
	waitLifecycle(t, r.Name(), established(metav1.ConditionTrue))
	create := func(name, size string) {
		t.Helper()
		createObject(t, client.Resource(r.GroupVersionResource()).Namespace(ns), &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": r.GroupVersionResource().GroupVersion().String(), "kind": r.Kind, "metadata": map[string]any{"name": name},
			"spec": map[string]any{"size": size, "content": strings.Repeat("x", 1_000_000)}, "status": map[string]any{"done": "well", "at": finishTime},
		}})
	}
	create("small", "small")
	create("large", "large")
	for name, kind := range map[string]string{"preview-a": "scratch", "preview-b": "kept", "other": "scratch"} {
		_, err := kube.CoreV1().ConfigMaps(ns).Create(t.Context(),
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"kind": kind}}, metav1.CreateOptions{})
		must(t, err)
	}
	_, err := kube.CoreV1().Secrets(ns).Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "preview-s"}}, metav1.CreateOptions{})
	must(t, err)
	const isPreview = "object.metadata.name.startsWith('preview-')"
	createPolicy(t, ns, "p", v1alpha1.CleanupPolicySpec{Rules: []v1alpha1.CleanupRule{
		{Name: "never", Resources: []string{"configmaps"}, After: v1alpha1.AfterCreated, TTL: ttl("never"), MatchConditions: when(isPreview)},
		{Name: "small", Resources: []string{r.Name()}, TTL: ttl("0s"), MatchConditions: when("object.spec.size == 'small'")},
	}})
	want := []string{"planers/small p/small"}
	expectDeletions(t, ns, want...)
	waitStatus(t, ns, "p", func(s *v1alpha1.CleanupPolicyStatus) bool { return s.Candidates == 2 })

	changePolicy(t, ns, "p", `{"rules": [{"name": "previews", "resources": ["configmaps"], "after": "Created", "ttl": "1s", "matchConditions": [
		{"name": "preview", "expression": "`+isPreview+`"}, {"name": "scratch", "expression": "object.data.kind == 'scratch'"}]},
		{"name": "secret", "resources": ["secrets"], "after": "Created", "ttl": "1s", "matchConditions": [
		{"name": "preview", "expression": "`+isPreview+`"}]}]}`)
	expectDeletions(t, ns, append(want, "configmaps/preview-a p/previews", "secrets/preview-s p/secret")...)
}

// TestConditionsThatCostTooMuch: the object is held with that reason, until the conditions cost less.
func TestConditionsThatCostTooMuch(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t)
	finishedJobs(t, ns, 1)
	numbers := "[" + strings.Repeat("1, ", 100) + "1]"
	createPolicy(t, ns, "p", v1alpha1.CleanupPolicySpec{Rules: []v1alpha1.CleanupRule{{
		Name: "costly", TTL: ttl("0s"), MatchConditions: when(numbers + ".all(x, " + numbers + ".all(y, x + y + size(object.metadata.name) > 0))"),
	}}})
	waitStatus(t, ns, "p", func(s *v1alpha1.CleanupPolicyStatus) bool {
		c := meta.FindStatusCondition(s.Conditions, internal.ConditionReady)
		return s.Held == 1 && strings.Contains(c.Message, "ExpressionError") && strings.Contains(c.Message, "cost too much together")
	})
	expectDeletions(t, ns)
	changePolicy(t, ns, "p", `{"rules": [{"name": "cheap", "ttl": "0s", "matchConditions": [
		{"name": "c", "expression": "size(object.metadata.name) > 0"}]}]}`)
	expectDeletions(t, ns, "jobs/job-0000 p/cheap")
}

// TestFieldOfAnotherType: an object whose field has another type in a newer version of its resource is held, others are not.
func TestFieldOfAnotherType(t *testing.T) {
	t.Parallel()
	client, ns, r := customClient(t), newNamespace(t), machine("grinders", "v1")
	grant(t, r)
	installCustom(t, client, r)
	createLifecycle(t, r, "object.status.at")
	waitLifecycle(t, r.Name(), established(metav1.ConditionTrue))
	finished(t, client, r, ns, "older")
	createObject(t, client.Resource(r.GroupVersionResource()).Namespace(ns), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": r.GroupVersionResource().GroupVersion().String(), "kind": r.Kind, "metadata": map[string]any{"name": "newer"},
		"status": map[string]any{"done": "well", "at": map[string]any{"seconds": int64(5)}},
	}})
	createPolicy(t, ns, "p", policyFor(r))
	expectDeletions(t, ns, "grinders/older p/all")
	waitFailingExpression(t, ns, "p", r.Name()+"/newer", "must evaluate to one of")
}
