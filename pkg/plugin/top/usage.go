// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package top

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
	"github.com/winnow-dev/winnow/pkg/plugin/local"
)

// usage is a row of top: the objects of a namespace that policies decide for, or of one cluster policy those in namespaces that its status
// does not list.
type usage struct {
	Namespace     string `json:"namespace,omitempty"`
	ClusterPolicy string `json:"clusterPolicy,omitempty"`
	Candidates    int64  `json:"candidates"`
	Due           int64  `json:"due"`
	Held          int64  `json:"held"`
	// AtLeast says that the namespace has more candidates than were read, so that these three are minimums.
	AtLeast bool `json:"atLeast,omitempty"`
	// Capacity is the fullest limit that is known.
	Capacity *fullness `json:"capacity,omitempty"`
	// DeletedPerMinute is not set until it was measured for some seconds.
	DeletedPerMinute *int64 `json:"deletedPerMinute,omitempty"`
	// Deleted is how many objects the policies have ever deleted.
	Deleted int64 `json:"deleted"`
	// Next is when the next candidate becomes due.
	Next *metav1.Time `json:"next,omitempty"`
	// policies have counters of what they deleted. A cluster policy has one for all namespaces together, in its own row.
	policies []types.UID
	// listed is what a cluster policy counts in the rows of namespaces.
	listed v1alpha1.NamespaceStatus
	// sampled says that Capacity was looked for.
	sampled bool
}

// fullness is how full a limit by count is.
type fullness struct {
	Policy     string `json:"policy"`
	Rule       string `json:"rule,omitempty"`
	Resource   string `json:"resource"`
	Objects    int64  `json:"objects"`
	MaxObjects int64  `json:"maxObjects"`
}

// percent is how much of the limit is used.
func (f *fullness) percent() int64 {
	if f.MaxObjects == 0 {
		return 100 * min(f.Objects, 1)
	}
	return f.Objects * 100 / f.MaxObjects
}

// fuller returns the fuller of two limits, of which the first may be nil.
func fuller(f *fullness, other fullness) *fullness {
	if f == nil || other.percent() > f.percent() || other.percent() == f.percent() && other.MaxObjects > f.MaxObjects {
		return &other
	}
	return f
}

// title names the row.
func (u *usage) title() string {
	if u.ClusterPolicy != "" {
		return gc.PolicyName(gc.KindClusterCleanupPolicy, u.ClusterPolicy)
	}
	return u.Namespace
}

// backlog is how many objects are about to be deleted.
func (u *usage) backlog() int64 { return max(u.Due-u.Held, 0) }

// usagesOf returns the rows for policies. Those in Preview mode do not count: they delete nothing, and others may count the same objects.
func usagesOf(s *local.Statuses) []usage {
	rows, byNamespace := []usage{}, map[string]int{}
	rowOf := func(namespace string) *usage {
		at, ok := byNamespace[namespace]
		if !ok {
			at = len(rows)
			rows, byNamespace[namespace] = append(rows, usage{Namespace: namespace}), at
		}
		return &rows[at]
	}
	for i := range s.Policies {
		if p := &s.Policies[i]; p.Spec.Mode != v1alpha1.ModePreview {
			rowOf(p.Namespace).add(p.UID, &p.Status)
		}
	}
	for i := range s.ClusterPolicies {
		p := &s.ClusterPolicies[i]
		if p.Spec.Mode == v1alpha1.ModePreview || p.Status.Candidates+p.Status.Deleted == 0 && len(p.Status.Ceilings) == 0 {
			continue
		}
		u := usage{ClusterPolicy: p.Name, sampled: true}
		u.add(p.UID, &p.Status)
		for _, n := range p.Status.Namespaces {
			u.moveTo(rowOf(n.Namespace), n)
		}
		for _, c := range p.Status.Ceilings {
			u.Capacity = fuller(u.Capacity, fullness{
				Policy: u.title(), Resource: c.Resource, Objects: c.Objects, MaxObjects: c.MaxObjects,
			})
		}
		rows = append(rows, u)
	}
	return rows
}

