// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"cmp"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
)

// observed implements Owners for the tests.
type observed struct {
	finishers map[types.UID]*lifecycle.Fact
	cronJobs  map[types.UID]*lifecycle.CronJob
}

func (o observed) Finisher(owner *lifecycle.Owner) lifecycle.Finisher {
	out := lifecycle.Finisher{Resource: strings.ToLower(owner.Kind) + "s." + owner.Group}
	switch owner.GroupKind {
	case schema.GroupKind{Group: "batch", Kind: "Job"}, schema.GroupKind{Group: "tekton.dev", Kind: "TaskRun"}:
		out.Finishes = true
	case schema.GroupKind{Group: "example.com", Kind: "Sweep"}:
		out.Independent = lifecycle.Independent
	case schema.GroupKind{Group: "gone.example.com", Kind: "Sweep"}:
		return lifecycle.Finisher{}
	}
	if f := o.finishers[owner.UID]; f != nil && out.Finishes {
		out.Known, out.Namespace, out.Finished, out.FinishedAt = true, f.Namespace, f.Finished, f.FinishedAt
		out.Doubt, out.Terminating, out.Rereads = cmp.Or(f.Failed, f.Doubt), f.Terminating, f.Rereads
	}
	return out
}

func (o observed) CronJob(uid types.UID) *lifecycle.CronJob { return o.cronJobs[uid] }

func TestOwnershipOf(t *testing.T) {
	owners := observed{
		finishers: map[types.UID]*lifecycle.Fact{
			"uid-running":    testbuilders.Job("running").Fact(),
			"uid-finished":   testbuilders.Job("finished").Complete(testbuilders.Now).Fact(),
			"uid-abroad":     testbuilders.Job("abroad").In("team-b").Complete(testbuilders.Now).Fact(),
			"uid-of-no-time": {Namespace: testbuilders.Home, Finished: true, Doubt: "its status does not say when it finished"},
			"uid-failing":    {Namespace: testbuilders.Home, Failed: "no such key"},
			"uid-again":      nil, // There is a Job with this name and another UID.
			"uid-again-2":    testbuilders.Job("again").WithUID("uid-again-2").Complete(testbuilders.Now).Fact(),
		},
		cronJobs: map[types.UID]*lifecycle.CronJob{
			"uid-nightly": lifecycle.FromCronJob(testbuilders.CronJob("nightly", "tonight", "other")),
			"uid-idle":    lifecycle.FromCronJob(testbuilders.CronJob("idle")),
		},
	}
	for name, c := range map[string]struct {
		fact *lifecycle.Fact
		want lifecycle.OwnerState
	}{
		"nobody":                         {testbuilders.Pod("a").Fact(), lifecycle.OwnerNone},
		"an owner that does not control": {testbuilders.Pod("a").OwnedBy("batch/v1", "Job", "running").Fact(), lifecycle.OwnerNone},
		"a Job that runs":                {testbuilders.Pod("a").ControlledBy("batch/v1", "Job", "running").Fact(), lifecycle.OwnerRunning},
		"a Job that has finished":        {testbuilders.Pod("a").ControlledBy("batch/v1", "Job", "finished").Fact(), lifecycle.OwnerFinished},
		"a Job that is not there":        {testbuilders.Pod("a").ControlledBy("batch/v1", "Job", "gone").Fact(), lifecycle.OwnerAbsent},
		"a Job of the name, but not of the UID": {
			testbuilders.Pod("a").ControlledBy("batch/v1", "Job", "again").Fact(), lifecycle.OwnerAbsent},
		"a Job of another namespace is no owner": {
			testbuilders.Pod("a").ControlledBy("batch/v1", "Job", "abroad").Fact(), lifecycle.OwnerAbsent},
		"a Job in any version of its group": {testbuilders.Pod("a").ControlledBy("batch/v2", "Job", "running").Fact(), lifecycle.OwnerRunning},
		"a Job of another group":            {testbuilders.Pod("a").ControlledBy("batch.volcano.sh/v1alpha1", "Job", "running").Fact(), lifecycle.OwnerUnknown},
		"a CronJob that counts on it":       {testbuilders.Job("tonight").Complete(testbuilders.Now).ControlledBy("batch/v1", "CronJob", "nightly").Fact(), lifecycle.OwnerRunning},
		"a CronJob that does not any more":  {testbuilders.Job("yesterday").Complete(testbuilders.Now).ControlledBy("batch/v1", "CronJob", "nightly").Fact(), lifecycle.OwnerNone},
		"a CronJob that counts on no Job":   {testbuilders.Job("tonight").Complete(testbuilders.Now).ControlledBy("batch/v1", "CronJob", "idle").Fact(), lifecycle.OwnerNone},
		"a CronJob that counts on a Job of the name, but not of the UID": {
			testbuilders.Job("tonight").Complete(testbuilders.Now).WithUID("uid-2").ControlledBy("batch/v1", "CronJob", "nightly").Fact(), lifecycle.OwnerNone},
		"a CronJob of another namespace is no owner": {
			testbuilders.Job("yesterday").Complete(testbuilders.Now).In("team-b").ControlledBy("batch/v1", "CronJob", "nightly").Fact(), lifecycle.OwnerAbsent},
		"not even if it lists the Job": {
			testbuilders.Job("tonight").Complete(testbuilders.Now).In("team-b").ControlledBy("batch/v1", "CronJob", "nightly").Fact(), lifecycle.OwnerAbsent},
		"a CronJob that is not there": {testbuilders.Job("tonight").Complete(testbuilders.Now).ControlledBy("batch/v1", "CronJob", "gone").Fact(), lifecycle.OwnerAbsent},
		"a Job in doubt":              {testbuilders.Pod("a").ControlledBy("batch/v1", "Job", "of-no-time").Fact(), lifecycle.OwnerInDoubt},
		"a Job of which nobody knows whether it has finished": {
			testbuilders.Pod("a").ControlledBy("batch/v1", "Job", "failing").Fact(), lifecycle.OwnerInDoubt},
		"a CronJob that lists a Job that runs no more as active": {
			testbuilders.Job("yesterday").ControlledBy("batch/v1", "CronJob", "nightly").Fact(), lifecycle.OwnerRunning},
		"a ReplicaSet of another group": {
			testbuilders.Pod("a").ControlledBy("example.com/v1", "ReplicaSet", "r").Fact(), lifecycle.OwnerUnknown},
		"a kind that is not observed": {
			testbuilders.Job("a").ControlledBy("jobset.x-k8s.io/v1alpha2", "JobSet", "s").Fact(), lifecycle.OwnerUnknown},
		"a kind whose dependents are independent": {
			testbuilders.Job("a").ControlledBy("example.com/v1", "Sweep", "gone").Fact(), lifecycle.OwnerNone},
		"a group that cannot be read": {testbuilders.Pod("a").ControlledBy("batch/v1/x", "Job", "running").Fact(), lifecycle.OwnerUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			got := lifecycle.OwnershipOf(c.fact, owners)
			if got.State != c.want {
				t.Errorf("got %d, want %d", got.State, c.want)
			}
			if finished := got.State == lifecycle.OwnerFinished; finished != got.FinishedAt.Equal(testbuilders.Now) {
				t.Errorf("it finished at %v", got.FinishedAt)
			}
			if explains := got.State == lifecycle.OwnerInDoubt || got.State == lifecycle.OwnerUnknown; explains && got.Detail == "" || got.Counted {
				t.Errorf("counted: %v; the detail is %q", got.Counted, got.Detail)
			}
		})
	}
}

