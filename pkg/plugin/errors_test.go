// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"cmp"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	discoveryv2 "k8s.io/api/apidiscovery/v2"
	authorizationv1 "k8s.io/api/authorization/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
)

const (
	winnowPath = "/apis/gc.winnow.dev/v1alpha1"
	jobsPath   = "/apis/batch/v1/namespaces/team-a/jobs"
	homePath   = "/api/v1/namespaces/team-a"
	reviewPath = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
)

// testCluster is an API server that answers by path, or by method and path, for namespace team-a. Everything else is not found.
type testCluster struct {
	*testing.T
	answers map[string]any
	// denied are what the caller may not do, such as "list jobs", and everywhere with " everywhere" behind it.
	denied []string
}

// newTestCluster returns a cluster without Winnow and without objects.
func newTestCluster(t *testing.T) *testCluster {
	list := func(version, kind string) any {
		return map[string]any{"apiVersion": version, "kind": kind, "metadata": map[string]any{"resourceVersion": "1"}, "items": []any{}}
	}
	return &testCluster{T: t, answers: map[string]any{
		"/api": serving(group("", "pods", "Pod")), "/apis": serving(group("batch", "jobs", "Job")),
		"/apis/apiregistration.k8s.io/v1/apiservices": list("apiregistration.k8s.io/v1", "APIServiceList"),
		homePath: &metav1.PartialObjectMetadata{
			TypeMeta:   metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata"},
			ObjectMeta: metav1.ObjectMeta{Name: "team-a", UID: "ns", ResourceVersion: "1"},
		},
		homePath + "/pods": list("v1", "PodList"), jobsPath: list("batch/v1", "JobList"),
		"/apis/batch/v1/namespaces/team-a/cronjobs": list("batch/v1", "CronJobList"),
		jobsPath + "/a": &batchv1.Job{
			TypeMeta: metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"}, ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "a", UID: "a"},
		},
	}}
}

// serving is the answer to what the cluster serves.
func serving(groups ...discoveryv2.APIGroupDiscovery) any {
	return &discoveryv2.APIGroupDiscoveryList{
		TypeMeta: metav1.TypeMeta{APIVersion: discoveryv2.SchemeGroupVersion.String(), Kind: "APIGroupDiscoveryList"}, Items: groups,
	}
}

// group is a group with one resource.
func group(name, plural, kind string) discoveryv2.APIGroupDiscovery {
	return discoveryv2.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: name}, Versions: []discoveryv2.APIVersionDiscovery{{
		Version: "v1", Freshness: discoveryv2.DiscoveryFreshnessCurrent, Resources: []discoveryv2.APIResourceDiscovery{{
			Resource: plural, SingularResource: strings.ToLower(kind), Scope: discoveryv2.ScopeNamespace,
			ResponseKind: &metav1.GroupVersionKind{Group: name, Version: "v1", Kind: kind},
			Verbs:        []string{"delete", "get", "list", "patch", "watch"},
		}},
	}}}
}

// with returns the cluster with other answers. A number is the code of a failure.
func (c *testCluster) with(answers map[string]any) *testCluster {
	maps.Copy(c.answers, answers)
	return c
}

// withWinnow returns the cluster with Winnow, which knows these candidates and records.
func (c *testCluster) withWinnow(candidates []v1alpha1.CleanupCandidate, records []v1alpha1.CleanupRecord) *testCluster {
	meta := func(kind string) metav1.TypeMeta {
		return metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: kind}
	}
	return c.with(map[string]any{
		winnowPath: &metav1.APIResourceList{GroupVersion: v1alpha1.SchemeGroupVersion.String()},
		winnowPath + "/namespaces/team-a/cleanupcandidates": &v1alpha1.CleanupCandidateList{
			TypeMeta: meta("CleanupCandidateList"), Items: candidates,
		},
		winnowPath + "/namespaces/team-a/cleanuprecords": &v1alpha1.CleanupRecordList{TypeMeta: meta("CleanupRecordList"), Items: records},
		"/openapi/v3" + winnowPath:                       map[string]any{"info": map[string]any{"version": "v9.9.9"}},
	})
}

