// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/test/cluster"
)

const annotationTTL, annotationKeepUntil = "gc.winnow.dev/ttl", "gc.winnow.dev/keep-until"

// asUser returns kubectl in a namespace, for a user with no rights yet.
func asUser(t *testing.T, user, ns string) func(ctx context.Context, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	kubeconfig, err := suite.KubeconfigFor(user)
	must(t, err)
	return func(ctx context.Context, args ...string) (string, string, error) {
		return suite.Kubectl(ctx, append([]string{"--kubeconfig", kubeconfig, "-n", ns}, args...)...)
	}
}

func kubectl(t *testing.T, args ...string) string {
	t.Helper()
	stdout, stderr, err := suite.Kubectl(t.Context(), args...)
	if err != nil {
		t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, stderr)
	}
	return stdout
}

// TestCandidatesOfTwoTenants: of the same namespace, each tenant sees the candidates of what they may list. A warning says what is missing.
// Whether a hidden object exists makes no difference to the answer.
func TestCandidatesOfTwoTenants(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t)
	createPolicy(t, ns, "defaults", v1alpha1.CleanupPolicySpec{TTLAfterFinished: ttl("1h")})
	finishedJobs(t, ns, 1)
	createFinishedPods(t, ns, []finishedPod{{name: "pod", phase: corev1.PodSucceeded}})
	viewer, counter, stranger := asUser(t, "viewer-"+ns, ns), asUser(t, "counter-"+ns, ns), asUser(t, "stranger-"+ns, ns)
	kubectl(t, "create", "rolebinding", "viewer", "-n", ns, "--clusterrole=view", "--user=viewer-"+ns)
	kubectl(t, "create", "role", "counter", "-n", ns, "--verb=list,get", "--resource=cleanupcandidates.gc.winnow.dev,pods")
	kubectl(t, "create", "rolebinding", "counter", "-n", ns, "--role=counter", "--user=counter-"+ns)

	sees := func(as func(context.Context, ...string) (string, string, error), want []string, warning string, args ...string) {
		t.Helper()
		eventually(t, func(ctx context.Context) string {
			stdout, stderr, err := as(ctx, append([]string{"get", "cleanupcandidates.gc.winnow.dev", "-o",
				`jsonpath={range .items[*]}{.status.object.resource}/{.status.object.name}{"\n"}{end}`}, args...)...)
			got := strings.Fields(stdout)
			slices.Sort(got)
			if err != nil || !slices.Equal(got, want) || warning == "" && stderr != "" || !strings.Contains(stderr, warning) {
				return fmt.Sprintf("sees %q with %q, %v; want %q with %q", got, stderr, err, want, warning)
			}
			return ""
		})
	}
	sees(viewer, []string{"jobs.batch/job-0000", "pods/pod"}, "")
	sees(counter, []string{"pods/pod"},
		"Warning: hidden candidates: 1. You may not list their resources: kubectl auth can-i list jobs.batch -n "+ns)
	const there, absent = "object=jobs.batch/job-0000", "object=jobs.batch/none"
	for _, object := range []string{there, absent} {
		sees(counter, nil, "Warning: you may not list jobs.batch: kubectl auth can-i list jobs.batch -n "+ns, "--field-selector="+object)
	}
	sees(viewer, []string{"jobs.batch/job-0000"}, "", "--field-selector="+there)
	sees(viewer, nil, "Winnow knows no jobs.batch/none in namespace "+ns, "--field-selector="+absent)
	for name, refused := range map[string]func() (string, string, error){
		"a stranger":                  func() (string, string, error) { return stranger(t.Context(), "get", "cand") },
		"a viewer, in all namespaces": func() (string, string, error) { return viewer(t.Context(), "get", "cand", "-A") },
		"a viewer, elsewhere": func() (string, string, error) {
			return viewer(t.Context(), "get", "cand", "-n", "default")
		},
	} {
		if stdout, stderr, err := refused(); err == nil || !strings.Contains(stderr, "forbidden") {
			t.Errorf("%s sees %q, %q", name, stdout, stderr)
		}
	}
}

