// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	internal "github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
)

// archived returns what a rule waits for until an archiver has marked an object.
func archived(atMost v1alpha1.TTL, onTimeout v1alpha1.WaitTimeoutPolicy) *v1alpha1.WaitFor {
	return &v1alpha1.WaitFor{
		Expression: "object.metadata.?annotations[?'example.com/archived'].orValue('') == 'true'", AtMost: &atMost, OnTimeout: onTimeout,
	}
}

// archive marks objects as an archiver does.
func archive(t *testing.T, ns, resource string, names ...string) {
	t.Helper()
	kubectl(t, append(append([]string{"annotate", "-n", ns, resource}, names...), "example.com/archived=true")...)
}

// waitWaiting waits until a policy holds so many objects that wait, and its condition has a text.
func waitWaiting(t *testing.T, ns string, n int64, text string) {
	t.Helper()
	waitStatus(t, ns, "p", func(s *v1alpha1.CleanupPolicyStatus) bool {
		c := meta.FindStatusCondition(s.Conditions, internal.ConditionReady)
		return s.Held == n && s.Due == n && c != nil && (n == 0 || strings.Contains(c.Message, "WaitingForArchive")) && strings.Contains(c.Message, text)
	})
}

// TestWaitFor: no object is deleted before it is archived, and each is afterwards. After atMost, Delete deletes and Keep keeps.
func TestWaitFor(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t)
	createPolicy(t, ns, "p", v1alpha1.CleanupPolicySpec{Rules: []v1alpha1.CleanupRule{
		{Name: "times-out", Selector: matching(map[string]string{"wait": "short"}), TTL: ttl("1s"), WaitFor: archived("9s", v1alpha1.WaitTimeoutDelete)},
		{Name: "stays", Selector: matching(map[string]string{"wait": "over"}), TTL: ttl("0s"), WaitFor: archived("1s", "")},
		{Name: "waits", TTL: ttl("0s"), WaitFor: archived("7d", v1alpha1.WaitTimeoutDelete)},
	}})
	finishedJobs(t, ns, 5)
	waitWaiting(t, ns, 5, "it waits until ")
	afterwards(t, 0)
	expectDeletions(t, ns)

	archive(t, ns, "jobs", "job-0003")
	want := []string{"jobs/job-0003 p/waits"}
	expectDeletions(t, ns, want...)
	kubectl(t, "annotate", "-n", ns, "job", "job-0001", "example.com/archived=false")
	archive(t, ns, "jobs", "job-0000", "job-0004")
	want = append(want, "jobs/job-0000 p/waits", "jobs/job-0004 p/waits")
	expectDeletions(t, ns, want...)

	short := finish(t, createJob(t, ns, job("short", unmanaged, jobLabel("wait", "short"))), time.Now())
	finish(t, createJob(t, ns, job("over", unmanaged, jobLabel("wait", "over"))), time.Now())
	want = append(want, "jobs/short p/times-out")
	expectDeletions(t, ns, want...)
	for _, d := range deletions(t, ns) {
		if early := finishedAt(short).Add(10 * time.Second).Sub(d.RequestReceivedTimestamp.Time); d.object == "jobs/short" && early > 0 {
			t.Errorf("it was deleted %v before its wait was over", early)
		}
	}
	waitWaiting(t, ns, 3, "")
	waitCandidate(t, ns, "jobs.batch/over", "reason: NotArchived", "Nobody has archived it in time: the wait is over since", "so it stays held (onTimeout: Keep)")
	expectPlugin(t, ns, "", 0, []string{"Held (WaitingForArchive)", "it waits until ", "waits for at most 7d"}, "why", "job/job-0002")
	afterwards(t, 0)
	expectDeletions(t, ns, want...)
}

// TestWaitForConfigMapsAndSecrets: of these Winnow reads only the metadata, and an annotation is enough to decide at once.
func TestWaitForConfigMapsAndSecrets(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t)
	grantByCommand(t, "configmaps")
	grantByCommand(t, "secrets")
	for _, name := range []string{"a", "b"} {
		createConfigMap(t, ns, name)
		createSecret(t, ns, name, func(s *corev1.Secret) { s.StringData = map[string]string{"archived": "true"} })
	}
	createPolicy(t, ns, "p", v1alpha1.CleanupPolicySpec{Rules: []v1alpha1.CleanupRule{{
		Name: "web", Resources: []string{"configmaps", "secrets"}, After: v1alpha1.AfterCreated, TTL: ttl("1s"),
		Selector: matching(map[string]string{"app": "web"}), WaitFor: archived("7d", ""),
	}}})
	waitWaiting(t, ns, 4, "")
	archive(t, ns, "secrets", "a")
	archive(t, ns, "configmaps", "b")
	want := []string{"secrets/a p/web", "configmaps/b p/web"}
	expectDeletions(t, ns, want...)
	afterwards(t, 0)
	expectDeletions(t, ns, want...)
}

// The test below stops replicas, so it is not parallel.

// TestWaitForOverRestarts: no restart begins a wait anew or ends it, and what was archived meanwhile is deleted.
func TestWaitForOverRestarts(t *testing.T) {
	ns := newNamespace(t)
	createPolicy(t, ns, "p", v1alpha1.CleanupPolicySpec{Rules: []v1alpha1.CleanupRule{
		{Name: "times-out", Selector: matching(map[string]string{"wait": "short"}), TTL: ttl("1s"), WaitFor: archived("29s", v1alpha1.WaitTimeoutDelete)},
		{Name: "waits", TTL: ttl("0s"), WaitFor: archived("7d", v1alpha1.WaitTimeoutDelete)},
	}})
	finishedJobs(t, ns, 2)
	var short []*batchv1.Job
	at := time.Now()
	for i := range 3 {
		short = append(short, finish(t, createJob(t, ns, job(fmt.Sprint("short-", i), unmanaged, jobLabel("wait", "short"))), at))
	}
	waitWaiting(t, ns, 5, "")
	expectDeletions(t, ns)
	restart(t, func() { archive(t, ns, "jobs", "job-0001") })
	want := []string{"jobs/job-0001 p/waits"}
	for _, j := range short {
		want = append(want, "jobs/"+j.Name+" p/times-out")
	}
	expectDeletions(t, ns, want...)
	for _, d := range deletions(t, ns) {
		i := slices.IndexFunc(short, func(j *batchv1.Job) bool { return "jobs/"+j.Name == d.object })
		if i >= 0 && d.RequestReceivedTimestamp.Sub(finishedAt(short[i])) < 30*time.Second {
			t.Errorf("%s was deleted %v after its finish, before its wait was over", d.object, d.RequestReceivedTimestamp.Sub(finishedAt(short[i])))
		}
	}
	waitWaiting(t, ns, 1, "")
	expectDeletions(t, ns, want...)
}
