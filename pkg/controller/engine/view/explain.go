// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/rules/deletion"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

// Candidate explains the decision for a record. alone says that only a few records are explained, so that each may take long.
func (v *View) Candidate(rec *memory.Record, alone bool) gc.CleanupCandidate {
	f := rec.Fact()
	out := gc.CleanupCandidate{ObjectMeta: metav1.ObjectMeta{
		Name: string(f.UID), Namespace: f.Namespace, Labels: rec.LabelSet(), CreationTimestamp: metav1.NewTime(f.Created),
	}}
	p, _ := rec.Decider()
	d, preview := policy.Decision{}, p != nil && rec.Policy == nil
	if preview {
		d = v.ExplainPreview(rec, rec.Previews()[0])
	} else if d = v.Explain(rec); d.Reason == policy.ReasonNoPolicy {
		d = v.excludedByPreview(rec, d)
	}
	out.Status = gc.CleanupCandidateStatus{
		Object:  gc.CandidateObject{Resource: f.Resource, Name: f.Name, ResourceVersion: strconv.FormatUint(f.ResourceVersion, 10)},
		State:   StateOf(rec),
		Reason:  string(d.Reason),
		Message: d.Sentence(),
		Outcome: f.Outcome, DueTime: timeOrNil(gc.WholeSecond(d.At)), Finalizers: f.Finalizers,
		ObservedTime: timeOrNil(v.Watches.HeardAt(f.Resource)),
		Owner:        v.candidateOwner(f), Limits: candidateLimits(rec, alone),
	}
	if out.Status.State == gc.CandidateNone {
		out.Status.DueTime = nil // It may be the time of a deadline.
	}
	if rec.NS.Excluded() == "" {
		v.explainMatches(rec, p, d, preview, &out.Status)
	}
	return out
}

// excludedByPreview returns why an object that only Preview policies match would be no candidate of the first one either, for example
// because it is in use. d is the decision without them.
func (v *View) excludedByPreview(rec *memory.Record, d policy.Decision) policy.Decision {
	v.Resolve(rec)
	if matches := v.Asked.Matches.Previews; len(matches) > 0 {
		if with := v.ExplainPreview(rec, memory.Preview{Policy: matches[0].Policy}); with.Action == policy.Ignore {
			return with
		}
	}
	return d
}

// explainMatches adds what the policies say about a record. p decides d; preview says that it is a Preview policy.
func (v *View) explainMatches(rec *memory.Record, p *policy.Policy, d policy.Decision, preview bool, s *gc.CleanupCandidateStatus) {
	ns, effective, matches := rec.NS, v.Resolve(rec), v.Asked.Matches.Enforced
	limits, decider := v.LimitsOn(rec), rec.Resolution
	at := effective.DecidedAt(d, decider, limits)
	if preview {
		if i := slices.IndexFunc(v.Asked.Matches.Previews, func(match policy.Match) bool { return match.Policy == p }); i >= 0 {
			match := v.Asked.Matches.Previews[i]
			effective, matches = effective.With(match), []policy.Match{match}
			decider, _ = effective.Decide(limits, at)
		}
	}
	if decider.Policy != nil && decider.Policy.Name != "" {
		name := policy.Name(decider.Policy, decider.Rule)
		s.DecidedBy, s.PropagationPolicy = &name, decider.Propagation
	}
	after, since := effective.Since()
	s.After, s.Since = after, timeOrNil(gc.WholeSecond(since))
	s.TTL = effective.EffectiveTTL(matches, &ns.Bounds)
	s.Policies = append(v.unreadablePolicies(ns), effective.Explain(&v.Asked.Matches, policy.Asked{
		Own: ns.Enforcing, Previews: ns.Previews, Cluster: ns.ClusterEnforcing, ClusterPreviews: ns.ClusterPreviews,
	})...)
	s.Adjustments = effective.Adjustments(limits, at)
	explainRank(s)
	explainCount(rec, &effective, s)
	if preview {
		s.Message += "; nothing is deleted, because the policy is in Preview mode"
	}
	// Only the leader knows whether a request has failed.
	if s.State == gc.CandidateDue && v.Following && !preview {
		s.Message += "; the leader deletes it, and reports any failure in the status of the policy"
	}
	if d.Action == policy.Wait {
		if preview {
			d.Advance = policy.Advance{} // No notice is given.
		}
		s.Message += v.untilDue(rec, p, d, &effective)
	}
	if !preview {
		s.Message += ignoredAnnotation(&effective, matches, &ns.Bounds)
	}
}

// ignoredAnnotation says that an annotation does not have the effect that it asks for, and why; empty if it has. What is decided for an
// annotation that cannot be read says so itself.
func ignoredAnnotation(effective *policy.Effective, matches []policy.Match, b *policy.Bounds) string {
	n, ok := effective.Notice(matches, b)
	if !ok || n.Reason != policy.ReasonAnnotationIgnored {
		return ""
	}
	return ". " + n.Text
}

// untilDue says what follows for a record that waits until it is due, and for which p decides d.
func (v *View) untilDue(rec *memory.Record, p *policy.Policy, d policy.Decision, effective *policy.Effective) string {
	if reason, detail := v.whenDue(rec, p, effective); reason != "" {
		return fmt.Sprintf(". When it is due, it will be held (%s): %s", reason, detail)
	}
	extension := ". " + effective.Extension(v.LimitsOn(rec))
	if opens := rec.NS.OpensFrom(d.At); !opens.Equal(d.At) {
		extension = fmt.Sprintf(". When it is due, it will be held (%s): %s%s", memory.WindowReason(opens), rec.NS.WindowDetail(opens), extension)
	}
	if notice := d.Advance.Detail(); notice != "" {
		return "; " + notice + extension
	}
	return extension
}

