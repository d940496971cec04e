// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
)

// jobsLimited is a policy with one rule, for Jobs, that has a limit and no TTL.
func jobsLimited(c v1alpha1.Capacity) v1alpha1.CleanupPolicySpec {
	return v1alpha1.CleanupPolicySpec{Rules: []v1alpha1.CleanupRule{{Name: "jobs", Resources: []string{"jobs.batch"}, Capacity: &c}}}
}

func named(prefix string) func(*batchv1.Job) {
	return func(j *batchv1.Job) { j.Name = prefix + strings.TrimPrefix(j.Name, "job") }
}

// TestCapacityPerOwner: of twenty Jobs of each of five CronJobs the three stay that finished last. A Job without owner is in no
// pool.
func TestCapacityPerOwner(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t)
	suspended, unlimited := true, int32(100) // The CronJob controller limits the history too.
	var lists [][]*batchv1.Job
	for i := range 5 {
		name := fmt.Sprintf("cron-%d", i)
		owner, err := kube.BatchV1().CronJobs(ns).Create(t.Context(), &batchv1.CronJob{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: batchv1.CronJobSpec{
				Schedule: "0 3 * * *", Suspend: &suspended, SuccessfulJobsHistoryLimit: &unlimited,
				JobTemplate: batchv1.JobTemplateSpec{Spec: job("").Spec},
			},
		}, metav1.CreateOptions{})
		must(t, err)
		lists = append(lists, shuffledJobs(t, ns, 20, named(name), func(j *batchv1.Job) {
			j.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner, batchv1.SchemeGroupVersion.WithKind("CronJob"))}
		}))
	}
	shuffledJobs(t, ns, 7, named("alone"))
	createPolicy(t, ns, "p", jobsLimited(v1alpha1.Capacity{MaxObjects: new(int64(3)), Per: v1alpha1.CapacityPerOwner}))
	want := allBut(3, "p/jobs", lists...)
	expectDeletions(t, ns, want...)
	waitStatus(t, ns, "p", func(s *v1alpha1.CleanupPolicyStatus) bool {
		return s.Deleted == 85 && s.Candidates == 15+7 && s.Due == 0
	})
	expectDeletions(t, ns, want...)
}

// TestCapacityPerLabel: each value of a label has a separate pool, and an object without it is in none.
func TestCapacityPerLabel(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t)
	a := shuffledJobs(t, ns, 10, named("a"), labelled("model", "a"))
	b := shuffledJobs(t, ns, 4, named("b"), labelled("model", "b"))
	shuffledJobs(t, ns, 5, named("none"))
	createPolicy(t, ns, "p", jobsLimited(v1alpha1.Capacity{MaxObjects: new(int64(2)), Per: v1alpha1.CapacityPerLabel, LabelKey: "model"}))
	want := allBut(2, "p/jobs", a, b)
	expectDeletions(t, ns, want...)
	afterwards(t, 0)
	expectDeletions(t, ns, want...)
}

// TestCapacityMinAge: what is beyond the limit stays until its minAge, and a limit that is raised meanwhile saves it; a limit
// that is lowered acts at once.
func TestCapacityMinAge(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t)
	setLimit := func(maxObjects int) {
		t.Helper()
		_, err := gc.CleanupPolicies(ns).Patch(t.Context(), "p", types.MergePatchType, fmt.Appendf(
			nil,
			`{"spec":{"rules":[{"name":"jobs","resources":["jobs.batch"],"capacity":{"maxObjects":%d,"minAge":"20s"}}]}}`,
			maxObjects,
		), metav1.PatchOptions{})
		must(t, err)
	}
	createPolicy(t, ns, "p", jobsLimited(v1alpha1.Capacity{MaxObjects: new(int64(4)), MinAge: ttl("20s")}))
	all := finishedJobs(t, ns, 10)
	waitStatus(t, ns, "p", func(s *v1alpha1.CleanupPolicyStatus) bool { return s.Candidates == 10 && s.NextDeletionTime != nil })
	setLimit(8)
	due := finishedAt(all[0]).Add(20 * time.Second)
	want := allBut(8, "p/jobs", all)
	expectDeletions(t, ns, want...)
	for _, d := range deletions(t, ns) {
		if d.RequestReceivedTimestamp.Time.Before(due) {
			t.Errorf("%s was deleted at %v, and has its minAge at %v", d.object, d.RequestReceivedTimestamp, due)
		}
	}
	setLimit(5)
	want = allBut(5, "p/jobs", all)
	expectDeletions(t, ns, want...)
	setLimit(8)
	afterwards(t, 0)
	expectDeletions(t, ns, want...)
}

// TestPercentOfQuota: half of what a ResourceQuota allows is kept, and the quota is followed. Without one there is no limit, and
// the status says so.
func TestPercentOfQuota(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t)
	all := shuffledJobs(t, ns, 80)
	setQuota(t, ns, 100)
	createPolicy(t, ns, "p", jobsLimited(v1alpha1.Capacity{PercentOfQuota: new(int64(50))}))
	expectDeletions(t, ns, allBut(50, "p/jobs", all)...)
	setQuota(t, ns, 60)
	want := allBut(30, "p/jobs", all)
	expectDeletions(t, ns, want...)

	// Raised, it makes room.
	waitJobs(t, ns, 30)
	setQuota(t, ns, 100)
	shuffledJobs(t, ns, 20, named("more"))
	afterwards(t, 0)
	expectDeletions(t, ns, want...)

	must(t, kube.CoreV1().ResourceQuotas(ns).Delete(t.Context(), "q", metav1.DeleteOptions{}))
	status := waitStatus(t, ns, "p", func(s *v1alpha1.CleanupPolicyStatus) bool {
		return strings.Contains(s.Conditions[0].Message, "count/jobs.batch")
	})
	if c := status.Conditions[0]; !strings.Contains(c.Message, "ResourceQuota") {
		t.Errorf("condition: %+v", c)
	}
	shuffledJobs(t, ns, 20, named("most"))
	afterwards(t, 0)
	expectDeletions(t, ns, want...)
	waitJobs(t, ns, 70)
}

// setQuota bounds the Jobs of a namespace, and waits until the quota is enforced: before, the API server refuses creations.
func setQuota(t *testing.T, ns string, jobs int64) {
	t.Helper()
	quotas := kube.CoreV1().ResourceQuotas(ns)
	hard := corev1.ResourceList{"count/jobs.batch": *resource.NewQuantity(jobs, resource.DecimalSI)}
	q := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "q"}, Spec: corev1.ResourceQuotaSpec{Hard: hard}}
	_, err := quotas.Create(t.Context(), q, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		_, err = quotas.Patch(t.Context(), "q", types.MergePatchType,
			fmt.Appendf(nil, `{"spec":{"hard":{"count/jobs.batch":"%d"}}}`, jobs), metav1.PatchOptions{})
	}
	must(t, err)
	eventually(t, func(ctx context.Context) string {
		q, err := quotas.Get(ctx, "q", metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		if enforced := q.Status.Hard["count/jobs.batch"]; enforced.Value() != jobs {
			return fmt.Sprintf("the quota allows %v Jobs, not yet %d", enforced.Value(), jobs)
		}
		return ""
	})
}
