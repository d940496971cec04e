// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package engine covers everything that is known: facts of objects, policies, namespaces and owners, what follows from them for each
// object, and which deletes are in flight. Events go in as method calls and effects come out; see Engine. The package has no lock, clock
// or goroutine: pkg/controller/tracker adds the lock, and time is an argument.
package engine

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/approval"
	"github.com/winnow-dev/winnow/pkg/controller/deletion"
	"github.com/winnow-dev/winnow/pkg/controller/expiry"
	"github.com/winnow-dev/winnow/pkg/controller/freshness"
	"github.com/winnow-dev/winnow/pkg/controller/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/policy"
	"github.com/winnow-dev/winnow/pkg/controller/turns"
)

// alwaysProtected are the namespaces in which nothing is ever deleted.
var alwaysProtected = []string{"kube-system", "kube-public", "kube-node-lease"}

// Config is what an Engine is created with.
type Config struct {
	// Protected namespaces are added to those that Kubernetes itself uses.
	Protected []string
	// HoldAbove is how many objects of a namespace one change may make due at once where no cluster policy sets a limit, and
	// HoldAboveTotal how many in all namespaces that the change reaches. A negative number means no limit.
	HoldAbove, HoldAboveTotal int
	// StartSuspended stops every deletion in namespaces that no enforcing cluster policy selects.
	StartSuspended bool
	// Spent is the budget of one call: it is told of some more work, and reports whether the call must return. An object counts one, plus
	// one for each policy that is asked about the object. If Spent is nil, the budget has no end.
	Spent func(work int) bool
}

// Effects are what the events since the last TakeEffects ask of the caller.
type Effects struct {
	// Due: something may be ready to be deleted, or later than was known before.
	Due bool
	// Coverage: Coverage may return something else.
	Coverage bool
	// Work: there is work left for Step.
	Work bool
}

// Engine is not safe for concurrent use. Every event is evaluated at once as far as the budget allows; the rest is left to Step, and
// until then nothing is deleted that may depend on it.
type Engine struct {
	config    Config
	protected sets.Set[string]

	lastRun time.Time // when a controller was last seen to run before this one

	records  index
	cronJobs map[types.UID]*lifecycle.CronJob
	// cronJobsListed says that all of them are known.
	cronJobsListed  bool
	dependents      map[types.UID]sets.Set[*record] // by the UID of their controller
	namespaces      map[string]*namespace
	clusterPolicies []*policyState // the cluster policies, by name
	quotas          quotas
	watches         freshness.Watches
	recreations     recreations

	timers expiry.Heap[*record]
	ready  turns.Queue[*record]
	// pending are the namespaces with changes that are yet to be weighed, emptied those with holds that may have lost their last member.
	pending, holdsToCheck sets.Set[*namespace]
	// blocking is one of pending of which not all is known; nil when none was when it was looked last.
	blocking *namespace
	// recent is what the changes of the last minutes made due by the UID of a cluster policy.
	recent approval.Recent
	// writes numbers the states of policies that were taken in.
	writes uint64
	// flipped are the records that a pool or ceiling has put beyond its limit, or saved, since they were last judged.
	overChanged []*record
	// matched is the record that policies were last asked about, with its fact and what they said; nil once that may not hold any more.
	// matchings is how often they were.
	matched    *record
	fact       lifecycle.Fact
	matches    policy.Matches
	matchCount int
	scratch    []membership
	// inFlight are the orders that were taken and are not done, confirmed the deletions that nobody has been told of yet.
	inFlight  map[*deletion.Order]*record
	confirmed []deletion.Confirmed
	notices   notices
	// dirty are the namespaces whose reports may have changed, urgent those of them where somebody waits to see a new spec observed,
	// numbered in their order.
	dirty       sets.Set[string]
	urgent      map[string]uint64
	urgentCount uint64
	// following says that nobody takes them.
	following bool
	// For metrics.
	held     []int // by the code of the reason
	deleting int
	// coverings is the last Covering that was given out.
	lastCovering Covering

	fresh freshness.Freshness
	rejudging
	// lists are those of all namespaces that are being taken in, by resource.
	lists   map[string]*List
	effects Effects
}

// New returns an empty engine.
func New(c Config) *Engine {
	return &Engine{
		config:       c,
		protected:    sets.New(alwaysProtected...).Insert(c.Protected...),
		records:      newIndex(),
		cronJobs:     map[types.UID]*lifecycle.CronJob{},
		dependents:   map[types.UID]sets.Set[*record]{},
		namespaces:   map[string]*namespace{},
		quotas:       newQuotas(),
		recreations:  newMemory(),
		inFlight:     map[*deletion.Order]*record{},
		dirty:        sets.New[string](),
		urgent:       map[string]uint64{},
		pending:      sets.New[*namespace](),
		holdsToCheck: sets.New[*namespace](),
		recent:       approval.Recent{},
		held:         make([]int, len(reasons)),
		rejudging:    newRejudging(),
		lists:        map[string]*List{},
	}
}

// TakeEffects returns the effects of all events since the last call.
func (e *Engine) TakeEffects() Effects {
	out := e.effects
	out.Work = e.working()
	e.effects = Effects{}
	return out
}

// spent reports, after some more work, whether the budget of the call is spent.
func (e *Engine) spent(work int) bool { return e.config.Spent != nil && e.config.Spent(work) }

// Job implements lifecycle.Owners.
func (e *Engine) Job(uid types.UID) (namespace string, finished, ok bool) {
	rec := e.records.get(uid)
	if rec == nil || rec.Resource != gc.ResourceJobs {
		return "", false, false
	}
	return rec.Namespace, rec.Finished, true
}

// CronJob implements lifecycle.Owners.
func (e *Engine) CronJob(uid types.UID) *lifecycle.CronJob { return e.cronJobs[uid] }
