// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"iter"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/approval"
	"github.com/winnow-dev/winnow/pkg/controller/freshness"
	"github.com/winnow-dev/winnow/pkg/controller/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/policy"
	"github.com/winnow-dev/winnow/pkg/controller/report"
	"github.com/winnow-dev/winnow/pkg/controller/turns"
)

// namespace is everything that is known of one namespace.
type namespace struct {
	name string
	// known is set if the namespace was observed, and not removed since. In any other namespace nothing is deleted.
	known                  bool
	terminating, protected bool
	labels                 labels.Set
	revision               freshness.Revision

	policies []*policyState // by name
	derived

	// covered are the resources whose objects are observed. listed are those of which all objects are known, if the Covering is the same.
	covered, listed map[string]Covering
	merges          map[*Merge]bool // that have not ended
	// conditions are the match conditions that are evaluated for objects of a resource. overLimit are the resources with objects for which
	// there are too many, or they cost too much together.
	conditions map[string]*lifecycle.Conditions
	overLimit  sets.Set[string]
	// named are the resources that policies name. owners counts the records by the kind of their controller.
	named  sets.Set[string]
	owners map[schema.GroupKind]int

	records       []*record
	dueCount      int // how many records are due
	deadlineCount int // how many records have a deadline that is to be changed
	// deadlinesSet counts the Jobs with a deadline that Winnow has set, and may have to take back.
	deadlinesSet int
	pools        map[poolKey]*pool
	// uncounted, unevaluated and unapplied are the positions below which records wait for updateMembership, for evaluate, and for their
	// holds to be applied; see rejudging.
	uncounted, unevaluated, unapplied int
	lane                              lane // the records that are ready to be deleted

	// changes are not assessed yet. recent counts what those of the last minutes made due.
	changes approval.Changes
	recent  approval.Window
	// holds are indexed by clearance, so an element becomes nil when the hold ends.
	holds approval.Holds
	// staleClearances is set if records that are not due still have a clearance; see resetClearance.
	staleClearances bool
	// formerCeilings are the ceilings that the namespace was under before changes. If it no longer is, the shares of other namespaces change.
	formerCeilings []*ceiling
	// formerHoldAbove is the strictest limit since the first of changes, so that a change cannot avoid a limit by removing it.
	formerHoldAbove policy.HoldAbove
	// firstSeen are the records whose finish is marked.
	firstSeen sets.Set[*record]
	// marks are those that are stored, by name.
	marks map[string]*Marks
	// copiedClearances are the clearances of objects that are yet to be added to a Snapshot.
	copiedClearances map[types.UID]clearance

	// updates counts the changes of anything that is reported. sums are the counts of the objects after sumsAt updates.
	updates, sumsAt uint64
	sums            report.Sums
	dirty           bool // the namespace is in Engine.dirty, or was when the replica began to follow
	noticeQueue     noticeQueue
}

type lane = turns.Lane[*record]

// namespace returns the namespace of a name. If it is not there, it is added as one that is not known.
func (e *Engine) namespace(name string) *namespace {
	ns, ok := e.namespaces[name]
	if !ok {
		ns = &namespace{
			name: name, pools: map[poolKey]*pool{}, covered: map[string]Covering{},
			listed: map[string]Covering{}, merges: map[*Merge]bool{}, owners: map[schema.GroupKind]int{},
			formerHoldAbove: policy.NoHoldAbove, derived: derived{bounds: policy.NoBounds},
		}
		e.namespaces[name] = ns
	}
	return ns
}

// forgetIfUnused removes a namespace if nothing is left of it.
func (e *Engine) forgetIfUnused(ns *namespace) {
	if e.namespaces[ns.name] != ns {
		return // It was removed before, and there may be a new one with the same name.
	}
	if !ns.known && len(ns.policies) == 0 && len(ns.records) == 0 && len(ns.merges) == 0 && len(ns.marks) == 0 {
		e.clearChanges(ns)
		e.holdsToCheck.Delete(ns)
		e.publishConditions(ns, nil)
		delete(e.namespaces, ns.name)
		if len(ns.covered) > 0 {
			e.effects.Coverage = true
		}
	}
}

