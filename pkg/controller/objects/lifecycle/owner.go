// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
)

// OwnerState is what the controller of an object means for the object's deletion. A controller needs an object if it would create the
// object again, or still has to read it.
type OwnerState int

const (
	// OwnerNone: the object has no controller, or one that does not need the object.
	OwnerNone OwnerState = iota
	// OwnerRunning: the controller needs the object, and has not finished.
	OwnerRunning
	// OwnerFinished: the controller needed the object, and has finished.
	OwnerFinished
	// OwnerInDoubt: the controller has finished, but it is not known when, or it is not known whether it has finished.
	OwnerInDoubt
	// OwnerAbsent: the controller is of an observed kind, but is not known. Either it is gone, and the garbage collector of Kubernetes
	// deletes the object, or it has not been observed yet.
	OwnerAbsent
	// OwnerUnknown: nothing says whether objects of the controller's kind need what they control.
	OwnerUnknown
)

// Independence says what an object may control and not need; see gc.LifecycleIndependent.
type Independence uint8

const (
	// Dependent: it needs what it controls.
	Dependent Independence = iota
	// FinishedIndependent: it needs nothing that has finished.
	FinishedIndependent
	// Independent: it needs nothing.
	Independent
)

// Ownership is the state of the controller of an object.
type Ownership struct {
	State OwnerState
	// FinishedAt is when the controller finished, with OwnerFinished.
	FinishedAt time.Time
	// Counted is set if the object is a finished Pod that its Job does not need any more, because it has counted it. State does not say so:
	// only rules with OnceCounted do not leave such a Pod to its Job.
	Counted bool
	// Detail says why, with OwnerInDoubt and OwnerUnknown. With OwnerRunning and OwnerFinished, it says of a Job why Counted is not set.
	Detail string
}

var (
	kindPod     = schema.GroupKind{Kind: "Pod"}
	kindJob     = schema.GroupKind{Group: "batch", Kind: "Job"}
	kindCronJob = schema.GroupKind{Group: "batch", Kind: "CronJob"}
)

// lasting are the kinds of Kubernetes that control objects, do not finish, and need what they control. If true, they replace finished Pods,
// and do not need these.
var lasting = map[schema.GroupKind]bool{
	{Group: "apps", Kind: "ReplicaSet"}:  true,
	{Group: "apps", Kind: "StatefulSet"}: true,
	{Group: "apps", Kind: "DaemonSet"}:   true,
	{Kind: "ReplicationController"}:      true,
	{Group: "apps", Kind: "Deployment"}:  false,
	{Kind: "Service"}:                    false,
	{Kind: "Endpoints"}:                  false,
	{Kind: "Node"}:                       false,
	{Kind: "PersistentVolumeClaim"}:      false,
}

// Owners looks up observed controllers by UID, because a name may be used again.
type Owners interface {
	// Finisher returns what is known of a controller.
	Finisher(*Owner) Finisher
	// CronJob returns nil if the CronJob is not known.
	CronJob(types.UID) *CronJob
}

// Finisher is what is known of a controller.
type Finisher struct {
	// Resource is the name that policies use; empty if the cluster does not serve it.
	Resource string
	// Finishes says that it is known when objects of the resource have finished.
	Finishes    bool
	Independent Independence
	// HasNeeds says that the object may need something in spite of Independent: what Needs names.
	HasNeeds bool
	Needs    []string
	// Known says that the object itself is known, by its UID.
	Known     bool
	Namespace string
	Finished  bool
	// Terminating and Rereads are those of a Job; see Fact.
	Terminating bool
	Rereads     Rereads
	// FinishedAt is when it finished. Doubt is why that, or whether it has finished, is not known; empty if it is.
	FinishedAt time.Time
	Doubt      string
}