// whenDue returns why a record that waits, and for which a policy decides, will be held when it is due, as far as that is known now;
// empty if it will not.
func (v *View) whenDue(rec *memory.Record, p *policy.Policy, effective *policy.Effective) (reason policy.Reason, detail string) {
	if reason, detail = effective.WhenDue(); reason != "" {
		return reason, cmp.Or(detail, v.WithDetail(rec, policy.Decision{Reason: reason}).Detail)
	}
	if detail = v.WhyUnauthorized(rec, p, deletion.VerbOf(false)); detail != "" {
		return policy.ReasonUnauthorized, detail
	}
	if wait := effective.Wait(v.LimitsOn(rec)); wait.Reason != "" {
		return wait.Reason, wait.Detail(rec.Fact())
	}
	return "", ""
}

// explainCount says why no ceiling counts a record although there is one, and where its finish time comes from if the object does not have
// one.
func explainCount(rec *memory.Record, effective *policy.Effective, s *gc.CleanupCandidateStatus) {
	if s.Reason == string(policy.ReasonUnderCeiling) && !rec.InCeiling() {
		why := "its finish time is in the future"
		if reason, detail := effective.WhenDue(); reason != "" {
			why = detail
		}
		s.Message = "No policy matches it, and no ceiling counts it: " + why
	}
	if note := effective.SinceNote(); note != "" {
		s.Message += "; " + note
	}
}

// explainRank says which place an object has that is kept until newer ones replace it.
func explainRank(s *gc.CleanupCandidateStatus) {
	if s.Reason != string(policy.ReasonWithinCapacity) || s.DecidedBy == nil {
		return
	}
	i := slices.IndexFunc(s.Limits, func(l gc.CandidateLimit) bool { return l.Policy == *s.DecidedBy && l.MaxObjects != nil })
	if i < 0 {
		return
	}
	l := &s.Limits[i]
	if l.Rank == nil {
		s.Message += fmt.Sprintf(": it is one of %d, and the limit is %d", l.Objects, *l.MaxObjects)
		return
	}
	s.Message += fmt.Sprintf(": it is the %s of %d, and the limit is %d", newest(*l.Rank), l.Objects, *l.MaxObjects)
}

// newest says a rank: "newest", "2nd newest".
func newest(rank int64) string {
	if rank == 1 {
		return "newest"
	}
	suffix := map[int64]string{1: "st", 2: "nd", 3: "rd"}[rank%10]
	if suffix == "" || rank/10%10 == 1 { // 11th, 12th, 13th
		suffix = "th"
	}
	return fmt.Sprintf("%d%s newest", rank, suffix)
}

// unreadablePolicies returns the policies of a namespace that cannot be read.
func (v *View) unreadablePolicies(ns *memory.Namespace) []gc.ConsideredPolicy {
	if ns.Unreadable == nil {
		return nil
	}
	var out []gc.ConsideredPolicy
	for _, ps := range slices.Concat(ns.Policies, v.ClusterPolicies) {
		if ps.Compiled != nil || !ns.PolicyUIDs.Has(ps.Stored.UID) {
			continue
		}
		kind := gc.KindCleanupPolicy
		if ps.Stored.Namespace == "" {
			kind = gc.KindClusterCleanupPolicy
		}
		out = append(out, gc.ConsideredPolicy{
			CandidatePolicy: gc.CandidatePolicy{Kind: kind, Name: ps.Stored.Name, Mode: ps.Stored.Mode},
			Result:          gc.ConsideredUnreadable, Message: ps.Err.Error(),
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
func (v *View) candidateOwner(f *lifecycle.Fact) *gc.CandidateOwner {
	if f.Controller == nil {
		return nil
	}
	return &gc.CandidateOwner{
		Kind: f.Controller.GroupKind.String(), Name: f.Controller.Name, State: ownerStates[lifecycle.OwnershipOf(f, v).State],
	}
}

// Finding a rank looks at every member of a pool. RankMost is the size of the largest pool in which lists show the rank. rankMostAlone is
// the total size of the pools in which a single candidate shows it.
const RankMost, rankMostAlone = 1_000, 200_000

// candidateLimits returns the pools and ceilings that count an object; see Candidate for alone.
func candidateLimits(rec *memory.Record, alone bool) []gc.CandidateLimit {
	var out []gc.CandidateLimit
	seen := int64(0)
	for m := rec.Membership; m != nil; m = m.Next {
		l := gc.CandidateLimit{Over: m.Member.Over(), Objects: int64(m.Member.Peers())}
		if limit, limited := m.Member.Limit(); limited {
			l.MaxObjects = new(int64(limit))
		}
		if alone && seen+l.Objects <= rankMostAlone || l.Objects <= RankMost {
			l.Rank = new(int64(m.Member.Rank()))
			seen += l.Objects
		}
		if m.Ceiling != nil {
			l.Policy = policy.Name(m.Ceiling.Policy, nil)
		} else {
			l.Policy, l.Key = nameOfPool(rec.NS, m.Pool), m.Pool.Key
		}
		out = append(out, l)
	}
	return out
}

// nameOfPool names the policy and rule of a pool.
func nameOfPool(ns *memory.Namespace, p *memory.Pool) gc.CandidatePolicy {
	for _, of := range ns.AllPolicies() {
		if of.UID == p.Policy {
			out := policy.Name(of, nil)
			out.Rule = p.Rule
			return out
		}
	}
	return gc.CandidatePolicy{Rule: p.Rule} // The policy has changed, and the record is not settled again yet.
}

func timeOrNil(t time.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	return new(metav1.NewTime(t))
}