// TestWhatLivingControllersControl: what a controller of Kubernetes controls is left to it, whatever it is. Only finished Pods of those that
// replace them are not, and finished Jobs of a CronJob.
func TestWhatLivingControllersControl(t *testing.T) {
	owners := observed{cronJobs: map[types.UID]*lifecycle.CronJob{"uid-c": lifecycle.FromCronJob(testbuilders.CronJob("c"))}}
	for _, c := range []struct {
		apiVersion, kind      string
		finishedPod, finished lifecycle.OwnerState // of a finished Pod, and of a finished Job
	}{
		{"apps/v1", "ReplicaSet", lifecycle.OwnerNone, lifecycle.OwnerRunning},
		{"apps/v1", "StatefulSet", lifecycle.OwnerNone, lifecycle.OwnerRunning},
		{"apps/v1", "DaemonSet", lifecycle.OwnerNone, lifecycle.OwnerRunning},
		{"v1", "ReplicationController", lifecycle.OwnerNone, lifecycle.OwnerRunning},
		{"apps/v1", "Deployment", lifecycle.OwnerRunning, lifecycle.OwnerRunning},
		{"v1", "Service", lifecycle.OwnerRunning, lifecycle.OwnerRunning},
		{"v1", "Endpoints", lifecycle.OwnerRunning, lifecycle.OwnerRunning},
		{"v1", "Node", lifecycle.OwnerRunning, lifecycle.OwnerRunning},
		{"v1", "PersistentVolumeClaim", lifecycle.OwnerRunning, lifecycle.OwnerRunning},
		{"batch/v1", "CronJob", lifecycle.OwnerRunning, lifecycle.OwnerNone},
	} {
		running := testbuilders.Pod("a").ControlledBy(c.apiVersion, c.kind, "c").Fact()
		other := *running
		other.Resource = gc.ResourceConfigMaps
		for what, object := range map[string]struct {
			fact *lifecycle.Fact
			want lifecycle.OwnerState
		}{
			"a ConfigMap":    {&other, lifecycle.OwnerRunning},
			"a running Pod":  {running, lifecycle.OwnerRunning},
			"a finished Pod": {testbuilders.Pod("a").Succeeded(testbuilders.Now).ControlledBy(c.apiVersion, c.kind, "c").Fact(), c.finishedPod},
			"a running Job":  {testbuilders.Job("a").ControlledBy(c.apiVersion, c.kind, "c").Fact(), lifecycle.OwnerRunning},
			"a finished Job": {testbuilders.Job("a").Complete(testbuilders.Now).ControlledBy(c.apiVersion, c.kind, "c").Fact(), c.finished},
		} {
			if got := lifecycle.OwnershipOf(object.fact, owners).State; got != object.want {
				t.Errorf("%s of a %s: got %d, want %d", what, c.kind, got, object.want)
			}
		}
	}
}

