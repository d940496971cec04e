// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/objects/facts"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
)

func TestFactNamesItsObject(t *testing.T) {
	f := testbuilders.Pod("p").
		In("team-b").
		Version("18446744073709551615").
		Label("app", "train").
		Created(testbuilders.Now.Add(-time.Minute)).
		Fact()
	if f.Resource != gc.ResourcePods || f.Namespace != "team-b" || f.Name != "p" || f.UID != "uid-p" ||
		f.ResourceVersion != 1<<64-1 || f.Labels.Get("app") != "train" || !f.Created.Equal(testbuilders.Now.Add(-time.Minute)) {
		t.Errorf("the Pod became %+v", f)
	}
	if f := testbuilders.Job("j").Fact(); f.Resource != gc.ResourceJobs || f.Terminating || f.Controller != nil || f.TTL != nil ||
		f.KeepUntil != nil {
		t.Errorf("the Job became %+v", f)
	}
}

func TestFactRefusesVersionsThatAreNoNumbers(t *testing.T) {
	for _, rv := range []string{"", "abc", "-1", "1.5", "18446744073709551616"} {
		if f, err := lifecycle.FromJob(testbuilders.Job("a").Version(rv).Obj()); err == nil {
			t.Errorf("resource version %q of a Job was read as %d", rv, f.ResourceVersion)
		}
		if f, err := lifecycle.FromPod(testbuilders.Pod("a").Version(rv).Obj()); err == nil {
			t.Errorf("resource version %q of a Pod was read as %d", rv, f.ResourceVersion)
		}
	}
}

func TestAnnotationsAreKeptAsWritten(t *testing.T) {
	for name, c := range map[string]struct {
		job            *testbuilders.JobBuilder
		ttl, keepUntil string // "-" for none
	}{
		"none":          {testbuilders.Job("a"), "-", "-"},
		"empty is kept": {testbuilders.Job("a").TTL("").KeepUntil(""), "", ""},
		"a TTL":         {testbuilders.Job("a").TTL("2h"), "2h", "-"},
		"a time":        {testbuilders.Job("a").KeepUntil("2026-03-02T00:00:00Z"), "-", "2026-03-02T00:00:00Z"},
		"nonsense":      {testbuilders.Job("a").TTL(" 2 h").KeepUntil("tomorrow"), " 2 h", "tomorrow"},
		"just short enough": {
			testbuilders.Job("a").TTL(strings.Repeat("0", 63) + "s"), strings.Repeat("0", 63) + "s", "-"},
		"too long to mean anything is cut, and stays unreadable": {
			testbuilders.Job("a").TTL(strings.Repeat("0", 63) + "s" + strings.Repeat("x", 1<<17)), strings.Repeat("0", 63) + "s...", "-"},
		"cut between characters": {
			testbuilders.Job("a").KeepUntil(strings.Repeat("x", 63) + "é"), "-", strings.Repeat("x", 63) + "..."},
	} {
		t.Run(name, func(t *testing.T) {
			f := c.job.Fact()
			for what, pair := range map[string][2]string{"TTL": {written(f.TTL), c.ttl}, "KeepUntil": {written(f.KeepUntil), c.keepUntil}} {
				if pair[0] != pair[1] {
					t.Errorf("%s is %q, want %q", what, pair[0], pair[1])
				}
			}
		})
	}
}

func written(annotation *string) string {
	if annotation == nil {
		return "-"
	}
	return *annotation
}

func TestController(t *testing.T) {
	for name, c := range map[string]struct {
		pod  *testbuilders.PodBuilder
		want *lifecycle.Owner
	}{
		"no owner":                       {testbuilders.Pod("a"), nil},
		"an owner that does not control": {testbuilders.Pod("a").OwnedBy("batch/v1", "Job", "j"), nil},
		"a Job": {testbuilders.Pod("a").OwnedBy("v1", "ConfigMap", "c").ControlledBy("batch/v1", "Job", "j"),
			&lifecycle.Owner{GroupKind: schema.GroupKind{Group: "batch", Kind: "Job"}, Name: "j", UID: "uid-j"}},
		"a kind of the core group": {testbuilders.Pod("a").ControlledBy("v1", "ReplicationController", "r"),
			&lifecycle.Owner{GroupKind: schema.GroupKind{Kind: "ReplicationController"}, Name: "r", UID: "uid-r"}},
		"a malformed group is no known owner": {testbuilders.Pod("a").ControlledBy("batch/v1/x", "Job", "j"),
			&lifecycle.Owner{GroupKind: schema.GroupKind{Group: "batch/v1/x", Kind: "Job"}, Name: "j", UID: "uid-j"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := c.pod.Fact().Controller
			if (got == nil) != (c.want == nil) || got != nil && *got != *c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestFinalizers(t *testing.T) {
	const other = "example.com/other"
	for name, c := range map[string]struct {
		job         *testbuilders.JobBuilder
		propagation metav1.DeletionPropagation
		waits       []string
	}{
		"none":                                          {testbuilders.Job("a"), "", nil},
		"another finalizer":                             {testbuilders.Job("a").Finalizer(other), "", nil},
		"orphan asks for that":                          {testbuilders.Job("a").Finalizer(other, "orphan"), metav1.DeletePropagationOrphan, nil},
		"foregroundDeletion asks for that":              {testbuilders.Job("a").Finalizer("foregroundDeletion", other), metav1.DeletePropagationForeground, nil},
		"of an object that is being deleted":            {testbuilders.Job("a").Terminating().Finalizer(other, "orphan"), metav1.DeletePropagationOrphan, []string{other, "orphan"}},
		"an object that is being deleted may have none": {testbuilders.Job("a").Terminating(), "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			f := c.job.Fact()
			if f.Contradictory {
				t.Error("its finalizers are said to contradict each other")
			}
			if f.Propagation != c.propagation || !slices.Equal(f.Finalizers, c.waits) || f.Terminating != (c.job.DeletionTimestamp != nil) {
				t.Errorf("got propagation %q, waiting for %q, terminating %v", f.Propagation, f.Finalizers, f.Terminating)
			}
		})
	}
}

// TestContradictoryFinalizers: no propagation keeps both finalizers.
func TestContradictoryFinalizers(t *testing.T) {
	for _, finalizers := range [][]string{{"orphan", "foregroundDeletion"}, {"foregroundDeletion", "example.com/other", "orphan"}} {
		f := testbuilders.Job("a").Finalizer(finalizers...).Fact()
		if again := facts.Compress(f).Fact(); !f.Contradictory || !again.Contradictory {
			t.Errorf("%q do not contradict each other", finalizers)
		}
	}
}
