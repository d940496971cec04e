// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package knowledge

import (
	"errors"
	"fmt"
	"maps"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/rules/approval"
	"github.com/winnow-dev/winnow/pkg/controller/rules/deletion"
	"github.com/winnow-dev/winnow/pkg/controller/rules/freshness"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

// restoring is the state after the store has gone back, for example because a backup was restored.
type restoring struct {
	// Anew are the resources whose next list replaces memory, even where memory has newer states.
	Anew sets.Set[string]
	// Replacing are the collections whose next list replaces memory.
	Replacing sets.Set[freshness.Collection]
	// Overtaken are the orders that were in flight. Their DELETEs may have been undone.
	Overtaken sets.Set[*deletion.Order]
	// times is how often everything was listed again.
	times int
	// since is when the last of these lists began.
	since time.Time
	// wentBack are the policies and namespaces that have gone back and that TakeWentBack has not returned yet.
	wentBack []WentBack
}

func newRestoring() restoring {
	return restoring{Anew: sets.New[string](), Replacing: sets.New[freshness.Collection](), Overtaken: sets.New[*deletion.Order]()}
}

// WentBack says that a policy or a namespace is as it was before, because the store has gone back.
type WentBack struct {
	// NamespacedName and UID identify the policy. For a namespace, the field Namespace has its name, and Name is empty.
	types.NamespacedName
	UID  types.UID
	Text string
	// Since is when Winnow began to list everything again.
	Since time.Time
}

var errAnew = errors.New("the store of the cluster went back to an earlier state, as after a restored backup, and is not listed again yet")

// ForgetStore is Engine.StartAnew for everything except orders.
func (k *Knowledge) ForgetStore(now time.Time) {
	k.Fresh.StartAnew()
	k.times, k.since = k.times+1, now
	k.marksListed, k.announced = false, 0
	k.Replacing.Insert(freshness.Policies, freshness.ClusterPolicies, freshness.Namespaces)
	for _, ns := range k.Namespaces {
		for resource := range ns.Covered {
			k.Anew.Insert(resource)
		}
		clear(ns.Listed)
		ns.Marks = nil
		if ns.Known {
			k.RecordChange(ns, approval.Change{
				ID: fmt.Sprint("store at ", now.UnixNano()), Wide: true, Text: "the store of the cluster, which went back to an earlier state,",
				Write: k.Writes + 1,
			})
			ns.Changes.SetObserved(now)
		}
	}
	for resource := range k.Anew {
		k.Watches.Observing(resource, errAnew)
	}
	k.TouchAll()
}

// StillHolds returns the result of an order, or an unknown result if the store has gone back since the order was taken.
func (r *restoring) StillHolds(o *deletion.Order, result deletion.Result) deletion.Result {
	if r.Overtaken.Has(o) && result.Outcome != deletion.Released {
		result = deletion.Result{Outcome: deletion.Unknown, Detail: "the store of the cluster went back while the request was under way"}
	}
	r.Overtaken.Delete(o)
	return result
}

// PolicyWentBack notes that a policy has another spec than before, if its collection is being replaced. A state without metadata means that
// there is no policy.
func (k *Knowledge) PolicyWentBack(before, after policy.Stored) {
	of := after
	if of.ObjectMeta == nil {
		of = before
	}
	if !k.Replacing.Has(memory.CollectionOf(of)) {
		return
	}
	text := wentBackText(of.Title(), stateOf(before), stateOf(after))
	k.wentBack = append(k.wentBack, WentBack{of.NamespacedName(), of.UID, text, k.since})
}

func stateOf(s policy.Stored) string {
	if s.ObjectMeta == nil {
		return "none"
	}
	return fmt.Sprintf("generation %d (resourceVersion %s)", s.Generation, s.ResourceVersion)
}

// NamespaceWentBack notes that a namespace has other labels than before, if namespaces are being replaced.
func (k *Knowledge) NamespaceWentBack(ns *memory.Namespace, m *metav1.PartialObjectMetadata) {
	if !k.Replacing.Has(freshness.Namespaces) || !ns.Known || maps.Equal(ns.Labels, m.Labels) {
		return
	}
	text := wentBackText(fmt.Sprintf("the labels of namespace %q", ns.Name), ns.Labels.String(), labels.Set(m.Labels).String())
	k.wentBack = append(k.wentBack, WentBack{types.NamespacedName{Namespace: ns.Name}, m.UID, text, k.since})
}

func wentBackText(what, before, after string) string {
	return fmt.Sprintf("The store of the cluster went back to an earlier state, as after a restored backup, and with it %s: from %s to %s. "+
		"Check that you want this: Winnow now acts on the restored state", what, before, after)
}

// TakeWentBack returns up to most policies and namespaces that have gone back and that it has not returned before. Followers record them
// too: the leader cannot renew its Lease during a restore, so another replica may lead afterwards.
func (k *Knowledge) TakeWentBack(most int) []WentBack {
	n := min(most, len(k.wentBack))
	out := k.wentBack[:n]
	k.wentBack = k.wentBack[n:]
	return out
}
