// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
)

// TestAnnotationsWithoutEffect: whoever annotates an object finds in its events why the annotation does not do what it says, and who has
// that so.
func TestAnnotationsWithoutEffect(t *testing.T) {
	t.Parallel()
	ns, unmatched := newNamespace(t), newNamespace(t)
	createPolicy(t, ns, "defaults", v1alpha1.CleanupPolicySpec{TTLAfterFinished: ttl("1h")})
	for _, name := range []string{"short", "longer"} {
		createJob(t, ns, job(name))
		waitJobFinished(t, ns, name)
	}
	createPod(t, ns, pod("web", func(p *corev1.Pod) {
		p.Spec.RestartPolicy = corev1.RestartPolicyAlways
		p.Annotations["test.winnow.dev/run-for"] = "forever"
	}))
	createPod(t, ns, pod("wrong"))
	createPod(t, unmatched, pod("wrong"))
	annotate := func(ns, object, annotation string) {
		t.Helper()
		if _, stderr, err := suite.Kubectl(t.Context(), "annotate", "-n", ns, object, annotation); err != nil {
			t.Fatal(stderr)
		}
	}
	annotate(ns, "job/longer", "gc.winnow.dev/ttl=2h")
	annotate(unmatched, "pod/wrong", "gc.winnow.dev/ttl=soon")
	annotate(ns, "job/short", "gc.winnow.dev/ttl=10m")
	annotate(ns, "pod/web", "gc.winnow.dev/ttl=10m")
	annotate(ns, "pod/wrong", "gc.winnow.dev/keep-until=tomorrow")

	for object, want := range map[string]string{
		"job/short": `AnnotationIgnored Annotation gc.winnow.dev/ttl: "10m" has no effect: CleanupPolicy "defaults" keeps this object for 1h`,
		"pod/web":   `AnnotationIgnored Annotation gc.winnow.dev/ttl: "10m" has no effect while this Pod runs`,
		"pod/wrong": `InvalidAnnotation CleanupPolicy "defaults" does not delete this object until you correct or remove annotation gc.winnow.dev/keep-until: "tomorrow"`,
	} {
		reason, note, _ := strings.Cut(want, " ")
		eventually(t, func(ctx context.Context) string {
			out, stderr, err := suite.Kubectl(ctx, "describe", "-n", ns, object)
			if err != nil || !strings.Contains(out, reason) || !strings.Contains(out, note) {
				return stderr + out
			}
			return ""
		})
	}
	annotate(ns, "job/short", "example.com/other=x")             // Nothing is told again.
	annotate(ns, "job/longer", "gc.winnow.dev/keep-until=never") // Its turn comes after all others.
	eventually(t, func(ctx context.Context) string {
		told := events(ctx, t, ns)
		if told["longer"] == 0 {
			return "nothing is told of job/longer"
		}
		if told["short"] != 1 || told["web"] != 1 || told["wrong"] != 1 || told["longer"] != 1 {
			t.Fatalf("told %v, want each once", told)
		}
		return ""
	})
	if told := events(t.Context(), t, unmatched); len(told) > 0 {
		t.Errorf("told %v where there is no policy", told)
	}
}

// events counts the warnings about annotations by object, as a tenant sees them; each names the policy.
func events(ctx context.Context, t *testing.T, ns string) map[string]int {
	t.Helper()
	list, err := kube.EventsV1().Events(ns).List(ctx, metav1.ListOptions{FieldSelector: "type=Warning"})
	must(t, err)
	out := map[string]int{}
	for _, e := range list.Items {
		if e.Reason != "AnnotationIgnored" && e.Reason != "InvalidAnnotation" {
			continue
		}
		if e.Related == nil || e.Related.Kind != "CleanupPolicy" || e.Related.Name != "defaults" {
			t.Errorf("%s is related to %v", e.Name, e.Related)
		}
		out[e.Regarding.Name]++
	}
	return out
}
