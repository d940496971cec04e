// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/pkg/plugin/internal/plugintest"
)

// candidates returns the candidate of Job a in a state.
func candidates(state v1alpha1.CandidateState, reason string) []v1alpha1.CleanupCandidate {
	return []v1alpha1.CleanupCandidate{{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "a"},
		Status: v1alpha1.CleanupCandidateStatus{
			Object: v1alpha1.CandidateObject{Resource: "jobs.batch", Name: "a"}, State: state, Reason: reason, Message: "it is " + reason,
			DecidedBy: &v1alpha1.CandidatePolicy{Kind: "CleanupPolicy", Name: "p", Mode: v1alpha1.ModeEnforce},
		},
	}}
}

// TestWhyOffersToKeep: what is going to be deleted can be kept, by the user or by somebody else.
func TestWhyOffersToKeep(t *testing.T) {
	const (
		keep  = " for longer: kubectl winnow keep jobs.batch/a -n team-a --for 7d\n"
		offer = "\nTo keep it" + keep
		other = "\nYou may not change it, but somebody with the role edit can keep it" + keep
	)
	for name, c := range map[string]struct {
		state  v1alpha1.CandidateState
		reason string
		denied string
		offer  string
		title  string
	}{
		"waiting":          {v1alpha1.CandidateWaiting, "NotDue", "", offer, "Waiting (NotDue)\n"},
		"due":              {v1alpha1.CandidateDue, "Expired", "", offer, "Due (Expired)\n"},
		"held":             {v1alpha1.CandidateHeld, "Held", "", offer, "Held\n"},
		"kept":             {v1alpha1.CandidateKept, "Never", "", "", "Kept (Never)\n"},
		"no candidate":     {v1alpha1.CandidateNone, "NotFinished", "", "", "NoCandidate (NotFinished)\n"},
		"may not annotate": {v1alpha1.CandidateWaiting, "NotDue", "patch jobs", other, "Waiting (NotDue)\n"},
		"is deleted now":   {v1alpha1.CandidateTerminating, "Terminating", "", "", "Terminating\n"},
	} {
		cluster := newTestCluster(t).withWinnow(candidates(c.state, c.reason), nil)
		cluster.denied = []string{c.denied}
		out, errOut, code := cluster.run("why", "job/a")
		offers := strings.HasSuffix(out, c.offer) && strings.Contains(out, keep) == (c.offer != "")
		if code != 0 || !offers || !strings.HasPrefix(out, "jobs.batch/a in namespace team-a: "+c.title) {
			t.Errorf("%s ended with %d: %s%s", name, code, out, errOut)
		}
	}
}

// TestWhySaysWhatToDo: what waits for approval can be approved, and where no policy is about an object, one can be tried.
func TestWhySaysWhatToDo(t *testing.T) {
	ofCluster := candidates(v1alpha1.CandidateHeld, "Held")
	ofCluster[0].Status.DecidedBy.Kind = "ClusterCleanupPolicy"
	for name, c := range map[string]struct {
		candidates []v1alpha1.CleanupCandidate
		want       string
	}{
		"held":            {candidates(v1alpha1.CandidateHeld, "Held"), "kubectl winnow approve p -n team-a"},
		"held everywhere": {ofCluster, "kubectl winnow approve ccup/p"},
		"held otherwise":  {candidates(v1alpha1.CandidateHeld, "Managed"), ""},
		"due":             {candidates(v1alpha1.CandidateDue, "Expired"), ""},
	} {
		line := "" // that must be there
		if c.want != "" {
			line = "\nWhoever may approve the change can see what waits: " + c.want + "\n"
		}
		out, errOut, code := newTestCluster(t).withWinnow(c.candidates, nil).run("why", "job/a")
		if code != 0 || !strings.Contains(out, line) || strings.Contains(out, "approve") != (c.want != "") {
			t.Errorf("%s ended with %d: %s%s", name, code, out, errOut)
		}
	}
	out, errOut, code := newTestCluster(t).run("why", "job/a")
	const try = "There is no Winnow in this cluster.\nTo try a policy: kubectl winnow why jobs.batch/a -n team-a -f policy.yaml\n"
	if code != 0 || !strings.HasSuffix(out, try) {
		t.Errorf("without a policy, it ended with %d: %s%s", code, out, errOut)
	}
	newTestCluster(t).withWinnow(nil, nil).expectError("there is no cup/p in namespace team-a; to see the policies: kubectl get cup -n team-a",
		"approve", "p")
}

// TestWhyOfSomethingGone answers from the records.
func TestWhyOfSomethingGone(t *testing.T) {
	record := v1alpha1.CleanupRecord{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "uid"},
		Status: v1alpha1.CleanupRecordStatus{
			Object: v1alpha1.RecordObject{Resource: "jobs.batch", Name: "gone", UID: "uid"}, Reason: "OverCapacity",
			Policy:       v1alpha1.RecordPolicy{Kind: "CleanupPolicy", Name: "ci", Rule: "branches", Generation: 1},
			DeletionTime: metav1.NewMicroTime(plugintest.Now),
		},
	}
	out, errOut, code := newTestCluster(t).withWinnow(nil, []v1alpha1.CleanupRecord{record}).run("why", "job/gone")
	if code != 0 || !strings.HasPrefix(out, "jobs.batch/gone in namespace team-a: Deleted (OverCapacity)\nWinnow deleted it at 2026-07-01T12:00:00Z (") ||
		!strings.Contains(out, "), by cup/ci, rule branches: over capacity, because newer objects filled the limit of the rule.\n") {
		t.Errorf("ended with %d: %s%s", code, out, errOut)
	}
	for name, by := range map[string]string{
		"jobs.batch/gone": "Kubernetes by its spec.ttlSecondsAfterFinished, its CronJob, or a person",
		"pods/gone":       "Kubernetes when its Job or another owner was deleted (so ask for that too), or a person",
	} {
		newTestCluster(t).withWinnow(nil, nil).expectError("there is no "+name+" in namespace team-a, and no record that you may see says "+
			"that Winnow deleted it, so something else probably did: for example "+by+
			". Records are stored some seconds later; to see them: kubectl winnow history -n team-a", "why", name)
	}
	newTestCluster(t).expectError("there is no jobs.batch/gone in namespace team-a; there is no Winnow in this cluster", "why", "job/gone")
}
