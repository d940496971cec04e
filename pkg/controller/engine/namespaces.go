// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/approval"
	"github.com/winnow-dev/winnow/pkg/controller/freshness"
	"github.com/winnow-dev/winnow/pkg/controller/kinds"
	"github.com/winnow-dev/winnow/pkg/controller/policy"
	"github.com/winnow-dev/winnow/pkg/controller/report"
	"github.com/winnow-dev/winnow/pkg/controller/turns"
)

// namespace is what is known of one namespace.
type namespace struct {
	name string
	// known says that the namespace was observed; nothing is deleted in one that was not.
	known                  bool
	terminating, protected bool
	labels                 labels.Set
	revision               freshness.Revision

	policies         []*policyState // by name
	records          []*record
	wantsDeleteCount int // of them
	pools            map[poolKey]*pool
	// kept are the resources whose objects are kept, each with the number of the covering since which they are.
	covered map[string]Covering
	// listed are those of kept of which all objects are known.
	listed map[string]Covering
	merges map[*Merge]bool // under way
	// changes are the changes that are yet to be weighed, recent what those of the last minutes made due, and holds those that were
	// found too large, nil where one has ended.
	changes approval.Changes
	recent  approval.Window
	holds   approval.Holds
	// copiedClearances are, in a snapshot, the clearances of objects that are yet to come.
	copiedClearances map[types.UID]clearance
	// staleClearances says that some that were weighed are not due any more, or not until such a change was weighed.
	staleClearances bool
	// left are the ceilings that the namespace was under before: whom that gives more, it may take out of a hold. heldAbove is what its
	// guardrails said before, the strictest since the first of changes: they guard their own end, too.
	formerCeilings  []*ceiling
	formerHoldAbove policy.HoldAbove
	// uncounted and unevaluated are the seats below which records are yet to be counted and decided, while they are judged anew,
	// unapplied that below which what weighing has found is yet to be carried out.
	uncounted, unevaluated, unapplied int

	lane lane // what is to be deleted
	// updates counts the updates of what is reported, and sums are the counts of the objects after sumsAt updates.
	updates, sumsAt uint64
	sums            report.Sums
	dirty           bool // it is among those that TakeDirty returns, or was before the replica followed
	// noticeQueue are objects whose owners are to be told if an annotation does not do what it says.
	noticeQueue noticeQueue

	derived
}

type lane = turns.Lane[*record]

// derived is what follows for a namespace from the policies of both kinds.
type derived struct {
	policies                       sets.Set[types.UID] // all of them, even those that cannot be read
	voters, previews               []*policy.Policy    // by name
	clusterVoters, clusterPreviews []*policy.Policy    // by name
	ceilings, previewed            []*ceiling          // by name of their policy; those of preview policies only count
	bounds                         policy.Bounds
	hasLimits                      bool // anything counts objects
	// suspended names the cluster policy that stops everything, and unreadable the first policy that cannot be read.
	suspended  string
	unreadable *policyState
	// unselected says that Winnow starts suspended, and no enforcing cluster policy selects the namespace yet.
	unselected bool
}

func (e *Engine) namespace(name string) *namespace {
	ns, ok := e.namespaces[name]
	if !ok {
		ns = &namespace{
			name: name, pools: map[poolKey]*pool{}, covered: map[string]Covering{},
			listed: map[string]Covering{}, merges: map[*Merge]bool{},
			formerHoldAbove: policy.NoHoldAbove, derived: derived{bounds: policy.NoBounds},
		}
		e.namespaces[name] = ns
	}
	return ns
}

// forget drops a namespace of which nothing is known any more.
func (e *Engine) forgetIfUnused(ns *namespace) {
	if e.namespaces[ns.name] != ns {
		return // It is already; there may be another one of that name.
	}
	if !ns.known && len(ns.policies) == 0 && len(ns.records) == 0 && len(ns.merges) == 0 {
		e.clearChanges(ns)
		e.holdsToCheck.Delete(ns)
		delete(e.namespaces, ns.name)
		if len(ns.covered) > 0 {
			e.effects.Coverage = true
		}
	}
}

