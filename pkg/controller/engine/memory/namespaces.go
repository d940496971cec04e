// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"iter"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/rules/approval"
	"github.com/winnow-dev/winnow/pkg/controller/rules/deletion"
	"github.com/winnow-dev/winnow/pkg/controller/rules/freshness"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
	"github.com/winnow-dev/winnow/pkg/controller/rules/report"
	"github.com/winnow-dev/winnow/pkg/controller/rules/turns"
	"github.com/winnow-dev/winnow/pkg/windows"
)

// Namespace is everything that is known of one namespace.
type Namespace struct {
	Name string
	// Known is set if the namespace was observed, and not removed since. In any other namespace nothing is deleted.
	Known                  bool
	Terminating, Protected bool
	Labels                 labels.Set
	Revision               freshness.Revision

	Policies []*PolicyState // by name
	Derived

	// Covered are the resources whose objects are observed. Of the resources in Listed all objects are
	// known, if the Covering is the same.
	Covered, Listed map[string]Covering
	Merges          map[*Merge]bool // that have not ended
	// Conditions are the match conditions that are evaluated for objects of a resource. OverLimit are the resources with objects that have too
	// many conditions, or conditions that cost too much together.
	Conditions map[string]*lifecycle.Conditions
	OverLimit  sets.Set[string]
	// Named are the resources that policies name. Owners counts the records by their resource and the kind of their controller.
	Named  sets.Set[string]
	Owners map[Control]int

	Records       []*Record
	dueCount      int // how many records are due
	deadlineCount int // how many records have a deadline that is to be changed
	// DeadlinesSet counts the Jobs with a deadline that Winnow has set, and may have to take back.
	DeadlinesSet int
	// Ends are the times at which the deadlines end that Winnow has set.
	Ends  Ends
	Pools map[PoolKey]*Pool
	// limitTimes has the records that have been over a limit, or count differently at some time.
	limitTimes map[*Record]limitTimes
	// touched is how many of the records are in Memory.Touched. Uncounted, Undecided and Unapplied are positions: the records below must be
	// counted, settled, and have holds applied, whether they are in Memory.Touched or not.
	touched, Uncounted, Undecided, Unapplied int
	Queue                                    turns.Queue[*Record] // the records that are ready to be deleted

	// Changes are not assessed yet. Recent counts what the changes of the last minutes made due, and RecentShares the same for each rule, if a
	// limit depends on that. FormerRules are the rules that decided for records before the changes, if other rules decide now.
	Changes      approval.Changes
	Recent       approval.Window
	RecentShares approval.Shares
	FormerRules  map[*Record]approval.RuleKey
	// Holds are indexed by clearance, so an element becomes nil when the hold ends.
	Holds approval.Holds
	// StaleClearances is set if records that are not due still have a clearance; see Gate.resetClearance.
	StaleClearances bool
	// FormerCeilings are the ceilings that the namespace was under before changes. If it no longer is, the shares of other namespaces change.
	FormerCeilings []*Ceiling
	// FormerHoldAbove is the strictest limit since the first of changes, so that a change cannot avoid a limit by removing it.
	FormerHoldAbove policy.HoldAbove
	// Window says whether deletions may start now. FormerWindows are the windows that applied before the changes, so that a change cannot
	// avoid windows by removing them.
	Window        Window
	FormerWindows []windows.Set
	// FirstSeen are the records whose finish is marked.
	FirstSeen sets.Set[*Record]
	// Matching says since when rules with after: Matched match the records, as far as any does.
	Matching map[*Record]*Matching
	// Inherited has the stored matches that other replicas have noted, and that may count here: of objects and rules that this replica has not
	// judged yet. Before the marks are listed, it has the objects that will inherit nothing.
	Inherited map[types.UID]map[lifecycle.MatchID]MatchMark
	// ToAnnounce are the records whose notice must be given now. Sent are the notices that this replica has given, and whose storage the
	// watch has not reported yet.
	ToAnnounce sets.Set[*Record]
	// ToDeliver are the records whose notice was given and stored, and must still be acknowledged by the receiver of notifications.
	ToDeliver sets.Set[*Record]
	Sent      map[*Record]policy.Announcement
	// Rights are the rights that requests in the namespace need, as far as they are asked for.
	Rights map[deletion.Right]RightAnswer
	// Marks are the stored marks, by name.
	Marks map[string]*Marks
	// CopiedClearances are the clearances of objects that are yet to be added to a snapshot.
	CopiedClearances map[types.UID]Clearance

	// Updates counts the changes of anything that is reported. Sums are the counts of the objects after SumsAt updates.
	Updates, SumsAt uint64
	Sums            report.Sums
	Unwritten       bool // the namespace is in Memory.Unwritten, or was when the replica began to follow
	NoticeQueue     noticeQueue
}

// Namespace returns the namespace of a name. If it is not there, it is added as one that is not known.
func (m *Memory) Namespace(name string) *Namespace {
	ns, ok := m.Namespaces[name]
	if !ok {
		ns = &Namespace{
			Name: name, Pools: map[PoolKey]*Pool{}, Covered: map[string]Covering{},
			Listed: map[string]Covering{}, Merges: map[*Merge]bool{}, Owners: map[Control]int{},
			FormerHoldAbove: policy.NoHoldAbove, Derived: Derived{Bounds: policy.NoBounds},
		}
		m.Namespaces[name] = ns
	}
	return ns
}

