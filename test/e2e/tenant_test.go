// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
)

// TestTenantSeesWhoDeletedHisJob: who has no more than the role view in his namespace, and cannot read cluster policies, finds out which
// of them deleted his Job, when, and by which rule.
func TestTenantSeesWhoDeletedHisJob(t *testing.T) {
	t.Parallel()
	g := newGroup()
	ns := g.namespace(t)
	user := "tenant-of-" + ns
	kubeconfig, err := suite.KubeconfigFor(user)
	must(t, err)
	if _, stderr, err := suite.Kubectl(t.Context(), "create", "rolebinding", "tenant", "-n", ns, "--clusterrole=view", "--user="+user); err != nil {
		t.Fatal(stderr)
	}
	begun := time.Now()
	createJob(t, ns, job("report"))
	waitJobFinished(t, ns, "report")
	g.govern(t, v1alpha1.ClusterCleanupPolicySpec{Rules: []v1alpha1.CleanupRule{{Name: "reports", TTL: ttl("0s")}}})
	waitJobs(t, ns, 0)

	asTenant := func(ctx context.Context, args ...string) (string, string, error) {
		return suite.Kubectl(ctx, append([]string{"--kubeconfig", kubeconfig, "-n", ns}, args...)...)
	}
	eventually(t, func(ctx context.Context) string {
		out, stderr, err := asTenant(ctx, "events", "--for", "job/report")
		want := fmt.Sprintf("Deleted 1 jobs.batch by rule reports of ClusterCleanupPolicy %s", g)
		if err != nil || !strings.Contains(out, want) {
			return stderr + out
		}
		return ""
	})
	out, stderr, err := asTenant(t.Context(), "get", "events", "--field-selector=reason=Deleted",
		"--output=jsonpath={range .items[*]}{.related.kind}/{.related.name} {.eventTime}{end}")
	if err != nil {
		t.Fatal(stderr)
	}
	policy, at, _ := strings.Cut(out, " ")
	told, err := time.Parse(time.RFC3339Nano, at)
	if policy != "ClusterCleanupPolicy/"+string(g) || err != nil || told.Before(begun) || told.After(time.Now()) {
		t.Errorf("told of %q at %q", policy, at)
	}
	if _, stderr, err := asTenant(t.Context(), "get", "ccup"); err == nil || !strings.Contains(stderr, "Forbidden") {
		t.Errorf("the tenant can read cluster policies: %v %s", err, stderr)
	}
}

// documented returns the arguments of the kubectl command with which the docs answer a question about the Job NAME in the namespace TEAM,
// without the plugin.
func documented(t *testing.T, question, ns, name string) []string {
	t.Helper()
	text, err := os.ReadFile("../../docs/teams.md")
	must(t, err)
	_, row, found := strings.Cut(string(text), "\n| "+question+" | `kubectl ")
	if strings.HasPrefix(row, "winnow ") {
		_, row, found = strings.Cut(row, "Without the plugin: `kubectl ")
	}
	command, _, _ := strings.Cut(row, "`")
	if !found {
		t.Fatalf("the docs do not answer %q", question)
	}
	return strings.Fields(strings.NewReplacer("TEAM", ns, "NAME", name).Replace(command))
}

