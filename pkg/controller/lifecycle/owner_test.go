// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/lifecycle"
)

// observed implements Owners for the tests.
type observed struct {
	finishers map[types.UID]*lifecycle.Fact
	cronJobs  map[types.UID]*lifecycle.CronJob
}

func (o observed) Finisher(owner *lifecycle.Owner) (lifecycle.Finisher, bool) {
	switch owner.GroupKind {
	case schema.GroupKind{Group: "batch", Kind: "Job"}:
	case schema.GroupKind{Group: "example.com", Kind: "Sweep"}:
		return lifecycle.Finisher{Independent: true}, true
	default:
		return lifecycle.Finisher{}, false
	}
	if f := o.finishers[owner.UID]; f != nil {
		return lifecycle.Finisher{Known: true, Namespace: f.Namespace, Finished: f.Finished}, true
	}
	return lifecycle.Finisher{}, true
}

func (o observed) CronJob(uid types.UID) *lifecycle.CronJob { return o.cronJobs[uid] }

func TestStateOfOwner(t *testing.T) {
	owners := observed{
		finishers: map[types.UID]*lifecycle.Fact{
			"uid-running":  testbuilders.Job("running").Fact(),
			"uid-finished": testbuilders.Job("finished").Complete(testbuilders.Now).Fact(),
			"uid-abroad":   testbuilders.Job("abroad").In("team-b").Complete(testbuilders.Now).Fact(),
			"uid-again":    nil, // There is a Job with this name and another UID.
			"uid-again-2":  testbuilders.Job("again").WithUID("uid-again-2").Complete(testbuilders.Now).Fact(),
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
		"a CronJob that counts on it":       {testbuilders.Job("tonight").ControlledBy("batch/v1", "CronJob", "nightly").Fact(), lifecycle.OwnerRunning},
		"a CronJob that does not any more":  {testbuilders.Job("yesterday").ControlledBy("batch/v1", "CronJob", "nightly").Fact(), lifecycle.OwnerNone},
		"a CronJob that counts on no Job":   {testbuilders.Job("tonight").ControlledBy("batch/v1", "CronJob", "idle").Fact(), lifecycle.OwnerNone},
		"a CronJob that counts on a Job of the name, but not of the UID": {
			testbuilders.Job("tonight").WithUID("uid-2").ControlledBy("batch/v1", "CronJob", "nightly").Fact(), lifecycle.OwnerNone},
		"a CronJob of another namespace is no owner": {
			testbuilders.Job("yesterday").In("team-b").ControlledBy("batch/v1", "CronJob", "nightly").Fact(), lifecycle.OwnerAbsent},
		"not even if it lists the Job": {
			testbuilders.Job("tonight").In("team-b").ControlledBy("batch/v1", "CronJob", "nightly").Fact(), lifecycle.OwnerAbsent},
		"a CronJob that is not there": {testbuilders.Job("tonight").ControlledBy("batch/v1", "CronJob", "gone").Fact(), lifecycle.OwnerAbsent},
		"a ReplicaSet":                {testbuilders.Pod("a").ControlledBy("apps/v1", "ReplicaSet", "r").Fact(), lifecycle.OwnerNone},
		"a StatefulSet":               {testbuilders.Pod("a").ControlledBy("apps/v1", "StatefulSet", "s").Fact(), lifecycle.OwnerNone},
		"a DaemonSet":                 {testbuilders.Pod("a").ControlledBy("apps/v1", "DaemonSet", "d").Fact(), lifecycle.OwnerNone},
		"a ReplicaSet of another group": {
			testbuilders.Pod("a").ControlledBy("example.com/v1", "ReplicaSet", "r").Fact(), lifecycle.OwnerUnknown},
		"a kind that is not observed": {
			testbuilders.Job("a").ControlledBy("jobset.x-k8s.io/v1alpha2", "JobSet", "s").Fact(), lifecycle.OwnerUnknown},
		"a kind whose dependents are independent": {
			testbuilders.Job("a").ControlledBy("example.com/v1", "Sweep", "gone").Fact(), lifecycle.OwnerNone},
		"a group that cannot be read": {testbuilders.Pod("a").ControlledBy("batch/v1/x", "Job", "running").Fact(), lifecycle.OwnerUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			if got := lifecycle.StateOfOwner(c.fact, owners); got != c.want {
				t.Errorf("got %d, want %d", got, c.want)
			}
		})
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
			if got := lifecycle.StateOfOwner(job.Fact(), owners); got != c.want {
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
