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

// OwnerState is what the controller of an object means for its deletion.
type OwnerState int

const (
	// OwnerNone: nobody controls the object, or nobody who counts on it once it has finished.
	OwnerNone OwnerState = iota
	// OwnerRunning: the controller counts on the object and has not finished.
	OwnerRunning
	// OwnerFinished: the controller counted on the object and has finished.
	OwnerFinished
	// OwnerAbsent: the controller is of a kind that is observed, but was not seen. It is gone, and the garbage collector of
	// Kubernetes takes the object along; or it is yet to be seen.
	OwnerAbsent
	// OwnerUnknown: the controller is of a kind that nobody here observes.
	OwnerUnknown
)

var (
	kindPod     = schema.GroupKind{Kind: "Pod"}
	kindJob     = schema.GroupKind{Group: "batch", Kind: "Job"}
	kindCronJob = schema.GroupKind{Group: "batch", Kind: "CronJob"}
)

// ignoresFinished are the kinds that replace what has finished and never look at it again.
var ignoresFinished = map[schema.GroupKind]bool{
	{Group: "apps", Kind: "ReplicaSet"}:  true,
	{Group: "apps", Kind: "StatefulSet"}: true,
	{Group: "apps", Kind: "DaemonSet"}:   true,
}

// Owners looks up what is observed of controllers, by UID, so that a name that was used again is not believed.
type Owners interface {
	// Job returns the namespace of a Job, and whether it has finished; false when there is none.
	Job(types.UID) (namespace string, finished, ok bool)
	// CronJob returns nil when there is none.
	CronJob(types.UID) *CronJob
}

// StateOfOwner tells what the controller of f means for it: a CronJob for the Jobs that it no longer lists as active, a
// ReplicaSet, StatefulSet and DaemonSet do not count on what has finished; a Job does until it has finished itself. Owners
// across namespaces do not exist in Kubernetes and are not believed: to the garbage collector they are absent.
func StateOfOwner(f *Fact, owners Owners) OwnerState {
	switch {
	case f.Controller == nil, ignoresFinished[f.Controller.GroupKind]:
		return OwnerNone
	case f.Controller.GroupKind == kindJob:
		return stateOfJob(f, owners)
	case f.Controller.GroupKind == kindCronJob:
		return stateOfCronJob(f, owners)
	}
	return OwnerUnknown
}

// stateOfCronJob judges the CronJob that controls f. Its controller creates a Job first, and then lists it and notes for when it
// was scheduled, in one write. A Job that is gone before that write is created again, so the CronJob counts on one that is
// scheduled for later than it has noted. Nothing tells this of a Job without such a time; then the list alone decides.
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

// ScheduledBy says how the name of a Job tells for when it was scheduled.
type ScheduledBy uint8

const (
	// ScheduledByField is for a Job whose name does not: Scheduled does.
	ScheduledByField ScheduledBy = iota
	// ScheduledByName is for one that has the name which the CronJob controller gives.
	ScheduledByName
	// ScheduledByCreation is for one of these that was created then or later, as is usual.
	ScheduledByCreation
)

// scheduledAfter reports whether the Job was scheduled for later than t.
func (f *Fact) scheduledAfter(t time.Time) bool {
	switch {
	case f.ScheduledBy == ScheduledByField:
		return f.Scheduled.After(t)
	case f.ScheduledBy == ScheduledByCreation && !f.Created.After(t):
		return false // Most Jobs are older than the last that their CronJob has noted.
	}
	return ScheduleInName(f.Name, f.Controller.Name).After(t)
}

// ScheduleInName reads the names that the CronJob controller gives to Jobs: "<cronjob>-<minutes since 1970>". It is zero for others.
func ScheduleInName(job, cronJob string) time.Time {
	number, ok := strings.CutPrefix(strings.TrimPrefix(job, cronJob), "-")
	minutes, err := strconv.ParseUint(number, 10, 32)
	if !ok || err != nil {
		return time.Time{}
	}
	return time.Unix(int64(minutes)*60, 0).UTC()
}

// stateOfJob judges the Job that controls f.
func stateOfJob(f *Fact, owners Owners) OwnerState {
	namespace, finished, ok := owners.Job(f.Controller.UID)
	switch {
	case !ok || namespace != f.Namespace:
		return OwnerAbsent
	case finished:
		return OwnerFinished
	}
	return OwnerRunning
}

// CronJob is what is kept of a CronJob: the Jobs that it counts on.
type CronJob struct {
	metav1.ObjectMeta // name, namespace, UID and resource version alone
	Active            []types.UID
	// LastScheduled is the latest time for which it has noted a Job; zero for none.
	LastScheduled time.Time
}

// SameJobs reports whether both count on the same Jobs.
func (c *CronJob) SameJobs(o *CronJob) bool {
	return slices.Equal(c.Active, o.Active) && c.LastScheduled.Equal(o.LastScheduled)
}

// FromCronJob reduces a CronJob.
func FromCronJob(cj *batchv1.CronJob) *CronJob {
	out := &CronJob{ObjectMeta: metav1.ObjectMeta{
		Namespace: cj.Namespace, Name: cj.Name, UID: cj.UID, ResourceVersion: cj.ResourceVersion,
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
