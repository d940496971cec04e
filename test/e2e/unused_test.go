// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/test/winnow"
)

// TestUnused runs tests of rules with after: Unused in parallel with one another, but not with other tests: Winnow may list all resources
// here, which others forbid, and what they break, such as a conversion webhook, would stop all tests of this kind.
func TestUnused(t *testing.T) {
	grantReferrers(t)
	for name, test := range map[string]func(*testing.T){
		"Kinds":           testUnusedKinds,
		"Rollout":         testUnusedRollout,
		"HelmUpgrades":    testUnusedHelmUpgrades,
		"Sleepers":        testUnusedSleepers,
		"CustomResources": testUnusedByCustomResources,
		"UsedAgain":       testUnusedUsedAgain,
		"Tenant":          testUnusedTenant,
		"HeldAbove":       testUnusedHeldAbove,
		"TTLAnnotation":   testTTLAnnotation,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t)
		})
	}
}

const referrersManifest = "../../artifacts/optional/referrers.yaml"

// grantReferrers lets Winnow see what refers to ConfigMaps and Secrets, until the test ends, and delete these.
func grantReferrers(t *testing.T) {
	t.Helper()
	kubectl(t, "apply", "-f", referrersManifest)
	t.Cleanup(func() {
		_, stderr, err := suite.Kubectl(whole, "delete", "--ignore-not-found", "-f", referrersManifest)
		if err != nil {
			t.Error(stderr)
		}
	})
	grantByCommand(t, "configmaps")
	grantByCommand(t, "secrets")
}

// createUnusedPolicy creates a policy p until the test ends. While there is any such policy, Winnow observes all that may refer to objects.
func createUnusedPolicy(t *testing.T, ns string, spec v1alpha1.CleanupPolicySpec) {
	t.Helper()
	createPolicy(t, ns, "p", spec)
	t.Cleanup(func() { must(t, gc.CleanupPolicies(ns).Delete(whole, "p", metav1.DeleteOptions{})) })
}

// unusedAfter is a policy that deletes ConfigMaps and Secrets with the label app=web some time after their last use.
func unusedAfter(d v1alpha1.TTL) v1alpha1.CleanupPolicySpec {
	return v1alpha1.CleanupPolicySpec{Rules: []v1alpha1.CleanupRule{{
		Name: "unused", Resources: []string{"configmaps", "secrets"}, After: v1alpha1.AfterUnused, TTL: &d,
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
	}}}
}

func createConfigMap(t *testing.T, ns, name string, change ...func(*metav1.ObjectMeta)) {
	t.Helper()
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": "web"}}}
	for _, c := range change {
		c(&cm.ObjectMeta)
	}
	_, err := kube.CoreV1().ConfigMaps(ns).Create(t.Context(), cm, metav1.CreateOptions{})
	must(t, err)
}

func createSecret(t *testing.T, ns, name string, change ...func(*corev1.Secret)) {
	t.Helper()
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": "web"}}}
	for _, c := range change {
		c(s)
	}
	_, err := kube.CoreV1().Secrets(ns).Create(t.Context(), s, metav1.CreateOptions{})
	must(t, err)
}

// waitReason waits until the candidate of an object has a reason, and a message that contains a text.
func waitReason(t *testing.T, ns, object, reason, contains string) {
	t.Helper()
	waitCandidate(t, ns, object, "reason: "+reason, contains)
}

// waitCandidate waits until the candidate of an object has all of some texts, as YAML on one line.
func waitCandidate(t *testing.T, ns, object string, texts ...string) {
	t.Helper()
	eventually(t, func(ctx context.Context) string { return winnow.CandidateLacks(ctx, suite, ns, object, texts...) })
}

// testUnusedKinds: what nothing refers to is deleted, and what anything refers to is kept until nothing does.
func testUnusedKinds(t *testing.T) {
	ns := newNamespace(t)
	for _, name := range []string{"plain", "volume", "scheduled"} {
		createConfigMap(t, ns, name)
	}
	for _, name := range []string{"bare", "pull", "hidden"} {
		createSecret(t, ns, name)
	}
	createConfigMap(t, ns, "kube-flannel-cfg", func(m *metav1.ObjectMeta) { m.Labels["app"] = "flannel" })
	createConfigMap(t, ns, "applied", func(m *metav1.ObjectMeta) {
		m.Annotations = map[string]string{"meta.helm.sh/release-name": "web", "meta.helm.sh/release-namespace": ns}
	})
	createSecret(t, ns, "release", func(s *corev1.Secret) { s.Type = "helm.sh/release.v1" })
	user, err := kube.CoreV1().Pods(ns).Create(t.Context(), pod("user", func(p *corev1.Pod) {
		p.Spec.RestartPolicy = corev1.RestartPolicyAlways
		p.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "pull"}}
		p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: "volume"},
		}}}}
	}), metav1.CreateOptions{})
	must(t, err)
	createUnusedPolicy(t, ns, unusedAfter("2s"))
	want := []string{"configmaps/plain p/unused", "configmaps/scheduled p/unused", "secrets/bare p/unused", "secrets/hidden p/unused"}
	expectDeletions(t, ns, want...)
	waitReason(t, ns, "secrets/pull", "InUse", "It is in use: pods/user refers to it")
	waitReason(t, ns, "configmaps/applied", "InUse", "applied it")
	waitReason(t, ns, "secrets/release", "InUse", "it is a release of Helm")

	must(t, kube.CoreV1().Pods(ns).Delete(t.Context(), user.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}))
	expectDeletions(t, ns, append(want, "configmaps/volume p/unused", "secrets/pull p/unused")...)
}
