// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/policy"
)

// candidate explains the decision for a record. alone says that only a few records are explained, so that each may take long.
func (e *Engine) candidate(rec *record, alone bool) gc.CleanupCandidate {
	f := rec.Fact()
	out := gc.CleanupCandidate{ObjectMeta: metav1.ObjectMeta{
		Name: string(f.UID), Namespace: f.Namespace, Labels: rec.LabelSet(), CreationTimestamp: metav1.NewTime(f.Created),
	}}
	p, d := rec.decider()
	preview := p != nil && rec.policy == nil
	if preview {
		d = e.withUsage(rec, d)
	} else {
		d = e.explain(rec)
	}
	out.Status = gc.CleanupCandidateStatus{
		Object:  gc.CandidateObject{Resource: f.Resource, Name: f.Name, ResourceVersion: strconv.FormatUint(f.ResourceVersion, 10)},
		State:   states[d.Action],
		Reason:  string(d.Reason),
		Message: d.Sentence(),
		Outcome: f.Outcome, DueTime: timeOrNil(gc.WholeSecond(d.At)), Finalizers: f.Finalizers,
		ObservedTime: timeOrNil(e.watches.HeardAt(f.Resource)),
		Owner:        e.candidateOwner(f), Limits: candidateLimits(rec, alone),
	}
	if out.Status.State == gc.CandidateNone {
		out.Status.DueTime = nil // It may be the time of a deadline.
	}
	if rec.ns.excluded() == "" {
		e.explainVotes(rec, p, d, preview, &out.Status)
	}
	return out
}

// explainVotes adds what the policies say about a record. p decides d; preview says that it is a Preview policy.
func (e *Engine) explainVotes(rec *record, p *policy.Policy, d policy.Decision, preview bool, s *gc.CleanupCandidateStatus) {
	ns, standing, votes := rec.ns, e.resolve(rec), e.asked.matches.Votes
	limits, at := e.limitsOn(rec), decidedAt(d)
	decider := rec.resolution()
	if preview {
		if i := slices.IndexFunc(e.asked.matches.Previews, func(v policy.Vote) bool { return v.Policy == p }); i >= 0 {
			v := e.asked.matches.Previews[i]
			standing, votes = standing.With(v), []policy.Vote{v}
			decider, _ = standing.Decide(limits, at)
		}
	}
	if decider.Policy != nil && decider.Policy.Name != "" {
		name := policy.Name(decider.Policy, decider.Rule)
		s.DecidedBy, s.PropagationPolicy = &name, decider.Propagation
	}
	after, since := standing.Since()
	s.After, s.Since = after, timeOrNil(gc.WholeSecond(since))
	s.TTL = standing.EffectiveTTL(votes, &ns.bounds)
	s.Policies = append(e.unreadablePolicies(ns), standing.Consider(&e.asked.matches, policy.Asked{
		Own: ns.voters, Previews: ns.previews, Cluster: ns.clusterVoters, ClusterPreviews: ns.clusterPreviews,
	})...)
	s.Adjustments = standing.Adjustments(limits, at)
	explainCount(rec, &standing, s)
	if preview {
		s.Message += "; nothing is deleted, because the policy is in Preview mode"
	}
	// Only the leader knows whether a request has failed.
	if s.State == gc.CandidateDue && e.following && !preview {
		s.Message += "; the replica that leads deletes it, and the status of the policy says so if it cannot"
	}
	if s.State != gc.CandidateWaiting {
		return
	}
	if reason, detail := standing.WhenDue(); reason != "" {
		detail = cmp.Or(detail, e.withUsage(rec, policy.Decision{Reason: reason}).Detail)
		s.Message += fmt.Sprintf(". When it is due, it will be held (%s): %s", reason, detail)
		return
	}
	s.Message += ". " + standing.Extension(limits)
}

