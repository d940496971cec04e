// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
)

var (
	countedJobs = flag.Int("counted-jobs", 15, "how many random Jobs TestCountedPodsOfRandomJobs runs, each with and without Winnow")
	countedSeed = flag.Uint64("counted-seed", 1, "the seed of what TestCountedPodsOfRandomJobs runs")
)

// TestCountedPods: Jobs end as without Winnow although it deletes their Pods as soon as they are counted. A failed Pod stays while its Job
// may still fail because of it.
func TestCountedPods(t *testing.T) {
	t.Parallel()
	ns := runCounted(t, []countedJob{
		exactly(job("indexed", indexed(12, 2, nil))),
		exactly(job("per-index", indexed(6, 3, map[int]int{1: 1, 4: 9}), perIndex(1))),
		exactly(job("ignored", indexed(4, 2, map[int]int{0: 1}), perIndex(0), ignoringDisruption)),
		exactly(job("fail-index", indexed(6, 2, map[int]int{2: 9}), perIndex(3), onExitCode(batchv1.PodFailurePolicyActionFailIndex))),
		roughly(job("fail-job", indexed(6, 1, map[int]int{3: 9}), retried(6), onExitCode(batchv1.PodFailurePolicyActionFailJob))),
		roughly(job("success", indexed(8, 2, nil), succeedsWith(4))),
		roughly(job("queue", plain(0, 3))),
		exactly(job("fails", plain(1, 1), failing, retried(1))),
	})
	before := map[string]int{}
	for _, d := range deletions(t, ns) {
		for _, name := range []string{"indexed", "per-index", "fail-index", "fail-job", "success"} {
			if strings.HasPrefix(d.object, "pods/"+name+"-") && d.RequestReceivedTimestamp.Time.Before(jobEnd(t, ns, name)) {
				before[name]++
			}
		}
		if strings.HasPrefix(d.object, "pods/fail-job-3-") && d.RequestReceivedTimestamp.Time.Before(jobEnd(t, ns, "fail-job")) {
			t.Errorf("%s was deleted although its Job could still fail because of it", d.object)
		}
	}
	for _, name := range []string{"indexed", "per-index", "fail-index", "fail-job", "success"} {
		if before[name] == 0 {
			t.Errorf("no Pod of %s was deleted while it ran", name)
		}
	}
}

// TestCountedPodsOfRandomJobs is TestCountedPods with random Jobs.
func TestCountedPodsOfRandomJobs(t *testing.T) {
	t.Parallel()
	t.Logf("-counted-jobs=%d -counted-seed=%d", *countedJobs, *countedSeed)
	r := rand.New(rand.NewPCG(*countedSeed, 0))
	jobs := make([]countedJob, *countedJobs)
	for i := range jobs {
		jobs[i] = randomCountedJob(r, fmt.Sprintf("job-%03d", i))
	}
	runCounted(t, jobs)
}

// runCounted runs Jobs in a namespace where their Pods are deleted once they are counted, and in one where nothing is deleted. They must
// end in the same way. It returns the first namespace once all Pods in it are gone.
func runCounted(t *testing.T, jobs []countedJob) string {
	t.Helper()
	ns, undisturbed := newNamespace(t), newNamespace(t)
	createPolicy(t, ns, "p", podsRule(v1alpha1.DependentsOnceCounted))
	each(2*len(jobs), func(i int) {
		j, in := &jobs[i/2], []string{ns, undisturbed}[i%2]
		createJob(t, in, j.DeepCopy())
		j.change(t, in)
	})
	for _, j := range jobs {
		got, want := waitJobFinished(t, ns, j.Name), waitJobFinished(t, undisturbed, j.Name)
		if got, want := endOf(got, j.exact), endOf(want, j.exact); got != want {
			t.Errorf("%s ended with\n%s\nand without Winnow with\n%s", j.Name, got, want)
		}
	}
	eventually(t, func(ctx context.Context) string {
		pods, err := kube.CoreV1().Pods(ns).List(ctx, metav1.ListOptions{Limit: 1})
		if err != nil {
			return err.Error()
		}
		if len(pods.Items) > 0 {
			return "Pod " + pods.Items[0].Name + " is left"
		}
		return ""
	})
	for _, d := range deletions(t, ns) {
		if !strings.HasPrefix(d.object, "pods/") || !d.hasPreconditions {
			t.Errorf("DELETE of %s, preconditions: %v", d.object, d.hasPreconditions)
		}
	}
	return ns
}

// jobEnd is when a Job finished.
func jobEnd(t *testing.T, ns, name string) time.Time {
	t.Helper()
	j, err := kube.BatchV1().Jobs(ns).Get(t.Context(), name, metav1.GetOptions{})
	must(t, err)
	return finishedAt(j)
}
