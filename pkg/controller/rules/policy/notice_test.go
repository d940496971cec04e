// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

// limited returns the guardrails of a cluster policy "limits".
func limited(t *testing.T, g gc.Guardrails) policy.Bounds {
	t.Helper()
	p, err := policy.CompileCluster(&gc.ClusterCleanupPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "limits"},
		Spec: gc.ClusterCleanupPolicySpec{
			Mode: gc.ModeEnforce, AnnotationTTL: gc.AnnotationExtendOnly, NamespaceSelector: &metav1.LabelSelector{}, Guardrails: &g,
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return policy.BoundsOf([]*policy.Policy{p})
}

// TestNotices: an object gets a notice if its annotation is invalid, or does not have the effect that it asks for.
func TestNotices(t *testing.T) {
	const (
		ignored = string(policy.ReasonAnnotationIgnored) + " by p: "
		invalid = string(policy.ReasonInvalidAnnotation) + " by p: "
		ttl10m  = `Annotation gc.winnow.dev/ttl: "10m" `
		noRead  = `CleanupPolicy "p" does not delete this object until you correct or remove annotation gc.winnow.dev/`
	)
	hour := policies(testbuilders.Policy("p").Default("1h"))
	month, never := gc.TTL("30d"), false
	max30d := limited(t, gc.Guardrails{MaxTTL: &month})
	noNever := limited(t, gc.Guardrails{MaxTTL: &month, AllowNever: &never})
	running := testbuilders.Pod("j").Phase(corev1.PodRunning).Restarts(corev1.RestartPolicyAlways).TTL("10m")
	inYears := finished.Add(1000 * 24 * time.Hour).Format(time.RFC3339)

	for name, c := range map[string]struct {
		fact     *lifecycle.Fact
		owner    lifecycle.OwnerState
		policies []*testbuilders.PolicyBuilder
		bounds   policy.Bounds
		want     string
	}{
		"no annotation":        {fact: job("j").Fact(), policies: hour},
		"no policy":            {fact: job("j").TTL("nonsense").Fact()},
		"only a preview":       {fact: job("j").TTL("10m").Fact(), policies: policies(testbuilders.Policy("p").Default("1h").Preview())},
		"it is being deleted":  {fact: job("j").TTL("10m").Terminating().Fact(), policies: hour},
		"longer":               {fact: job("j").TTL("2h").Fact(), policies: hour},
		"as long":              {fact: job("j").TTL("60m").Fact(), policies: hour},
		"until long ago":       {fact: job("j").KeepUntil("2026-01-01T00:00:00Z").Fact(), policies: hour},
		"shorter, and allowed": {fact: job("j").TTL("10m").Fact(), policies: policies(testbuilders.Policy("p").Default("1h").Annotations(gc.AnnotationAny))},
		"shorter than the TTL, but capacity could come first": {
			fact: job("j").TTL("10m").Fact(), policies: policies(testbuilders.Policy("p").Rules(testbuilders.Rule("r", "1h").Keeping(3)))},
		"shorter than the TTL of an outcome that is not known yet": {
			fact: testbuilders.Job("j").TTL("10m").Fact(), policies: policies(testbuilders.Policy("p").Default("1m").Rules(testbuilders.Rule("r", "1h").Outcome(gc.OutcomeFailed)))},

		"not readable": {fact: job("j").TTL("2 hours").Fact(), policies: hour,
			want: invalid + noRead + `ttl: "2 hours" contains a space; did you mean "2h"?`},
		"no time": {fact: job("j").KeepUntil("tomorrow").Fact(), policies: hour,
			want: invalid + noRead + `keep-until: "tomorrow" is not a time like "2026-01-02T15:04:05Z"`},
		"shorter": {fact: job("j").TTL("10m").Fact(), policies: hour,
			want: ignored + ttl10m + `has no effect: CleanupPolicy "p" keeps this object for 1h, and an annotation can only keep it longer (annotationTTL: ExtendOnly). ` +
				`Set a longer time, or set annotationTTL of CleanupPolicy "p" to Any.`},
		"shorter while it runs": {fact: testbuilders.Job("j").TTL("10m").Fact(), policies: policies(testbuilders.Policy("p").Rules(testbuilders.Rule("r", "1h30m"))),
			want: ignored + ttl10m + `has no effect: rule "r" of CleanupPolicy "p" keeps this object for 1h30m, and`},
		"shorter than never": {fact: job("j").TTL("10m").Fact(), policies: policies(testbuilders.Policy("p").Default("never")),
			want: ignored + ttl10m + `has no effect: CleanupPolicy "p" never deletes this object, and an annotation cannot change that (annotationTTL: ExtendOnly). Set`},
		"shorter than the longest of several": {
			fact: job("j").TTL("10m").Fact(), policies: policies(testbuilders.Policy("a").Default("5m"), testbuilders.Policy("p").Default("1h"), testbuilders.Policy("z").Default("30m")),
			want: ignored + ttl10m + `has no effect: CleanupPolicy "p" keeps this object for 1h`},
		"shorter than the TTL of a policy that does not forbid it": {
			fact: job("j").TTL("10m").Fact(), policies: policies(testbuilders.Policy("a").Default("5m"), testbuilders.Policy("p").Default("never").Annotations(gc.AnnotationAny)),
			want: ignored + ttl10m + `has no effect: CleanupPolicy "p" never deletes this object, and an annotation cannot change that ` +
				`(annotationTTL: ExtendOnly). Set a longer time, or set annotationTTL of CleanupPolicy "a" to Any.`},
		"shorter than the TTL of two that forbid it": {
			fact: job("j").TTL("10m").Fact(), policies: policies(testbuilders.Policy("a").Default("5m"), testbuilders.Policy("p").Default("1h")),
			want: ignored + ttl10m + `has no effect: CleanupPolicy "p" keeps this object for 1h, and an annotation can only keep it longer ` +
				`(annotationTTL: ExtendOnly). Set a longer time, or set annotationTTL of CleanupPolicy "a" and CleanupPolicy "p" to Any.`},
		"not looked at": {fact: job("j").TTL("nonsense").Fact(), policies: policies(testbuilders.Policy("a").Default("1h"), testbuilders.Policy("p").Default("1m").Annotations(gc.AnnotationIgnore)),
			want: ignored + `Annotation gc.winnow.dev/ttl: "nonsense" has no effect: CleanupPolicy "p" ignores annotations. Remove the annotation, ` +
				"or set spec.annotationTTL of the policy to ExtendOnly or Any."},
		"deleted with its Job": {
			fact: pod("j").ControlledBy("batch/v1", "Job", "owner").KeepUntil(inYears).Fact(), owner: lifecycle.OwnerRunning, policies: hour,
			want: ignored + `Annotation gc.winnow.dev/keep-until: "` + inYears + `" has no effect: this Pod is deleted together with Job/owner. Annotate the Job instead.`},
		"deleted with a Job that was not seen yet": {fact: pod("j").ControlledBy("batch/v1", "Job", "owner").TTL("2h").Fact(), owner: lifecycle.OwnerAbsent, policies: hour},
		"never ends": {fact: running.Fact(), policies: policies(testbuilders.Policy("p").Default("1h").Annotations(gc.AnnotationAny)),
			want: ignored + ttl10m + "has no effect while this Pod runs: the TTL counts from when the Pod finishes, and a Pod with restartPolicy: Always " +
				"does not finish by itself. Delete the Pod yourself, or create it with restartPolicy: OnFailure or Never."},
		"is to run for ever": {
			fact:     testbuilders.Pod("j").Restarts(corev1.RestartPolicyAlways).TTL("10m").ControlledBy("apps/v1", "ReplicaSet", "web-5d7").Fact(),
			policies: hour, want: ignored + ttl10m + "has no effect while this Pod runs: the TTL counts from when the Pod finishes, and a Pod with restartPolicy: Always " +
				"does not finish by itself. To remove the Pod, scale down or delete ReplicaSet/web-5d7."},
		"was evicted": {fact: pod("j").Restarts(corev1.RestartPolicyAlways).TTL("2h").Fact(), policies: hour},
		"shorter than its native TTL": {fact: job("j").NativeTTL(1200).TTL("10m").Fact(), policies: hour,
			want: ignored + ttl10m + "has no effect: spec.ttlSecondsAfterFinished keeps this Job for 20m, and an annotation can only keep it longer " +
				"(annotationTTL: ExtendOnly). Change that field instead."},
		"longer than its native TTL": {fact: job("j").NativeTTL(300).TTL("10m").Fact(), policies: hour,
			want: ignored + ttl10m + "has no effect: Kubernetes deletes this Job 5m after it finishes, because of spec.ttlSecondsAfterFinished. Raise or remove that field."},
		"until after its native TTL": {fact: job("j").NativeTTL(300).KeepUntil(inYears).Fact(), policies: hour,
			want: ignored + `Annotation gc.winnow.dev/keep-until: "` + inYears + `" has no effect: Kubernetes deletes this Job 5m after it finishes`},
		"too long": {fact: job("j").TTL("60d").Fact(), policies: hour, bounds: max30d,
			want: ignored + `Annotation gc.winnow.dev/ttl: "60d" keeps this object for 30d only: ClusterCleanupPolicy "limits" sets guardrails.maxTTL. Save what you need before then.`},
		"until too late": {fact: job("j").TTL("2h").KeepUntil(inYears).Fact(), policies: hour, bounds: max30d,
			want: ignored + `Annotation gc.winnow.dev/keep-until: "` + inYears + `" keeps this object for 30d only`},
		"never": {fact: job("j").TTL("never").Fact(), policies: hour, bounds: max30d},
		"never, where it is not allowed": {fact: job("j").TTL("never").Fact(), policies: hour, bounds: noNever,
			want: ignored + `Annotation gc.winnow.dev/ttl: "never" keeps this object for 30d only`},
	} {
		t.Run(name, func(t *testing.T) {
			var enforcing, previews []*policy.Policy
			for _, b := range c.policies {
				if p := compiled(t, b); p.Preview {
					previews = append(previews, p)
				} else {
					enforcing = append(enforcing, p)
				}
			}
			bounds := &c.bounds
			if c.bounds == (policy.Bounds{}) {
				bounds = &policy.NoBounds
			}
			var matches policy.Matches
			matches.Ask(c.fact, enforcing, previews, nil, nil)
			effective := policy.Resolve(policy.Object{Fact: c.fact, Owner: lifecycle.Ownership{State: c.owner}}, matches.Enforced)
			got := ""
			if n, ok := effective.Notice(matches.Enforced, bounds); ok {
				got = string(n.Reason) + " by " + n.Policy.Name + ": " + n.Text
			}
			if got != c.want && (c.want == "" || !strings.HasPrefix(got, c.want)) {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}
