// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tracker holds what is known: facts, policies, namespaces and owners, what follows from them for each object, and
// which deletes are under way. It has the one lock of the controller; everything that it calls is pure.
package tracker

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/deletion"
	"github.com/winnow-dev/winnow/pkg/controller/expiry"
	"github.com/winnow-dev/winnow/pkg/controller/freshness"
	"github.com/winnow-dev/winnow/pkg/controller/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/policy"
	"github.com/winnow-dev/winnow/pkg/controller/turns"
)

// alwaysProtected are the namespaces in which nothing is ever deleted.
var alwaysProtected = []string{"kube-system", "kube-public", "kube-node-lease"}

// Config is what a Tracker goes by.
type Config struct {
	// Protected namespaces come on top of those of Kubernetes itself.
	Protected []string
	// HoldAbove is how many objects of a namespace one change may make due at once where no cluster policy says, and HoldAboveTotal how
	// many in all namespaces that it reaches; negative for any number.
	HoldAbove, HoldAboveTotal int
	// StartSuspended stops every deletion in namespaces that no enforcing cluster policy selects.
	StartSuspended bool
	// Clock tells how long the lock was held, so that others have their turn; nil where nobody else waits for it. What time it is to the
	// rest of the tracker is always an argument.
	Clock func() time.Time
}

// Tracker is safe for concurrent use. Every change is judged at once, so that what it holds is always decided; time is an
// argument.
type Tracker struct {
	mu        mutex
	protected sets.Set[string]
	// holdAbove and holdAboveTotal are those of Config.
	holdAbove, holdAboveTotal int
	startSuspended            bool // that of Config

	resumed time.Time // when a controller was last seen to run before this one

	records  index
	cronJobs map[types.UID]*lifecycle.CronJob
	// cronJobsListed says that all of them are known.
	cronJobsListed bool
	dependents     map[types.UID]sets.Set[*record] // by the UID of their controller
	namespaces     map[string]*namespace
	clusters       []*policyState // the cluster policies, by name
	quotas         quotas
	watches        freshness.Watches
	recreated      memory

	timers expiry.Heap[*record]
	ready  turns.Queue[*record]
	// pending are the namespaces with changes that are yet to be weighed, vacant those with holds that may have lost their last member.
	pending, vacant sets.Set[*namespace]
	// incomplete is one of pending of which not all is known; nil when none was when it was looked last.
	incomplete *namespace
	// recent is what the changes of the last minutes made due by the UID of a cluster policy.
	recent map[types.UID]*window
	// writes numbers the states of policies that were taken in.
	writes uint64
	// flipped are the records that a pool or ceiling has put beyond its limit, or saved, since they were last judged.
	flipped []*record
	// matched is the record that policies were last asked about, with its fact and what they said; nil once that may not hold any more.
	// matchings is how often they were.
	matched   *record
	fact      lifecycle.Fact
	matches   policy.Matches
	matchings int
	wants     []place
	// underway are the orders that were taken and are not done, confirmed the deletions that nobody has been told of yet.
	underway  map[*deletion.Order]*record
	confirmed []deletion.Confirmed
	notices   notices
	// dirty are the namespaces whose reports may have changed, urgent those of them where somebody waits to see a new spec observed,
	// numbered in their order.
	dirty   sets.Set[string]
	urgent  map[string]uint64
	urgents uint64
	// following says that nobody takes them.
	following bool
	// For metrics.
	held     []int // by the code of the reason
	deleting int
	// coverings is the last Covering that was given out.
	coverings Covering

	fresh freshness.Freshness
	anew
	// changed and coverage wake whoever carries out decisions and observes; one token says "look again".
	changed, coverage chan struct{}
}

// New returns an empty tracker.
func New(c Config) *Tracker {
	return &Tracker{
		mu:        mutex{clock: c.Clock, lookEvery: lookEvery},
		protected: sets.New(alwaysProtected...).Insert(c.Protected...),
		holdAbove: c.HoldAbove, holdAboveTotal: c.HoldAboveTotal, startSuspended: c.StartSuspended,
		records:    newIndex(),
		cronJobs:   map[types.UID]*lifecycle.CronJob{},
		dependents: map[types.UID]sets.Set[*record]{},
		namespaces: map[string]*namespace{},
		quotas:     newQuotas(),
		recreated:  newMemory(),
		underway:   map[*deletion.Order]*record{},
		dirty:      sets.New[string](),
		urgent:     map[string]uint64{},
		pending:    sets.New[*namespace](),
		vacant:     sets.New[*namespace](),
		recent:     map[types.UID]*window{},
		held:       make([]int, len(reasons)),
		anew:       newAnew(),
		changed:    make(chan struct{}, 1),
		coverage:   make(chan struct{}, 1),
	}
}

// Changed receives when there may be something to delete, or later than was thought.
func (t *Tracker) Changed() <-chan struct{} { return t.changed }

// CoverageChanged receives when Coverage may say something else.
func (t *Tracker) CoverageChanged() <-chan struct{} { return t.coverage }

func wake(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Job implements lifecycle.Owners. The lock must be held.
func (t *Tracker) Job(uid types.UID) (namespace string, finished, ok bool) {
	rec := t.records.get(uid)
	if rec == nil || rec.Resource != gc.ResourceJobs {
		return "", false, false
	}
	return rec.Namespace, rec.Finished, true
}

// CronJob implements lifecycle.Owners. The lock must be held.
func (t *Tracker) CronJob(uid types.UID) *lifecycle.CronJob { return t.cronJobs[uid] }
