// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"fmt"
	"maps"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/controller/approval"
	"github.com/winnow-dev/winnow/pkg/controller/deletion"
	"github.com/winnow-dev/winnow/pkg/controller/freshness"
	"github.com/winnow-dev/winnow/pkg/controller/policy"
)

// restoring is what is known after the store has gone back, as when a backup of it is restored.
type restoring struct {
	// anew are the resources whose next list replaces memory, also where memory has newer states.
	anew sets.Set[string]
	// replacing are the collections whose next list does.
	replacing sets.Set[freshness.Collection]
	// overtaken are the orders that were in flight. Their DELETEs may have been undone.
	overtaken sets.Set[*deletion.Order]
	// times is how often everything was listed again.
	times int
	// since is when that last began.
	since time.Time
	// wentBack are the policies and namespaces that have gone back, and that TakeWentBack has not returned yet.
	wentBack []WentBack
}

func newRestoring() restoring {
	return restoring{anew: sets.New[string](), replacing: sets.New[freshness.Collection](), overtaken: sets.New[*deletion.Order]()}
}

// WentBack says that a policy or a namespace is as it was before, because the store has gone back.
type WentBack struct {
	// NamespacedName and UID are those of the policy. Of a namespace the name is empty.
	types.NamespacedName
	UID  types.UID
	Text string
	// Since is when everything began to be listed anew.
	Since time.Time
}

var errAnew = errors.New("the store of the cluster has gone back, as when a backup is restored, and is not listed again yet")

// StartAnew says that the store has gone back, so that everything is listed again. The lists replace memory, whatever the resource versions
// say, and nothing is deleted until they have ended. In each namespace this is a change: objects that have come back may be due at once.
func (e *Engine) StartAnew(now time.Time) {
	e.fresh.StartAnew()
	e.times, e.since = e.times+1, now
	e.marksListed = false
	e.overtaken = sets.KeySet(e.inFlight)
	e.replacing.Insert(freshness.Policies, freshness.ClusterPolicies, freshness.Namespaces)
	for _, ns := range e.namespaces {
		for resource := range ns.covered {
			e.anew.Insert(resource)
		}
		clear(ns.listed)
		ns.marks = nil
		if ns.known {
			e.recordChange(ns, approval.Change{
				ID: fmt.Sprint("store at ", now.UnixNano()), Wide: true, Text: "the store of the cluster, which went back to an earlier state,",
				Write: e.writes + 1,
			})
			ns.changes.SetObserved(now)
		}
	}
	for resource := range e.anew {
		e.watches.Observing(resource, errAnew)
	}
	e.rejudgeAll(now)
}

// stillHolds returns the result of an order, or that the result is unknown if the store has gone back since the order was taken.
func (r *restoring) stillHolds(o *deletion.Order, result deletion.Result) deletion.Result {
	if r.overtaken.Has(o) && result.Outcome != deletion.Released {
		result = deletion.Result{Outcome: deletion.Unknown, Detail: "the store of the cluster went back while the request was under way"}
	}
	r.overtaken.Delete(o)
	return result
}

// policyWentBack notes that a policy has another spec than before, if its collection is being replaced. Both states are without
// metadata if there is none.
func (e *Engine) policyWentBack(before, after policy.Stored) {
	of := after
	if of.ObjectMeta == nil {
		of = before
	}
	if !e.replacing.Has(collectionOf(of)) {
		return
	}
	text := wentBackText(of.Title(), stateOf(before), stateOf(after))
	e.wentBack = append(e.wentBack, WentBack{of.NamespacedName(), of.UID, text, e.since})
}

func stateOf(s policy.Stored) string {
	if s.ObjectMeta == nil {
		return "none at all"
	}
	return fmt.Sprintf("generation %d (resourceVersion %s)", s.Generation, s.ResourceVersion)
}

// namespaceWentBack notes that a namespace has other labels than before, if namespaces are being replaced.
func (e *Engine) namespaceWentBack(ns *namespace, m *metav1.PartialObjectMetadata) {
	if !e.replacing.Has(freshness.Namespaces) || !ns.known || maps.Equal(ns.labels, m.Labels) {
		return
	}
	text := wentBackText(fmt.Sprintf("the labels of namespace %q", ns.name), ns.labels.String(), labels.Set(m.Labels).String())
	e.wentBack = append(e.wentBack, WentBack{types.NamespacedName{Namespace: ns.name}, m.UID, text, e.since})
}

func wentBackText(what, before, after string) string {
	return fmt.Sprintf("The store of the cluster went back to an earlier state, as when a backup is restored, and with it %s: from %s to %s. "+
		"Check that this is what you want: Winnow deletes by what is stored now", what, before, after)
}

// TakeWentBack returns at most so many policies and namespaces that have gone back, and that it has not returned before. Followers have
// them too: the leader cannot renew its Lease during a restore, so another replica may lead afterwards.
func (e *Engine) TakeWentBack(most int) []WentBack {
	n := min(most, len(e.wentBack))
	out := e.wentBack[:n]
	e.wentBack = e.wentBack[n:]
	return out
}
