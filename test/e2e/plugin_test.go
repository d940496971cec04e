// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/pkg/plugin"
)

// winnowPlugin runs kubectl winnow with all rights in a namespace, with this standard input, and returns what it prints.
func winnowPlugin(t *testing.T, ns, stdin string, args ...string) (output string, code int) {
	t.Helper()
	streams, in, out, errOut := genericiooptions.NewTestIOStreams()
	in.WriteString(stdin)
	args = append(args, "-n", ns, "--kubeconfig", suite.Kubeconfig(), "--cache-dir", filepath.Join(t.TempDir(), "cache"))
	code = plugin.Run(t.Context(), args, streams)
	return out.String() + errOut.String(), code
}

// complete returns what a shell offers after these words.
func complete(t *testing.T, ns string, words ...string) (output string, code int) {
	t.Helper()
	streams, _, out, _ := genericiooptions.NewTestIOStreams()
	begin := []string{"__complete", "-n", ns, "--kubeconfig", suite.Kubeconfig(), "--cache-dir", filepath.Join(t.TempDir(), "cache")}
	code = plugin.Run(t.Context(), append(begin, words...), streams)
	return out.String(), code
}

// expectPlugin fails unless the plugin ends with this code and prints all of these texts.
func expectPlugin(t *testing.T, ns, stdin string, code int, texts []string, args ...string) {
	t.Helper()
	output, got := winnowPlugin(t, ns, stdin, args...)
	for _, text := range texts {
		if got != code || !strings.Contains(output, text) {
			t.Errorf("kubectl winnow %q ended with %d, want %d and %q:\n%s", args, got, code, text, output)
		}
	}
}

// waitPlugin waits until the plugin, which only reads, ends with this code and prints a text.
func waitPlugin(t *testing.T, ns string, code int, text string, args ...string) {
	t.Helper()
	eventually(t, func(context.Context) string {
		if output, got := winnowPlugin(t, ns, "", args...); got != code || !strings.Contains(output, text) {
			return fmt.Sprintf("kubectl winnow %q ended with %d, want %d and %q:\n%s", args, got, code, text, output)
		}
		return ""
	})
}

// TestPluginFromReportToDeletion is what a new user does: look, try a policy, keep what is needed, and apply the policy.
func TestPluginFromReportToDeletion(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t)
	finishedJobs(t, ns, 3)
	path := manifest(t, `{apiVersion: gc.winnow.dev/v1alpha1, kind: CleanupPolicy, metadata: {name: p}, spec: {ttlAfterFinished: 1s}}`)
	unnecessary := manifest(t, `{apiVersion: gc.winnow.dev/v1alpha1, kind: CleanupPolicy, metadata: {name: p}, spec: {ttlAfterFinished: never}}`)
	waitPlugin(t, ns, 0, "jobs.batch   3", "report")
	waitPlugin(t, ns, 0, "No policy deletes them", "report")
	waitPlugin(t, ns, 1, "jobs.batch   default   3     3     3     3     0", "preview", "-f", path)
	waitPlugin(t, ns, 0, "would delete nothing", "preview", "-f", unnecessary)
	expectPlugin(t, ns, "", 2, []string{"no such file"}, "preview", "-f", "missing.yaml")
	cluster := manifest(t, `{apiVersion: gc.winnow.dev/v1alpha1, kind: ClusterCleanupPolicy, metadata: {name: p}, spec: {
		mode: Enforce, namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: `+ns+`}}, ttlAfterFinished: 1s}}`)
	waitPlugin(t, ns, 1, "Cluster policy p would delete\nRESOURCE     RULE      NOW   1H    1D    7D    HELD\n"+
		"jobs.batch   default   3     3     3     3     0", "preview", "-f", cluster)

	if output, code := complete(t, ns, "why", "job/"); code != 0 || !strings.Contains(output, "job/job-0000\njob/job-0001\njob/job-0002\n") {
		t.Errorf("completion ended with %d: %s", code, output)
	}
	expectPlugin(t, ns, "", 0, []string{"jobs.batch/job-0001 kept"}, "keep", "job/job-0001", "--for", "2d")
	expectPlugin(t, ns, "", 2, []string{"kept until"}, "keep", "job/job-0001", "--for", "1d")
	kubectl(t, "apply", "-n", ns, "-f", path)
	expectDeletions(t, ns, "jobs/job-0000 p/default", "jobs/job-0002 p/default")
	eventually(t, func(context.Context) string {
		output, _ := winnowPlugin(t, ns, "", "why", "job/job-0001")
		for _, text := range []string{
			"job-0001 in namespace " + ns + ": Waiting (NotDue)", "Decided by  cup/p, rule default", "gc.winnow.dev/keep-until",
			"To keep it for longer: kubectl winnow keep jobs.batch/job-0001 -n " + ns,
		} {
			if !strings.Contains(output, text) {
				return output
			}
		}
		return ""
	})
	waitPlugin(t, ns, 0, "by cup/p, rule default: its TTL had ended.", "why", "job/job-0000") // Once the record is written.
	expectPlugin(t, ns, "", 0, []string{"jobs.batch/job-0001 released"}, "release", "job", "job-0001")
	expectDeletions(t, ns, "jobs/job-0000 p/default", "jobs/job-0002 p/default", "jobs/job-0001 p/default")
}

