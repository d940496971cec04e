// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"

	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/pkg/generated/clientset/versioned"
	gcclient "github.com/winnow-dev/winnow/pkg/generated/clientset/versioned/typed/gc/v1alpha1"
	"github.com/winnow-dev/winnow/test/jobs"
)

const (
	// creators is how many requests are under way at once while a crowd is created.
	creators = 64
	// jobsEach is how many finished Jobs a namespace has.
	jobsEach = 3

	crowdLabel  = "bench.winnow.dev/crowd"  // of every namespace of a crowd
	chosenLabel = "bench.winnow.dev/chosen" // of a namespace that the policy "chosen" selects
	// shareLabel names, on a Job, what decides for it: one of the policies of its namespace, or a cluster policy.
	shareLabel = "bench.winnow.dev/share"
	onlyLabel  = "bench.winnow.dev/only" // names a Job
)

// crowd is a world of many policies that share namespaces evenly. Each policy decides for the Jobs of its share and keeps them
// for a month; a few cluster policies select all the namespaces.
type crowd struct {
	*world
	policies, namespaces int
	labelled             int64 // how many Jobs the cluster policy "chosen" has had deleted
	gc                   gcclient.GcV1alpha1Interface
}

func newCrowd(ctx context.Context, o options, policies, namespaces int) (*crowd, error) {
	w, err := newWorld(ctx, o)
	if err != nil {
		return nil, err
	}
	client, err := versioned.NewForConfig(w.cluster.RESTConfig())
	if err == nil {
		err = w.startWinnow(ctx, o)
	}
	if err != nil {
		return nil, errors.Join(err, w.stop())
	}
	return &crowd{world: w, policies: policies, namespaces: namespaces, gc: client.GcV1alpha1()}, nil
}

func (c *crowd) String() string {
	spaces := "namespaces"
	if c.namespaces == 1 {
		spaces = "namespace"
	}
	return fmt.Sprintf("%d policies in %d %s", c.policies, c.namespaces, spaces)
}

func (c *crowd) namespace(i int) string { return fmt.Sprintf("crowd-%04d", i%c.namespaces) }

func share(i int) string { return fmt.Sprintf("job-%05d", i) }

// populate creates the namespaces with their Jobs.
func (c *crowd) populate(ctx context.Context) error {
	return parallel(ctx, c.namespaces, func(i int) error {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: c.namespace(i), Labels: map[string]string{crowdLabel: "yes"}}}
		if _, err := c.kube.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{}); err != nil {
			return err
		}
		created, err := jobs.Create(ctx, c.kube, ns.Name, jobsEach, func(j *batchv1.Job) { j.Labels = map[string]string{shareLabel: j.Name} })
		if err != nil {
			return err
		}
		now := time.Now()
		return jobs.Finish(ctx, c.kube, created, func(int) time.Time { return now })
	})
}

// createPolicies creates all policies through the aggregator and returns how many a second there were.
func (c *crowd) createPolicies(ctx context.Context) (float64, error) {
	for _, p := range clusterPolicies() {
		if _, err := c.gc.ClusterCleanupPolicies().Create(ctx, p, metav1.CreateOptions{}); err != nil {
			return 0, err
		}
	}
	begin := time.Now()
	err := parallel(ctx, c.policies, func(i int) error {
		p := &v1alpha1.CleanupPolicy{
			ObjectMeta: metav1.ObjectMeta{Name: c.policy(i)},
			Spec:       v1alpha1.CleanupPolicySpec{Rules: rules("none", share(i/c.namespaces))},
		}
		_, err := c.gc.CleanupPolicies(c.namespace(i)).Create(ctx, p, metav1.CreateOptions{})
		return err
	})
	return float64(c.policies) / time.Since(begin).Seconds(), err
}

func (c *crowd) policy(i int) string { return fmt.Sprintf("policy-%d", i/c.namespaces) }

// rules keep the Jobs of a share for a month, except one Job, which is deleted at once.
func rules(job, share string) []v1alpha1.CleanupRule {
	rule := func(name, key, value string, ttl v1alpha1.TTL) v1alpha1.CleanupRule {
		return v1alpha1.CleanupRule{
			Name: name, Resources: []string{"jobs.batch"}, TTL: &ttl,
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{key: value}},
		}
	}
	return []v1alpha1.CleanupRule{rule("one", onlyLabel, job, "1s"), rule("share", shareLabel, share, "30d")}
}

// clusterPolicies bind all namespaces of the crowd, decide for one share in all of them, and for one in those that are chosen.
func clusterPolicies() []*v1alpha1.ClusterCleanupPolicy {
	policy := func(name, label string) *v1alpha1.ClusterCleanupPolicy {
		return &v1alpha1.ClusterCleanupPolicy{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: v1alpha1.ClusterCleanupPolicySpec{
				Mode: v1alpha1.ModeEnforce, NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{label: "yes"}},
			},
		}
	}
	bounds, everywhere, chosen := policy("bounds", crowdLabel), policy("everywhere", crowdLabel), policy("chosen", chosenLabel)
	bounds.Spec.Guardrails = &v1alpha1.Guardrails{
		MinTTL: ptr.To[v1alpha1.TTL]("1s"), MaxTTL: ptr.To[v1alpha1.TTL]("90d"),
		MaxDeletionsPerMinute: ptr.To[int64](6000), HoldAbove: &v1alpha1.HoldAbove{Objects: ptr.To[int64](1000)},
		Ceilings: []v1alpha1.Ceiling{{Resources: []string{"jobs.batch"}, MaxObjects: ptr.To[int64](1_000_000)}},
	}
	everywhere.Spec.Rules = rules("none", "everywhere")
	chosen.Spec.Rules = rules("none", "none")[:1]
	chosen.Spec.Rules[0].Selector.MatchLabels = map[string]string{shareLabel: "chosen"}
	return []*v1alpha1.ClusterCleanupPolicy{bounds, everywhere, chosen}
}

// single makes a policy of the crowd, or the cluster policy "everywhere" if ns is empty, let one Job go. It returns the new
// generation.
func (c *crowd) single(ctx context.Context, ns, name, job, share string) (int64, error) {
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"rules": rules(job, share)}})
	if err != nil {
		return 0, err
	}
	if ns == "" {
		p, err := c.gc.ClusterCleanupPolicies().Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
		return p.GetGeneration(), err
	}
	p, err := c.gc.CleanupPolicies(ns).Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
	return p.GetGeneration(), err
}

// parallel calls f for 0 to n-1, several at once, and returns the first error.
func parallel(ctx context.Context, n int, f func(int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	workqueue.ParallelizeUntil(ctx, creators, n, func(i int) {
		if err := f(i); err != nil {
			cancel(err)
		}
	})
	return context.Cause(ctx)
}