// ServeHTTP implements http.Handler.
func (c *testCluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answer := cmp.Or(c.answers[r.Method+" "+r.URL.Path], c.answers[r.URL.Path])
	code, fails := answer.(int)
	switch {
	case r.URL.Path == reviewPath:
		answer = c.review(r)
	case answer == nil:
		code, fails = http.StatusNotFound, true
	}
	w.Header().Set("Content-Type", "application/json")
	if _, ok := answer.(*discoveryv2.APIGroupDiscoveryList); ok {
		w.Header().Set("Content-Type", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
	}
	if fails {
		reason := map[int]metav1.StatusReason{
			http.StatusNotFound: metav1.StatusReasonNotFound, http.StatusForbidden: metav1.StatusReasonForbidden,
			http.StatusUnauthorized: metav1.StatusReasonUnauthorized, http.StatusServiceUnavailable: metav1.StatusReasonServiceUnavailable,
		}[code]
		answer = &metav1.Status{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Code: int32(code), Reason: reason,
			Message: `something is forbidden: User "vic" cannot do it`,
		}
		w.WriteHeader(code)
	}
	if err := json.NewEncoder(w).Encode(answer); err != nil {
		c.Error(err)
	}
}

func (c *testCluster) review(r *http.Request) any {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		c.Error(err)
	}
	review := &authorizationv1.SelfSubjectAccessReview{}
	if _, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, review); err != nil {
		c.Error(err)
		return review
	}
	review.TypeMeta = metav1.TypeMeta{APIVersion: "authorization.k8s.io/v1", Kind: "SelfSubjectAccessReview"}
	asked := review.Spec.ResourceAttributes
	what := asked.Verb + " " + asked.Resource
	if asked.Namespace == "" {
		what += " everywhere"
	}
	review.Status.Allowed = !slices.Contains(c.denied, what)
	return review
}

// run runs the plugin in this cluster, and returns what it prints.
func (c *testCluster) run(args ...string) (out, errOut string, code int) {
	c.Helper()
	server := httptest.NewServer(c)
	defer server.Close()
	return runAt(c.T, server.URL, args...)
}

// runAt runs the plugin with an API server.
func runAt(t *testing.T, url string, args ...string) (out, errOut string, code int) {
	t.Helper()
	streams, _, stdout, stderr := genericiooptions.NewTestIOStreams()
	code = Run(t.Context(), append(slices.Clone(args), "--kubeconfig=", "--namespace=team-a", "--server="+url, "--cache-dir="+t.TempDir()), streams)
	return stdout.String(), stderr.String(), code
}

// expectError fails unless the plugin ends with an error of one line that has this text.
func (c *testCluster) expectError(want string, args ...string) {
	c.Helper()
	_, errOut, code := c.run(args...)
	expectLine(c.T, errOut, code, want, args)
}

func expectLine(t *testing.T, errOut string, code int, want string, args []string) {
	t.Helper()
	if code != exitFailed || !strings.HasPrefix(errOut, "Error: ") || strings.Count(errOut, "\n") != 1 || !strings.Contains(errOut, want) {
		t.Errorf("%q ended with %d, want one line with %q:\n%s", args, code, want, errOut)
	}
}

// askingCommands are commands that ask a cluster, and those of them that need Winnow.
func askingCommands(t *testing.T) (all, needing [][]string) {
	t.Helper()
	file := writePolicy(t)
	needing = [][]string{{"history"}, {"top", "--once"}, {"approve", "p"}, {"restore", "job/a"}}
	return append([][]string{{"report"}, {"why", "job/a"}, {"keep", "job/a", "--for", "1d"}, {"preview", "-f", file}, {"version"}}, needing...), needing
}

func writePolicy(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "policy.yaml")
	writeFile(t, path, "{apiVersion: gc.winnow.dev/v1alpha1, kind: CleanupPolicy, metadata: {name: p}, spec: {ttlAfterFinished: 1h}}")
	return path
}

