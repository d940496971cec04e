// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/pkg/generated/clientset/versioned"
	"github.com/winnow-dev/winnow/test/jobs"
)

const (
	costlyRules       = 10 // with a condition each, so that one object is evaluated for all of them
	costlyJobs        = 5
	costlyAnnotations = 15_000
	costlyProbes      = 300 // in a round
	probedNamespace   = "probed"
	// costlyCondition compares an object with itself a thousand times.
	costlyCondition = "lists.range(30).all(x, lists.range(30).all(y, object == object))"
)

// costly is a tenant that makes evaluation as expensive as it can.
type costly struct {
	*world
	all []*batchv1.Job
}

// measureCostly measures how long an event of another namespace takes to lead to a deletion while a tenant changes large objects for which
// expensive conditions are evaluated, and while it does nothing, in turn.
func measureCostly(ctx context.Context, o options, r *report) (err error) {
	w, err := newWorldWithWinnow(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.stop()) }()
	c := &costly{world: w}
	r.progress("costly: %d Jobs of %d annotations, %d conditions ...", costlyJobs, costlyAnnotations, costlyRules)
	if err := c.populate(ctx); err != nil {
		return err
	}
	var quiet, busy, rate sample
	for round := range o.rounds {
		r.progress("costly: round %d of %d ...", round+1, o.rounds)
		late, err := c.probe(ctx, fmt.Sprint("quiet-", round))
		if err != nil {
			return err
		}
		quiet = append(quiet, late...)
		end := inBackground(ctx, c.relabel)
		late, err = c.probe(ctx, fmt.Sprint("busy-", round))
		times, failed := end()
		if err := errors.Join(err, failed); err != nil {
			return err
		}
		busy, rate = append(busy, late...), append(rate, times)
	}
	r.add(
		row{"changes of large objects", "1/s", rate, "", nil},
		row{"in another namespace: finished until DELETED seen", "ms", busy, "quiet tenant", quiet},
		row{"the same, p99", "ms", sample{busy.quantile(0.99)}, "quiet tenant", sample{quiet.quantile(0.99)}},
	)
	return nil
}

func (c *costly) populate(ctx context.Context) error {
	if err := errors.Join(c.newNamespace(ctx, tenantNamespace, ""), c.newNamespace(ctx, probedNamespace, "0s")); err != nil {
		return err
	}
	client, err := versioned.NewForConfig(c.cluster.RESTConfig())
	if err != nil {
		return err
	}
	p := &v1alpha1.CleanupPolicy{ObjectMeta: metav1.ObjectMeta{Name: "costly"}}
	for i := range costlyRules {
		p.Spec.Rules = append(p.Spec.Rules, v1alpha1.CleanupRule{
			Name: fmt.Sprint("rule-", i), Resources: []string{"jobs.batch"}, TTL: new(v1alpha1.TTL("1d")),
			MatchConditions: []v1alpha1.MatchCondition{{Name: "costly", Expression: fmt.Sprintf("%d > 0 && !(%s)", i+1, costlyCondition)}},
		})
	}
	if _, err := client.GcV1alpha1().CleanupPolicies(tenantNamespace).Create(ctx, p, metav1.CreateOptions{}); err != nil {
		return err
	}
	annotations := map[string]string{}
	for i := range costlyAnnotations {
		annotations[fmt.Sprintf("a/%05d", i)] = "v"
	}
	c.all, err = jobs.Create(ctx, c.kube, tenantNamespace, costlyJobs, func(j *batchv1.Job) { j.Annotations = annotations })
	return err
}

// relabel changes one large Job after the other until ctx ends.
func (c *costly) relabel(ctx context.Context) (int, error) {
	for i := 0; ; i++ {
		job, label := c.all[i%len(c.all)], fmt.Appendf(nil, `{"metadata":{"labels":{%q:"%d"}}}`, onlyLabel, i)
		if _, err := c.kube.BatchV1().Jobs(job.Namespace).Patch(ctx, job.Name, types.MergePatchType, label, metav1.PatchOptions{}); err != nil {
			return i, err
		}
	}
}

// probe finishes one Job after the other in another namespace, and measures how many milliseconds later each is deleted.
func (c *costly) probe(ctx context.Context, name string) (late sample, err error) {
	all, err := jobs.Create(ctx, c.kube, probedNamespace, costlyProbes, func(j *batchv1.Job) { j.Name = name + "-" + j.Name })
	if err != nil {
		return nil, err
	}
	for _, job := range all {
		w, err := c.kube.BatchV1().Jobs(job.Namespace).Watch(ctx, metav1.ListOptions{
			FieldSelector: "metadata.name=" + job.Name, ResourceVersion: job.ResourceVersion,
		})
		if err != nil {
			return nil, err
		}
		// A Job that finished in this second would be due at its end.
		if err := jobs.Finish(ctx, c.kube, []*batchv1.Job{job}, func(int) time.Time { return time.Now().Add(-2 * time.Second) }); err != nil {
			return nil, err
		}
		finished := time.Now()
		err = gone(ctx, w)
		w.Stop()
		if err != nil {
			return nil, fmt.Errorf("job %s: %w", job.Name, err)
		}
		late = append(late, milliseconds(time.Since(finished)))
	}
	return late, nil
}

// gone waits until the object that is watched is deleted.
func gone(ctx context.Context, w watch.Interface) error {
	timeout := time.After(waitMost)
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-timeout:
			return errors.New("is not deleted")
		case event, ok := <-w.ResultChan():
			switch {
			case !ok:
				return errors.New("the watch has ended")
			case event.Type == watch.Deleted:
				return nil
			}
		}
	}
}
