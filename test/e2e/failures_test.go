// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/pkg/generated/clientset/versioned"
	"github.com/winnow-dev/winnow/test/cluster"
	"github.com/winnow-dev/winnow/test/winnow"
)

// The tests of this file stop and start what the others need, so none of them is parallel: they run before or after those.

// expectEachDeletedOnce waits until exactly n Jobs are left in ns and checks that each of the others was deleted by one DELETE
// that the API server accepted, or by one whose sender was killed: that it answers with a time-out.
func expectEachDeletedOnce(t *testing.T, ns string, gone []string, left int) {
	t.Helper()
	waitJobs(t, ns, left)
	eventually(t, func(context.Context) string {
		answers := map[string][]int32{}
		for _, d := range deletions(t, ns) {
			if !d.hasPreconditions {
				t.Fatalf("DELETE of %s without both preconditions", d.object)
			}
			answers[d.object] = append(answers[d.object], d.ResponseStatus.Code)
		}
		for _, name := range gone {
			of := answers["jobs/"+name]
			accepted := count(of, http.StatusOK)
			if accepted > 1 || accepted == 0 && count(of, http.StatusGatewayTimeout) == 0 {
				return fmt.Sprintf("the DELETEs of job %s were answered with %v", name, of)
			}
		}
		if len(answers) != len(gone) {
			return fmt.Sprintf("DELETEs of %d objects, want %d", len(answers), len(gone))
		}
		return ""
	})
}

func count(codes []int32, code int32) (n int) {
	for _, c := range codes {
		if c == code {
			n++
		}
	}
	return n
}

// TestKilled: Winnow is killed with half of 500 Jobs due, all replicas at once. Started again it deletes each due one once and
// misses none, and every acknowledged policy is there.
func TestKilled(t *testing.T) {
	ns := newNamespace(t)
	const n = 500
	jobs := finishedJobs(t, ns, n)
	var due []string
	for i, j := range jobs {
		if i%2 == 0 {
			j.Labels["due"] = "yes"
			due = append(due, j.Name)
		}
	}
	each(n, func(i int) {
		if i%2 == 0 {
			_, err := kube.BatchV1().Jobs(ns).Update(t.Context(), jobs[i], metav1.UpdateOptions{})
			if err != nil {
				t.Errorf("labelling %s: %v", jobs[i].Name, err)
			}
		}
	})
	createPolicy(t, ns, "p", v1alpha1.CleanupPolicySpec{Rules: []v1alpha1.CleanupRule{
		{Name: "due", Selector: matching(map[string]string{"due": "yes"}), TTL: ttl("0s")},
		{Name: "later", TTL: ttl("1h")},
	}})
	waitFirstDeletion(t, ns, n)
	createPolicy(t, ns, "acknowledged", v1alpha1.CleanupPolicySpec{})
	kill(t, server.Replicas...)
	half := len(jobNames(t, ns))
	for _, r := range server.Replicas {
		must(t, r.Start(whole))
	}
	expectEachDeletedOnce(t, ns, due, n-len(due))
	for _, name := range []string{"p", "acknowledged"} {
		_, err := gc.CleanupPolicies(ns).Get(t.Context(), name, metav1.GetOptions{})
		must(t, err)
	}
	t.Logf("killed with %d of %d Jobs left", half, n)
}

// TestLeaderKilled: of two replicas the one that deletes is killed in the middle; the other goes on.
func TestLeaderKilled(t *testing.T) {
	ns := newNamespace(t)
	const n = 500
	var names []string
	for _, j := range finishedJobs(t, ns, n) {
		names = append(names, j.Name)
	}
	killed := leader(t)
	createPolicy(t, ns, "p", v1alpha1.CleanupPolicySpec{TTLAfterFinished: ttl("0s")})
	waitFirstDeletion(t, ns, n)
	kill(t, killed)
	expectEachDeletedOnce(t, ns, names, 0)
	if other := leader(t); other == killed {
		t.Errorf("%s leads, but was killed", other.Name)
	}
}

// TestPausedLeader: the replica that deletes is frozen past its lease and continued when the other leads; it must not go on
// where it stopped.
func TestPausedLeader(t *testing.T) {
	ns := newNamespace(t)
	finishedJobs(t, ns, 1)
	paused := leader(t)
	must(t, paused.Pause())
	t.Cleanup(func() { must(t, paused.Continue()) })
	var other *winnow.Replica
	for _, r := range server.Replicas {
		if r != paused {
			other = r
		}
	}
	eventually(t, func(ctx context.Context) string {
		metrics, err := other.Get(ctx, "/metrics")
		if err != nil || !strings.Contains(metrics, "\nwinnow_leading 1") {
			return other.Name + " does not lead"
		}
		return ""
	})
	createPolicy(t, ns, "p", v1alpha1.CleanupPolicySpec{TTLAfterFinished: ttl("0s")})
	must(t, paused.Continue())
	expectDeletions(t, ns, "jobs/job-0000 p/default")
	afterwards(t, 0)
	expectDeletions(t, ns, "jobs/job-0000 p/default")
}

