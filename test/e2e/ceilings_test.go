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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
)

func ceilingOf(n int64, resources ...string) *v1alpha1.Guardrails {
	return &v1alpha1.Guardrails{Ceilings: []v1alpha1.Ceiling{{Resources: resources, MaxObjects: &n}}}
}

// counts reports whether the status tells of these ceilings.
func counts(s *v1alpha1.CleanupPolicyStatus, want ...v1alpha1.CeilingStatus) bool {
	return slices.Equal(s.Ceilings, want)
}

// TestCeiling: 10, 200 and 3,000 finished Jobs under a ceiling of 600 end with 10, 200 and 390, and with 10, 197, 197 and 196
// when a fourth namespace of 500 appears: each has its max-min fair share, and what rounding leaves over goes to the first by name. Those
// go that finished first. What the ceiling makes due at once is more than one change may without approval.
func TestCeiling(t *testing.T) {
	g := newGroup()
	sizes := []int{10, 200, 3000}
	var namespaces []string
	var all [][]*batchv1.Job
	for _, n := range sizes {
		ns := g.namespace(t)
		namespaces, all = append(namespaces, ns), append(all, shuffledJobs(t, ns, n))
	}
	g.govern(t, v1alpha1.ClusterCleanupPolicySpec{Guardrails: ceilingOf(600, "jobs.batch")})
	status := g.waitStatus(t, func(s *v1alpha1.CleanupPolicyStatus) bool {
		return isHeld(s, namespaces[2], 2610) &&
			counts(s, v1alpha1.CeilingStatus{Resource: "jobs.batch", Objects: 3210, MaxObjects: 600, Over: 2610})
	})
	afterwards(t, 0)
	for _, ns := range namespaces {
		expectDeletions(t, ns)
	}
	approve(t, status)

	decider := "ceiling=" + string(g)
	expectShares := func(shares ...int) {
		t.Helper()
		for i, share := range shares {
			waitJobs(t, namespaces[i], share)
			expectDeletions(t, namespaces[i], allBut(share, decider, all[i])...)
		}
	}
	expectShares(10, 200, 390)
	fourth := g.namespace(t)
	namespaces, all = append(namespaces, fourth), append(all, shuffledJobs(t, fourth, 500))
	shares := []int{10, 197, 197, 197}
	last := slices.Max(namespaces[1:])
	shares[slices.Index(namespaces, last)]--
	expectShares(shares...)
	g.waitStatus(t, func(s *v1alpha1.CleanupPolicyStatus) bool {
		return s.Deleted == 3710-600 && s.Due == 0 && len(s.Holds) == 0 && s.Conditions[0].Status == metav1.ConditionTrue &&
			counts(s, v1alpha1.CeilingStatus{Resource: "jobs.batch", Objects: 600, MaxObjects: 600})
	})
	g.change(t, `{"mode":"Preview","guardrails":{"ceilings":[{"resources":["jobs.batch"],"maxObjects":500}]}}`)
	g.waitStatus(t, func(s *v1alpha1.CleanupPolicyStatus) bool {
		return counts(s, v1alpha1.CeilingStatus{Resource: "jobs.batch", Objects: 600, MaxObjects: 500, Over: 100})
	})
	g.change(t, `{"guardrails":null}`)
	g.waitStatus(t, func(s *v1alpha1.CleanupPolicyStatus) bool { return counts(s) })
}

