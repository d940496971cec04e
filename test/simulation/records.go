// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/watch"

	gcv1alpha1 "github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/test/simulation/apiserver"
)

// recordedSoon and recordedAtLast are after how long a deletion is recorded: without a fault, but for an answer that is lost, and whatever
// goes wrong. A replica that is killed loses what it has not stored.
const recordedSoon, recordedAtLast = 10*time.Second + slowMost, 5 * time.Minute

// deletion is a DELETE that was carried out.
type deletion struct {
	at              time.Time
	from, namespace string
	what            string
	// gone is when the object had gone; zero while it waits for finalizers. If the answer to the DELETE was lost, it is recorded only then.
	gone time.Time
}

// goneSince reports whether the object has not gone before a time.
func (d *deletion) goneSince(at time.Time) bool { return d.gone.IsZero() || d.gone.After(at) }

// records are the deletions that must be recorded, by the UID of the object.
type records map[types.UID]deletion

// forget forgets deletions whose records may be lost.
func (r records) forget(lost func(deletion) bool) {
	maps.DeleteFunc(r, func(_ types.UID, d deletion) bool { return lost(d) })
}

// observe takes in a change of the store.
func (r records) observe(resource apiserver.Resource, e apiserver.Event) {
	if resource.GroupResource().Resource == "leases" {
		r.led(e.Object)
		return
	}
	uid := e.Object.Meta.UID
	switch d, ok := r[uid]; {
	case !ok:
	case e.Type == watch.Deleted:
		d.gone = e.Time
		r[uid] = d
	case e.Before != nil && e.Before.Meta.DeletionTimestamp != nil:
		delete(r, uid) // If the answer was lost, Winnow does not know any more that it was its DELETE.
	}
}

// led takes in a Lease. Who does not lead any more does not know whether its DELETEs have deleted what goes from now on, if their answers
// were lost: another leader may have done it.
func (r records) led(lease *apiserver.Object) {
	var is struct {
		Spec struct{ HolderIdentity string }
	}
	mustDecode(lease, &is)
	r.forget(func(d deletion) bool { return d.gone.IsZero() && d.from != is.Spec.HolderIdentity })
}

// unrecorded judges whether every deletion has a record.
func (s *simulation) unrecorded() {
	if len(s.judge.faults) > 0 {
		return
	}
	began := time.Now() // The answer may be as old.
	answers, err := ask(s, 10*time.Second, list[gcv1alpha1.CleanupRecord], "cleanuprecords", s.replicas[0])
	if err != nil {
		s.judge.fault("records: %v", err)
		return
	}
	stored := sets.Set[types.UID]{}
	for i := range answers[0] {
		stored.Insert(types.UID(answers[0][i].Name))
	}
	for uid, d := range s.judge.records {
		if !stored.Has(uid) && !d.goneSince(began.Add(-recordedSoon)) {
			s.judge.fault("no record of this at %s: %s", d.at.Format(time.TimeOnly), d.what)
		}
	}
}