// explainCount says why no ceiling counts a record although there is one, and where its finish time comes from if it does not say that
// itself.
func explainCount(rec *record, standing *policy.Standing, s *gc.CleanupCandidateStatus) {
	if s.Reason == string(policy.ReasonUnderCeiling) && !rec.inCeiling() {
		why := "its finish time is in the future"
		if reason, detail := standing.WhenDue(); reason != "" {
			why = detail
		}
		s.Message = "No policy matches it, and no ceiling counts it: " + why
	}
	if after, _ := standing.Since(); after == gc.AfterFinished && standing.FirstSeen != nil {
		s.Message += "; " + standing.FirstSeen.Why + ", so it counts from when Winnow first saw it finished"
	}
}

// unreadablePolicies returns the policies of a namespace that cannot be read.
func (e *Engine) unreadablePolicies(ns *namespace) []gc.ConsideredPolicy {
	if ns.unreadable == nil {
		return nil
	}
	var out []gc.ConsideredPolicy
	for _, ps := range slices.Concat(ns.policies, e.clusterPolicies) {
		if ps.compiled != nil || !ns.policyUIDs.Has(ps.stored.UID) {
			continue
		}
		kind := gc.KindCleanupPolicy
		if ps.stored.Namespace == "" {
			kind = gc.KindClusterCleanupPolicy
		}
		out = append(out, gc.ConsideredPolicy{
			CandidatePolicy: gc.CandidatePolicy{Kind: kind, Name: ps.stored.Name, Mode: ps.stored.Mode},
			Result:          gc.ConsideredUnreadable, Message: ps.err.Error(),
		})
	}
	return out
}

var ownerStates = map[lifecycle.OwnerState]gc.CandidateOwnerState{
	lifecycle.OwnerNone: gc.CandidateOwnerIndependent, lifecycle.OwnerRunning: gc.CandidateOwnerRunning,
	lifecycle.OwnerFinished: gc.CandidateOwnerFinished, lifecycle.OwnerAbsent: gc.CandidateOwnerAbsent,
	lifecycle.OwnerUnknown: gc.CandidateOwnerUnknown, lifecycle.OwnerInDoubt: gc.CandidateOwnerUnknown,
}

// candidateOwner returns the controller of an object; nil if it has none.
func (e *Engine) candidateOwner(f *lifecycle.Fact) *gc.CandidateOwner {
	if f.Controller == nil {
		return nil
	}
	return &gc.CandidateOwner{
		Kind: f.Controller.GroupKind.String(), Name: f.Controller.Name, State: ownerStates[lifecycle.OwnershipOf(f, e).State],
	}
}

// To find a rank takes a look at every member of a pool. Lists show the rank in pools of so many members. What is asked for alone has ranks
// among so many members together.
const rankMost, rankMostAlone = 1_000, 200_000

// candidateLimits returns the pools and ceilings that count an object; see candidate for alone.
func candidateLimits(rec *record, alone bool) []gc.CandidateLimit {
	var out []gc.CandidateLimit
	memberships, seen := rec.memberships(), int64(0)
	for i := range memberships {
		m := &memberships[i]
		l := gc.CandidateLimit{Over: m.member.Over(), Objects: int64(m.member.Peers())}
		if limit, limited := m.member.Limit(); limited {
			l.MaxObjects = new(int64(limit))
		}
		if alone && seen+l.Objects <= rankMostAlone || l.Objects <= rankMost {
			l.Rank = new(int64(m.member.Rank()))
			seen += l.Objects
		}
		if m.ceiling != nil {
			l.Policy = policy.Name(m.ceiling.policy, nil)
		} else {
			l.Policy, l.Key = rec.ns.nameOfPool(m.pool), m.pool.key
		}
		out = append(out, l)
	}
	return out
}

// nameOfPool names the policy and rule of a pool.
func (ns *namespace) nameOfPool(p *pool) gc.CandidatePolicy {
	for _, of := range slices.Concat(ns.voters, ns.previews, ns.clusterVoters, ns.clusterPreviews) {
		if of.UID == p.policy {
			out := policy.Name(of, nil)
			out.Rule = p.rule
			return out
		}
	}
	return gc.CandidatePolicy{Rule: p.rule} // The policy has changed, and the record is not judged again yet.
}

func timeOrNil(t time.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	return new(metav1.NewTime(t))
}
