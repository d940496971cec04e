// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package report has what the engine reports about policies: counts of their objects, and the holds that wait for approval. The package is
// pure.
package report

import (
	"cmp"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

// Report has everything that goes into the status and the events of a policy.
type Report struct {
	policy.Stored
	// Unreadable is why the stored policy cannot be read; nil if it can.
	Unreadable error
	// Excluded is why nothing is ever deleted in the namespace of the policy; empty if objects may be deleted.
	Excluded policy.Reason
	// Unobserved is why objects that the policy may match cannot be observed; empty if they can.
	Unobserved string
	// Unserved are the resources that the policy names and the cluster does not serve.
	Unserved []string
	// Meant are resources that the cluster serves and that the author of the policy perhaps meant instead of Unserved. The engine does not set
	// Meant.
	Meant []string
	// Unauthorized has what the account of the policy lacks, once for each namespace where it lacks something.
	Unauthorized []string
	// QuotaDoubt is why percentOfQuota deletes nothing; empty if it does, or if the policy does not use it.
	QuotaDoubt string
	// SuspendedBy is the name of the cluster policy that stops all deletions in the namespace; for a cluster policy, its own name if it
	// stops all deletions.
	SuspendedBy string
	// Unselected says that Winnow was started with --start-suspended, and no enforcing cluster policy selects the namespace yet.
	Unselected bool
	// ClockDoubt is why clocks cannot be trusted, so that nothing is deleted; empty if they can.
	ClockDoubt string
	// Paced are the namespaces where objects of the policy wait because of maxDeletionsPerMinute.
	Paced []string
	// WithoutQuota has each "count/<resource>" that percentOfQuota needs and no ResourceQuota limits, so that percentOfQuota has no effect
	// there.
	WithoutQuota []string
	// DoesNothing says that the policy cannot match any object.
	DoesNothing bool
	// Holds are the changes that wait for approval. UnlistedHolds is how many more there are than Holds lists.
	Holds         []gc.PolicyHold
	UnlistedHolds int64
	// Ceilings are the ceilings of a cluster policy, by resource.
	Ceilings []gc.CeilingStatus
	// Namespaces counts the candidates of a cluster policy by namespace. UnlistedNamespaces is how many more namespaces have candidates than
	// Namespaces lists.
	Namespaces         []gc.NamespaceStatus
	UnlistedNamespaces int64
	// Unassessed is set while Winnow does not know whether some changes must wait for approval.
	Unassessed bool
	// Starting is set while Winnow does not know what may have changed while no controller ran.
	Starting bool
	// ApprovedSince is how many objects of the policy its stored status counts under holds that were approved since.
	ApprovedSince int64

	Candidates, Due, Held, Waiting, WaitingForWindow, Deleted int64
	NextDeletion, LastDeletion                                *metav1.Time
	// HeldByReason groups the held objects, AwaitingByReason the objects that are being deleted but not gone yet.
	HeldByReason, AwaitingByReason []Group
	// ByNamespace has the same groups for each namespace of a cluster policy.
	ByNamespace []NamespaceGroups
}

// Mixed reports whether a hold has ended while the report was made: it counts objects as held for approval, and lists no hold. The next
// leader would take objects that somebody has approved for objects that nobody has.
func (r *Report) Mixed() bool {
	return len(r.Holds) == 0 && r.UnlistedHolds == 0 &&
		slices.ContainsFunc(r.HeldByReason, func(g Group) bool { return g.Reason == policy.ReasonHeld })
}

// NamespaceGroups groups the objects of a cluster policy in one namespace that are held, or not gone yet.
type NamespaceGroups struct {
	Namespace                      string
	HeldByReason, AwaitingByReason []Group
}

// Group counts the objects of a policy that are held, or not gone yet, for one reason.
type Group struct {
	Reason policy.Reason
	// Detail and Object describe the first object, in alphabetical order; objects that may be named come before the others. Object is
	// "resource/name", or for a cluster policy "namespace/resource/name".
	Detail, Object string
	// Unnamed says that no object of the group may be named; see MayName.
	Unnamed bool
	Count   int64
}

// String returns the reason, the first object with its detail, and the number of other objects. If no object may be named, it returns the
// reason and the number of objects.
func (g Group) String() string {
	if g.Unnamed {
		return fmt.Sprintf("%s: %s (kubectl get cand names them)", g.Reason, Objects(g.Count))
	}
	s := fmt.Sprintf("%s: %s", g.Reason, g.Object)
	if g.Detail != "" {
		s += fmt.Sprintf(" (%.900s)", g.Detail) // Messages of API servers and webhooks may be long.
	}
	if g.Count > 1 {
		s += fmt.Sprintf(" and %d more", g.Count-1)
	}
	return s
}

// Objects says how many objects there are.
func Objects(n int64) string {
	if n == 1 {
		return "1 object"
	}
	return fmt.Sprintf("%d objects", n)
}

// MayName reports whether conditions and events may name objects of a resource. Everybody with the role view of Kubernetes in a namespace
// can read them, so they name only objects that this role may list: neither Secrets nor custom resources, which the role includes only if
// somebody added them. See https://kubernetes.io/docs/reference/access-authn-authz/rbac/#user-facing-roles.
func MayName(resource string) bool { return viewed.Has(resource) }

var viewed = sets.New(
	"configmaps", "controllerrevisions.apps", "cronjobs.batch", "daemonsets.apps", "deployments.apps", "endpoints",
	"endpointslices.discovery.k8s.io", "events", "events.events.k8s.io", "horizontalpodautoscalers.autoscaling", "ingresses.networking.k8s.io",
	gc.ResourceJobs, "limitranges", "networkpolicies.networking.k8s.io", "persistentvolumeclaims", "poddisruptionbudgets.policy",
	gc.ResourcePods, "replicasets.apps", "replicationcontrollers", "resourcequotas", "serviceaccounts", "services", "statefulsets.apps",
)

// HoldsListed is how many holds a status lists at most, so that the policy does not become too large to be stored.
const HoldsListed = 100

// LimitHolds joins holds with the same ID, and keeps HoldsListed of them. UnlistedHolds counts the others.
func (r *Report) LimitHolds() {
	r.Holds = JoinHolds(r.Holds)
	r.UnlistedHolds = int64(max(0, len(r.Holds)-HoldsListed))
	r.Holds = r.Holds[:len(r.Holds)-int(r.UnlistedHolds)]
}

// NamespacesListed is how many namespaces the status of a cluster policy lists at most.
const NamespacesListed = 50

// AddNamespace adds the counts of one more namespace, and keeps no more than NamespacesListed: first the namespaces with the most due
// objects, then the namespaces with the most candidates. The cost of a call does not depend on the number of namespaces.
func (r *Report) AddNamespace(n gc.NamespaceStatus) {
	i, _ := slices.BinarySearchFunc(r.Namespaces, n, func(a, b gc.NamespaceStatus) int {
		return cmp.Or(cmp.Compare(b.Due, a.Due), cmp.Compare(b.Candidates, a.Candidates), cmp.Compare(a.Namespace, b.Namespace))
	})
	r.Namespaces = slices.Insert(r.Namespaces, i, n)
	if len(r.Namespaces) > NamespacesListed {
		r.Namespaces = r.Namespaces[:NamespacesListed]
		r.UnlistedNamespaces++
	}
}

// JoinHolds sorts holds by namespace and ID, and joins holds with the same ID: a hold of all namespaces together is listed once for each.
func JoinHolds(all []gc.PolicyHold) []gc.PolicyHold {
	slices.SortStableFunc(all, func(a, b gc.PolicyHold) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.ID, b.ID))
	})
	var out []gc.PolicyHold
	for _, h := range all {
		i := slices.IndexFunc(out, func(other gc.PolicyHold) bool { return other.ID == h.ID })
		if i < 0 {
			out = append(out, h)
			continue
		}
		out[i].Objects += h.Objects
		out[i].Resources = sets.List(sets.New(out[i].Resources...).Insert(h.Resources...))
		if h.Since == nil || out[i].Since.Before(h.Since) { // An unknown time (nil) wins; see approval.Hold.Join.
			out[i].Since = h.Since
		}
	}
	return out
}
