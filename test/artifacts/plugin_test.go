// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package artifacts

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	internal "github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/pkg/generated/clientset/versioned"
	"github.com/winnow-dev/winnow/pkg/plugin"
	"github.com/winnow-dev/winnow/pkg/plugin/local"
	"github.com/winnow-dev/winnow/test/cluster"
	"github.com/winnow-dev/winnow/test/jobs"
	"github.com/winnow-dev/winnow/test/poll"
	"github.com/winnow-dev/winnow/test/winnow"
)

// pluginNamespace is the namespace of the objects for the plugin.
const pluginNamespace = "plugin"

// pluginPolicies match random Jobs in each way. They are suspended, so that Winnow leaves the objects there to be compared.
const pluginPolicies = `
apiVersion: gc.winnow.dev/v1alpha1
kind: CleanupPolicy
metadata: {name: defaults, namespace: plugin}
spec:
  ttlAfterFinished: 1h
  suspend: true
  rules:
  - {name: few, resources: [jobs.batch], selector: {matchLabels: {app: few}}, capacity: {maxObjects: 7}}
  - {name: kept, resources: [jobs.batch], selector: {matchLabels: {app: kept}}, ttl: never}
  - name: sevens
    resources: [jobs.batch]
    matchConditions: [{name: seven, expression: "object.metadata.name.endsWith('7') && object.spec.template.spec.containers.size() == 1"}]
    ttl: 0s
---
# Any object may say itself how long it is kept.
apiVersion: gc.winnow.dev/v1alpha1
kind: CleanupPolicy
metadata: {name: failures, namespace: plugin}
spec:
  annotationTTL: Any
  suspend: true
  rules:
  - {name: failed, outcome: Failed, ttl: 3d}
---
apiVersion: gc.winnow.dev/v1alpha1
kind: ClusterCleanupPolicy
metadata: {name: plugin}
spec:
  mode: Enforce
  suspend: true
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: plugin}}
  guardrails: {maxTTL: 2d, allowNever: false}
`

