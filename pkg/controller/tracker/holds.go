// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package tracker

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
)

// hold keeps a policy from deleting in a namespace. It ends when it is approved, when a new spec of the policy makes few objects
// due, or when none is due any more.
type hold struct {
	id, why string
	// objects is how many were due when it was found.
	objects int
}

// HoldID is the id of the hold that a generation of a policy causes in a namespace, if it does.
func HoldID(policy types.UID, generation int64, namespace string) string {
	return holdID(policy, namespace, generationCause(policy, generation))
}

func holdID(policy types.UID, namespace, cause string) string {
	sum := sha256.Sum256([]byte(strings.Join([]string{string(policy), namespace, cause}, "\n")))
	return hex.EncodeToString(sum[:6])
}

// approvals are the ids that a policy's annotation releases.
func approvals(m *metav1.ObjectMeta) sets.Set[string] {
	return sets.New(gc.ApprovedHolds(m.Annotations[gc.AnnotationApprovedHold])...)
}

// adopt takes over the holds that another replica has left in the status of a policy.
func (ns *namespace) adopt(ps *policyState) {
	for _, h := range ps.stored.Status.Holds {
		if h.Namespace == ns.name && !ps.approved.Has(h.ID) && ns.holds[ps.stored.UID] == nil {
			ns.holds[ps.stored.UID] = &hold{id: h.ID, why: h.Why, objects: int(h.Objects)}
		}
	}
}

// adoptAll does so for all policies that may delete in the namespace.
func (t *Tracker) adoptAll(ns *namespace) {
	for _, ps := range ns.policies {
		ns.adopt(ps)
	}
	for _, ps := range t.clusters {
		ns.adopt(ps)
	}
}

// Follow is for a replica that does not lead: nobody takes reports from it.
func (t *Tracker) Follow() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.following = true
	clear(t.dirty)
	clear(t.urgent)
}

// Lead takes over the holds that the last leader has found, whatever this replica has found itself.
func (t *Tracker) Lead(now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.following = false
	t.tell("")
	for _, ns := range t.namespaces {
		if ns.soiled {
			t.tell(ns.name)
		}
		if t.adoptAll(ns); len(ns.holds) > 0 {
			t.rejudge([]*namespace{ns}, now)
		}
	}
}

// release ends the holds of a policy that somebody has approved, and returns the namespaces that are to be judged for it.
func (t *Tracker) release(ps *policyState) sets.Set[*namespace] {
	cleared := sets.New[*namespace]()
	if len(ps.approved) == 0 {
		return cleared
	}
	for _, ns := range t.namespaces {
		if h := ns.holds[ps.stored.UID]; h != nil && ps.approved.Has(h.id) {
			t.clear(ns, ps.stored.UID)
			cleared.Insert(ns)
		}
	}
	return cleared
}

// clear ends a hold, and with it the waiting of all that it held; but what a change that is yet to be weighed has added was not
// approved.
func (t *Tracker) clear(ns *namespace, policy types.UID) {
	delete(ns.holds, policy)
	t.soil(ns)
	for rec := range ns.ripeRecords() {
		if rec.policy.UID == policy {
			rec.weighed = len(ns.causes) == 0
		}
	}
}

// certain tells whether what is not due now is not due indeed, and not only not known to be.
func (t *Tracker) certain(ns *namespace) bool { return t.complete(ns) && t.clockDoubt == "" }
