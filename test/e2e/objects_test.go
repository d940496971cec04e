// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"sync"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/test/winnow"
)

func newNamespace(t *testing.T) string {
	t.Helper()
	return newLabelledNamespace(t, nil)
}

func newLabelledNamespace(t *testing.T, labels map[string]string) string {
	t.Helper()
	ns, err := kube.CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "e2e-", Labels: labels}}, metav1.CreateOptions{})
	must(t, err)
	return ns.Name
}

func ttl(s v1alpha1.TTL) *v1alpha1.TTL { return &s }

func matching(labels map[string]string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: labels}
}

func createPolicy(t *testing.T, ns, name string, spec v1alpha1.CleanupPolicySpec) *v1alpha1.CleanupPolicy {
	t.Helper()
	p, err := gc.CleanupPolicies(ns).Create(t.Context(),
		&v1alpha1.CleanupPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}, metav1.CreateOptions{})
	must(t, err)
	return p
}

// waitStatus waits until the status of a policy is as wanted, and returns it.
func waitStatus(t *testing.T, ns, name string, wanted func(*v1alpha1.CleanupPolicyStatus) bool) *v1alpha1.CleanupPolicyStatus {
	t.Helper()
	return waitStatusOf(t, ns+"/"+name, func(ctx context.Context) (*v1alpha1.CleanupPolicyStatus, error) {
		p, err := gc.CleanupPolicies(ns).Get(ctx, name, metav1.GetOptions{})
		return &p.Status, err
	}, wanted)
}

// waitStatusOf waits until a status that get returns is as wanted, and returns it.
func waitStatusOf(
	t *testing.T, what string, get func(context.Context) (*v1alpha1.CleanupPolicyStatus, error),
	wanted func(*v1alpha1.CleanupPolicyStatus) bool,
) (status *v1alpha1.CleanupPolicyStatus) {
	t.Helper()
	eventually(t, func(ctx context.Context) string {
		var err error
		if status, err = get(ctx); err != nil {
			return err.Error()
		}
		if len(status.Conditions) > 0 && wanted(status) { // Before the first status there are none.
			return ""
		}
		return fmt.Sprintf("status of %s: %+v", what, *status)
	})
	return status
}

// podSpec is what kwok completes after a second.
func podSpec() corev1.PodSpec {
	return corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "main", Image: "none"}}}
}

func pod(name string, change ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}, Annotations: map[string]string{}}, Spec: podSpec()}
	for _, f := range change {
		f(p)
	}
	return p
}

// job is a Job that the Job controller and kwok run to completion.
func job(name string, change ...func(*batchv1.Job)) *batchv1.Job {
	j := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}, Annotations: map[string]string{}},
		Spec: batchv1.JobSpec{
			BackoffLimit: new(int32),
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{}, Annotations: map[string]string{}}, Spec: podSpec(),
			},
		},
	}
	for _, f := range change {
		f(j)
	}
	return j
}

func failing(j *batchv1.Job) { j.Spec.Template.Labels["test.winnow.dev/outcome"] = "Failed" }

func runningForever(j *batchv1.Job) {
	j.Spec.Template.Annotations["test.winnow.dev/run-for"] = "forever"
}

func jobLabel(key, value string) func(*batchv1.Job) {
	return func(j *batchv1.Job) { j.Labels[key] = value }
}

func jobFinalizer(name string) func(*batchv1.Job) {
	return func(j *batchv1.Job) { j.Finalizers = append(j.Finalizers, name) }
}

// unmanaged leaves a Job to the test: the Job controller does not touch it (KEP-4368), so that its finish can be set.
func unmanaged(j *batchv1.Job) {
	manager := "test.winnow.dev/none"
	j.Spec.ManagedBy = &manager
}

func createJob(t *testing.T, ns string, j *batchv1.Job) *batchv1.Job {
	t.Helper()
	created, err := kube.BatchV1().Jobs(ns).Create(t.Context(), j, metav1.CreateOptions{})
	must(t, err)
	return created
}

func createPod(t *testing.T, ns string, p *corev1.Pod) *corev1.Pod {
	t.Helper()
	created, err := kube.CoreV1().Pods(ns).Create(t.Context(), p, metav1.CreateOptions{})
	must(t, err)
	return created
}

// finish sets the status of an unmanaged Job to Complete as of at.
func finish(t *testing.T, j *batchv1.Job, at time.Time) *batchv1.Job {
	t.Helper()
	completed(j, at)
	finished, err := kube.BatchV1().Jobs(j.Namespace).UpdateStatus(t.Context(), j, metav1.UpdateOptions{})
	must(t, err)
	return finished
}

// completed sets the status of a Job to Complete as of at, in memory.
func completed(j *batchv1.Job, at time.Time) {
	when := metav1.NewTime(at)
	j.Status = batchv1.JobStatus{
		StartTime: &when, CompletionTime: &when,
		Conditions: []batchv1.JobCondition{
			{Type: batchv1.JobSuccessCriteriaMet, Status: corev1.ConditionTrue, LastTransitionTime: when},
			{Type: batchv1.JobComplete, Status: corev1.ConditionTrue, LastTransitionTime: when},
		},
	}
}

// finishedJobs creates n unmanaged Jobs that all finish at the same time.
func finishedJobs(t *testing.T, ns string, n int, change ...func(*batchv1.Job)) []*batchv1.Job {
	t.Helper()
	out := make([]*batchv1.Job, n)
	each(n, func(i int) {
		out[i] = createJob(t, ns, job(fmt.Sprintf("job-%04d", i), append([]func(*batchv1.Job){unmanaged}, change...)...))
	})
	at := time.Now()
	each(n, func(i int) { out[i] = finish(t, out[i], at) })
	return out
}