// TestCandidatesToRead is what a user reads: the table, one object by its name, and the whole explanation.
func TestCandidatesToRead(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t)
	createPolicy(t, ns, "defaults", v1alpha1.CleanupPolicySpec{
		TTLAfterFinished: ttl("2h"),
		Rules: []v1alpha1.CleanupRule{
			{Name: "nightly", Selector: matching(map[string]string{"kind": "nightly"}), TTL: ttl("never")},
			{Name: "few", Selector: matching(map[string]string{"kind": "few"}), Capacity: &v1alpha1.Capacity{MaxObjects: new(int64(2))}, TTL: ttl("7d")},
		},
	})
	first, second := createJob(t, ns, job("few-0", unmanaged, jobLabel("kind", "few"))), createJob(t, ns, job("few-1", unmanaged, jobLabel("kind", "few")))
	for _, j := range []*batchv1.Job{first, second} { // At the same time, so that the UID decides who is first.
		finish(t, j, second.CreationTimestamp.Time)
	}
	finish(t, createJob(t, ns, job("report", unmanaged)), time.Now())
	finish(t, createJob(t, ns, job("nightly", unmanaged, jobLabel("kind", "nightly"))), time.Now())
	finish(t, createJob(t, ns, job("typo", unmanaged, func(j *batchv1.Job) { j.Annotations[annotationTTL] = "soon" })), time.Now())
	createJob(t, ns, job("running", runningForever))

	want := []string{
		"OBJECT STATE TTL POLICY RULE DUE REASON",
		"jobs.batch/few-0 Waiting 7d cup/defaults few in TIME NotDue",
		"jobs.batch/few-1 Waiting 7d cup/defaults few in TIME NotDue",
		"jobs.batch/nightly Kept never cup/defaults nightly - Never",
		"jobs.batch/report Waiting 2h cup/defaults default in TIME NotDue",
		"jobs.batch/typo Waiting 2h cup/defaults default in TIME NotDue",
	}
	sees := func(want []string, args ...string) { // as soon as each replica knows
		t.Helper()
		eventually(t, func(ctx context.Context) string {
			stdout, stderr, err := suite.Kubectl(ctx, append([]string{"get", "cand", "-n", ns}, args...)...)
			if got := rows(stdout); err != nil || stderr != "" || !slices.Equal(got, want) {
				return fmt.Sprintf("kubectl get cand %q: %q %v\n%s", args, stderr, err, strings.Join(got, "\n"))
			}
			return ""
		})
	}
	sees(want)
	sees([]string{want[0], "jobs.batch/running NoCandidate - cup/defaults default - NotFinished"}, "--field-selector=object=jobs.batch/running")
	sees([]string{want[0], want[3]}, "--field-selector=state=Kept")
	sees(want, "--chunk-size=2")
	sorted := strings.Split(strings.TrimSpace(kubectl(t, "get", "cand", "-n", ns, "--sort-by=.status.dueTime", "--no-headers")), "\n")
	if len(sorted) != 5 || !strings.HasPrefix(sorted[0], "jobs.batch/nightly ") || !strings.HasPrefix(sorted[4], "jobs.batch/few-") {
		t.Errorf("by due time: %q", sorted)
	}
	if got := kubectl(t, "get", "cand", "-n", ns, "-o", "wide", "--field-selector=object=jobs.batch/typo"); !strings.Contains(got, "it will be held (InvalidAnnotation)") {
		t.Errorf("-o wide: %s", got)
	}
	for selector, hint := range map[string]string{
		"object=running": "must be a resource and a name, for example jobs.batch/report", "state=Gone": `use one of ["Waiting" "Notified" "Due" "Held" "Terminating" "Kept"]`,
		"color=red": "is not a field selector of CleanupCandidate",
	} {
		if _, stderr, err := suite.Kubectl(t.Context(), "get", "cand", "-n", ns, "--field-selector="+selector); err == nil || !strings.Contains(stderr, hint) {
			t.Errorf("%s: %v %s", selector, err, stderr)
		}
	}
	rank := int64(1)
	if first.UID > second.UID {
		rank = 2
	}
	checkExplanation(t, ns, rank)
}

// rows returns the lines of a table, sorted below the header. TIME stands for each duration.
func rows(table string) []string {
	var out []string
	for line := range strings.Lines(table) {
		cells := strings.Fields(line)
		for i := range cells {
			if i > 0 && cells[i-1] == "in" {
				cells[i] = "TIME"
			}
		}
		out = append(out, strings.Join(cells, " "))
	}
	if len(out) > 0 {
		slices.Sort(out[1:])
	}
	return out
}