// TestTenantAsks: who has no more than the role view gets each answer from the one command that the docs name: when a Job goes, what would
// keep it, and why it is gone.
func TestTenantAsks(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t)
	createPolicy(t, ns, "ci", v1alpha1.CleanupPolicySpec{Rules: []v1alpha1.CleanupRule{
		{Name: "reports", Selector: matching(map[string]string{"kind": "report"}), TTL: ttl("0s")}, {Name: "builds", TTL: ttl("1h")},
	}})
	tenant := asUser(t, "tenant-"+ns, ns)
	kubectl(t, "create", "rolebinding", "tenant", "-n", ns, "--clusterrole=view", "--user=tenant-"+ns)
	build := finish(t, createJob(t, ns, job("build", unmanaged)), time.Now())
	finish(t, createJob(t, ns, job("report", unmanaged, jobLabel("kind", "report"))), time.Now())

	const when = "When is this Job deleted?"
	sees := func(args []string, want ...string) {
		t.Helper()
		eventually(t, func(ctx context.Context) string {
			out, stderr, err := tenant(ctx, args...)
			for _, text := range want {
				if err != nil || !strings.Contains(out, text) {
					return fmt.Sprintf("kubectl %s does not show %q: %v %s%s", strings.Join(args, " "), text, err, stderr, out)
				}
			}
			return ""
		})
	}
	sees(documented(t, when, ns, "build"), "jobs.batch/build", "Waiting", "1h", "cup/ci", "builds", " in ", "NotDue")
	sees(append(documented(t, when, ns, "build"), "-o", "yaml"), "dueTime: \""+finishedAt(build).Add(time.Hour).UTC().Format(time.RFC3339),
		"To keep it longer, use kubectl winnow keep", // The line may end here.
		"the labels do not match its selector \"kind=report\"")
	sees(documented(t, "Why is my Job gone?", ns, "report"), "Deleted 1 jobs.batch by rule reports", "cleanuppolicy/ci")
}

// TestEventsShowNoOtherTenant: an event names an object in its own namespace alone. The events of cluster policies, which are in the
// namespace default, say how many there are.
func TestEventsShowNoOtherTenant(t *testing.T) {
	t.Parallel()
	g := newGroup()
	mine, theirs := g.namespace(t), g.namespace(t)
	name := "private-" + string(g)
	finish(t, createJob(t, theirs, job(name, unmanaged, func(j *batchv1.Job) { j.Annotations[annotationTTL] = "soon" })), time.Now())
	g.govern(t, v1alpha1.ClusterCleanupPolicySpec{TTLAfterFinished: ttl("0s")})
	tenant := asUser(t, "tenant-"+mine, mine)
	for _, ns := range []string{mine, "default"} {
		kubectl(t, "create", "rolebinding", "tenant-"+mine, "-n", ns, "--clusterrole=view", "--user=tenant-"+mine)
	}
	sees := func(as func(context.Context, ...string) (string, string, error), ns, want string) string {
		t.Helper()
		var out string
		eventually(t, func(ctx context.Context) (why string) {
			var err error
			if out, why, err = as(ctx, "get", "events", "-n", ns); err == nil && strings.Contains(out, want) {
				return ""
			}
			return fmt.Sprintf("no %q in %s: %v %s%s", want, ns, err, why, out)
		})
		return out
	}
	sees(suite.Kubectl, theirs, "Held, InvalidAnnotation: "+theirs+"/jobs.batch/"+name)
	if out := sees(tenant, "default", "clustercleanuppolicy/"+string(g)); strings.Contains(out, name) {
		t.Errorf("the events of namespace default name what the tenant may not list:\n%s", out)
	}
	if out := sees(tenant, mine, ""); strings.Contains(out, name) {
		t.Errorf("the events of another namespace name it:\n%s", out)
	}
}