func writeClusterPolicy(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "policy.yaml")
	writeFile(t, path, "{apiVersion: gc.winnow.dev/v1alpha1, kind: ClusterCleanupPolicy, metadata: {name: p}, "+
		"spec: {mode: Enforce, namespaceSelector: {}, ttlAfterFinished: 1h}}")
	return path
}

// TestNoCluster: where nothing answers, each command says so in one line.
func TestNoCluster(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	all, _ := askingCommands(t)
	for _, args := range all {
		_, errOut, code := runAt(t, server.URL, args...)
		expectLine(t, errOut, code, "cannot reach the API server "+server.URL+": dial tcp", args)
		expectLine(t, errOut, code, "kubectl config view --minify", args)
	}
}

// TestNobody: a cluster that does not know the user.
func TestNobody(t *testing.T) {
	c := newTestCluster(t)
	for path := range c.answers {
		c.answers[path] = http.StatusUnauthorized
	}
	c.answers[winnowPath] = http.StatusUnauthorized
	for _, args := range [][]string{{"why", "job/a"}, {"history"}, {"version"}} {
		c.expectError("the cluster does not accept your credentials; log in again", args...)
	}
}

// TestNoWinnow: commands that need Winnow say what follows without it.
func TestNoWinnow(t *testing.T) {
	_, needing := askingCommands(t)
	for _, args := range needing {
		newTestCluster(t).expectError("there is no Winnow in this cluster, so ", args...)
	}
	out, errOut, code := newTestCluster(t).run("version")
	if code != 0 || !strings.Contains(out, "Server Version: none: there is no Winnow in this cluster\n") || errOut != "" {
		t.Errorf("version ended with %d: %s%s", code, out, errOut)
	}
}

// TestSilentWinnow: Winnow is registered, but no replica answers.
func TestSilentWinnow(t *testing.T) {
	all, _ := askingCommands(t)
	for _, args := range all {
		c := newTestCluster(t).with(map[string]any{winnowPath: http.StatusServiceUnavailable})
		if args[0] == "report" || args[0] == "keep" { // The one does without Winnow, and the other annotates first.
			continue
		}
		c.expectError("this cluster has Winnow, but it does not answer; whoever runs it can see why: kubectl get apiservice v1alpha1.gc.winnow.dev",
			args...)
	}
	c := newTestCluster(t).with(map[string]any{winnowPath: http.StatusServiceUnavailable})
	if out, errOut, code := c.run("report"); code != 0 || !strings.Contains(errOut, "Warning: policies of the cluster do not count: this cluster has Winnow") {
		t.Errorf("report ended with %d: %s%s", code, out, errOut)
	}
	if out, _, code := c.run("version"); code != exitFailed || !strings.HasPrefix(out, "Client Version: v") || strings.Contains(out, "Server") {
		t.Errorf("version ended with %d: %s", code, out)
	}
}

// TestOlderWinnow: a server that cannot review cluster policies yet.
func TestOlderWinnow(t *testing.T) {
	newTestCluster(t).withWinnow(nil, nil).expectError("is older than this plugin", "preview", "-f", writeClusterPolicy(t))
}

