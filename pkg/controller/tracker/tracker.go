// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tracker holds what is known: facts, policies, namespaces and owners, what follows from them for each object, and
// which deletes are under way. It has the one lock of the controller; everything that it calls is pure.
package tracker

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/expiry"
	"github.com/winnow-dev/winnow/pkg/controller/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/policy"
)

// alwaysProtected are the namespaces in which nothing is ever deleted.
var alwaysProtected = []string{"kube-system", "kube-public", "kube-node-lease"}

// Config is what a Tracker goes by.
type Config struct {
	// Protected namespaces come on top of those of Kubernetes itself.
	Protected []string
	// HoldAbove is how many objects of a namespace one change may make due at once where no cluster policy says; negative for
	// any number.
	HoldAbove int
}

// Tracker is safe for concurrent use. Every change is judged at once, so that what it holds is always decided; time is an
// argument.
type Tracker struct {
	mu        sync.Mutex
	protected sets.Set[string]
	holdAbove int
	resumed   time.Time // when a controller was last seen to run before this one

	records  map[types.UID]*record
	cronJobs map[types.UID]*lifecycle.CronJob
	// cronJobsListed says that all of them are known.
	cronJobsListed bool
	dependents     map[types.UID]sets.Set[types.UID] // by the UID of their controller
	namespaces     map[string]*namespace
	clusters       []*policyState // the cluster policies, by name
	quotas         quotas
	views          views
	recreated      memory

	timers expiry.Heap[types.UID]
	ready  queue
	// pending are the namespaces with changes that are yet to be weighed.
	pending sets.Set[*namespace]
	haunted sets.Set[*ceiling] // those with ghosts
	// flipped are the records that a pool or ceiling has put beyond its limit, or saved, since they were last judged.
	flipped []*record
	votes   []policy.Vote // of the record that is being judged
	// underway counts the orders that were taken and are not done.
	underway int
	gone     []Gone
	// dirty are the namespaces whose reports may have changed, urgent those of them where somebody waits to see a new spec observed,
	// numbered in their order.
	dirty   sets.Set[string]
	urgent  map[string]uint64
	urgents uint64
	// coverings is the last Covering that was given out.
	coverings Covering

	freshness
	// changed and coverage wake whoever carries out decisions and observes; one token says "look again".
	changed, coverage chan struct{}
}

// New returns an empty tracker.
func New(c Config) *Tracker {
	return &Tracker{
		protected:  sets.New(alwaysProtected...).Insert(c.Protected...),
		holdAbove:  c.HoldAbove,
		records:    map[types.UID]*record{},
		cronJobs:   map[types.UID]*lifecycle.CronJob{},
		dependents: map[types.UID]sets.Set[types.UID]{},
		namespaces: map[string]*namespace{},
		quotas:     newQuotas(),
		views:      newViews(),
		recreated:  newMemory(),
		dirty:      sets.New[string](),
		urgent:     map[string]uint64{},
		pending:    sets.New[*namespace](),
		haunted:    sets.New[*ceiling](),
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

// record is what is known of one object. Only settle changes decision and previews, only enlist places, and only Take and Done
// change order.
type record struct {
	fact *lifecycle.Fact
	// recreated says that the object came back too often.
	recreated bool

	places []place
	// countsFrom is when the object is to be counted by capacity, if that is yet to come.
	countsFrom time.Time
	// overSince is when a pool or ceiling last put the object beyond its limit.
	overSince time.Time

	resolution policy.Resolution
	decision   policy.Decision
	// ripe says that policies and bounds want the object deleted, whatever else holds it; weighed, that the change which made it
	// so was not too large, or approved.
	ripe, weighed bool
	reason        policy.Reason // for which it is ripe
	// previews are the preview policies that would decide for the object, with what they would.
	previews []preview

	queued bool
	turn   int    // in its backlog, while queued
	order  *Order // under way
	// sent is the order whose delete was accepted, or found the object gone; until it is seen to be gone nothing more is sent.
	sent  *Order
	trial trial
	// removed says that the record was taken out while an order may be under way, and gone that its object was seen to go.
	removed, gone bool
}

type preview struct {
	policy   *policy.Policy
	decision policy.Decision
}

// trial is what became of earlier deletes of the object.
type trial struct {
	// barred is the resource version that a delete was refused for; it is never tried again unread.
	barred    uint64
	conflicts int
	failures  int
	// reread asks for a GET before the next delete.
	reread bool
	// until holds the object for the reason and detail; untilNewer only as long as no newer state of it is known.
	until      time.Time
	untilNewer bool
	reason     policy.Reason
	detail     string
}

// newer notes that a newer state is known than the one that was tried.
func (tr *trial) newer() {
	if tr.untilNewer {
		tr.until, tr.untilNewer = time.Time{}, false
	}
}

// Job implements lifecycle.Owners. The lock must be held.
func (t *Tracker) Job(uid types.UID) *lifecycle.Fact {
	if rec, ok := t.records[uid]; ok && rec.fact.Resource == gc.ResourceJobs {
		return rec.fact
	}
	return nil
}

// CronJob implements lifecycle.Owners. The lock must be held.
func (t *Tracker) CronJob(uid types.UID) ([]types.UID, bool) {
	if cj, ok := t.cronJobs[uid]; ok {
		return cj.Active, true
	}
	return nil, false
}
