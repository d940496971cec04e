// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"slices"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// OwnerState is what the controller of an object means for the object's deletion. A controller needs a finished object if it would create
// the object again, or still has to read its result.
type OwnerState int

const (
	// OwnerNone: the object has no controller, or one that does not need finished objects.
	OwnerNone OwnerState = iota
	// OwnerRunning: the controller needs the object, and has not finished.
	OwnerRunning
	// OwnerFinished: the controller needed the object, and has finished.
	OwnerFinished
	// OwnerAbsent: the controller is of an observed kind, but is not known. Either it is gone, and the garbage collector of Kubernetes
	// deletes the object, or it has not been observed yet.
	OwnerAbsent
	// OwnerUnknown: the controller is of a kind that Winnow does not observe.
	OwnerUnknown
)

var (
	kindPod     = schema.GroupKind{Kind: "Pod"}
	kindJob     = schema.GroupKind{Group: "batch", Kind: "Job"}
	kindCronJob = schema.GroupKind{Group: "batch", Kind: "CronJob"}
)

// ignoresFinished are the kinds of controllers that replace finished Pods, and do not need them.
var ignoresFinished = map[schema.GroupKind]bool{
	{Group: "apps", Kind: "ReplicaSet"}:  true,
	{Group: "apps", Kind: "StatefulSet"}: true,
	{Group: "apps", Kind: "DaemonSet"}:   true,
}

// Owners looks up observed controllers by UID, because a name may be used again.
type Owners interface {
	// Finisher returns what is known of a controller; ok is false if it is not known of its kind when such objects have finished.
	Finisher(*Owner) (f Finisher, ok bool)
	// CronJob returns nil if the CronJob is not known.
	CronJob(types.UID) *CronJob
}

// Finisher is what is known of a controller of a kind that finishes.
type Finisher struct {
	// Independent says that what such an object controls is independent of it; see gc.LifecycleIndependent.
	Independent bool
	// Known says that the object itself is known, by its UID.
	Known     bool
	Namespace string
	Finished  bool
}

// StateOfOwner returns what the controller of f means for the deletion of f. A CronJob does not need the Jobs that it no longer lists as
// active. A ReplicaSet, StatefulSet or DaemonSet needs no finished Pods. A Job, or another object that finishes, needs what it controls
// until it has finished, unless its lifecycle says that this is independent. An owner in another namespace counts as absent, as it does
// for the garbage collector.
func StateOfOwner(f *Fact, owners Owners) OwnerState {
	switch {
	case f.Controller == nil, ignoresFinished[f.Controller.GroupKind]:
		return OwnerNone
	case f.Controller.GroupKind == kindCronJob:
		return stateOfCronJob(f, owners)
	}
	owner, ok := owners.Finisher(f.Controller)
	switch {
	case !ok:
		return OwnerUnknown
	case owner.Independent:
		return OwnerNone
	case !owner.Known || owner.Namespace != f.Namespace:
		return OwnerAbsent
	case owner.Finished:
		return OwnerFinished
	}
	return OwnerRunning
}

// stateOfCronJob is StateOfOwner for a CronJob. The CronJob controller creates a Job first. Then it adds the Job to status.active and sets
// status.lastScheduleTime, in one write. If the Job is deleted before this write, the controller creates it again. So the CronJob needs
// each Job that is scheduled for later than status.lastScheduleTime. For a Job without a scheduled time, only status.active decides.
func stateOfCronJob(f *Fact, owners Owners) OwnerState {
	cj := owners.CronJob(f.Controller.UID)
	switch {
	case cj == nil || cj.Namespace != f.Namespace:
		return OwnerAbsent
	case slices.Contains(cj.Active, f.UID), f.scheduledAfter(cj.LastScheduled):
		return OwnerRunning
	}
	return OwnerNone
}

// ScheduledBy says where the scheduled time of a Job is found.
type ScheduledBy uint8

const (
	// ScheduledByField: the field Scheduled has the time.
	ScheduledByField ScheduledBy = iota
	// ScheduledByName: the name contains the time, as the CronJob controller gives names.
	ScheduledByName
	// ScheduledByCreation: the name contains the time, and the Job was created then or later, as is usual.
	ScheduledByCreation
)

// scheduledAfter reports whether the Job was scheduled for later than t.
func (f *Fact) scheduledAfter(t time.Time) bool {
	switch {
	case f.ScheduledBy == ScheduledByField:
		return f.Scheduled.After(t)
	case f.ScheduledBy == ScheduledByCreation && !f.Created.After(t):
		return false // This saves parsing the name of most Jobs.
	}
	return ScheduleInName(f.Name, f.Controller.Name).After(t)
}

// ScheduleInName parses the names that the CronJob controller gives to Jobs: "<cronjob>-<minutes since 1970>". It returns zero for others.
func ScheduleInName(job, cronJob string) time.Time {
	number, ok := strings.CutPrefix(strings.TrimPrefix(job, cronJob), "-")
	minutes, err := strconv.ParseUint(number, 10, 32)
	if !ok || err != nil {
		return time.Time{}
	}
	return time.Unix(int64(minutes)*60, 0).UTC()
}

// CronJob is the part of a CronJob that says which Jobs it needs.
type CronJob struct {
	metav1.ObjectMeta // only name, namespace and UID
	Active            []types.UID
	// LastScheduled is status.lastScheduleTime; zero if it is not set.
	LastScheduled time.Time
}

// SameJobs reports whether both states need the same Jobs.
func (c *CronJob) SameJobs(o *CronJob) bool {
	return slices.Equal(c.Active, o.Active) && c.LastScheduled.Equal(o.LastScheduled)
}

// FromCronJob reduces a CronJob.
func FromCronJob(cj *batchv1.CronJob) *CronJob {
	out := &CronJob{ObjectMeta: metav1.ObjectMeta{
		Namespace: cj.Namespace, Name: cj.Name, UID: cj.UID,
	}}
	if at := cj.Status.LastScheduleTime; at != nil {
		out.LastScheduled = at.UTC()
	}
	for i := range cj.Status.Active {
		out.Active = append(out.Active, cj.Status.Active[i].UID)
	}
	return out
}

// String names the owner as kubectl does.
func (o *Owner) String() string { return o.Kind + "/" + o.Name }
