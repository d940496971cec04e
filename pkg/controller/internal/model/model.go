// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package model says which answer holds for every object of a world, recomputed from scratch, sentence by sentence of the
// contract that docs/semantics.md explains. It sorts and counts, remembers nothing, and shares no code with the engine that
// it judges: tests alone import it.
//
// A recomputation goes in passes over all objects: which policies vote on them (votes.go), which of them count in pools and whom
// the limits leave out (capacity.go), when each may go (answer.go), and what follows from that now (decide.go).
package model

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/lifecycle"
)

// World is all that a decision depends on.
type World struct {
	Now time.Time
	// Namespaces by name; one that is missing has not been observed.
	Namespaces map[string]Namespace
	// Objects are the Jobs and Pods, of UIDs of their own.
	Objects         []*lifecycle.Fact
	CronJobs        []*lifecycle.CronJob
	Policies        []*gc.CleanupPolicy
	ClusterPolicies []*gc.ClusterCleanupPolicy
	Quotas          []*corev1.ResourceQuota
	// Recreated are the objects that came back under the same name too often.
	Recreated map[types.UID]bool
}

// Namespace is what matters of a namespace.
type Namespace struct {
	Labels map[string]string
	// Protected says that its name is among those that are protected without a label.
	Protected bool
	// Terminating says that it is being deleted.
	Terminating bool
}

// PolicyRef names a CleanupPolicy, or with an empty Namespace a ClusterCleanupPolicy.
type PolicyRef struct{ Namespace, Name string }

// String is namespace/name, or the name of a ClusterCleanupPolicy.
func (r PolicyRef) String() string {
	if r.Namespace == "" {
		return r.Name
	}
	return r.Namespace + "/" + r.Name
}

// What happens to an object.
const (
	Ignore = "Ignore" // it is no candidate
	Keep   = "Keep"   // no time ends that
	Wait   = "Wait"   // until Answer.At
	Hold   = "Hold"   // it is due, and something forbids it
	Delete = "Delete"
	Await  = "Await" // it is being deleted
)

// Answer is what happens to an object, and why.
type Answer struct {
	Action, Reason string
	// By is who decides: "namespace/name rule" for a CleanupPolicy, "name rule" for a ClusterCleanupPolicy, "ceiling=name" for a
	// ceiling of it; rule is gc.DefaultRuleName for defaults. Empty when nobody does, which goes for all that is ignored.
	By string
	// At is when a waiting object becomes due, or when one that time made due did; zero for all else.
	At time.Time
}

// Answers are those of all objects. What only the controller knows is not in them: holds for approval, answers of the API
// server, clocks and watches in doubt.
func (w *World) Answers() map[types.UID]Answer { return w.recomputation(PolicyRef{}).answers() }

// Previews are, for each Preview policy, the answers that it would decide if it enforced beside the others. Each is asked
// alone: one Preview policy knows nothing of another.
func (w *World) Previews() map[PolicyRef]map[types.UID]Answer {
	out := map[PolicyRef]map[types.UID]Answer{}
	for _, p := range slices.Concat(w.namespaced(), w.clusterWide()) {
		if p.spec.Mode != gc.ModePreview || !readable(p) {
			continue
		}
		out[p.ref] = map[types.UID]Answer{}
		c := w.recomputation(p.ref)
		for _, f := range w.Objects {
			if v := c.decide(f); v.policy == p.ref && v.Action != Ignore {
				out[p.ref][f.UID] = v.Answer
			}
		}
	}
	return out
}

// Propagations are how the objects that are to be deleted take their dependents along.
func (w *World) Propagations() map[types.UID]metav1.DeletionPropagation {
	out := map[types.UID]metav1.DeletionPropagation{}
	c := w.recomputation(PolicyRef{})
	for _, f := range w.Objects {
		if c.decide(f).Action == Delete {
			out[f.UID] = c.settle(f).propagation
		}
	}
	return out
}

// DeletionOrder are the objects of a namespace that are to be deleted: those that annotations keep last, the others by their finish, and of
// equals the larger UID first.
func (w *World) DeletionOrder(namespace string) []types.UID {
	c := w.recomputation(PolicyRef{})
	var due []*lifecycle.Fact
	for _, f := range w.Objects {
		if f.Namespace == namespace && c.decide(f).Action == Delete {
			due = append(due, f)
		}
	}
	slices.SortFunc(due, c.rank)
	out := []types.UID{}
	for _, f := range due {
		out = append(out, f.UID)
	}
	return out
}
