// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	applyv1alpha1 "github.com/winnow-dev/winnow/pkg/generated/applyconfiguration/gc/v1alpha1"
)

func TestServerSideApply(t *testing.T) {
	forEachKind(t, func(t *testing.T, p scope) {
		apply := func(manager string, flags ...string) []string {
			return append([]string{"apply", "--server-side", "--field-manager=" + manager, "-f", "-"}, flags...)
		}
		kubectlStdin(t, p.manifest("a", `{ttlAfterFinished: 1h}`), apply("gitops")...)
		kubectlStdin(t, p.manifest("a", `{annotationTTL: Ignore}`), apply("person")...)
		policy := p.get("a")
		if *policy.Spec.TTLAfterFinished != "1h" || policy.Spec.AnnotationTTL != "Ignore" {
			t.Errorf("the two do not add up: %+v", policy.Spec)
		}
		owned := owners(policy.ObjectMeta)
		contains(t, owned["gitops"], "f:ttlAfterFinished")
		contains(t, owned["person"], "f:annotationTTL")

		conflict := refused(t, p.manifest("a", `{ttlAfterFinished: 2h, annotationTTL: Ignore}`), apply("person")...)
		contains(t, conflict, `conflict with "gitops"`, ".spec.ttlAfterFinished")
		kubectlStdin(t, p.manifest("a", `{ttlAfterFinished: 2h, annotationTTL: Ignore}`), apply("person", "--force-conflicts")...)
		kubectlStdin(t, p.manifest("a", `{}`), apply("person")...) // gives up all that it owned
		policy = p.get("a")
		if policy.Spec.TTLAfterFinished != nil || policy.Spec.AnnotationTTL != "ExtendOnly" {
			t.Errorf("what nobody owns any more is still there: %+v", policy.Spec)
		}
	})
}

// TestStatusIsApart lets a status writer apply everything: it gets the status, and neither spec nor metadata.
func TestStatusIsApart(t *testing.T) {
	forEachKind(t, func(t *testing.T, p scope) {
		kubectlStdin(t, p.manifest("a", `{ttlAfterFinished: 1h}`), "apply", "--server-side", "--field-manager=gitops", "-f", "-")
		all := strings.Replace(
			p.manifest("a", `{ttlAfterFinished: 9h, mode: Preview}`),
			"metadata: {",
			"metadata: {annotations: {stolen: note}, ",
			1,
		) +
			"status: {candidates: 3, conditions: [{type: Ready, status: \"True\", reason: CarriedOut, message: \"\", lastTransitionTime: \"2026-01-01T00:00:00Z\"}]}\n"
		kubectlStdin(t, all, "apply", "--server-side", "--subresource=status", "--field-manager=controller", "-f", "-")
		kubectl(t, p.on("patch", "a", "--subresource=status", "--type=merge", "--field-manager=patcher", "-p",
			`{"metadata":{"labels":{"stolen":"too"}},"spec":{"mode":"Preview"},"status":{"due":2}}`)...)

		policy := p.get("a")
		if *policy.Spec.TTLAfterFinished != "1h" || policy.Spec.Mode != "Enforce" || policy.Generation != 1 ||
			policy.Labels["stolen"]+policy.Annotations["stolen"] != "" {
			t.Errorf("a status writer changed %+v, labels %v, annotations %v", policy.Spec, policy.Labels, policy.Annotations)
		}
		if policy.Status.Candidates != 3 || policy.Status.Due != 2 || len(policy.Status.Conditions) != 1 {
			t.Errorf("the status did not arrive: %+v", policy.Status)
		}
		owned := owners(policy.ObjectMeta)
		for _, writer := range []string{"controllerstatus", "patcherstatus"} {
			if fields := owned[writer]; !strings.Contains(fields, "f:status") || strings.Contains(fields, "f:spec") ||
				strings.Contains(fields, "f:labels") {
				t.Errorf("%s owns %s", writer, fields)
			}
		}
		kubectlStdin(
			t,
			p.manifest("a", `{ttlAfterFinished: 2h}`)+"status: {candidates: 99}\n",
			"apply",
			"--server-side",
			"--field-manager=gitops",
			"-f",
			"-",
		)
		policy = p.get("a")
		if policy.Status.Candidates != 3 || strings.Contains(owners(policy.ObjectMeta)["gitops"], "f:status") {
			t.Errorf("a writer of the spec has got at the status: %+v, owns %s", policy.Status, owners(policy.ObjectMeta)["gitops"])
		}
	})
}

// TestApplyConfiguration applies through the generated types, as a controller does.
func TestApplyConfiguration(t *testing.T) {
	forEachKind(t, func(t *testing.T, p scope) {
		p.create("a", `{ttlAfterFinished: 1h}`)
		status := applyv1alpha1.CleanupPolicyStatus().WithCandidates(12)
		options := metav1.ApplyOptions{FieldManager: "winnow", Force: true}
		var err error
		if p.namespaced {
			_, err = client.GcV1alpha1().
				CleanupPolicies(p.id).
				ApplyStatus(t.Context(), applyv1alpha1.CleanupPolicy("a", p.id).WithStatus(status), options)
		} else {
			_, err = client.GcV1alpha1().ClusterCleanupPolicies().ApplyStatus(t.Context(), applyv1alpha1.ClusterCleanupPolicy(p.called("a")).WithStatus(status), options)
		}
		if policy := p.get("a"); err != nil || policy.Status.Candidates != 12 || *policy.Spec.TTLAfterFinished != "1h" {
			t.Errorf("got %+v, %v", policy, err)
		}
	})
}

func TestDiff(t *testing.T) {
	forEachKind(t, func(t *testing.T, p scope) {
		p.create("a", `{ttlAfterFinished: 1h}`)
		kubectlStdin(t, p.manifest("a", `{ttlAfterFinished: 1h}`), "diff", "--server-side", "--force-conflicts", "-f", "-")
		out, stderr, err := shared.KubectlStdin(t.Context(), p.manifest("a", `{ttlAfterFinished: 2h}`), "diff", "-f", "-")
		if err == nil {
			t.Errorf("no difference was found: %s%s", out, stderr)
		}
		contains(t, out, "-  ttlAfterFinished: 1h", "+  ttlAfterFinished: 2h")
		if got := p.get("a"); *got.Spec.TTLAfterFinished != "1h" {
			t.Errorf("diff changed the policy: %+v", got.Spec)
		}
	})
}

func TestWait(t *testing.T) {
	forEachKind(t, func(t *testing.T, p scope) {
		p.create("a", `{ttlAfterFinished: 1h}`)
		contains(t, refused(t, "", p.on("wait", "a", "--for=condition=Ready", "--timeout=1s")...), "timed out")
		done := make(chan error, 1)
		go func() {
			_, _, err := shared.Kubectl(context.WithoutCancel(t.Context()), p.on("wait", "a", "--for=condition=Ready", "--timeout=5m")...)
			done <- err
		}()
		kubectl(t, p.on("patch", "a", "--subresource=status", "--type=merge", "-p", condition("Ready", "True"))...)
		select {
		case err := <-done:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(waitMost):
			t.Error("kubectl wait does not end")
		}
		contains(t, kubectl(t, p.on("wait", "a", "--for=jsonpath={.spec.mode}=Enforce")...), "condition met")
	})
}