// stopControllers freezes kube-controller-manager until the returned function, or the end of the test.
func stopControllers(t *testing.T) (goOn func()) {
	t.Helper()
	p := suite.Process(cluster.ControllerManager)
	must(t, p.Signal(syscall.SIGSTOP))
	goOn = func() { must(t, p.Signal(syscall.SIGCONT)) }
	t.Cleanup(goOn)
	return goOn
}

// TestJobNotYetListed: kube-controller-manager stops after it has created a Job for a CronJob and before it has written that down.
// Whoever deletes the Job then has it run again. A CronJob of another namespace is nobody's owner.
func TestJobNotYetListed(t *testing.T) {
	ns, elsewhere := newNamespace(t), newNamespace(t)
	for _, n := range []string{ns, elsewhere} {
		createPolicy(t, n, "p", v1alpha1.CleanupPolicySpec{TTLAfterFinished: ttl("0s")})
	}
	goOn := stopControllers(t)
	// It is a daily one, so that nothing else is scheduled while the test runs.
	scheduled := time.Now().UTC().Add(-time.Hour).Truncate(time.Minute)
	utc := "Etc/UTC"
	cronJob, err := kube.BatchV1().CronJobs(ns).Create(t.Context(), &batchv1.CronJob{
		ObjectMeta: metav1.ObjectMeta{Name: "daily"},
		Spec: batchv1.CronJobSpec{
			Schedule: fmt.Sprintf("%d %d * * *", scheduled.Minute(), scheduled.Hour()), TimeZone: &utc,
			JobTemplate: batchv1.JobTemplateSpec{Spec: job("").Spec},
		},
	}, metav1.CreateOptions{})
	must(t, err)
	yesterday := metav1.NewTime(scheduled.Add(-24 * time.Hour))
	cronJob.Status.LastScheduleTime = &yesterday
	cronJob, err = kube.BatchV1().CronJobs(ns).UpdateStatus(t.Context(), cronJob, metav1.UpdateOptions{})
	must(t, err)
	run := func(at time.Time) *batchv1.Job {
		return job(fmt.Sprintf("daily-%d", at.Unix()/60), unmanaged, func(j *batchv1.Job) {
			j.Annotations[batchv1.CronJobScheduledTimestampAnnotation] = at.Format(time.RFC3339)
			j.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(cronJob, batchv1.SchemeGroupVersion.WithKind("CronJob"))}
		})
	}
	before, today := run(yesterday.Time), run(scheduled)
	created := finish(t, createJob(t, ns, today), time.Now())
	finish(t, createJob(t, elsewhere, before), time.Now())
	finish(t, createJob(t, ns, before), time.Now())
	want := []string{"jobs/" + before.Name + " p/default"}
	expectDeletions(t, ns, want...)
	afterwards(t, 0)
	expectDeletions(t, ns, want...)
	expectDeletions(t, elsewhere)
	// What the controller would have written next. It takes the Job off the list itself.
	cronJob.Status.LastScheduleTime = new(metav1.NewTime(scheduled))
	cronJob.Status.Active = []corev1.ObjectReference{
		{
			APIVersion:      "batch/v1",
			Kind:            "Job",
			Namespace:       ns,
			Name:            created.Name,
			UID:             created.UID,
			ResourceVersion: created.ResourceVersion,
		},
	}
	_, err = kube.BatchV1().CronJobs(ns).UpdateStatus(t.Context(), cronJob, metav1.UpdateOptions{})
	must(t, err)
	goOn()
	want = append(want, "jobs/"+today.Name+" p/default")
	expectDeletions(t, ns, want...)
	waitJobs(t, elsewhere, 0) // The garbage collector takes it.
	afterwards(t, 0)
	expectDeletions(t, ns, want...) // It did not run again.
	waitJobs(t, ns, 0)
	expectDeletions(t, elsewhere)
}

// TestAPIServerRestarted: kube-apiserver is killed before Jobs become due, and comes back after that.
func TestAPIServerRestarted(t *testing.T) {
	ns := newNamespace(t)
	const n = 50
	var names []string
	all := finishedJobs(t, ns, n)
	for _, j := range all {
		names = append(names, j.Name)
	}
	createPolicy(t, ns, "p", v1alpha1.CleanupPolicySpec{TTLAfterFinished: ttl("15s")})
	must(t, suite.StopComponent(cluster.APIServer))
	waitUntil(t, finishedAt(all[0]).Add(15*time.Second))
	must(t, suite.StartComponent(whole, cluster.APIServer))
	expectEachDeletedOnce(t, ns, names, 0)
	eventually(t, func(ctx context.Context) string {
		if _, err := gc.CleanupPolicies(ns).Get(ctx, "p", metav1.GetOptions{}); err != nil {
			return err.Error()
		}
		return ""
	})
}