// closed is why nothing is deleted in the namespace; empty when something may be.
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

// stops reports whether what a policy would delete in the namespace is stopped: that of all policies, or of this one alone.
func (ns *namespace) stopped(p *policy.Policy) bool {
	return ns.suspended != "" || ns.unreadable != nil || ns.unselected || p.Suspend
}

// stop is why that is so.
func (ns *namespace) stopReason(p *policy.Policy) (policy.Reason, string) {
	switch {
	case ns.unreadable != nil:
		return policy.ReasonPolicyUnreadable, "policy " + ns.unreadable.title() + ": " + ns.unreadable.err.Error()
	case ns.suspended != "":
		return policy.ReasonSuspended, "cluster policy " + ns.suspended + " stops all deletions in this namespace"
	case ns.unselected:
		return policy.ReasonSuspended, "Winnow runs with --start-suspended, and no ClusterCleanupPolicy with mode Enforce selects this namespace"
	}
	return policy.ReasonSuspended, "policy " + title(p.NamespacedName) + " is suspended"
}

// lost reports whether the namespace was known and is not any more.
func (ns *namespace) removed() bool { return !ns.known && ns.revision.UID != "" }

// selectedBy tells whether a cluster policy with this selector is for the namespace.
func (ns *namespace) selectedBy(selector labels.Selector) bool {
	return ns.known && !ns.protected && selector.Matches(ns.labels)
}

// derive works out what follows from the policies for a namespace. In one that is not there any more nothing is deleted; should a list have
// left it out by mistake, its objects, holds and guardrails are what they were.
func (e *Engine) derive(ns *namespace, now time.Time) {
	if ns.removed() {
		return
	}
	d := derived{policies: sets.New[types.UID]()}
	resources := sets.New[string]()
	for _, ps := range ns.policies {
		d.addPolicy(ps, &d.voters, &d.previews, resources)
	}
	var selecting []*policy.Policy
	for _, ps := range e.clusterPolicies {
		if !ns.selectedBy(ps.selector) || !d.addPolicy(ps, &d.clusterVoters, &d.clusterPreviews, resources) {
			continue
		}
		selecting = append(selecting, ps.compiled)
		d.addGuardrails(ps)
	}
	d.unselected = e.config.StartSuspended && len(d.clusterVoters) == 0
	d.hasLimits = d.hasLimits || len(d.ceilings) > 0 || len(d.previewed) > 0
	if d.bounds = policy.BoundsOf(selecting); d.bounds.PerMinute != ns.bounds.PerMinute {
		e.ready.Repace(&ns.lane)
	}
	changes, left, heldAbove := ns.changes, sets.New(ns.ceilings...), ns.bounds.HoldAbove.Stricter(ns.formerHoldAbove)
	if len(changes) > 0 {
		left.Insert(ns.formerCeilings...)
	}
	e.clearChanges(ns)
	ns.derived, ns.formerCeilings, ns.formerHoldAbove, e.matched = d, left.UnsortedList(), heldAbove, nil
	e.orphanHolds(ns)
	if ns.changes = changes; len(changes) > 0 {
		e.markPending(ns)
	}
	e.updateCoverage(ns, resources, now)
}

// guard adds the ceilings of a cluster policy, and whether it stops everything.
func (d *derived) addGuardrails(ps *policyState) {
	if ps.compiled.Preview {
		d.previewed = append(d.previewed, ps.ceilings...)
	} else {
		d.ceilings = append(d.ceilings, ps.ceilings...)
	}
	if ps.compiled.Cluster.SuspendAll && d.suspended == "" {
		d.suspended = ps.name
	}
}

