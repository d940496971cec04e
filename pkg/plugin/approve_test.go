// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
)

// waitingCluster returns a cluster in which so many Jobs wait for approval by cup/p, and one is held for another reason.
func waitingCluster(t *testing.T, jobs int) *testCluster {
	var waiting []v1alpha1.CleanupCandidate
	for i := range jobs {
		c := candidates(v1alpha1.CandidateHeld, "Held")[0]
		c.Status.Object.Name, c.Status.DecidedBy.Rule = fmt.Sprintf("job-%d", i), "old"
		waiting = append(waiting, c)
	}
	waiting = append(candidates(v1alpha1.CandidateHeld, "Managed"), waiting...)
	return newTestCluster(t).withWinnow(waiting, nil).with(map[string]any{
		winnowPath + "/namespaces/team-a/cleanuppolicies/p": &v1alpha1.CleanupPolicy{
			TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "CleanupPolicy"},
			ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "p"},
			Status: v1alpha1.CleanupPolicyStatus{Holds: []v1alpha1.PolicyHold{
				{ID: "5f3c", Namespace: "team-a", Objects: int64(jobs), Resources: []string{"jobs.batch"}, Why: "of a change"},
			}},
		},
	})
}

// answering runs the plugin with what a user types.
func (c *testCluster) answering(typed string, args ...string) (out, errOut string, code int) {
	server := httptest.NewServer(c)
	defer server.Close()
	streams, in, stdout, stderr := genericiooptions.NewTestIOStreams()
	in.WriteString(typed)
	code = Run(c.Context(), append(args, "--kubeconfig=", "--namespace=team-a", "--server="+server.URL, "--cache-dir="+c.TempDir()), streams)
	return stdout.String(), stderr.String(), code
}

// TestApproveShowsObjects: approve shows the objects before it asks.
func TestApproveShowsObjects(t *testing.T) {
	const all = "\n... To see all: kubectl get cand -n team-a --field-selector state=Held,policy=p\n"
	for jobs, more := range map[int]bool{1: false, 10: false, 11: true} {
		out, errOut, code := waitingCluster(t, jobs).answering("yes\n", "approve", "p")
		if code != 0 || strings.Count(out, "jobs.batch/job-") != min(jobs, 10) || strings.Contains(out, "jobs.batch/a ") ||
			strings.Contains(out, all) != more || !strings.HasSuffix(out, "\ncleanuppolicies.gc.winnow.dev/p approved\n") {
			t.Errorf("%d objects: ended with %d: %s%s", jobs, code, out, errOut)
		}
	}
	out, errOut, code := waitingCluster(t, 1).answering("", "approve", "p", "--yes")
	if code != 0 || strings.Contains(out, "job-0") || errOut != "" {
		t.Errorf("--yes ended with %d: %s%s", code, out, errOut)
	}
	hidden := waitingCluster(t, 1).with(map[string]any{winnowPath + "/namespaces/team-a/cleanupcandidates": http.StatusForbidden})
	out, errOut, code = hidden.answering("yes\n", "approve", "p")
	if code != 0 || !strings.Contains(errOut, "Warning: cannot show which objects wait: ") {
		t.Errorf("without the right to list candidates, it ended with %d: %s%s", code, out, errOut)
	}
}

// TestApproveAsks: only the whole word approves.
func TestApproveAsks(t *testing.T) {
	const whole = "Error: nothing was approved; type the whole word: yes\n"
	const nothing = "Error: nothing was approved\n"
	for typed, want := range map[string]string{"y\n": whole, "Yes\n": whole, "no\n": nothing, "": nothing} {
		out, errOut, code := waitingCluster(t, 1).answering(typed, "approve", "p")
		if code != exitFailed || !strings.HasSuffix(errOut, "Type yes to approve: "+want) || strings.Contains(out, "approved\n") {
			t.Errorf("%q ended with %d: %s%s", typed, code, out, errOut)
		}
	}
}