// excluded returns why no object of the namespace is a candidate; empty if objects may be.
func (ns *namespace) excluded() policy.Reason {
	switch {
	case !ns.known:
		return policy.ReasonNamespaceUnknown
	case ns.terminating:
		return policy.ReasonNamespaceTerminating
	case ns.protected:
		return policy.ReasonNamespaceProtected
	}
	return ""
}

// stopped reports whether the deletions of a policy are stopped in the namespace.
func (ns *namespace) stopped(p *policy.Policy) bool {
	return ns.suspendedBy != "" || ns.unreadable != nil || ns.unselected || p.Suspend
}

// stopReason returns why the deletions of a policy are stopped in the namespace.
func (ns *namespace) stopReason(p *policy.Policy) (policy.Reason, string) {
	switch {
	case ns.unreadable != nil:
		return policy.ReasonPolicyUnreadable, "policy " + ns.unreadable.title() + ": " + ns.unreadable.err.Error()
	case ns.suspendedBy != "":
		return policy.ReasonSuspended, "cluster policy " + ns.suspendedBy + " stops all deletions in this namespace"
	case ns.unselected:
		return policy.ReasonSuspended, "Winnow runs with --start-suspended, and no ClusterCleanupPolicy with mode Enforce selects this namespace"
	}
	return policy.ReasonSuspended, "policy " + title(p.NamespacedName) + " is suspended"
}

// removed reports whether the namespace was known, and was removed since.
func (ns *namespace) removed() bool { return !ns.known && ns.revision.UID != "" }

// selectedBy reports whether a cluster policy with this selector applies to the namespace.
func (ns *namespace) selectedBy(selector labels.Selector) bool {
	return ns.known && !ns.protected && selector.Matches(ns.labels)
}

// SetNamespace handles new metadata of a namespace. It ignores those that are older than memory.
func (e *Engine) SetNamespace(m *metav1.PartialObjectMetadata, now time.Time) {
	if e.fresh.Replays(freshness.Namespaces, m.ResourceVersion) {
		return
	}
	e.fresh.Seen(freshness.Namespaces, m.ResourceVersion)
	e.fresh.Changed(freshness.Namespaces, m.ResourceVersion)
	if ns := e.setNamespace(m, false, now); ns != nil {
		e.evaluateChanges([]*namespace{ns}, now)
	}
}

// RemoveNamespace handles the removal of a namespace.
func (e *Engine) RemoveNamespace(m *metav1.PartialObjectMetadata, now time.Time) {
	if e.fresh.Replays(freshness.Namespaces, m.ResourceVersion) {
		return
	}
	e.fresh.Seen(freshness.Namespaces, m.ResourceVersion)
	e.fresh.Changed(freshness.Namespaces, m.ResourceVersion)
	if ns := e.removeNamespace(m.Name); ns != nil {
		e.evaluateChanges([]*namespace{ns}, now)
	}
}

// ReplaceNamespaces replaces all namespaces by those of a list at resource version rv; see ReplacePolicies.
func (e *Engine) ReplaceNamespaces(all []*metav1.PartialObjectMetadata, rv string, now time.Time) {
	if e.fresh.Replays(freshness.Namespaces, rv) {
		e.fresh.Revoke()
		return
	}
	first := !e.fresh.Listed(freshness.Namespaces) && !e.replacing.Has(freshness.Namespaces)
	e.fresh.Relisted(freshness.Namespaces, rv)
	listed, changed := sets.New[string](), sets.New[*namespace]()
	for _, m := range all {
		listed.Insert(m.Name)
		changed.Insert(e.setNamespace(m, first, now))
	}
	for name := range e.namespaces {
		if !listed.Has(name) {
			changed.Insert(e.removeNamespace(name))
		}
	}
	changed.Delete(nil)
	e.replacing.Delete(freshness.Namespaces)
	e.evaluateChanges(changed.UnsortedList(), now)
}