// add adds a policy to those that have a vote or to those that preview, with what must be observed for it. It tells whether the
// policy could be read.
func (d *derived) addPolicy(ps *policyState, voters, previews *[]*policy.Policy, resources sets.Set[string]) bool {
	d.policies.Insert(ps.stored.UID)
	switch {
	case ps.compiled == nil:
		if d.unreadable == nil {
			d.unreadable = ps
		}
		return false
	case ps.compiled.Preview:
		*previews = append(*previews, ps.compiled)
	default:
		*voters = append(*voters, ps.compiled)
	}
	d.hasLimits = d.hasLimits || ps.compiled.Counts()
	resources.Insert(ps.compiled.Resources()...)
	if len(ps.compiled.QuotaResources()) > 0 {
		resources.Insert(kinds.ResourceQuotas)
	}
	return true
}

// cover sees to it that the objects of these resources are kept in the namespace, Jobs as owners of Pods too, and no others.
func (e *Engine) updateCoverage(ns *namespace, resources sets.Set[string], now time.Time) {
	resources.Insert(kinds.WithOwners(resources.UnsortedList()...)...)
	kept := make(map[string]Covering, len(resources))
	for resource := range resources {
		kept[resource] = ns.covered[resource]
		if kept[resource] == 0 {
			e.lastCovering++
			kept[resource] = e.lastCovering
		}
	}
	if !maps.Equal(kept, ns.covered) {
		ns.covered = kept
		e.dropUncovered(ns, now)
		e.effects.Coverage = true
	}
}

// dropUncovered lets go of the objects that no policy can match any more.
func (e *Engine) dropUncovered(ns *namespace, now time.Time) {
	for _, rec := range slices.Clone(ns.records) {
		if !ns.covers(rec.Resource) {
			e.drop(rec, now)
		}
	}
}

func (ns *namespace) covers(resource string) bool { return ns.covered[resource] != 0 }

// Covering numbers the times at which a resource became covered in a namespace. Another number says that the objects were
// let go in between, and must be listed again.
type Covering uint64

// Coverage tells, by resource and namespace, whose objects are kept.
func (e *Engine) Coverage() map[string]map[string]Covering {
	out := map[string]map[string]Covering{}
	for _, ns := range e.namespaces {
		for resource, covering := range ns.covered {
			if out[resource] == nil {
				out[resource] = map[string]Covering{}
			}
			out[resource][ns.name] = covering
		}
	}
	return out
}

// complete tells whether the namespace and all objects that matter in it are known, with those that may own them, and what makes them
// matter.
func (e *Engine) complete(ns *namespace) bool {
	return e.unlisted(ns) == "" && !e.judging() && len(e.lists) == 0
}

// unlisted is the first of what matters in the namespace that was not listed yet; empty when all was.
func (e *Engine) unlisted(ns *namespace) string {
	switch {
	case !e.fresh.AllListed():
		return "policies and namespaces"
	case !ns.known:
		return "namespaces"
	case ns.covers(gc.ResourceJobs) && !e.cronJobsListed:
		return kinds.CronJobs
	case ns.covers(kinds.ResourceQuotas) && !e.quotas.listed:
		return kinds.ResourceQuotas
	}
	for resource, covering := range ns.covered {
		if resource != kinds.ResourceQuotas && ns.listed[resource] != covering {
			return resource
		}
	}
	return ""
}

// unknown says what covers a change of the namespace from being weighed.
func (e *Engine) whyNotAssessed(ns *namespace) string {
	if what := e.unlisted(ns); what != "" {
		return "Winnow has not listed all " + what + " yet"
	}
	if e.judging() || len(e.lists) > 0 {
		return "Winnow is still evaluating a change"
	}
	return "Winnow has not listed all namespaces that share a ceiling with this one yet"
}