// checkExplanation reads the whole explanation of the Job few-0 as YAML.
func checkExplanation(t *testing.T, ns string, rank int64) {
	t.Helper()
	j, err := kube.BatchV1().Jobs(ns).Get(t.Context(), "few-0", metav1.GetOptions{})
	must(t, err)
	var list v1alpha1.CleanupCandidateList
	must(t, yaml.UnmarshalStrict([]byte(kubectl(t, "get", "cand", "-n", ns, "--field-selector=object=jobs.batch/few-0", "-o", "yaml")), &list))
	if len(list.Items) != 1 {
		t.Fatalf("%d candidates", len(list.Items))
	}
	c := list.Items[0]
	byUID, err := gc.CleanupCandidates(ns).Get(t.Context(), string(j.UID), metav1.GetOptions{})
	must(t, err)
	if byUID.Status.Object != c.Status.Object || c.Name != string(j.UID) || c.Status.Object.ResourceVersion != j.ResourceVersion ||
		!maps.Equal(c.Labels, j.Labels) {
		t.Errorf("the candidate is %+v of %+v, want %+v", c.ObjectMeta, c.Status.Object, j.ObjectMeta)
	}
	s := c.Status
	due := finishedAt(j).Add(7 * 24 * time.Hour)
	if s.State != v1alpha1.CandidateWaiting || s.TTL != "7d" || !s.DueTime.Time.Equal(due) || s.Since == nil || !s.Since.Time.Equal(finishedAt(j)) ||
		s.Outcome != v1alpha1.OutcomeSucceeded || s.PropagationPolicy != metav1.DeletePropagationBackground || s.ObservedTime == nil {
		t.Errorf("status %+v", s)
	}
	want := []v1alpha1.ConsideredRule{
		{Name: "nightly", Message: `the labels do not match its selector "kind=nightly"`}, {Name: "few", Matches: true},
	}
	if len(s.Policies) != 1 || s.Policies[0].Result != v1alpha1.ConsideredDecides || !slices.Equal(s.Policies[0].Rules, want) ||
		s.Policies[0].KeepsUntil != due.UTC().Format(time.RFC3339) {
		t.Errorf("policies %+v", s.Policies)
	}
	if len(s.Limits) != 1 || *s.Limits[0].Rank != rank || *s.Limits[0].MaxObjects != 2 || s.Limits[0].Objects != 2 || s.Limits[0].Over {
		t.Errorf("limits %+v", s.Limits)
	}
}

// TestCandidatesDisturbNobody: candidates are served, and neither kubectl, nor the deletion of a namespace, nor the garbage collector, nor
// the controller of quotas stumbles over them.
func TestCandidatesDisturbNobody(t *testing.T) {
	ns := newNamespace(t)
	createPolicy(t, ns, "p", v1alpha1.CleanupPolicySpec{TTLAfterFinished: ttl("1h")})
	finishedJobs(t, ns, 5)
	eventually(t, func(ctx context.Context) string {
		list, err := gc.CleanupCandidates(ns).List(ctx, metav1.ListOptions{})
		if err != nil || len(list.Items) != 5 {
			return fmt.Sprintf("%d candidates, %v", len(list.Items), err)
		}
		return ""
	})
	for command, winnows := range map[string]bool{"get all -A": false, "api-resources": true} {
		eventually(t, func(ctx context.Context) string {
			stdout, stderr, err := suite.Kubectl(ctx, strings.Fields(command)...)
			if err != nil || stderr != "" || strings.Contains(stdout, "cleanup") != winnows {
				return fmt.Sprintf("kubectl %s: %v %s\n%s", command, err, stderr, stdout)
			}
			return ""
		})
	}
	if _, stderr, err := suite.Kubectl(t.Context(), "delete", "cand", "-n", ns, "--all"); err == nil || !strings.Contains(stderr, "MethodNotAllowed") && !strings.Contains(stderr, "does not allow this method") {
		t.Errorf("candidates can be deleted: %v %s", err, stderr)
	}

	setQuota(t, ns, 10)
	owner, err := kube.CoreV1().ConfigMaps(ns).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "owner"}}, metav1.CreateOptions{})
	must(t, err)
	createJob(t, ns, job("dependent", unmanaged, func(j *batchv1.Job) {
		j.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "owner", UID: owner.UID}}
	}))
	used := func(jobs int64) {
		t.Helper()
		eventually(t, func(ctx context.Context) string {
			q, err := kube.CoreV1().ResourceQuotas(ns).Get(ctx, "q", metav1.GetOptions{})
			must(t, err)
			if got := q.Status.Used["count/jobs.batch"]; got.Value() != jobs {
				return fmt.Sprintf("the quota counts %d Jobs, want %d", got.Value(), jobs)
			}
			return ""
		})
	}
	used(6)
	must(t, kube.CoreV1().ConfigMaps(ns).Delete(t.Context(), "owner", metav1.DeleteOptions{}))
	waitJobs(t, ns, 5)
	used(5)
	must(t, kube.CoreV1().Namespaces().Delete(t.Context(), ns, metav1.DeleteOptions{}))
	eventually(t, func(ctx context.Context) string { return stillThere(ctx, ns) })
	expectDeletions(t, ns)
	log, err := os.ReadFile(filepath.Join(suite.Logs(), cluster.ControllerManager+".log"))
	must(t, err)
	for line := range strings.Lines(string(log)) {
		if strings.Contains(line, "cleanupcandidates") {
			t.Errorf("kube-controller-manager knows candidates: %s", line)
		}
	}
}
