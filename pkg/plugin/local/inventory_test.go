// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/objects/facts"
	"github.com/winnow-dev/winnow/pkg/controller/objects/kinds"
	"github.com/winnow-dev/winnow/pkg/controller/observe"
)

var finishedAt = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)

func owner(apiVersion, kind, name string) func(*metav1.ObjectMeta) {
	return func(m *metav1.ObjectMeta) {
		m.OwnerReferences = []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: name, UID: types.UID(name), Controller: new(true)}}
	}
}

// page returns a page with one fact for each object.
func page(t *testing.T, resource string, objects ...any) observe.Page {
	t.Helper()
	kind, err := kinds.Builtin().For(resource)
	if err != nil {
		t.Fatal(err)
	}
	var out observe.Page
	for i, object := range objects {
		f, err := kind.Fact(object)
		if err != nil {
			t.Fatal(err)
		}
		out.Facts, out.Sizes = append(out.Facts, facts.Compress(f)), append(out.Sizes, 1000+i)
	}
	return out
}

func meta(name string, change ...func(*metav1.ObjectMeta)) metav1.ObjectMeta {
	m := metav1.ObjectMeta{
		Namespace: "team-a", Name: name, UID: types.UID("uid-" + name), ResourceVersion: "1", CreationTimestamp: metav1.NewTime(finishedAt.Add(-time.Hour)),
	}
	for _, f := range change {
		f(&m)
	}
	return m
}

func jobOf(condition batchv1.JobConditionType, after time.Duration, m metav1.ObjectMeta) *batchv1.Job {
	j := &batchv1.Job{ObjectMeta: m}
	if condition != "" {
		j.Status.Conditions = []batchv1.JobCondition{
			{Type: condition, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(finishedAt.Add(after))},
		}
	}
	return j
}

// TestFinished: only what has finished counts, on all pages; controllers that finish themselves count together.
func TestFinished(t *testing.T) {
	nightly := owner("batch/v1", "CronJob", "nightly")
	w := &World{inventory: newInventory()}
	w.inventory.add(kinds.Builtin(), page(t, gc.ResourceJobs,
		jobOf(batchv1.JobComplete, time.Minute, meta("c", nightly)), jobOf("", 0, meta("running")), jobOf(batchv1.JobFailed, 0, meta("b", nightly))))
	w.inventory.add(kinds.Builtin(), page(t, gc.ResourceJobs, jobOf(batchv1.JobComplete, time.Hour, meta("a"))))
	var pods []any
	for i := range 3 {
		pods = append(pods, &corev1.Pod{
			ObjectMeta: meta(fmt.Sprint("pod-", i), owner("batch/v1", "Job", fmt.Sprint("job-", i))), Status: corev1.PodStatus{Phase: corev1.PodFailed},
		})
	}
	w.inventory.add(kinds.Builtin(), page(t, gc.ResourcePods, pods...))
	want := []Finished{{
		Namespace: "team-a", Resource: "jobs.batch", Objects: 3, Failed: 1, Oldest: finishedAt, Bytes: 1000 + 1002 + 1000,
		Creators: []Creator{{"CronJob/nightly", 2}, {"", 1}}, Names: []string{"a", "b", "c"},
	}, {
		Namespace: "team-a", Resource: "pods", Objects: 3, Failed: 3, Bytes: 1000 + 1001 + 1002,
		Creators: []Creator{{"Job", 3}}, Names: []string{"pod-0", "pod-1", "pod-2"},
	}}
	if diff := cmp.Diff(want, w.Finished()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestDraftsTakeThePlaceOfPolicies: the next generation of the stored policy of the same name, in Enforce mode, or a new policy.
func TestDraftsTakeThePlaceOfPolicies(t *testing.T) {
	stored := &gc.CleanupPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "p", UID: "stored", Generation: 3}}
	s := &setting{policies: []*gc.CleanupPolicy{stored}}
	draft := &gc.CleanupPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "p", Annotations: map[string]string{gc.AnnotationApprovedHold: "x"}},
		Spec:       gc.CleanupPolicySpec{Mode: gc.ModePreview},
	}
	after, before := s.draftOf(draft)
	if before != stored || after.UID != "stored" || after.Generation != 4 || after.Spec.Mode != gc.ModeEnforce || after.Annotations != nil {
		t.Errorf("in place of a policy: %+v, %+v", after, before)
	}
	draft.Namespace = "team-b"
	after, before = s.draftOf(draft)
	if before != nil || after.UID == "" || after.Generation != 1 || after.Namespace != "team-b" || draft.Spec.Mode != gc.ModePreview {
		t.Errorf("a new policy: %+v, %+v", after, before)
	}
}
