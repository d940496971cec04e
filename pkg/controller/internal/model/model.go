// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package model computes the answer for every object of a world from scratch, as docs/semantics.md explains it. It keeps no state, and
// shares no code with the engine that it checks. Only tests import it.
//
// A recomputation goes over all objects in passes: which policies match them (matches.go), which of them are over a limit (capacity.go),
// when each may be deleted (answer.go), and what follows from that now (decide.go).
package model

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
)

// World is everything that a decision depends on.
type World struct {
	Now time.Time
	// Namespaces are by name. A missing one has not been observed.
	Namespaces map[string]Namespace
	// Objects are the Jobs and Pods. Their UIDs are unique.
	Objects         []*lifecycle.Fact
	CronJobs        []*lifecycle.CronJob
	Policies        []*gc.CleanupPolicy
	ClusterPolicies []*gc.ClusterCleanupPolicy
	// Validated says that all policies have passed validation, so that no question repeats it.
	Validated bool
	Quotas    []*corev1.ResourceQuota
	// Notices are the notices that are stored, by the UID of the object.
	Notices map[types.UID]Notice
	// Matched says since when rules with after: Matched match objects, by the UID of the object and the identity of the rule.
	Matched map[types.UID]map[string]time.Time
	// Recreated are the objects that came back under the same name too often.
	Recreated map[types.UID]bool
}

// Namespace is the part of a namespace that decisions depend on.
type Namespace struct {
	Labels map[string]string
	// Protected is set if the namespace is protected by its name, without a label.
	Protected   bool
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
	Ignore = "Ignore" // the object is no candidate
	Keep   = "Keep"   // never due
	Wait   = "Wait"   // due at Answer.At
	Hold   = "Hold"   // due, but something prevents its deletion
	Delete = "Delete"
	Await  = "Await" // being deleted

	SetDeadline  = "SetDeadline"  // no candidate, but its deadline is to be set, changed or removed
	HoldDeadline = "HoldDeadline" // SetDeadline, but something prevents that
)

// Answer is what happens to an object, and why.
type Answer struct {
	Action, Reason string
	// By is who decides: "namespace/name rule" for a CleanupPolicy, "name rule" for a ClusterCleanupPolicy, "ceiling=name" for a ceiling.
	// The rule is gc.DefaultRuleName for defaults. By is empty if nobody decides, and always with Ignore.
	By string
	// At is when the object becomes or became due because of its TTL, or ends by its new deadline; zero otherwise.
	At time.Time
}

// IsCandidate reports whether the object is a candidate.
func (a Answer) IsCandidate() bool {
	return a.Action != Ignore && a.Action != SetDeadline && a.Action != HoldDeadline
}

// Answers returns the answers for all objects, without what only the controller knows: holds for approval, answers of the API server, and
// doubts about clocks and watches.
func (w *World) Answers() map[types.UID]Answer { return w.recomputation(PolicyRef{}).answers() }

// Previews returns, for each Preview policy, the answers that it would decide if it were the only Preview policy that enforced.
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

// Propagations returns the propagation policies for the objects with the action Delete.
func (w *World) Propagations() map[types.UID]metav1.DeletionPropagation {
	out := map[types.UID]metav1.DeletionPropagation{}
	c := w.recomputation(PolicyRef{})
	for _, f := range w.Objects {
		if c.decide(f).Action == Delete {
			out[f.UID] = c.effectiveAnswer(f).propagation
		}
	}
	return out
}

// DeletionOrder returns the objects of a namespace with the action Delete or SetDeadline, in the order of c.rank by the time from which the
// rule counts that decides, or by creation if that time has not come.
func (w *World) DeletionOrder(namespace string) []types.UID {
	c := w.recomputation(PolicyRef{})
	var due []*lifecycle.Fact
	for _, f := range w.Objects {
		if a := c.decide(f).Action; f.Namespace == namespace && (a == Delete || a == SetDeadline) {
			due = append(due, f)
		}
	}
	slices.SortFunc(due, func(a, b *lifecycle.Fact) int {
		return c.rank(a, b, c.candidateSince)
	})
	out := []types.UID{}
	for _, f := range due {
		out = append(out, f.UID)
	}
	return out
}

func (c *recomputation) candidateSince(f *lifecycle.Fact) time.Time {
	at, by := c.endedAt(f), c.decide(f).By
	for _, v := range c.matches[f.UID] {
		if by == v.policy.String()+" "+v.rule {
			at = c.countsFrom(v, f)
		}
	}
	if at.IsZero() {
		return f.Created
	}
	return at
}