// TestNoRights: what the user may not do is said in one line, with what to ask for.
func TestNoRights(t *testing.T) {
	const hint = `User "vic" cannot do it; to see what you may do: kubectl auth can-i --list -n team-a`
	forbidden := map[string]any{jobsPath + "/a": http.StatusForbidden, winnowPath + "/namespaces/team-a/cleanuprecords": http.StatusForbidden}
	newTestCluster(t).with(forbidden).expectError(hint, "why", "job/a")
	newTestCluster(t).with(forbidden).expectError(hint, "keep", "job/a", "--forever")
	newTestCluster(t).withWinnow(nil, nil).with(forbidden).expectError(hint, "history")

	viewer := map[string]any{"PATCH " + jobsPath + "/a": http.StatusForbidden}
	const other = `User "vic" cannot do it; somebody with the role edit can: kubectl winnow `
	for flags, want := range map[string]string{
		"keep job/a --for 2d": "keep jobs.batch/a -n team-a --for 2d", "keep job/a --until 2099-01-31": "keep jobs.batch/a -n team-a --until 2099-01-31",
		"keep job/a --forever": "keep jobs.batch/a -n team-a --forever", "release job/a": "release jobs.batch/a -n team-a",
	} {
		newTestCluster(t).with(viewer).expectError(other+want+"\n", strings.Fields(flags)...)
	}

	review := map[string]any{winnowPath + "/clustercleanupreviews": http.StatusForbidden}
	file := writeClusterPolicy(t)
	newTestCluster(t).withWinnow(nil, nil).with(review).expectError(
		`User "vic" cannot do it; to try it in one namespace: kubectl winnow report -n team-a -f `+file, "preview", "-f", file)

	blind := newTestCluster(t)
	blind.denied = []string{"list jobs", "list pods", "list cronjobs"}
	for _, args := range [][]string{{"report"}, {"report", "-o", "json"}, {"report", "-o", "name"}, {"report", "-f", writePolicy(t)}} {
		blind.expectError("there is nothing to report, because you may not list ", args...)
		blind.expectError("jobs.batch, pods in namespace team-a; the role view allows it", args...)
	}
	tenant := newTestCluster(t)
	tenant.denied = []string{"list namespaces everywhere"}
	tenant.expectError("you may not list namespaces, so choose one: -n NAMESPACE", "report", "-A")
}

// TestKeepOfOwnTTL: what Kubernetes deletes before is not kept, and nothing is annotated.
func TestKeepOfOwnTTL(t *testing.T) {
	ends := time.Now().UTC().Add(time.Hour).Truncate(time.Second)
	const field = `because it has spec.ttlSecondsAfterFinished, and keep cannot delay that. To remove the field: ` +
		`kubectl patch job a -n team-a --type merge --patch '{"spec": {"ttlSecondsAfterFinished": null}}'`
	at := "Kubernetes deletes this Job at " + ends.Format(time.RFC3339) + ", " + field
	for name, tc := range map[string]struct {
		finished bool
		args     []string
		fails    string
		warns    bool
	}{
		"longer":               {true, []string{"--for", "1d"}, at, false},
		"forever":              {true, []string{"--forever"}, at, false},
		"shorter":              {true, []string{"--for", "10m"}, "", false},
		"while it runs":        {false, []string{"--for", "1d"}, "", true},
		"forever, and it runs": {false, []string{"--forever"}, "Kubernetes deletes this Job 1h after it finishes, " + field, false},
	} {
		t.Run(name, func(t *testing.T) {
			job := &batchv1.Job{
				TypeMeta:   metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"},
				ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "a", UID: "a", ResourceVersion: "1"},
				Spec:       batchv1.JobSpec{TTLSecondsAfterFinished: new(int32(3600))},
			}
			if tc.finished {
				job.Status.Conditions = []batchv1.JobCondition{{
					Type: batchv1.JobComplete, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(ends.Add(-time.Hour)),
				}}
			}
			c := newTestCluster(t).with(map[string]any{jobsPath + "/a": job})
			args := append([]string{"keep", "job/a"}, tc.args...)
			if tc.fails != "" {
				c.expectError(tc.fails, args...)
				return
			}
			out, errOut, code := c.run(args...)
			if code != 0 || !strings.HasPrefix(out, "jobs.batch/a kept\n") || strings.Contains(errOut, field) != tc.warns {
				t.Errorf("ended with %d: %s%s", code, out, errOut)
			}
		})
	}
}

// TestPreviewElsewhere: a policy for another namespace than that of the flag is refused, as kubectl apply does.
func TestPreviewElsewhere(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policy.yaml")
	writeFile(t, path, "{apiVersion: gc.winnow.dev/v1alpha1, kind: CleanupPolicy, metadata: {name: p, namespace: shop}, spec: {ttlAfterFinished: 1h}}")
	newTestCluster(t).expectError(`the policy "p" is for namespace "shop", and not for "team-a": use -n shop, or no -n`, "preview", "-f", path)
}