// OwnershipOf returns what the controller of f means for the deletion of f. What a controller controls is left to it, whatever it is, with
// these exceptions:
//   - A CronJob does not need finished Jobs that it no longer lists as active.
//   - A ReplicaSet, StatefulSet, DaemonSet or ReplicationController needs no finished Pods.
//   - The lifecycle of the controller's resource may say that what it controls is independent.
//   - An object that finishes, such as a Job, needs what it controls until it has finished. Counted says if a Job does not need a Pod.
//
// An owner in another namespace counts as absent, as it does for the garbage collector.
func OwnershipOf(f *Fact, owners Owners) Ownership {
	c := f.Controller
	switch {
	case c == nil, f.Finished && f.Resource == gc.ResourcePods && lasting[c.GroupKind]:
		return Ownership{}
	case c.GroupKind == kindCronJob:
		return Ownership{State: stateOfCronJob(f, owners)}
	}
	return ownershipByLifecycle(f, owners.Finisher(c))
}

// ownershipByLifecycle is OwnershipOf for a controller of which only its lifecycle may say what it needs.
func ownershipByLifecycle(f *Fact, owner Finisher) Ownership {
	c := f.Controller
	independent := owner.Independent == Independent || owner.Independent == FinishedIndependent && f.Finished
	switch {
	case independent && !owner.HasNeeds:
		return Ownership{}
	case independent || owner.Finishes:
		return owner.ownership(f, independent)
	case owner.Independent == FinishedIndependent:
		return Ownership{State: OwnerRunning}
	}
	if _, ok := lasting[c.GroupKind]; ok {
		return Ownership{State: OwnerRunning}
	}
	return Ownership{State: OwnerUnknown, Detail: owner.unknown(c)}
}

// ownership is OwnershipOf for a controller that must be known. independent says that it needs f only if it says so.
func (o *Finisher) ownership(f *Fact, independent bool) Ownership {
	switch {
	case !o.Known || o.Namespace != f.Namespace:
		return Ownership{State: OwnerAbsent}
	case o.Doubt != "":
		return Ownership{State: OwnerInDoubt, Detail: f.Controller.String() + " is in doubt: " + o.Doubt}
	case independent && !slices.Contains(o.Needs, f.ObjectName()):
		return Ownership{}
	}
	out := Ownership{State: OwnerRunning}
	if o.Finished {
		out = Ownership{State: OwnerFinished, FinishedAt: o.FinishedAt}
	}
	if f.Controller.GroupKind == kindJob {
		out.Detail = o.needsPod(f)
		out.Counted = out.Detail == ""
	}
	return out
}

// unknown says why it is not known whether a controller needs what it controls, and what to do.
func (o *Finisher) unknown(c *Owner) string {
	if o.Resource == "" {
		return fmt.Sprintf("%s is of the kind %s, which the cluster does not serve", c, c.GroupKind)
	}
	return fmt.Sprintf("nothing says whether %s still needs it. If such objects never need what has finished, create ResourceLifecycle %s "+
		"with dependents: %s", c, o.Resource, gc.LifecycleIndependent)
}

// stateOfCronJob is OwnershipOf for a CronJob. The CronJob controller creates a Job first. Then it adds the Job to status.active and sets
// status.lastScheduleTime, in one write. If the Job is deleted before this write, the controller creates it again. So the CronJob needs
// each Job that is scheduled for later than status.lastScheduleTime. For a Job without a scheduled time, only status.active decides.
func stateOfCronJob(f *Fact, owners Owners) OwnerState {
	cj := owners.CronJob(f.Controller.UID)
	switch {
	case cj == nil || cj.Namespace != f.Namespace:
		return OwnerAbsent
	case f.Resource != gc.ResourceJobs, !f.Finished, cj.isActive(f), f.scheduledAfter(cj.LastScheduled):
		return OwnerRunning
	}
	return OwnerNone
}

// isActive reports whether status.active has a Job.
func (c *CronJob) isActive(f *Fact) bool {
	if len(c.Active) == 0 {
		return false
	}
	return slices.Contains(c.Active, f.ObjectUID())
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
	return ScheduleInName(f.ObjectName(), f.Controller.Name).After(t)
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
	metav1.ObjectMeta // only name, namespace, UID and resourceVersion
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
