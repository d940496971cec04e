// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/pkg/generated/clientset/versioned"
	"github.com/winnow-dev/winnow/test/winnow"
)

const (
	largeNamespace = "large"
	largeText      = 1_000_000 // bytes of each ConfigMap; Kubernetes allows 1 MiB of data
)

// measureLarge measures the memory that it takes to read large objects: for the forecast of a policy, for a review, and to observe them for
// the policy.
func measureLarge(ctx context.Context, o options, r *report) (err error) {
	w, err := newWorldWithWinnow(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.stop()) }()
	r.progress("large: %d ConfigMaps of %d bytes ...", o.large, largeText)
	if err := w.populateLarge(ctx, o.large); err != nil {
		return err
	}
	client, err := versioned.NewForConfig(w.cluster.RESTConfig())
	if err != nil {
		return err
	}
	spec := v1alpha1.CleanupPolicySpec{Mode: v1alpha1.ModeEnforce, Rules: []v1alpha1.CleanupRule{{
		Name: "large", Resources: []string{"configmaps"}, After: v1alpha1.AfterCreated, TTL: new(v1alpha1.TTL("30d")),
		MatchConditions: []v1alpha1.MatchCondition{{Name: "large", Expression: "object.data.text.size() > 1000"}},
	}}}
	policy := &v1alpha1.CleanupPolicy{ObjectMeta: metav1.ObjectMeta{Name: "large"}, Spec: spec}
	policies := client.GcV1alpha1().CleanupPolicies(largeNamespace)
	for _, step := range []struct {
		name string
		do   func() error
	}{
		{"a dry run", func() error {
			_, err := policies.Create(ctx, policy, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			return err
		}},
		{"a review", func() error {
			draft := &v1alpha1.CleanupReview{ObjectMeta: policy.ObjectMeta, Spec: spec}
			_, err := client.GcV1alpha1().CleanupReviews(largeNamespace).Create(ctx, draft, metav1.CreateOptions{})
			return err
		}},
		{"the policy", func() error {
			if _, err := policies.Create(ctx, policy, metav1.CreateOptions{}); err != nil {
				return err
			}
			return eventually(ctx, 100*time.Millisecond, func(ctx context.Context) error {
				p, err := policies.Get(ctx, policy.Name, metav1.GetOptions{})
				if err == nil && p.Status.Candidates != int64(o.large) {
					err = fmt.Errorf("the status has %d candidates", p.Status.Candidates)
				}
				return err
			})
		}},
	} {
		r.progress("large: %s ...", step.name)
		a, err := anewOf(ctx, w.replica().Process.Pid(), step.name, step.do)
		if err != nil {
			return err
		}
		before := fmt.Sprintf("%s, %d ConfigMaps of %d bytes: resident before", step.name, o.large, largeText)
		r.add(row{before, "MB", sample{a.before / mega}, "", nil})
		r.add(row{step.name + ": resident at the most", "MB", sample{a.peak / mega}, "", nil})
		r.add(row{step.name + ": time", "s", sample{a.seconds}, "", nil})
	}
	return nil
}

func (w *world) populateLarge(ctx context.Context, n int) error {
	if err := w.newNamespace(ctx, largeNamespace, ""); err != nil {
		return err
	}
	for _, args := range [][]string{
		{"create", "clusterrole", "winnow:configmaps", "--verb=get,list,watch,delete", "--resource=configmaps"},
		{"create", "clusterrolebinding", "winnow:configmaps", "--clusterrole=winnow:configmaps", "--user=" + winnow.User},
	} {
		if _, _, err := w.cluster.Kubectl(ctx, args...); err != nil {
			return err
		}
	}
	text := strings.Repeat("x", largeText)
	return parallel(ctx, n, func(i int) error {
		_, err := w.kube.CoreV1().ConfigMaps(largeNamespace).Create(ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("large-%05d", i)}, Data: map[string]string{"text": text},
		}, metav1.CreateOptions{})
		return err
	})
}