// createRandomObjects creates some hundred finished Jobs and Pods.
func createRandomObjects(t *testing.T) {
	t.Helper()
	random := rand.New(rand.NewPCG(1, 2))
	pick := func(from ...string) string { return from[random.IntN(len(from))] }
	created, err := jobs.Create(t.Context(), client, pluginNamespace, 240)
	if err != nil {
		t.Fatal(err)
	}
	for _, j := range created {
		j.Labels = map[string]string{"app": pick("few", "kept", "other")}
		j.Annotations = map[string]string{}
		switch pick("ttl", "until", "wrong", "", "", "") {
		case "ttl":
			j.Annotations[internal.AnnotationTTL] = pick("45m", "2h", "never")
		case "until":
			j.Annotations[internal.AnnotationKeepUntil] = pick("2020-01-01T00:00:00Z", "2099-01-01T00:00:00Z")
		case "wrong":
			j.Annotations[internal.AnnotationTTL] = "soon\x1b[31m"
		}
		if pick("native", "", "", "") != "" {
			j.Spec.TTLSecondsAfterFinished = new(int32(86400))
		}
		updated, err := client.BatchV1().Jobs(pluginNamespace).Update(t.Context(), j, metav1.UpdateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		at := updated.CreationTimestamp.Time
		if pick("doubtful", "", "", "", "", "") != "" {
			at = at.Add(-time.Hour)
		}
		switch pick("complete", "complete", "failed", "running") {
		case "complete":
			updated.Status = jobs.Complete(at)
		case "failed":
			updated.Status = batchv1.JobStatus{StartTime: new(metav1.NewTime(at)), Conditions: []batchv1.JobCondition{
				{Type: batchv1.JobFailureTarget, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(at)},
				{Type: batchv1.JobFailed, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(at)},
			}}
		case "running":
			continue
		}
		if _, err := client.BatchV1().Jobs(pluginNamespace).UpdateStatus(t.Context(), updated, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// run runs the plugin as a user.
func run(t *testing.T, kubeconfig string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	streams, _, out, errOut := genericiooptions.NewTestIOStreams()
	args = append(args, "--kubeconfig", kubeconfig, "--cache-dir", filepath.Join(t.TempDir(), "cache"))
	code = plugin.Run(t.Context(), args, streams)
	return out.String(), errOut.String(), code
}

// mustRun runs the plugin, which must end with this code, and decodes what it prints if into is not nil.
func mustRun(t *testing.T, want int, into any, kubeconfig string, args ...string) string {
	t.Helper()
	stdout, stderr, code := run(t, kubeconfig, args...)
	if code != want {
		t.Fatalf("kubectl winnow %q ended with %d, want %d: %s%s", args, code, want, stdout, stderr)
	}
	if into != nil {
		if err := json.Unmarshal([]byte(stdout), into); err != nil {
			t.Fatalf("kubectl winnow %q: %v in %s", args, err, stdout)
		}
	}
	return stdout + stderr
}

// reported is what report prints as JSON.
type reported struct {
	Finished   []local.Finished
	Deletions  []local.Deletions
	Incomplete []string
}

// waitForVersion waits until the API server has read the OpenAPI document of a Winnow that was just installed.
func waitForVersion(t *testing.T, kubeconfig string) {
	t.Helper()
	err := poll.Until(t.Context(), 5*time.Minute, 100*time.Millisecond, func(context.Context) error {
		stdout, stderr, code := run(t, kubeconfig, "version")
		if code != 0 || !strings.Contains(stdout, "\nServer Version: v") {
			return fmt.Errorf("kubectl winnow version ended with %d: %s%s", code, stdout, stderr)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// localDrafts are the policies of a file.
func localDrafts(t *testing.T, file string) local.Drafts {
	t.Helper()
	var out local.Drafts
	for _, document := range strings.Split(file, "\n---\n") {
		if strings.Contains(document, "kind: ClusterCleanupPolicy") {
			p, draft := &v1alpha1.ClusterCleanupPolicy{}, &internal.ClusterCleanupPolicy{}
			convert(t, document, p)
			v1alpha1.SetObjectDefaults_ClusterCleanupPolicy(p)
			if err := v1alpha1.Convert_v1alpha1_ClusterCleanupPolicy_To_gc_ClusterCleanupPolicy(p, draft, nil); err != nil {
				t.Fatal(err)
			}
			out.ClusterPolicies = append(out.ClusterPolicies, draft)
			continue
		}
		p, draft := &v1alpha1.CleanupPolicy{}, &internal.CleanupPolicy{}
		convert(t, document, p)
		v1alpha1.SetObjectDefaults_CleanupPolicy(p)
		if err := v1alpha1.Convert_v1alpha1_CleanupPolicy_To_gc_CleanupPolicy(p, draft, nil); err != nil {
			t.Fatal(err)
		}
		out.Policies = append(out.Policies, draft)
	}
	return out
}

func convert(t *testing.T, document string, into any) {
	t.Helper()
	if err := yaml.UnmarshalStrict([]byte(document), into); err != nil {
		t.Fatal(err)
	}
}

// statuses returns the statuses of candidates by object, without the times when the server heard from the resource and since when it has
// seen that a limit by count is exceeded.
func statuses(all []v1alpha1.CleanupCandidate) map[string]v1alpha1.CleanupCandidateStatus {
	out := map[string]v1alpha1.CleanupCandidateStatus{}
	for i := range all {
		s := all[i].Status
		s.ObservedTime = nil
		if s.State != v1alpha1.CandidateWaiting {
			s.DueTime = nil
		}
		out[s.Object.Resource+"/"+s.Object.Name] = s
	}
	return out
}

// TestPluginWithAndWithoutWinnow: in a cluster without Winnow, the plugin says the same as the server does later, with the same policies:
// of each object, in sum, and of a draft. It only reads, and asks for nothing that the user may not do.
func TestPluginWithAndWithoutWinnow(t *testing.T) {
	kubectl(t, "create", "namespace", pluginNamespace)
	createRandomObjects(t)
	file := filepath.Join(t.TempDir(), "policies.yaml")
	draft := filepath.Join(t.TempDir(), "draft.yaml")
	const draftText = "{apiVersion: gc.winnow.dev/v1alpha1, kind: CleanupPolicy, metadata: {name: defaults, namespace: plugin}, spec: {ttlAfterFinished: 1m}}"
	const clusterDraftText = `{apiVersion: gc.winnow.dev/v1alpha1, kind: ClusterCleanupPolicy, metadata: {name: plugin}, spec: {mode: Enforce,
		namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: plugin}},
		guardrails: {maxTTL: 1d, ceilings: [{resources: [jobs.batch], maxObjects: 10}]}}}`
	for path, text := range map[string]string{file: pluginPolicies, draft: draftText} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tenant, err := shared.KubeconfigFor("plugin-tenant")
	if err != nil {
		t.Fatal(err)
	}
	kubectl(t, "create", "rolebinding", "tenant", "-n", pluginNamespace, "--clusterrole=view", "--user=plugin-tenant")
	counter, err := shared.KubeconfigFor("plugin-counter")
	if err != nil {
		t.Fatal(err)
	}
	kubectl(t, "create", "role", "counter", "-n", pluginNamespace, "--verb=list", "--resource=jobs.batch")
	kubectl(t, "create", "rolebinding", "counter", "-n", pluginNamespace, "--role=counter", "--user=plugin-counter")
	for user, resource := range map[string]string{"plugin-tenant": "pods", "plugin-counter": "jobs.batch"} {
		eventually(t, func() error { // RBAC follows its objects after a moment.
			_, _, err := shared.Kubectl(t.Context(), "auth", "can-i", "list", resource, "-n", pluginNamespace, "--as="+user)
			return err
		})
	}

	admin := shared.Kubeconfig()
	var before, ofTenant, bare reported
	mustRun(t, 0, &before, admin, "report", "-n", pluginNamespace, "-f", file, "-o", "json")
	mustRun(t, 0, &ofTenant, tenant, "report", "-n", pluginNamespace, "-f", file, "-o", "json")
	mustRun(t, 0, &bare, admin, "report", "-A", "-o", "json")
	if len(before.Deletions) < 4 || len(before.Incomplete) > 0 {
		t.Errorf("the report is %+v", before)
	}
	others := func(line string) bool { return strings.HasPrefix(line, "workflows.argoproj.io are not counted") } // of another test
	if ofTenant.Incomplete = slices.DeleteFunc(ofTenant.Incomplete, others); len(ofTenant.Incomplete) == 0 {
		ofTenant.Incomplete = nil
	}
	if diff := cmp.Diff(before, ofTenant); diff != "" {
		t.Errorf("the tenant sees something else (-admin +tenant):\n%s", diff)
	}
	if !slices.ContainsFunc(bare.Finished, func(f local.Finished) bool { return cmp.Equal(f, before.Finished[0]) }) || len(bare.Deletions) > 0 {
		t.Errorf("of all namespaces, without policies: %+v, want %+v in it", bare, before.Finished[0])
	}
	var ofCounter reported
	mustRun(t, 0, &ofCounter, counter, "report", "-n", pluginNamespace, "-f", file, "-o", "json")
	if diff := cmp.Diff(before.Finished, ofCounter.Finished); diff != "" || len(ofCounter.Incomplete) < 2 ||
		!strings.Contains(strings.Join(ofCounter.Incomplete, "\n"), "pods are not counted, because you may not list them: kubectl auth can-i list pods -n plugin") {
		t.Errorf("who may list Jobs alone is told %q, and sees (-admin +counter):\n%s", ofCounter.Incomplete, diff)
	}
	if out := mustRun(t, 2, nil, tenant, "report", "-A"); !strings.Contains(out, "choose one: -n NAMESPACE") {
		t.Errorf("the tenant asks for all namespaces: %s", out)
	}
	if out := mustRun(t, 0, nil, admin, "why", "job/job-00000", "-n", pluginNamespace); !strings.Contains(out, "Winnow deletes no jobs.batch in namespace plugin: no policy is about them") {
		t.Errorf("without policies: %s", out)
	}
	if out := mustRun(t, 0, nil, tenant, "version"); !strings.Contains(out, "Server Version: none: there is no Winnow in this cluster") {
		t.Errorf("version without Winnow: %s", out)
	}
	for command, so := range map[string]string{"top": "so nothing is deleted", "approve defaults": "so nothing waits for approval"} {
		want := "there is no Winnow in this cluster, " + so + "; to see what finished objects lie around: kubectl winnow report"
		for _, user := range []string{admin, tenant} {
			if out := mustRun(t, 2, nil, user, strings.Fields(command+" -n "+pluginNamespace)...); !strings.Contains(out, want) {
				t.Errorf("%s without Winnow: %s", command, out)
			}
		}
	}
	config, err := clientcmd.BuildConfigFromFlags("", admin)
	if err != nil {
		t.Fatal(err)
	}
	config.UserAgent, config.QPS = "kubectl-winnow/test", -1
	reader, err := local.New(config)
	if err != nil {
		t.Fatal(err)
	}
	drafts := localDrafts(t, pluginPolicies)
	candidates := func(drafts local.Drafts) []v1alpha1.CleanupCandidate {
		t.Helper()
		world, err := reader.Read(t.Context(), local.Options{Namespace: pluginNamespace, Drafts: drafts, Now: time.Now()})
		if err != nil {
			t.Fatal(err)
		}
		all, err := world.Candidates(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	want := statuses(candidates(drafts))

	server, err := winnow.Start(t.Context(), shared, winnow.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	}()
	kubectl(t, "apply", "-f", file)
	compareCandidates(t, want)
	var after reported
	mustRun(t, 0, &after, admin, "report", "-n", pluginNamespace, "-o", "json")
	waitForVersion(t, tenant)
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("the report with the policies in the cluster (-before +after):\n%s", diff)
	}
	compareReviews(t, func(ctx context.Context, server bool) (any, v1alpha1.ReviewedCount, error) {
		r, _, err := reader.Review(ctx, server, localDrafts(t, draftText).Policies[0])
		if err != nil {
			return nil, v1alpha1.ReviewedCount{}, err
		}
		return r.Status, r.Status.WithDraft, nil
	})
	compareReviews(t, func(ctx context.Context, server bool) (any, v1alpha1.ReviewedCount, error) {
		r, _, err := reader.ClusterReview(ctx, server, localDrafts(t, clusterDraftText).ClusterPolicies[0])
		if err != nil {
			return nil, v1alpha1.ReviewedCount{}, err
		}
		return r.Status, r.Status.WithDraft, nil
	})
	var explained v1alpha1.CleanupCandidate
	mustRun(t, 0, &explained, tenant, "why", "jobs.batch/"+anyName(want), "-n", pluginNamespace, "-o", "json")
	if diff := cmp.Diff(want["jobs.batch/"+anyName(want)], statuses([]v1alpha1.CleanupCandidate{explained})["jobs.batch/"+anyName(want)]); diff != "" {
		t.Errorf("why (-want +got):\n%s", diff)
	}
	if out := mustRun(t, 1, nil, tenant, "preview", "-n", pluginNamespace, "-f", draft); !strings.Contains(out, "Policy defaults in namespace plugin would delete") {
		t.Errorf("preview: %s", out)
	}
	checkPluginAudit(t)
}

// anyName returns the name of the first candidate.
func anyName(all map[string]v1alpha1.CleanupCandidateStatus) string {
	return strings.TrimPrefix(slices.Min(slices.Collect(maps.Keys(all))), "jobs.batch/")
}

// compareCandidates waits until the server has the candidates that the plugin had without it.
func compareCandidates(t *testing.T, want map[string]v1alpha1.CleanupCandidateStatus) {
	t.Helper()
	clients, err := versioned.NewForConfig(shared.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	states := map[v1alpha1.CandidateState]int{}
	for _, s := range want {
		states[s.State]++
	}
	if len(want) < 100 || len(states) < 2 {
		t.Errorf("%d candidates in states %v are too few to compare", len(want), states)
	}
	err = poll.Until(t.Context(), 5*time.Minute, 100*time.Millisecond, func(ctx context.Context) error {
		all, err := clients.GcV1alpha1().CleanupCandidates(pluginNamespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		if diff := cmp.Diff(statuses(all.Items), want); diff != "" {
			return fmt.Errorf("candidates (-server +plugin):\n%s", diff)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// compareReviews reviews a draft in both ways: by the server, and by the plugin. review returns the status, and what all policies would
// delete.
func compareReviews(t *testing.T, review func(ctx context.Context, server bool) (any, v1alpha1.ReviewedCount, error)) {
	t.Helper()
	err := poll.Until(t.Context(), 5*time.Minute, 100*time.Millisecond, func(ctx context.Context) error {
		server, counted, err := review(ctx, true)
		if err != nil {
			return err
		}
		here, _, err := review(ctx, false)
		if err != nil {
			return err
		}
		if diff := cmp.Diff(server, here); diff != "" || counted == (v1alpha1.ReviewedCount{}) {
			return fmt.Errorf("%+v; reviews (-server +plugin):\n%s", server, diff)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// checkPluginAudit fails if the plugin did more than read, or was refused anything.
func checkPluginAudit(t *testing.T) {
	t.Helper()
	events, err := shared.Audit(func(e *cluster.AuditEvent) bool { return strings.HasPrefix(e.UserAgent, "kubectl-winnow/") })
	if err != nil {
		t.Fatal(err)
	}
	questions := []string{"selfsubjectaccessreviews", "cleanupreviews", "clustercleanupreviews"}
	for _, e := range events {
		asks := e.Verb == "create" && slices.Contains(questions, e.ObjectRef.Resource)
		if e.Verb != "get" && e.Verb != "list" && !asks || e.ResponseStatus.Code == 403 {
			t.Errorf("the plugin sent %s %s: %d", e.Verb, e.RequestURI, e.ResponseStatus.Code)
		}
	}
	if len(events) < 50 {
		t.Errorf("the audit log has only %d requests of the plugin", len(events))
	}
}