// TestEventsNameNoSecrets: of two tenants of one namespace, only one may list Secrets. Events and conditions, which both read, count Secrets
// and custom resources without their names; candidates name them to whoever may list them.
func TestEventsNameNoSecrets(t *testing.T) {
	t.Parallel()
	g := newGroup()
	ns, r, client := g.namespace(t), machine("engravers", "v1"), customClient(t)
	installCustom(t, client, r)
	grantByCommand(t, "secrets")
	grantByCommand(t, r.Name())
	const private = "private"
	for name, annotations := range map[string]map[string]string{
		private + "-held": {annotationTTL: private + "-value"}, private + "-going": nil,
	} {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: annotations}}
		if annotations == nil {
			secret.Finalizers = []string{"example.com/" + private}
		}
		_, err := kube.CoreV1().Secrets(ns).Create(t.Context(), secret, metav1.CreateOptions{})
		must(t, err)
		t.Cleanup(func() {
			_, err := kube.CoreV1().Secrets(ns).Patch(
				context.Background(), name, types.MergePatchType, []byte(`{"metadata": {"finalizers": null}}`), metav1.PatchOptions{},
			)
			if err != nil && !apierrors.IsNotFound(err) {
				t.Error(err)
			}
		})
	}
	rule := func(name string, resources ...string) v1alpha1.CleanupPolicySpec {
		return v1alpha1.CleanupPolicySpec{Rules: []v1alpha1.CleanupRule{
			{
				Name: name, Resources: resources, After: v1alpha1.AfterCreated, TTL: ttl("1s"),
				MatchConditions: when("object.metadata.name != ''"),
			},
		}}
	}
	createPolicy(t, ns, "own", rule("secrets", "secrets"))
	g.govern(t, v1alpha1.ClusterCleanupPolicySpec{Rules: rule("machines", r.Name()).Rules})
	running(t, client, r, ns, private+"-machine")

	lister, viewer := asUser(t, "lister-"+ns, ns), asUser(t, "viewer-"+ns, ns)
	for _, who := range []string{"lister", "viewer"} {
		kubectl(t, "create", "rolebinding", who, "-n", ns, "--clusterrole=view", "--user="+who+"-"+ns)
	}
	kubectl(t, "create", "role", "secrets", "-n", ns, "--verb=list", "--resource=secrets,"+r.Name())
	kubectl(t, "create", "rolebinding", "secrets", "-n", ns, "--role=secrets", "--user=lister-"+ns)

	all := []string{"get", "events,cleanuppolicies,cleanupcandidates", "-o", "json"}
	eventually(t, func(ctx context.Context) string {
		out, stderr, err := viewer(ctx, all...)
		for _, want := range []string{
			"Held, InvalidAnnotation: 1 object (kubectl get cand names them).", "Being deleted, Terminating: 1 object (kubectl get cand names them).",
			"Annotations of secrets that Winnow reads have no effect", "Deleted 1 " + r.Name() + " by rule machines of ClusterCleanupPolicy " + string(g),
		} {
			if err != nil || !strings.Contains(out, want) {
				return fmt.Sprintf("no %q: %v %s%s", want, err, stderr, out)
			}
		}
		return ""
	})
	if out, stderr, err := viewer(t.Context(), all...); err != nil || strings.Contains(out+stderr, private) {
		t.Errorf("who may not list Secrets sees: %v %s%s", err, stderr, out)
	}
	out, stderr, err := lister(t.Context(), "get", "cand", "-o", "yaml")
	for _, want := range []string{"name: " + private + "-held", "name: " + private + "-going", private + "-value", "example.com/" + private} {
		if err != nil || !strings.Contains(out, want) {
			t.Errorf("no %q for who may list Secrets: %v %s%s", want, err, stderr, out)
		}
	}
}

// TestCandidatesThatMayBeMissing: while Winnow cannot list a resource that a policy names, or the cluster does not serve it, users are told.
func TestCandidatesThatMayBeMissing(t *testing.T) {
	t.Parallel()
	ns, r := newNamespace(t), machine("crimpers", "v1")
	installCustom(t, customClient(t), r)
	createPolicy(t, ns, "p", policyFor(r))
	createPolicy(t, ns, "misspelled", v1alpha1.CleanupPolicySpec{Rules: []v1alpha1.CleanupRule{
		{Name: "all", Resources: []string{"crimper.machines.example.com"}, TTL: ttl("1h")},
	}})
	eventually(t, func(ctx context.Context) string {
		_, stderr, err := suite.Kubectl(ctx, "get", "cand", "-n", ns)
		const want = "Warning: candidates of crimpers.machines.example.com may be missing or out of date: crimpers.machines.example.com cannot be observed: "
		if err != nil || !strings.Contains(stderr, want) || !strings.Contains(stderr, "Missing permission: kubectl auth can-i list") {
			return fmt.Sprint(err, stderr)
		}
		return ""
	})
	waitCondition(t, ns, "misspelled", "Established", metav1.ConditionFalse, "Did you mean crimpers.machines.example.com?")
	if out := kubectl(t, "get", "cup", "misspelled", "-n", ns); !strings.Contains(out, "True (NotServed)") {
		t.Errorf("kubectl get cup: %s", out)
	}
}