// each calls f for 0 to n-1 from 16 goroutines.
func each(n int, f func(int)) {
	var group sync.WaitGroup
	next := make(chan int)
	for range 16 {
		group.Go(func() {
			for i := range next {
				f(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	group.Wait()
}

func waitJobFinished(t *testing.T, ns, name string) *batchv1.Job {
	t.Helper()
	var out *batchv1.Job
	eventually(t, func(ctx context.Context) string {
		j, err := kube.BatchV1().Jobs(ns).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		out = j
		if finishedAt(j).IsZero() {
			return "job " + name + " runs"
		}
		return ""
	})
	return out
}

func finishedAt(j *batchv1.Job) time.Time {
	for _, c := range j.Status.Conditions {
		if (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) && c.Status == corev1.ConditionTrue {
			return c.LastTransitionTime.Time
		}
	}
	return time.Time{}
}

// jobNames lists the Jobs that are left in a namespace.
func jobNames(t *testing.T, ns string) map[string]bool {
	t.Helper()
	list, err := kube.BatchV1().Jobs(ns).List(t.Context(), metav1.ListOptions{})
	must(t, err)
	out := map[string]bool{}
	for i := range list.Items {
		out[list.Items[i].Name] = true
	}
	return out
}

// waitJobs waits until exactly n Jobs are left.
func waitJobs(t *testing.T, ns string, n int) {
	t.Helper()
	defer func() {
		if t.Failed() {
			logWhy(t, ns)
		}
	}()
	eventually(t, func(ctx context.Context) string {
		list, err := kube.BatchV1().Jobs(ns).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err.Error()
		}
		if len(list.Items) != n {
			return fmt.Sprintf("%d Jobs are left, want %d", len(list.Items), n)
		}
		return ""
	})
}

// logWhy logs what Winnow says of a namespace where something else was expected: the status of the policies, and the reasons of candidates.
func logWhy(t *testing.T, ns string) {
	t.Helper()
	policies, err := gc.CleanupPolicies(ns).List(whole, metav1.ListOptions{})
	if err != nil {
		t.Logf("the policies of %s: %v", ns, err)
		return
	}
	for i := range policies.Items {
		t.Logf("policy %s: %+v", policies.Items[i].Name, policies.Items[i].Status)
	}
	candidates, err := gc.CleanupCandidates(ns).List(whole, metav1.ListOptions{})
	if err != nil {
		t.Logf("the candidates in %s: %v", ns, err)
		return
	}
	reasons := map[string]int{}
	for i := range candidates.Items {
		s := &candidates.Items[i].Status
		if reasons[s.Reason]++; reasons[s.Reason] == 1 {
			t.Logf("a candidate: %+v", *s)
		}
	}
	t.Logf("candidates in %s by reason: %v", ns, reasons)
}

// afterwards waits until Winnow has deleted, in another namespace, what became due after d from now, and what became due after that. By then
// it has handled all earlier events, and every namespace had its turn: what it has not deleted by now, it keeps.
func afterwards(t *testing.T, d time.Duration) {
	t.Helper()
	ns := newNamespace(t)
	createPolicy(t, ns, "p", v1alpha1.CleanupPolicySpec{TTLAfterFinished: ttl("0s"), Rules: []v1alpha1.CleanupRule{{
		Name: "later", Selector: matching(map[string]string{"due": "later"}),
		TTL: ttl(v1alpha1.TTL(fmt.Sprintf("%ds", int(math.Ceil(d.Seconds()))))),
	}}})
	begin := time.Now().Truncate(time.Second).Add(time.Second) // Finish times are in whole seconds.
	var want []string
	if d > 0 {
		finish(t, createJob(t, ns, job("later", unmanaged, jobLabel("due", "later"))), begin)
		want = append(want, "jobs/later p/later")
		expectDeletions(t, ns, want...)
	}
	for _, name := range []string{"first", "second"} {
		finish(t, createJob(t, ns, job(name, unmanaged)), time.Now())
		want = append(want, "jobs/"+name+" p/default")
		expectDeletions(t, ns, want...)
	}
}

// expireReadings waits until no reading that was taken before allows a DELETE any more; see freshness.For.
func expireReadings(t *testing.T) {
	t.Helper()
	_ = wait.PollUntilContextTimeout(t.Context(), time.Second, time.Second, false, func(context.Context) (bool, error) { return true, nil })
}

// moreReadings waits until a replica has taken n more readings with a result, or with any if result is empty.
func moreReadings(t *testing.T, r *winnow.Replica, result string, n float64) {
	t.Helper()
	until := -1.0
	eventually(t, func(ctx context.Context) string {
		metrics, err := r.Get(ctx, "/metrics")
		if err != nil {
			return err.Error()
		}
		taken := 0.0
		for _, match := range readings.FindAllStringSubmatch(metrics, -1) {
			if count, err := strconv.ParseFloat(match[2], 64); err == nil && (result == "" || match[1] == result) {
				taken += count
			}
		}
		if until < 0 {
			until = taken + n
		}
		if taken < until {
			return fmt.Sprintf("%v readings %s, want %v", taken, result, until)
		}
		return ""
	})
}

var readings = regexp.MustCompile(`(?m)^winnow_readings_total\{result="(\w+)"\} (\S+)$`)