// sortUsages puts those with the most to delete first. A cluster policy is sorted by its objects in all namespaces, because its row shows
// how fast they are deleted.
func sortUsages(rows []usage) {
	slices.SortFunc(rows, func(a, b usage) int {
		return cmp.Or(
			cmp.Compare(b.Due+b.listed.Due, a.Due+a.listed.Due),
			cmp.Compare(b.Candidates+b.listed.Candidates, a.Candidates+a.listed.Candidates),
			cmp.Compare(a.title(), b.title()),
		)
	})
}

// moveTo counts what a cluster policy decides in a namespace in the row of that namespace, and not in its own.
func (u *usage) moveTo(row *usage, n v1alpha1.NamespaceStatus) {
	row.Candidates, row.Due, row.Held = row.Candidates+n.Candidates, row.Due+n.Due, row.Held+n.Held
	u.Candidates, u.Due, u.Held = u.Candidates-n.Candidates, u.Due-n.Due, u.Held-n.Held
	u.listed.Candidates, u.listed.Due = u.listed.Candidates+n.Candidates, u.listed.Due+n.Due
}

// add adds what the status of a policy counts.
func (u *usage) add(policy types.UID, s *v1alpha1.CleanupPolicyStatus) {
	u.policies = append(u.policies, policy)
	u.Candidates, u.Due, u.Held, u.Deleted = u.Candidates+s.Candidates, u.Due+s.Due, u.Held+s.Held, u.Deleted+s.Deleted
	u.next(s.NextDeletionTime)
}

func (u *usage) next(at *metav1.Time) {
	if at != nil && (u.Next == nil || at.Before(u.Next)) {
		u.Next = at
	}
}

// addSample takes from the first candidates of a namespace how full limits are.
func (u *usage) addSample(candidates []v1alpha1.CleanupCandidate) {
	u.sampled, u.Capacity = true, nil
	for i := range candidates {
		s := &candidates[i].Status
		for _, l := range s.Limits {
			if l.MaxObjects != nil && l.Policy.Mode != v1alpha1.ModePreview {
				u.Capacity = fuller(u.Capacity, fullness{
					Policy: gc.PolicyName(l.Policy.Kind, l.Policy.Name), Rule: l.Policy.Rule, Resource: s.Object.Resource,
					Objects: l.Objects, MaxObjects: *l.MaxObjects,
				})
			}
		}
	}
}

// addOthers counts the candidates of a namespace that only cluster policies decide for: a user with access to one namespace may not read
// the status of cluster policies.
func (u *usage) addOthers(candidates []v1alpha1.CleanupCandidate, more bool) {
	for i := range candidates {
		s := &candidates[i].Status
		if by := s.DecidedBy; by != nil && (by.Kind == gc.KindCleanupPolicy || by.Mode == v1alpha1.ModePreview) {
			continue
		}
		u.Candidates++
		u.AtLeast = more
		switch s.State {
		case v1alpha1.CandidateHeld:
			u.Due, u.Held = u.Due+1, u.Held+1
		case v1alpha1.CandidateDue, v1alpha1.CandidateTerminating:
			u.Due++
		case v1alpha1.CandidateNotified: // It is not due yet, or held until its notice is over.
			if s.Reason == string(policy.ReasonNotified) {
				u.Due, u.Held = u.Due+1, u.Held+1
			} else {
				u.next(s.DueTime)
			}
		case v1alpha1.CandidateWaiting:
			u.next(s.DueTime)
		case v1alpha1.CandidateKept, v1alpha1.CandidateNone:
		}
	}
}

// total returns the sum of rows.
func total(rows []usage) usage {
	var all usage
	for i := range rows {
		u := &rows[i]
		all.Candidates, all.Due, all.Held, all.Deleted = all.Candidates+u.Candidates, all.Due+u.Due, all.Held+u.Held, all.Deleted+u.Deleted
		all.AtLeast = all.AtLeast || u.AtLeast
		if u.DeletedPerMinute != nil {
			if all.DeletedPerMinute == nil {
				all.DeletedPerMinute = new(int64)
			}
			*all.DeletedPerMinute += *u.DeletedPerMinute
		}
		all.next(u.Next)
	}
	return all
}