// TestCeilingCounts: a ceiling counts objects that no policy decides for, that a policy never deletes or that set a TTL themselves, and
// deletes them in order. Objects that run or are held are not counted, and not deleted. Objects that an annotation keeps are counted, and
// deleted last.
func TestCeilingCounts(t *testing.T) {
	t.Parallel()
	g := newGroup()
	ns := g.namespace(t)
	createPolicy(t, ns, "p", v1alpha1.CleanupPolicySpec{
		Rules: []v1alpha1.CleanupRule{{Name: "never", Selector: matching(map[string]string{"keep": "yes"}), TTL: ttl("never")}},
	})
	hour := int32(3600)
	var all []*batchv1.Job
	for name, change := range map[string]func(*batchv1.Job){
		"kept": func(j *batchv1.Job) {
			j.Annotations["gc.winnow.dev/keep-until"] = time.Now().Add(time.Hour).Format(time.RFC3339)
		},
		"held": func(j *batchv1.Job) {
			j.Annotations["argocd.argoproj.io/tracking-id"] = "app:batch/Job:" + ns + "/held"
		},
		"older-native": func(j *batchv1.Job) { j.Spec.TTLSecondsAfterFinished = &hour },
		"older-never":  jobLabel("keep", "yes"),
		"young-none":   func(*batchv1.Job) {},
		"young-never":  jobLabel("keep", "yes"),
	} {
		all = append(all, createJob(t, ns, job(name, unmanaged, change)))
	}
	createJob(t, ns, job("runs", unmanaged))
	first := all[len(all)-1].CreationTimestamp.Time
	for _, j := range all {
		at := first
		if strings.HasPrefix(j.Name, "young") {
			at = first.Add(time.Second)
		}
		finish(t, j, at)
	}
	g.govern(t, v1alpha1.ClusterCleanupPolicySpec{Guardrails: ceilingOf(3, "jobs.batch")})
	want := []string{"jobs/older-native ceiling=" + string(g), "jobs/older-never ceiling=" + string(g)}
	expectDeletions(t, ns, want...)
	afterwards(t, 0)
	expectDeletions(t, ns, want...)
	g.change(t, `{"guardrails":{"ceilings":[{"resources":["jobs.batch"],"maxObjects":1}]}}`)
	want = append(want, "jobs/young-none ceiling="+string(g), "jobs/young-never ceiling="+string(g))
	expectDeletions(t, ns, want...)
	afterwards(t, 0)
	expectDeletions(t, ns, want...)
	g.change(t, `{"guardrails":{"ceilings":[{"resources":["jobs.batch"],"maxObjects":0}]}}`)
	expectDeletions(t, ns, append(want, "jobs/kept ceiling="+string(g))...)
}

