// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/controller/objects/kinds"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
)

// SetCronJob handles a new state of a CronJob. It ignores states that are older than memory.
func (m *Memory) SetCronJob(cj *lifecycle.CronJob) {
	before := m.CronJobs[cj.UID]
	if before != nil && OlderVersion(cj.ResourceVersion, before.ResourceVersion) {
		return
	}
	m.setCronJob(before, cj)
}

// setCronJob stores a state of a CronJob, and touches its Jobs if they may be affected. before is nil if the CronJob is new.
func (m *Memory) setCronJob(before, cj *lifecycle.CronJob) {
	m.CronJobs[cj.UID] = cj
	if before == nil || !before.SameJobs(cj) {
		m.TouchDependents(cj.UID)
	}
}

// RemoveCronJob handles the removal of a CronJob.
func (m *Memory) RemoveCronJob(uid types.UID) {
	delete(m.CronJobs, uid)
	m.TouchDependents(uid)
}

// ReplaceCronJobs replaces all CronJobs with a list.
func (m *Memory) ReplaceCronJobs(all []*lifecycle.CronJob) {
	m.replaceCronJobs(all)
	m.CronJobsListed = true
	m.Touched.Assessable = true
}

// ForgetCronJobs forgets all CronJobs, because they are no longer observed.
func (m *Memory) ForgetCronJobs() {
	m.CronJobsListed = false
	m.replaceCronJobs(nil)
}

func (m *Memory) replaceCronJobs(all []*lifecycle.CronJob) {
	before := m.CronJobs
	m.CronJobs = make(map[types.UID]*lifecycle.CronJob, len(all))
	for _, cj := range all {
		m.setCronJob(before[cj.UID], cj)
		delete(before, cj.UID)
	}
	for uid := range before {
		m.TouchDependents(uid)
	}
}

// Finisher implements lifecycle.Owners.
func (m *Memory) Finisher(owner *lifecycle.Owner) lifecycle.Finisher {
	k := m.Table.ForOwner(owner.GroupKind)
	if k == nil {
		return lifecycle.Finisher{}
	}
	out := lifecycle.Finisher{Resource: k.Resource, Finishes: k.Finishes, Independent: k.Independent, HasNeeds: k.HasNeeds}
	if rec := m.Records.Get(owner.UID); rec != nil && rec.Resource == k.Resource {
		out.Known, out.Namespace, out.Finished, out.FinishedAt, out.Doubt = true, rec.Namespace, rec.Finished, rec.FinishedAt(), rec.Doubt()
		out.Needs, out.Terminating, out.Rereads = rec.Needs(), rec.Terminating(), rec.Rereads
	}
	return out
}

// CronJob implements lifecycle.Owners.
func (m *Memory) CronJob(uid types.UID) *lifecycle.CronJob { return m.CronJobs[uid] }

// Control says that objects of a resource are controlled by objects of a kind.
type Control struct {
	Resource string
	By       schema.GroupKind
}

// ControlledBy reports whether objects of a kind control any object of the namespace.
func (ns *Namespace) ControlledBy(kind schema.GroupKind) bool {
	for control := range ns.Owners {
		if control.By == kind {
			return true
		}
	}
	return false
}

// Link adds the record to the dependents of its controller.
func (m *Memory) Link(rec *Record) {
	c := rec.Controller
	if c == nil {
		return
	}
	siblings := m.Dependents[c.UID]
	if siblings == nil {
		siblings = &index{}
		m.Dependents[c.UID] = siblings
	}
	siblings.Put(rec)
	rec.NS.Owners[Control{rec.Resource, c.GroupKind}]++
}

// Unlink removes the record from the dependents of its controller.
func (m *Memory) Unlink(rec *Record) {
	c := rec.Controller
	if c == nil {
		return
	}
	control := Control{rec.Resource, c.GroupKind}
	if rec.NS.Owners[control]--; rec.NS.Owners[control] == 0 {
		delete(rec.NS.Owners, control)
	}
	siblings := m.Dependents[c.UID]
	siblings.Delete(rec)
	if siblings.Count == 0 {
		delete(m.Dependents, c.UID)
	}
}

// ObservedOwner returns the kind of the controller of a record; nil if it has none, or one of a kind that is not in the table.
func (m *Memory) ObservedOwner(rec *Record) *kinds.Kind {
	if rec.Controller == nil {
		return nil
	}
	return m.Table.ForOwner(rec.Controller.GroupKind)
}