// ForgetRecent forgets an object that is gone.
func (ns *Namespace) ForgetRecent(uid types.UID) {
	ns.Recent.Forget(uid)
	ns.RecentShares.Forget(uid)
}

// Empty reports whether nothing is left of a namespace.
func (ns *Namespace) Empty() bool {
	return !ns.Known && len(ns.Policies) == 0 && len(ns.Records) == 0 && len(ns.Merges) == 0 && len(ns.Marks) == 0
}

// NoteEmpty notes that the namespace can be forgotten if nothing is left of it when the event ends.
func (m *Memory) NoteEmpty(ns *Namespace) {
	if ns.Empty() {
		m.Touched.Emptied.Insert(ns)
	}
}

// Excluded returns why no object of the namespace is a candidate; empty if objects may be.
func (ns *Namespace) Excluded() policy.Reason {
	switch {
	case !ns.Known:
		return policy.ReasonNamespaceUnknown
	case ns.Terminating:
		return policy.ReasonNamespaceTerminating
	case ns.Protected:
		return policy.ReasonNamespaceProtected
	}
	return ""
}

// Stopped reports whether the deletions of a policy are stopped in the namespace.
func (ns *Namespace) Stopped(p *policy.Policy) bool {
	return ns.SuspendedBy != "" || ns.Unreadable != nil || ns.Unselected || p.Suspend
}

// StopReason returns why the deletions of a policy are stopped in the namespace.
func (ns *Namespace) StopReason(p *policy.Policy) (policy.Reason, string) {
	switch {
	case ns.Unreadable != nil:
		return policy.ReasonPolicyUnreadable, "policy " + ns.Unreadable.Title() + ": " + ns.Unreadable.Err.Error()
	case ns.SuspendedBy != "":
		return policy.ReasonSuspended, "cluster policy " + ns.SuspendedBy + " stops all deletions in this namespace"
	case ns.Unselected:
		return policy.ReasonSuspended, "Winnow runs with --start-suspended, and no ClusterCleanupPolicy with mode Enforce selects this namespace"
	}
	return policy.ReasonSuspended, "policy " + title(p.NamespacedName) + " is suspended"
}

// Removed reports whether the namespace was known, and was removed since.
func (ns *Namespace) Removed() bool { return !ns.Known && ns.Revision.UID != "" }

// SelectedBy reports whether a cluster policy with this selector applies to the namespace.
func (ns *Namespace) SelectedBy(selector labels.Selector) bool {
	return ns.Known && !ns.Protected && selector.Matches(ns.Labels)
}

// AddRecord adds a record to the namespace.
func (ns *Namespace) AddRecord(rec *Record) {
	rec.Position = int32(len(ns.Records))
	ns.Records = append(ns.Records, rec)
}

// RemoveRecord removes a record from the namespace. The last record moves to its position.
func (ns *Namespace) RemoveRecord(rec *Record) {
	last := len(ns.Records) - 1
	ns.Records[rec.Position] = ns.Records[last]
	ns.Records[rec.Position].Position = rec.Position
	ns.Records[last] = nil
	ns.Records = ns.Records[:last]
	ns.Uncounted, ns.Undecided, ns.Unapplied = min(ns.Uncounted, last), min(ns.Undecided, last), min(ns.Unapplied, last)
	rec.Position = removedPosition
	rec.setLimitTimes(noLimitTimes)
}

// RecordsNow returns the records that the namespace has when the loop begins, except those that are removed before their turn. So a loop
// that pauses meets each of the others once, although the last record takes the place of a removed one.
func (ns *Namespace) RecordsNow() iter.Seq[*Record] {
	return func(yield func(*Record) bool) {
		for _, rec := range slices.Clone(ns.Records) {
			if !rec.Removed() && !yield(rec) {
				return
			}
		}
	}
}

// DueRecords returns the records that are due. The loop must not change which are. Mostly there are none, and dueCount says so without a
// look at all records.
func (ns *Namespace) DueRecords() iter.Seq[*Record] {
	return func(yield func(*Record) bool) {
		left := ns.dueCount
		for i := 0; i < len(ns.Records) && left > 0; i++ {
			if rec := ns.Records[i]; rec.Due {
				if left--; !yield(rec) {
					return
				}
			}
		}
	}
}

// Covers reports whether objects of a resource must be observed in the namespace.
func (ns *Namespace) Covers(resource string) bool { return ns.Covered[resource] != 0 }

// Covering is the number of one period in which a resource is covered in a namespace. If the number has changed, the objects were dropped
// in between, or have new match conditions, and must be listed again.
type Covering uint64

// noticeQueue has the queued objects of a namespace, oldest first.
type noticeQueue struct {
	Waiting []*Record
	Next    time.Time // when the next object may be looked at
}

// Work returns the work of settling one object of the namespace; see Config.Spent.
func (ns *Namespace) Work() int {
	return 1 + len(ns.Enforcing) + len(ns.Previews) + len(ns.ClusterEnforcing) + len(ns.ClusterPreviews) + ns.ConditionCount
}