// TestCeilingDoesNotCountWhatItDeleted: a Pod that the ceiling has deleted and that a finalizer keeps takes no place of those that finish
// after it.
func TestCeilingDoesNotCountWhatItDeleted(t *testing.T) {
	t.Parallel()
	g := newGroup()
	ns := g.namespace(t)
	createPolicy(t, ns, "p", v1alpha1.CleanupPolicySpec{TTLAfterFinished: ttl("never")})
	kubectl := func(args ...string) {
		t.Helper()
		_, _, err := suite.Kubectl(t.Context(), append([]string{"-n", ns}, args...)...)
		must(t, err)
	}
	created := map[string]*corev1.Pod{}
	var first time.Time
	for _, name := range []string{"p1", "p2", "p3", "p4", "p5"} {
		created[name] = createPod(t, ns, pod(name, func(p *corev1.Pod) { p.Spec.SchedulerName = "none" }))
		first = created[name].CreationTimestamp.Time
	}
	finish := func(name string, after int) {
		t.Helper()
		p, err := kube.CoreV1().Pods(ns).Get(t.Context(), name, metav1.GetOptions{})
		must(t, err)
		p.Status = statusOf(finishedPod{phase: corev1.PodSucceeded}, metav1.NewTime(first.Add(time.Duration(after)*time.Second)))
		_, err = kube.CoreV1().Pods(ns).UpdateStatus(t.Context(), p, metav1.UpdateOptions{})
		must(t, err)
	}
	kubectl("patch", "pod", "p3", "-p", `{"metadata":{"finalizers":["example.com/hold"]}}`)
	finish("p1", 4)
	finish("p2", 3)
	finish("p3", 2)
	g.govern(t, v1alpha1.ClusterCleanupPolicySpec{Guardrails: ceilingOf(2, "pods")})
	taken := func(names ...string) {
		t.Helper()
		var want []string
		for _, name := range names {
			want = append(want, fmt.Sprintf("pods/%s ceiling=%s", name, g))
		}
		expectDeletions(t, ns, want...)
	}
	taken("p3")
	kubectl("delete", "pod", "p2", "--wait")
	finish("p4", 1)
	waitStatus(t, ns, "p", func(s *v1alpha1.CleanupPolicyStatus) bool { return s.Candidates == 3 && s.Due == 1 }) // p1, p3, p4
	afterwards(t, 0)
	taken("p3")
	finish("p5", 5)
	taken("p3", "p4")
	kubectl("patch", "pod", "p3", "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
	kubectl("wait", "--for=delete", "pod/p3", "--timeout="+waitMost.String())
	taken("p3", "p4")
}

// finishedPod is a Pod that ran, or runs, without any kubelet; evicted tells why it failed.
type finishedPod struct {
	name    string
	phase   corev1.PodPhase
	evicted bool
	// after is the second of its finish, counted from the creation of the last Pod.
	after int
}

// TestPodCeiling has the cases of TestGCTerminated of Kubernetes' own Pod collector (pkg/controller/podgc) with
// --terminated-pod-gc-threshold as the ceiling. There, one Pod was created per hour in the order of the table; here one finishes per
// second. Ours differs in three things:
//   - the order is by finish, not by creation: a Pod that ran for a week and just ended is the newest;
//   - evicted Pods do not go before the others: why it failed says nothing of how long somebody wants to see it;
//   - a ceiling of 0 keeps none; there, 0 switches the collector off. Without a ceiling there is none.
func TestPodCeiling(t *testing.T) {
	const failed, succeeded, running = corev1.PodFailed, corev1.PodSucceeded, corev1.PodRunning
	for name, c := range map[string]struct {
		pods    []finishedPod
		ceiling int64
		want    []string
	}{
		"failed a and succeeded b": {[]finishedPod{{"a", failed, false, 0}, {"b", succeeded, false, 1}, {"c", failed, false, 2}}, 1, []string{"a", "b"}},
		"zero keeps none":          {[]finishedPod{{"a", failed, false, 0}, {"b", succeeded, false, 1}}, 0, []string{"a", "b"}},
		"succeeded b, a runs":      {[]finishedPod{{"a", running, false, 0}, {"b", succeeded, false, 1}, {"c", failed, false, 2}}, 1, []string{"b"}},
		"failed a":                 {[]finishedPod{{"a", failed, false, 0}, {"b", succeeded, false, 1}}, 1, []string{"a"}},
		"fewer than five":          {[]finishedPod{{"a", failed, false, 0}, {"b", succeeded, false, 1}}, 5, nil},
		"evicted c is the newest":  {[]finishedPod{{"a", failed, false, 0}, {"b", succeeded, false, 1}, {"c", failed, true, 2}}, 1, []string{"a", "b"}},
		"evicted c, a runs":        {[]finishedPod{{"a", running, false, 0}, {"b", succeeded, false, 1}, {"c", failed, true, 2}}, 1, []string{"b"}},
		"evicted c is the oldest":  {[]finishedPod{{"a", failed, false, 2}, {"b", succeeded, false, 1}, {"c", failed, true, 0}}, 1, []string{"b", "c"}},
		"finish, not creation":     {[]finishedPod{{"a", failed, false, 3}, {"b", succeeded, false, 1}, {"c", failed, false, 2}}, 1, []string{"b", "c"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGroup()
			ns := g.namespace(t)
			g.govern(t, v1alpha1.ClusterCleanupPolicySpec{Guardrails: ceilingOf(c.ceiling, "pods")})
			createFinishedPods(t, ns, c.pods)
			var want []string
			for _, name := range c.want {
				want = append(want, fmt.Sprintf("pods/%s ceiling=%s", name, g))
			}
			expectDeletions(t, ns, want...)
			afterwards(t, 0)
			expectDeletions(t, ns, want...)
		})
	}
}

// createFinishedPods creates all before the first finishes, so that no finish lies before a creation.
func createFinishedPods(t *testing.T, ns string, pods []finishedPod) {
	t.Helper()
	created := make([]*corev1.Pod, len(pods))
	for i, p := range pods {
		created[i] = createPod(t, ns, pod(p.name, func(p *corev1.Pod) { p.Spec.SchedulerName = "none" })) // Nobody else writes its status.
	}
	first := created[len(created)-1].CreationTimestamp.Time
	for i, p := range pods {
		at := metav1.NewTime(first.Add(time.Duration(p.after) * time.Second))
		created[i].Status = statusOf(p, at)
		_, err := kube.CoreV1().Pods(ns).UpdateStatus(t.Context(), created[i], metav1.UpdateOptions{})
		must(t, err)
	}
}

func statusOf(p finishedPod, at metav1.Time) corev1.PodStatus {
	s := corev1.PodStatus{Phase: p.phase}
	switch {
	case p.evicted:
		s.Reason = "Evicted"
		s.Conditions = []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, LastTransitionTime: at}}
	case p.phase != corev1.PodRunning:
		s.ContainerStatuses = []corev1.ContainerStatus{{
			Name: "main", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{StartedAt: at, FinishedAt: at}},
		}}
	}
	return s
}