// SetNamespace takes in the metadata of a namespace.
func (e *Engine) SetNamespace(m *metav1.PartialObjectMetadata, now time.Time) {
	e.fresh.Seen(freshness.Namespaces, m.ResourceVersion)
	e.fresh.Changed(freshness.Namespaces, m.ResourceVersion)
	if ns := e.setNamespace(m, false, now); ns != nil {
		e.evaluateChanges([]*namespace{ns}, now)
	}
}

// RemoveNamespace takes in that a namespace is gone.
func (e *Engine) RemoveNamespace(m *metav1.PartialObjectMetadata, now time.Time) {
	e.fresh.Seen(freshness.Namespaces, m.ResourceVersion)
	e.fresh.Changed(freshness.Namespaces, m.ResourceVersion)
	if ns := e.removeNamespace(m.Name); ns != nil {
		e.evaluateChanges([]*namespace{ns}, now)
	}
}

// ReplaceNamespaces takes in all namespaces as they were at resource version rv; see ReplacePolicies.
func (e *Engine) ReplaceNamespaces(all []*metav1.PartialObjectMetadata, rv string, now time.Time) {
	first := !e.fresh.Listed(freshness.Namespaces)
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
	e.evaluateChanges(changed.UnsortedList(), now)
}

// setNamespace takes in the metadata of a namespace, of the first list or later, and returns it if its objects are to be judged for that.
func (e *Engine) setNamespace(m *metav1.PartialObjectMetadata, first bool, now time.Time) *namespace {
	ns := e.namespace(m.Name)
	before, wasClosed, wasKnown := ns.derived, ns.excluded(), ns.known
	ns.terminating = m.DeletionTimestamp != nil
	ns.protected = e.protected.Has(m.Name) || gc.Protects(m.Labels)
	ns.known, ns.labels = true, m.Labels
	ns.revision = freshness.Revision{UID: m.UID, Version: m.ResourceVersion}
	e.derive(ns, now)
	if wasClosed == ns.excluded() && before.policies.Equal(ns.derived.policies) && wasKnown {
		return nil
	}
	e.adoptNewPolicies(ns, before.policies, wasKnown)
	if first {
		for _, ps := range e.clusterPolicies { // Of a generation that no controller has observed yet, in whatever order lists come.
			if c, ok := changeOf(ps, true, false); ok && ns.derived.policies.Has(ps.stored.UID) {
				e.recordChange(ns, c)
			}
		}
	}
	switch c, interrupted := e.unseenChange(); {
	case wasKnown:
		e.recordChange(
			ns,
			approval.Change{
				ID:    "namespace " + m.ResourceVersion,
				Text:  fmt.Sprintf("a change of the labels of namespace %q", m.Name),
				Write: e.writes + 1,
			},
		)
	case !first: // Its policies and objects may have been seen before it.
		e.recordChange(ns, approval.Change{
			ID: fmt.Sprint("start ", m.UID), Text: fmt.Sprintf("the creation of namespace %q", m.Name), Write: e.writes + 1,
		})
	case interrupted:
		e.recordChange(ns, c)
	}
	return ns
}

// removeNamespace takes in that a namespace is gone, and returns it if it was known.
func (e *Engine) removeNamespace(name string) *namespace {
	ns, ok := e.namespaces[name]
	if !ok || !ns.known {
		return nil
	}
	changes := ns.changes
	e.clearChanges(ns)
	ns.known = false
	if ns.changes = changes; len(changes) > 0 {
		e.markPending(ns)
	}
	e.recordChange(
		ns,
		approval.Change{ID: fmt.Sprint("end ", ns.revision.UID), Text: fmt.Sprintf("the deletion of namespace %q", name), Write: e.writes + 1},
	)
	return ns
}

// find finds a policy, or its membership, among those that are sorted by name.
func findPolicy(policies []*policyState, name string) (int, bool) {
	return slices.BinarySearchFunc(policies, name, func(ps *policyState, name string) int {
		return strings.Compare(ps.name, name)
	})
}