// TestPluginKeepsAsLongAsGuardrailsLet: keep says which date a guardrail leaves.
func TestPluginKeepsAsLongAsGuardrailsLet(t *testing.T) {
	t.Parallel()
	g := newGroup()
	ns := g.namespace(t)
	j := createJob(t, ns, job("report", unmanaged))
	finish(t, j, j.CreationTimestamp.Time)
	createPolicy(t, ns, "p", v1alpha1.CleanupPolicySpec{TTLAfterFinished: ttl("1d")})
	g.govern(t, v1alpha1.ClusterCleanupPolicySpec{Guardrails: &v1alpha1.Guardrails{MaxTTL: ttl("3d"), AllowNever: new(false)}})
	end := j.CreationTimestamp.Add(3 * 24 * time.Hour).UTC().Format(time.RFC3339)
	eventually(t, func(context.Context) string {
		output, code := winnowPlugin(t, ns, "", "keep", "job/report", "--forever")
		if code != 0 || !strings.Contains(output, "It is due "+end) || !strings.Contains(output, "maxTTL of ccup/"+string(g)) {
			return fmt.Sprintf("keep ended with %d, want the date %s: %s", code, end, output)
		}
		return ""
	})
}

// TestPluginSaysWhatAnAnnotationDoesNot: why says which annotation has no effect, and why.
func TestPluginSaysWhatAnAnnotationDoesNot(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t)
	j := createJob(t, ns, job("report", unmanaged))
	finish(t, j, j.CreationTimestamp.Time)
	createPolicy(t, ns, "p", v1alpha1.CleanupPolicySpec{TTLAfterFinished: ttl("1d")})
	kubectl(t, "annotate", "job", "report", "-n", ns, "gc.winnow.dev/ttl=1h")
	waitPlugin(t, ns, 0, `Annotation gc.winnow.dev/ttl: "1h" has no effect: CleanupPolicy "p" keeps this object for 1d`, "why", "job/report")
}

// TestPluginApproves: it shows what waits, and approves after a yes alone.
func TestPluginApproves(t *testing.T) {
	t.Parallel()
	g := newGroup()
	ns := g.namespace(t)
	g.govern(t, v1alpha1.ClusterCleanupPolicySpec{Guardrails: &v1alpha1.Guardrails{HoldAbove: &v1alpha1.HoldAbove{Objects: new(int64(2))}}})
	finishedJobs(t, ns, 3)
	createPolicy(t, ns, "p", v1alpha1.CleanupPolicySpec{Rules: []v1alpha1.CleanupRule{{Name: "all", Resources: []string{"jobs.batch"}, TTL: ttl("0s")}}})
	waitStatus(t, ns, "p", func(s *v1alpha1.CleanupPolicyStatus) bool { return len(s.Holds) == 1 && s.Holds[0].Objects == 3 })
	expectPlugin(t, ns, "no\n", 2, []string{"3", "nothing was approved"}, "approve", "p")
	expectDeletions(t, ns)
	eventually(t, func(context.Context) string { // Until Winnow has time to check the approval.
		output, code := winnowPlugin(t, ns, "yes\n", "approve", "p")
		if code != 0 || !strings.Contains(output, "cleanuppolicies.gc.winnow.dev/p approved") {
			return fmt.Sprintf("approve ended with %d: %s", code, output)
		}
		return ""
	})
	expectDeletions(t, ns, "jobs/job-0000 p/all", "jobs/job-0001 p/all", "jobs/job-0002 p/all")
	waitPlugin(t, ns, 0, "Nothing waits for approval", "approve", "cup/p") // Once the status says so.
}
