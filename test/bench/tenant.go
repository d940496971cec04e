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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/pkg/generated/clientset/versioned"
	gcclient "github.com/winnow-dev/winnow/pkg/generated/clientset/versioned/typed/gc/v1alpha1"
	"github.com/winnow-dev/winnow/test/jobs"
)

const (
	tenantNamespace = "tenant"
	tenantPolicies  = 120 // every other of which previews
	tenantRules     = 100 // of each; the last one matches
	tenantJobs      = 400
)

// tenant writes as many policies, and as long ones, as it may.
type tenant struct {
	*world
	gc  gcclient.CleanupPolicyInterface
	all []*batchv1.Job
}

// measureTenant measures how late Jobs of another namespace go while a tenant changes one of its many policies and one of its Jobs after
// the other, and while it does nothing, in turn.
func measureTenant(ctx context.Context, o options, r *report) (err error) {
	w, err := newWorldWithWinnow(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.stop()) }()
	t := &tenant{world: w}
	r.progress("tenant: %d policies of %d rules, %d Jobs ...", tenantPolicies, tenantRules, tenantJobs)
	if err := t.populate(ctx); err != nil {
		return err
	}
	beside, err := w.expireBeside(ctx, o, r, "tenant", t.write)
	if err != nil {
		return err
	}
	r.add(row{"changes of the tenant's policies", "1/s", beside.rate, "", nil})
	r.add(beside.rows("in another namespace: ", "quiet tenant")...)
	return r.writeCSV("tenant", beside.lines())
}

// populate creates the policies before the Jobs: a warning says what each of them would do when it is created.
func (t *tenant) populate(ctx context.Context) error {
	client, err := versioned.NewForConfig(t.cluster.RESTConfig())
	if err != nil {
		return err
	}
	t.gc = client.GcV1alpha1().CleanupPolicies(tenantNamespace)
	if err := t.newNamespace(ctx, tenantNamespace, ""); err != nil {
		return err
	}
	err = parallel(ctx, tenantPolicies, func(i int) error {
		p := &v1alpha1.CleanupPolicy{
			ObjectMeta: metav1.ObjectMeta{Name: tenantPolicy(i)},
			Spec:       v1alpha1.CleanupPolicySpec{Mode: v1alpha1.ModeEnforce, Rules: tenantRulesFor("30d")},
		}
		if i%2 == 1 {
			p.Spec.Mode = v1alpha1.ModePreview
		}
		_, err := t.gc.Create(ctx, p, metav1.CreateOptions{})
		return err
	})
	if err != nil {
		return err
	}
	t.all, err = jobs.Create(
		ctx,
		t.kube,
		tenantNamespace,
		tenantJobs,
		func(j *batchv1.Job) { j.Labels = map[string]string{shareLabel: "mine"} },
	)
	if err != nil {
		return err
	}
	now := time.Now()
	return jobs.Finish(ctx, t.kube, t.all, func(int) time.Time { return now })
}

func tenantPolicy(i int) string { return fmt.Sprintf("policy-%03d", i%tenantPolicies) }

// tenantRulesFor keep the Jobs for so long, half of them at the most.
func tenantRulesFor(ttl v1alpha1.TTL) []v1alpha1.CleanupRule {
	var out []v1alpha1.CleanupRule
	for i := range tenantRules {
		share := fmt.Sprint("other-", i)
		if i == tenantRules-1 {
			share = "mine"
		}
		out = append(out, v1alpha1.CleanupRule{
			Name: fmt.Sprint("rule-", i), Resources: []string{"jobs.batch"}, TTL: &ttl,
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{shareLabel: share}},
			Capacity: &v1alpha1.Capacity{MaxObjects: new(int64(tenantJobs))},
		})
	}
	return out
}

// write changes a policy and a Job, again and again, until ctx ends.
func (t *tenant) write(ctx context.Context) (int, error) {
	for i := 0; ; i++ {
		ttl := v1alpha1.TTL("31d")
		if i/tenantPolicies%2 == 1 {
			ttl = "30d"
		}
		patch, err := json.Marshal(map[string]any{"spec": map[string]any{"rules": tenantRulesFor(ttl)}})
		if err != nil {
			return i, err
		}
		if _, err := t.gc.Patch(ctx, tenantPolicy(i), types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			return i, err
		}
		label := fmt.Appendf(nil, `{"metadata":{"labels":{%q:"%d"}}}`, onlyLabel, i)
		job := t.all[i%len(t.all)]
		if _, err := t.kube.BatchV1().Jobs(job.Namespace).Patch(ctx, job.Name, types.MergePatchType, label, metav1.PatchOptions{}); err != nil {
			return i, err
		}
	}
}