// TestWithoutRights: Winnow may not delete Jobs. It says which right is missing, deletes the Pods all the same, and goes on
// when it gets the right.
func TestWithoutRights(t *testing.T) {
	ns := newNamespace(t)
	finishedJobs(t, ns, 20)
	restore := withoutJobs(t, "get", "list", "watch")
	createPod(t, ns, pod("bare"))
	createPolicy(t, ns, "p", v1alpha1.CleanupPolicySpec{TTLAfterFinished: ttl("0s")})
	status := waitStatus(t, ns, "p", func(s *v1alpha1.CleanupPolicyStatus) bool {
		return s.Held == 20 && s.Deleted == 1 && s.Conditions[0].Reason == "Unauthorized"
	})
	if c := status.Conditions[0]; c.Status != metav1.ConditionFalse ||
		!strings.Contains(c.Message, "kubectl auth can-i delete jobs.batch -n "+ns) {
		t.Errorf("condition: %+v", c)
	}
	if left := len(jobNames(t, ns)); left != 20 {
		t.Errorf("%d of 20 Jobs are left", left)
	}
	restore()
	waitJobs(t, ns, 0)
}

// TestWithoutEyes: Winnow may not list Jobs. Its policies say so and are not Ready until it may.
func TestWithoutEyes(t *testing.T) {
	ns := newNamespace(t)
	finishedJobs(t, ns, 1)
	restore := withoutJobs(t, "delete")
	kill(t, server.Replicas...)
	for _, r := range server.Replicas {
		must(t, r.Start(whole))
	}
	createPolicy(t, ns, "p", v1alpha1.CleanupPolicySpec{TTLAfterFinished: ttl("0s")})
	waitStatus(t, ns, "p", func(s *v1alpha1.CleanupPolicyStatus) bool {
		return len(s.Conditions) == 1 && s.Conditions[0].Reason == "Unobserved" &&
			strings.Contains(s.Conditions[0].Message, `resource "jobs"`)
	})
	expectDeletions(t, ns)
	restore()
	expectDeletions(t, ns, "jobs/job-0000 p/default")
	waitStatus(t, ns, "p", func(s *v1alpha1.CleanupPolicyStatus) bool { return s.Conditions[0].Status == metav1.ConditionTrue })
}

// TestWithoutQuotas: Winnow may not watch ResourceQuotas any more. What goes because of a share of one is held, and the policy says so;
// what goes by its time goes on. With the right back it follows the quota as it is now.
func TestWithoutQuotas(t *testing.T) {
	ns := newNamespace(t)
	setQuota(t, ns, 20)
	createPolicy(t, ns, "p", v1alpha1.CleanupPolicySpec{Rules: []v1alpha1.CleanupRule{
		{Name: "soon", Selector: matching(map[string]string{"soon": "yes"}), TTL: ttl("0s")},
		{Name: "half", Resources: []string{"jobs.batch"}, Capacity: &v1alpha1.Capacity{PercentOfQuota: new(int64(50))}},
	}})
	all := shuffledJobs(t, ns, 10)
	waitStatus(t, ns, "p", func(s *v1alpha1.CleanupPolicyStatus) bool { return s.Candidates == 10 && s.Due == 0 })
	restore := withRights(t, "resourcequotas")
	must(t, suite.StopComponent(cluster.APIServer)) // It goes on with watches that it has allowed once.
	must(t, suite.StartComponent(whole, cluster.APIServer))
	waitStatus(t, ns, "p", func(s *v1alpha1.CleanupPolicyStatus) bool {
		c := s.Conditions[0]
		return c.Reason == "Unobserved" && c.Status == metav1.ConditionFalse && strings.Contains(c.Message, `resource "resourcequotas"`)
	})
	setQuota(t, ns, 30)
	all = append(all, shuffledJobs(t, ns, 8, named("more"))...)
	finish(t, createJob(t, ns, job("soon", unmanaged, func(j *batchv1.Job) { j.Labels = map[string]string{"soon": "yes"} })), time.Now())
	waitStatus(t, ns, "p", func(s *v1alpha1.CleanupPolicyStatus) bool { return s.Candidates == 18 && s.Due == 8 && s.Held == 8 })
	expectDeletions(t, ns, "jobs/soon p/soon")
	restore()
	expectDeletions(t, ns, append(allBut(15, "p/half", all), "jobs/soon p/soon")...)
	waitStatus(t, ns, "p", func(s *v1alpha1.CleanupPolicyStatus) bool {
		return s.Candidates == 15 && s.Conditions[0].Status == metav1.ConditionTrue
	})
}