// setNamespace stores new metadata of a namespace, and returns the namespace if its objects must be judged again; nil otherwise. first is
// set for the first list of namespaces.
func (e *Engine) setNamespace(m *metav1.PartialObjectMetadata, first bool, now time.Time) *namespace {
	ns := e.namespace(m.Name)
	e.namespaceWentBack(ns, m)
	before, wasExcluded, wasKnown := ns.derived, ns.excluded(), ns.known
	ns.terminating = m.DeletionTimestamp != nil
	ns.protected = e.protected.Has(m.Name) || gc.Protects(m.Labels)
	ns.known, ns.labels = true, m.Labels
	ns.revision = freshness.Revision{UID: m.UID, Version: m.ResourceVersion}
	e.derive(ns, now)
	if wasExcluded == ns.excluded() && before.policyUIDs.Equal(ns.policyUIDs) && wasKnown {
		return nil
	}
	e.adoptNewPolicies(ns, before.policyUIDs, wasKnown)
	if first {
		for _, ps := range e.clusterPolicies { // If these were listed before, setPolicy has not found the namespace.
			if c, ok := changeOf(ps, true, false); ok && ns.policyUIDs.Has(ps.stored.UID) {
				e.recordChange(ns, c)
			}
		}
	}
	switch c, interrupted := e.unseenChange(); {
	case wasKnown:
		e.recordChange(ns, approval.Change{
			ID: "namespace " + m.ResourceVersion, Text: fmt.Sprintf("a change of the labels of namespace %q", m.Name), Write: e.writes + 1,
		})
	case !first: // The policies and objects of the namespace may have been observed before the namespace.
		e.recordChange(ns, approval.Change{
			ID: fmt.Sprint("start ", m.UID), Text: fmt.Sprintf("the creation of namespace %q", m.Name), Write: e.writes + 1,
		})
	case interrupted:
		e.recordChange(ns, c)
	}
	return ns
}

// removeNamespace removes a namespace, and returns it if it was known; nil otherwise.
func (e *Engine) removeNamespace(name string) *namespace {
	ns, ok := e.namespaces[name]
	if !ok || !ns.known {
		return nil
	}
	e.unmarkPending(ns)
	ns.known, ns.formerCeilings = false, nil
	e.recordChange(ns, approval.Change{
		ID: fmt.Sprint("end ", ns.revision.UID), Text: fmt.Sprintf("the deletion of namespace %q", name), Write: e.writes + 1,
	})
	return ns
}

// addRecord adds a record to the namespace.
func (ns *namespace) addRecord(rec *record) {
	rec.position = int32(len(ns.records))
	ns.records = append(ns.records, rec)
}

// removeRecord removes a record from the namespace. The last record moves to its position.
func (ns *namespace) removeRecord(rec *record) {
	last := len(ns.records) - 1
	ns.records[rec.position] = ns.records[last]
	ns.records[rec.position].position = rec.position
	ns.records[last] = nil
	ns.records = ns.records[:last]
	ns.uncounted, ns.unevaluated, ns.unapplied = min(ns.uncounted, last), min(ns.unevaluated, last), min(ns.unapplied, last)
	rec.position = removedPosition
}

// requeue adds one record of the namespace to those that wait for evaluate, by moving it below ns.unevaluated.
func (ns *namespace) requeue(rec *record) {
	if int(rec.position) < ns.unevaluated {
		return
	}
	first := ns.records[ns.unevaluated]
	ns.records[rec.position], ns.records[ns.unevaluated] = first, rec
	first.position, rec.position = rec.position, first.position
	ns.unevaluated++
}

// dueRecords returns the records that are due. The loop must not change which are. Mostly there are none, and dueCount says so without a
// look at all records.
func (ns *namespace) dueRecords() iter.Seq[*record] {
	return func(yield func(*record) bool) {
		left := ns.dueCount
		for i := 0; i < len(ns.records) && left > 0; i++ {
			if rec := ns.records[i]; rec.due {
				if left--; !yield(rec) {
					return
				}
			}
		}
	}
}
