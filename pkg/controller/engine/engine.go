// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package engine is the controller without its lock: it contains all facts, policies and namespaces, decides what follows for each object,
// and knows which deletes are in flight. Events are method calls, and TakeEffects returns what they ask of the caller. The package has no
// lock, clock or goroutine: pkg/controller/tracker adds the lock, and the time is an argument.
package engine

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/controller/approval"
	"github.com/winnow-dev/winnow/pkg/controller/deletion"
	"github.com/winnow-dev/winnow/pkg/controller/expiry"
	"github.com/winnow-dev/winnow/pkg/controller/freshness"
	"github.com/winnow-dev/winnow/pkg/controller/kinds"
	"github.com/winnow-dev/winnow/pkg/controller/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/references"
	"github.com/winnow-dev/winnow/pkg/controller/turns"
	"github.com/winnow-dev/winnow/pkg/controller/usage"
)

// alwaysProtected are the namespaces in which nothing is ever deleted.
var alwaysProtected = []string{"kube-system", "kube-public", "kube-node-lease"}

// Config is what an Engine is created with.
type Config struct {
	// Protected namespaces are added to alwaysProtected.
	Protected []string
	// HoldAbove is how many objects of a namespace one change may make due at once where no cluster policy sets a limit, and
	// HoldAboveTotal how many in all namespaces that the change reaches. A negative number means no limit.
	HoldAbove, HoldAboveTotal int
	// StartSuspended stops every deletion in namespaces that no enforcing cluster policy selects.
	StartSuspended bool
	// Spent adds work to the current call, and reports whether the budget of the call is spent, so that it must return. The work for an
	// object is one, plus one for each policy that is asked about the object. If Spent is nil, there is no budget.
	Spent func(work int) bool
}

// Effects is what the events since the last TakeEffects ask of the caller.
type Effects struct {
	// Due is set if the dispatch has something to do: objects may have become ready for deletion, Next may return another time, TakeGone has
	// deletions to return, or a consistent read may agree with memory now.
	Due bool
	// Coverage is set if Coverage may return something else.
	Coverage bool
	// Conditions is set if Conditions may return something else.
	Conditions bool
	// Work is set if there is work for Step.
	Work bool
	// Reread is set if BeginReread returns namespaces.
	Reread bool
}

// Engine is not safe for concurrent use. Each event is evaluated at once as far as the budget allows. Step does the rest, and until then
// nothing that depends on it is deleted.
type Engine struct {
	config    Config
	protected sets.Set[string]
	kinds     *kinds.Table
	outdated  sets.Set[string] // resources whose present kind is not observed yet
	lastRun   time.Time        // when a controller was last seen to run before this one

	records         index
	dependents      map[types.UID]sets.Set[*record] // by the UID of their controller
	cronJobs        map[types.UID]*lifecycle.CronJob
	cronJobsListed  bool // cronJobs contains all of them
	namespaces      map[string]*namespace
	clusterPolicies []*policyState // by name
	quotas          quotas
	restoring
	watches     freshness.Watches
	failing     failing
	fresh       freshness.Freshness
	recreations recreations
	usage       *usage.Tracker[*record]
	unmarked    sets.Set[string] // namespaces for which other marks may have to be stored than are
	// marksListed says that the stored marks were listed, marksUnavailable that they cannot be stored.
	marksListed, marksUnavailable bool
	// copiedUsages are the usages of the objects of a Snapshot; nil in any other engine.
	copiedUsages map[types.UID]lifecycle.Usage

	timers expiry.Heap[*record]
	queue  turns.Queue[*record] // of records that are ready to be deleted
	// overChanged are the records whose Over has changed in a pool or ceiling since they were last evaluated.
	overChanged []*record
	// pending are the namespaces with changes that are not assessed yet, holdsToCheck those with holds that may end, or need
	// another owner.
	pending, holdsToCheck sets.Set[*namespace]
	// blocking is a pending namespace that was incomplete when the pending ones were last looked at; nil if there was none.
	blocking *namespace
	// recent counts what the changes of the last minutes made due, by the UID of a cluster policy.
	recent approval.Recent
	// writes numbers the states of policies, in the order in which they were observed.
	writes uint64
	rejudging
	conditions publishedConditions
	// lists are the lists of all namespaces that are being processed, by resource.
	lists map[string]*List
	// lastCovering is the highest Covering so far.
	lastCovering Covering

	asked asked
	// scratch is reused by updateMembership.
	scratch []membership

	// inFlight are the orders that Take has returned, and that have not ended.
	inFlight map[*deletion.Order]*record
	// gone are the deletions that TakeGone has not returned yet.
	gone    []deletion.Gone
	notices notices
	// dirty are the namespaces whose reports may have changed; "" stands for the cluster policies.
	dirty sets.Set[string]
	// urgent are the namespaces with a new spec of a policy that is not reported yet, numbered by urgentCount.
	urgent      map[string]uint64
	urgentCount uint64
	// following is set if this replica does not lead, so that it writes no reports.
	following bool
	// counts are the numbers of records for metrics. A number that became zero stays.
	counts map[counted]int

	effects Effects
}

// New returns an empty engine.
func New(c Config) *Engine {
	return &Engine{
		config:       c,
		kinds:        kinds.Builtin(),
		outdated:     sets.New[string](),
		protected:    sets.New(alwaysProtected...).Insert(c.Protected...),
		records:      newIndex(),
		cronJobs:     map[types.UID]*lifecycle.CronJob{},
		restoring:    newRestoring(),
		dependents:   map[types.UID]sets.Set[*record]{},
		namespaces:   map[string]*namespace{},
		quotas:       newQuotas(),
		failing:      newFailing(),
		recreations:  newRecreations(),
		usage:        usage.New[*record](references.MaxKeys),
		unmarked:     sets.New[string](),
		inFlight:     map[*deletion.Order]*record{},
		dirty:        sets.New[string](),
		urgent:       map[string]uint64{},
		pending:      sets.New[*namespace](),
		holdsToCheck: sets.New[*namespace](),
		recent:       approval.Recent{},
		counts:       map[counted]int{},
		rejudging:    newRejudging(),
		conditions:   newPublishedConditions(),
		lists:        map[string]*List{},
	}
}

// TakeEffects returns the effects of all events since the last call.
func (e *Engine) TakeEffects() Effects {
	out := e.effects
	out.Work, out.Reread = e.hasWork(), e.usage.NeedsReread()
	e.effects = Effects{}
	return out
}

// Kinds returns the table of the resources that are known.
func (e *Engine) Kinds() *kinds.Table { return e.kinds }

// spent adds work to the current call, and reports whether its budget is spent.
func (e *Engine) spent(work int) bool { return e.config.Spent != nil && e.config.Spent(work) }

// Finisher implements lifecycle.Owners.
func (e *Engine) Finisher(owner *lifecycle.Owner) lifecycle.Finisher {
	k := e.kinds.ForOwner(owner.GroupKind)
	if k == nil {
		return lifecycle.Finisher{}
	}
	out := lifecycle.Finisher{Resource: k.Resource, Finishes: k.Finishes, Independent: k.Independent, HasNeeds: k.HasNeeds}
	if rec := e.records.get(owner.UID); rec != nil && rec.Resource == k.Resource {
		out.Known, out.Namespace, out.Finished, out.FinishedAt, out.Doubt = true, rec.Namespace, rec.Finished, rec.FinishedAt(), rec.Doubt()
		out.Needs = rec.Needs()
	}
	return out
}

// CronJob implements lifecycle.Owners.
func (e *Engine) CronJob(uid types.UID) *lifecycle.CronJob { return e.cronJobs[uid] }