// TestUnknownControllersNameTheLifecycleToWrite: the message is enough to do something about it.
func TestUnknownControllersNameTheLifecycleToWrite(t *testing.T) {
	for apiVersion, want := range map[string]string{
		"example.com/v1": "nothing says whether Run/r still needs it. If such objects never need what has finished, create ResourceLifecycle " +
			"runs.example.com with dependents: Independent",
		"gone.example.com/v1": "Sweep/r is of the kind Sweep.gone.example.com, which the cluster does not serve",
	} {
		kind := "Run"
		if strings.HasPrefix(apiVersion, "gone") {
			kind = "Sweep"
		}
		if got := lifecycle.OwnershipOf(testbuilders.Pod("a").ControlledBy(apiVersion, kind, "r").Fact(), observed{}).Detail; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestJobsThatACronJobHasNotListed: a CronJob still needs a Job that was scheduled later than its last recorded time.
func TestJobsThatACronJobHasNotListed(t *testing.T) {
	earlier, last, later := testbuilders.Now.Add(-48*time.Hour), testbuilders.Now.Add(-24*time.Hour), testbuilders.Now
	for name, c := range map[string]struct {
		annotation string
		last       time.Time // zero for none
		active     []string
		want       lifecycle.OwnerState
	}{
		"later than it has noted":              {later.Format(time.RFC3339), last, nil, lifecycle.OwnerRunning},
		"later by a second":                    {last.Add(time.Second).Format(time.RFC3339), last, nil, lifecycle.OwnerRunning},
		"what it noted last":                   {last.Format(time.RFC3339), last, nil, lifecycle.OwnerNone},
		"earlier than it has noted":            {earlier.Format(time.RFC3339), last, nil, lifecycle.OwnerNone},
		"it has noted nothing yet":             {earlier.Format(time.RFC3339), time.Time{}, nil, lifecycle.OwnerRunning},
		"another time zone is the same time":   {last.In(time.FixedZone("", 7200)).Format(time.RFC3339), last, nil, lifecycle.OwnerNone},
		"noted and listed":                     {last.Format(time.RFC3339), last, []string{"a"}, lifecycle.OwnerRunning},
		"no time: what it does not list":       {"", last, nil, lifecycle.OwnerNone},
		"no time: what it lists":               {"", last, []string{"a"}, lifecycle.OwnerRunning},
		"no time, and it has noted nothing":    {"", time.Time{}, nil, lifecycle.OwnerNone},
		"unreadable: what it does not list":    {"tonight", last, nil, lifecycle.OwnerNone},
		"unreadable: what it lists":            {"tonight", last, []string{"a"}, lifecycle.OwnerRunning},
		"unreadable, and it has noted nothing": {"2026-03-01", time.Time{}, nil, lifecycle.OwnerNone},
	} {
		t.Run(name, func(t *testing.T) {
			cj := testbuilders.CronJob("nightly", c.active...)
			if !c.last.IsZero() {
				cj.Status.LastScheduleTime = new(metav1.NewTime(c.last))
			}
			job := testbuilders.Job("a").Complete(testbuilders.Now).ControlledBy("batch/v1", "CronJob", "nightly")
			if c.annotation != "" {
				job.Annotation(batchv1.CronJobScheduledTimestampAnnotation, c.annotation)
			}
			owners := observed{cronJobs: map[types.UID]*lifecycle.CronJob{"uid-nightly": lifecycle.FromCronJob(cj)}}
			if got := lifecycle.OwnershipOf(job.Fact(), owners).State; got != c.want {
				t.Errorf("got %d, want %d", got, c.want)
			}
		})
	}
	job := testbuilders.Job("a").
		ControlledBy("example.com/v1", "CronJob", "nightly").
		Annotation(batchv1.CronJobScheduledTimestampAnnotation, later.Format(time.RFC3339))
	if at := job.Fact().Scheduled; !at.IsZero() {
		t.Errorf("a CronJob of another group scheduled it for %v", at)
	}
}

func TestFromCronJob(t *testing.T) {
	cj := lifecycle.FromCronJob(testbuilders.CronJob("nightly", "a", "b"))
	if cj.Namespace != testbuilders.Home || cj.Name != "nightly" || cj.UID != "uid-nightly" ||
		len(cj.Active) != 2 || cj.Active[0] != "uid-a" || cj.Active[1] != "uid-b" {
		t.Errorf("got %+v", cj)
	}
	if got := testbuilders.Job("tonight").ControlledBy("batch/v1", "CronJob", "nightly").Fact().Controller.String(); got != "CronJob/nightly" {
		t.Errorf("it is called %q", got)
	}
}