// TestTenant: a user who may not list cluster policies is told how to see what they delete.
func TestTenant(t *testing.T) {
	meta := func(kind string) metav1.TypeMeta {
		return metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: kind}
	}
	c := newTestCluster(t).withWinnow(nil, nil).with(map[string]any{
		winnowPath + "/namespaces/team-a/cleanuppolicies": &v1alpha1.CleanupPolicyList{TypeMeta: meta("CleanupPolicyList")},
		winnowPath + "/resourcelifecycles":                &v1alpha1.ResourceLifecycleList{TypeMeta: meta("ResourceLifecycleList")},
	})
	c.denied = []string{"list clustercleanuppolicies everywhere"}
	const note = "he clustercleanuppolicies do not count, because you may not list them: kubectl auth can-i list " +
		"clustercleanuppolicies.gc.winnow.dev --all-namespaces; what they delete is in: kubectl get cand -n team-a\n"
	if out, errOut, code := c.run("report"); code != 0 || !strings.Contains(errOut, "Warning: t"+note) {
		t.Errorf("report ended with %d: %s%s", code, out, errOut)
	}
	if out, errOut, code := c.run("why", "job/a", "-f", writePolicy(t)); code != 0 || !strings.Contains(out, "\nT"+note) {
		t.Errorf("why ended with %d: %s%s", code, out, errOut)
	}
}

// TestReportOfNothing suggests to look elsewhere, where the user may look.
func TestReportOfNothing(t *testing.T) {
	for denied, want := range map[string]string{
		"":                           "No finished objects in namespace team-a.\nTo look in all namespaces: kubectl winnow report -A\n",
		"list namespaces everywhere": "No finished objects in namespace team-a.\n",
		"list jobs everywhere":       "No finished objects in namespace team-a.\n",
	} {
		c := newTestCluster(t)
		c.denied = []string{denied}
		if out, errOut, code := c.run("report"); code != 0 || out != want {
			t.Errorf("without the right to %s, it ended with %d: %s%s", denied, code, out, errOut)
		}
	}
}

// TestReportWithoutGroup: an API server of another group does not answer, so the report is about the rest, and says so.
func TestReportWithoutGroup(t *testing.T) {
	broken := group("example.com", "runs", "Run")
	broken.Versions[0].Freshness, broken.Versions[0].Resources = discoveryv2.DiscoveryFreshnessStale, nil
	c := newTestCluster(t).with(map[string]any{"/apis": serving(group("batch", "jobs", "Job"), broken)})
	const want = "Warning: some resources do not count: the cluster does not say which resources example.com/v1 has: " +
		"stale GroupVersion discovery: example.com/v1. Repair its API server, or delete the APIService v1.example.com\n"
	out, errOut, code := c.run("report")
	if code != 0 || !strings.HasPrefix(out, "No finished objects in namespace team-a.\n") || errOut != want {
		t.Errorf("ended with %d: %s%s", code, out, errOut)
	}
}

// TestVersion says which versions there are. With --client, it asks no cluster.
func TestVersion(t *testing.T) {
	out, errOut, code := newTestCluster(t).withWinnow(nil, nil).run("version")
	if code != 0 || !strings.HasPrefix(out, "Client Version: v") || !strings.HasSuffix(out, "\nServer Version: v9.9.9\n") {
		t.Errorf("ended with %d: %s%s", code, out, errOut)
	}
	out, errOut, code = newTestCluster(t).withWinnow(nil, nil).run("version", "-o", "json")
	var got map[string]string
	if err := json.Unmarshal([]byte(out), &got); err != nil || code != 0 || got["clientVersion"] == "" || got["serverVersion"] != "v9.9.9" {
		t.Errorf("ended with %d: %v: %s%s", code, err, out, errOut)
	}
	newTestCluster(t).withWinnow(nil, nil).with(map[string]any{"/openapi/v3" + winnowPath: http.StatusNotFound}).
		expectError("this cluster has Winnow, but the API server has not read its version yet: try again in a minute", "version")
	out, errOut, code = runAt(t, "http://127.0.0.1:1", "version", "--client")
	if code != 0 || !strings.HasPrefix(out, "Client Version: v") || strings.Contains(out, "Server") {
		t.Errorf("--client ended with %d: %s%s", code, out, errOut)
	}
}
