// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/recount"
)

// history is all that was ever true in the cluster, in the order in which it became so. Nobody but the driver and Winnow writes
// Jobs, and nobody but the driver the specs of policies, so it is complete.
type history struct {
	lock    sync.Mutex
	objects map[types.UID]*object
	changes []change
}

// object are the states of a Job; the last one has no fact when it is gone.
type object struct {
	namespace, name string
	states          []state
}

// state became true between sent and acked.
type state struct {
	sent, acked time.Time
	fact        *lifecycle.Fact
}

// change is one of policies: all of them as they were after it.
type change struct {
	sent, acked time.Time
	policies    map[string]*gc.CleanupPolicy // by namespace, one in each
	bounds      *gc.ClusterCleanupPolicy
}

func newHistory() *history { return &history{objects: map[types.UID]*object{}} }

// wrote records what the API server answered to a write. A write that changed nothing is none.
func (h *history) wrote(j *batchv1.Job, sent, acked time.Time) error {
	fact, err := lifecycle.FromJob(j)
	if err != nil {
		return err
	}
	h.lock.Lock()
	defer h.lock.Unlock()
	o := h.objects[j.UID]
	if o == nil {
		o = &object{namespace: j.Namespace, name: j.Name}
		h.objects[j.UID] = o
	}
	if last := o.last(); last == nil || last.ResourceVersion != fact.ResourceVersion {
		o.states = append(o.states, state{sent, acked, fact})
	}
	return nil
}

// gone records that a Job was deleted by a request.
func (h *history) gone(uid types.UID, sent, acked time.Time) {
	h.lock.Lock()
	defer h.lock.Unlock()
	if o := h.objects[uid]; o != nil && o.last() != nil {
		o.states = append(o.states, state{sent: sent, acked: acked})
	}
}

// forget drops what was gone before a time.
func (h *history) forget(before time.Time) {
	h.lock.Lock()
	defer h.lock.Unlock()
	for uid, o := range h.objects {
		if last := o.states[len(o.states)-1]; last.fact == nil && last.sent.Before(before) {
			delete(h.objects, uid)
		}
	}
}

// left are the UIDs of what is not gone.
func (h *history) left() map[types.UID]string {
	h.lock.Lock()
	defer h.lock.Unlock()
	out := map[types.UID]string{}
	for uid, o := range h.objects {
		if o.last() != nil {
			out[uid] = o.namespace + "/" + o.name
		}
	}
	return out
}

func (h *history) changed(c change) {
	h.lock.Lock()
	defer h.lock.Unlock()
	h.changes = append(h.changes, c)
}

// inForce are the changes of policies that a DELETE of this time may follow, the newest first: one that was acknowledged more than
// a second before it has taken the place of all that came earlier.
func (h *history) inForce(at time.Time) []change {
	h.lock.Lock()
	defer h.lock.Unlock()
	var out []change
	for i := len(h.changes) - 1; i >= 0; i-- {
		c := h.changes[i]
		if c.sent.After(at) {
			continue
		}
		out = append(out, c)
		if c.acked.Before(at.Add(-time.Second)) {
			break
		}
	}
	return out
}

// view says how a world is put together of what was possible.
type view struct {
	// lag is how old the state of a Job may be that is not the newest. A request that is under way leaves it open which one that is.
	lag time.Duration
	// first takes the first of the possible states that count alike, else it is the last.
	first bool
}

// world is what somebody who sees the cluster at a time may take for true under these policies. Of the states that a Job may be in, it is
// in the one that speaks most for the deletion of others: there, finished, and not kept by its annotations.
func (h *history) world(now time.Time, c change, v view) *recount.World {
	w := &recount.World{Now: now, Namespaces: map[string]recount.Namespace{}, ClusterPolicies: []*gc.ClusterCleanupPolicy{c.bounds}}
	for name, p := range c.policies {
		w.Policies = append(w.Policies, p)
		w.Namespaces[name] = recount.Namespace{Labels: namespaceLabels(name)}
	}
	h.lock.Lock()
	defer h.lock.Unlock()
	for _, o := range h.objects {
		if f := o.seen(now, v); f != nil && f.Namespace != residentNamespace {
			w.Objects = append(w.Objects, f)
		}
	}
	return w
}

// find returns the state of a Job with this resource version, and whether a newer one was acknowledged before a time.
func (h *history) find(uid types.UID, version uint64, before time.Time) (fact *lifecycle.Fact, outdated bool) {
	h.lock.Lock()
	defer h.lock.Unlock()
	if o := h.objects[uid]; o != nil {
		for _, s := range o.states {
			switch {
			case s.fact == nil:
			case s.fact.ResourceVersion == version:
				fact = s.fact
			case s.fact.ResourceVersion > version && s.acked.Before(before):
				outdated = true
			}
		}
	}
	return fact, outdated
}

// last is the newest fact, nil when it is gone.
func (o *object) last() *lifecycle.Fact {
	if len(o.states) == 0 {
		return nil
	}
	return o.states[len(o.states)-1].fact
}

// seen is the state that a view has the Job in.
func (o *object) seen(now time.Time, v view) (out *lifecycle.Fact) {
	for i, s := range o.states {
		if s.sent.After(now) {
			break
		}
		over := i+1 < len(o.states) && o.states[i+1].acked.Before(now.Add(-v.lag))
		if !over && (out == nil || counts(s.fact) > counts(out) || counts(s.fact) == counts(out) && !v.first) {
			out = s.fact
		}
	}
	return out
}

// counts orders facts by how much they speak for the deletion of others.
func counts(f *lifecycle.Fact) int {
	switch {
	case f == nil:
		return 0
	case !f.Finished:
		return 1
	case f.TTL != nil || f.KeepUntil != nil:
		return 2
	}
	return 3
}