// withoutJobs leaves Winnow these rights on Jobs alone, until restore is called or the test ends.
func withoutJobs(t *testing.T, verbs ...string) (restore func()) {
	t.Helper()
	return withRights(t, "jobs", verbs...)
}

// withRights leaves Winnow these rights on a resource alone, until restore is called or the test ends.
func withRights(t *testing.T, resource string, verbs ...string) (restore func()) {
	t.Helper()
	roles := kube.RbacV1().ClusterRoles()
	role, err := roles.Get(t.Context(), "winnow:controller", metav1.GetOptions{})
	must(t, err)
	changed := role.DeepCopy()
	changed.Rules = nil
	for _, r := range role.Rules {
		if !slices.Contains(r.Resources, resource) {
			changed.Rules = append(changed.Rules, r)
			continue
		}
		others := r.DeepCopy()
		others.Resources = slices.DeleteFunc(others.Resources, func(r string) bool { return r == resource })
		for _, r := range []rbacv1.PolicyRule{*others, {APIGroups: r.APIGroups, Resources: []string{resource}, Verbs: verbs}} {
			if len(r.Resources) > 0 && len(r.Verbs) > 0 {
				changed.Rules = append(changed.Rules, r)
			}
		}
	}
	_, err = roles.Update(t.Context(), changed, metav1.UpdateOptions{})
	must(t, err)
	eventually(t, func(ctx context.Context) string {
		if can, _, err := suite.Kubectl(ctx, "auth", "can-i", "delete", resource, "-A", "--as="+winnow.User); strings.TrimSpace(can) == "yes" &&
			!slices.Contains(verbs, "delete") {
			return fmt.Sprintf("Winnow may still delete %s: %v", resource, err)
		}
		return ""
	})
	restore = sync.OnceFunc(func() {
		current, err := roles.Get(whole, role.Name, metav1.GetOptions{})
		must(t, err)
		current.Rules = role.Rules
		_, err = roles.Update(whole, current, metav1.UpdateOptions{})
		must(t, err)
	})
	t.Cleanup(restore)
	return restore
}

// TestNamespaceDeleted: a namespace with policies and Jobs goes when it is deleted, and Winnow leaves that to it.
func TestNamespaceDeleted(t *testing.T) {
	ns := newNamespace(t)
	finishedJobs(t, ns, 10)
	createPolicy(t, ns, "p", v1alpha1.CleanupPolicySpec{TTLAfterFinished: ttl("1h")})
	must(t, kube.CoreV1().Namespaces().Delete(t.Context(), ns, metav1.DeleteOptions{}))
	eventually(t, func(ctx context.Context) string { return stillThere(ctx, ns) })
	expectDeletions(t, ns)
}

// TestNamespaceDeletedWhileDown: with every replica down the contents of a deleted namespace go, but the namespace says that it
// waits for our API group, as it does for every aggregated one (kubernetes#119662). It goes when Winnow is back.
func TestNamespaceDeletedWhileDown(t *testing.T) {
	ns := newNamespace(t)
	finishedJobs(t, ns, 10)
	createPolicy(t, ns, "p", v1alpha1.CleanupPolicySpec{TTLAfterFinished: ttl("1h")})
	impatient, err := versioned.NewForConfig(suite.RESTConfig())
	must(t, err)
	kill(t, server.Replicas...)
	eventually(t, func(ctx context.Context) string {
		_, err := impatient.GcV1alpha1().CleanupPolicies(ns).Get(ctx, "p", metav1.GetOptions{})
		if !apierrors.IsServiceUnavailable(err) {
			return fmt.Sprintf("get of a policy: %v", err)
		}
		return ""
	})
	must(t, kube.CoreV1().Namespaces().Delete(t.Context(), ns, metav1.DeleteOptions{}))
	waitJobs(t, ns, 0)
	eventually(t, func(ctx context.Context) string {
		left, err := kube.CoreV1().Namespaces().Get(ctx, ns, metav1.GetOptions{})
		must(t, err)
		for _, c := range left.Status.Conditions {
			if c.Status == corev1.ConditionTrue && strings.Contains(c.Message, "gc.winnow.dev") {
				t.Logf("%s: %s: %s", c.Type, c.Reason, c.Message)
				return ""
			}
		}
		return fmt.Sprintf("no condition names the group: %+v", left.Status)
	})
	for _, r := range server.Replicas {
		must(t, r.Start(whole))
	}
	eventually(t, func(ctx context.Context) string { return stillThere(ctx, ns) })
}

func stillThere(ctx context.Context, ns string) string {
	left, err := kube.CoreV1().Namespaces().Get(ctx, ns, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return ""
	case err != nil:
		return err.Error()
	}
	return fmt.Sprintf("namespace %s is still there: %+v", ns, left.Status)
}
