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

// Tracker is safe for concurrent use. Every change is judged at once, so that what it holds is always decided; time is an
// argument.
type Tracker struct {
	mu        sync.Mutex
	protected sets.Set[string]

	records    map[types.UID]*record
	cronJobs   map[types.UID]*lifecycle.CronJob
	dependents map[types.UID]sets.Set[types.UID] // by the UID of their controller
	namespaces map[string]*namespace
	blind      map[string]string // by resource that cannot be observed, why

	timers expiry.Heap[types.UID]
	ready  queue
	// underway counts the orders that were taken and are not done.
	underway int
	gone     []Gone
	dirty    sets.Set[string] // namespaces whose reports may have changed
	// coverings is the last Covering that was given out.
	coverings Covering

	freshness
	// changed and coverage wake whoever carries out decisions and observes; one token says "look again".
	changed, coverage chan struct{}
}

// New returns an empty tracker. The protected namespaces come on top of those of Kubernetes itself.
func New(protected ...string) *Tracker {
	return &Tracker{
		protected:  sets.New(alwaysProtected...).Insert(protected...),
		records:    map[types.UID]*record{},
		cronJobs:   map[types.UID]*lifecycle.CronJob{},
		dependents: map[types.UID]sets.Set[types.UID]{},
		namespaces: map[string]*namespace{},
		blind:      map[string]string{},
		dirty:      sets.New[string](),
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

// record is what is known of one object. Only judge changes decision and previews, and only Take and Done change order.
type record struct {
	fact *lifecycle.Fact

	resolution policy.Resolution
	decision   policy.Decision
	// previews are the preview policies that would decide for the object, with what they would.
	previews []preview

	queued bool
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

// namespace is what is known of one namespace.
type namespace struct {
	name string
	// known says that the namespace was observed; nothing is deleted in one that was not.
	known                  bool
	terminating, protected bool
	stamp                  Stamp

	policies []*policyState   // by name
	voters   []*policy.Policy // those of them that enforce, by name
	previews []*policy.Policy
	records  map[types.UID]*record
	// kept are the resources whose objects are kept, each with the number of the covering since which they are.
	kept   map[string]Covering
	merges map[*Merge]bool // under way
}

func (t *Tracker) namespace(name string) *namespace {
	ns, ok := t.namespaces[name]
	if !ok {
		ns = &namespace{
			name: name, records: map[types.UID]*record{}, kept: map[string]Covering{}, merges: map[*Merge]bool{},
		}
		t.namespaces[name] = ns
	}
	return ns
}

// forget drops a namespace of which nothing is known any more.
func (t *Tracker) forget(ns *namespace) {
	if !ns.known && len(ns.policies) == 0 && len(ns.records) == 0 && len(ns.merges) == 0 {
		delete(t.namespaces, ns.name)
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
