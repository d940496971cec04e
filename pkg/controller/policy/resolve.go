// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/lifecycle"
)

// Object is an object with what is known of it beside its own state.
type Object struct {
	*lifecycle.Fact
	// Owner is what its controller means for it.
	Owner lifecycle.OwnerState
	// Recreated says that it came back under its name each time it was deleted.
	Recreated bool
}

// Standing is how an object stands with the policies that vote on it, before any limit or time is looked at.
type Standing struct {
	Object
	// latest is the latest answer of the votes, and by who gives it; nobody when there are none.
	latest answer
	by     Resolution
	// sure is the latest if no share of a quota limits anything.
	sure answer
	// annotationTTL is the strictest of the votes, withOwner set if any leaves the object to its owner, applied the most careful.
	annotationTTL gc.AnnotationTTLMode
	withOwner     bool
	applied       gc.GitOpsManagedPolicy
	// own is what the object's annotations ask for.
	own annotated
}

var strictness = map[gc.AnnotationTTLMode]int{gc.AnnotationAny: 0, gc.AnnotationExtendOnly: 1, gc.AnnotationIgnore: 2}

// Resolve puts together what the votes say of an object. Without votes it stands as the defaults of a policy have it.
func Resolve(o Object, votes []Vote) Standing {
	s := Standing{
		Object: o, latest: answer{never: true}, sure: answer{never: true},
		annotationTTL: gc.AnnotationExtendOnly, withOwner: true, applied: gc.GitOpsManagedHold,
	}
	for i := range votes {
		s.add(&votes[i])
	}
	if s.annotationTTL != gc.AnnotationIgnore {
		s.own = readAnnotations(o.Fact)
	}
	return s
}

// With is how the object would stand if a policy that previews had a vote too. One of the namespace silences cluster policies.
func (s *Standing) With(v Vote) Standing {
	if s.by.Policy != nil && s.by.Policy.Cluster != nil && v.Policy.Cluster == nil {
		return Resolve(s.Object, []Vote{v})
	}
	out := *s
	if out.add(&v); out.annotationTTL == gc.AnnotationIgnore {
		out.own = annotated{}
	}
	return out
}

// add adds a vote.
func (s *Standing) add(v *Vote) {
	first := s.by.Policy == nil
	if first || strictness[v.Policy.annotationTTL] > strictness[s.annotationTTL] {
		s.annotationTTL = v.Policy.annotationTTL
	}
	if first || v.Rule.applied != gc.GitOpsManagedDelete {
		s.applied = v.Rule.applied
	}
	s.withOwner = v.Rule.withOwner || !first && s.withOwner
	theirs := v.answer(s.FinishedAt)
	if sure := v.sureAnswer(s.FinishedAt); first || sure.laterThan(s.sure) {
		s.sure = sure
	}
	if first || s.decides(v, theirs) {
		s.latest, s.by = theirs, Resolution{Policy: v.Policy, Rule: v.Rule, Propagation: v.Rule.propagation}
	}
}

// decides reports whether a vote comes before those that there are: the later answer does, and of two alike that of the first by name.
func (s *Standing) decides(v *Vote, theirs answer) bool {
	return theirs.laterThan(s.latest) || !s.latest.laterThan(theirs) && v.Policy.Name < s.by.Policy.Name
}

// sureAnswer is the answer of a policy without what rests on a quota.
func (v *Vote) sureAnswer(finished time.Time) answer {
	if v.Over && v.Rule.Capacity.PercentOfQuota != 0 {
		return (&Vote{Policy: v.Policy, Rule: v.Rule}).answer(finished)
	}
	return v.answer(finished)
}

// excluded is why the object is no candidate; empty when it is one, if anything asks for it.
func (s *Standing) excluded() Reason {
	switch {
	case !s.Finished:
		return ReasonNotFinished
	case s.Owner == lifecycle.OwnerRunning, s.Owner == lifecycle.OwnerAbsent, s.Owner == lifecycle.OwnerFinished && s.withOwner:
		return ReasonLeftToOwner
	}
	return ""
}

// hold is what forbids to delete the object for as long as it stays as it is; empty when nothing does.
func (s *Standing) hold() (reason Reason, detail string) {
	switch {
	case s.Doubt != "":
		return ReasonFinishTimeUnknown, s.Doubt
	case s.own.malformed != "":
		return ReasonInvalidAnnotation, s.own.malformed
	case s.Owner == lifecycle.OwnerUnknown:
		return ReasonOwnerActive, s.Controller.String() + " is of a kind that Winnow does not observe"
	case s.Uncounted:
		return ReasonUncounted, "the Job controller has not counted this Pod yet"
	case s.Contradictory:
		return ReasonConflictingFinalizers,
			"it has both finalizers orphan and foregroundDeletion, and a delete would remove one of them; remove the one you do not want"
	case s.Applied != "" && s.applied != gc.GitOpsManagedDelete:
		return ReasonManagedByGitOps, s.Applied + ` would create it again; to delete it anyway, set gitOpsManaged: Delete in the rule`
	case s.Recreated:
		return ReasonRecreateLoop, "something creates it again under the same name each time it is deleted; " +
			"stop that, or use a new name each time"
	}
	return "", ""
}

// Counting is how capacity counts an object: not before a time, if that is yet to come, and no pool while its annotations keep it.
type Counting struct {
	Counts, Kept bool
	// Until is when that changes by itself; zero for never.
	Until time.Time
}

// InPools reports whether pools count the object, and not only ceilings.
func (c Counting) InPools() bool { return c.Counts && !c.Kept }

// Counting is how the object is counted at now. What its annotations ask for stands only as long as the bounds let it.
func (s *Standing) Counting(b *Bounds, now time.Time) Counting {
	if reason, _ := s.hold(); reason != "" || s.excluded() != "" || s.Terminating {
		return Counting{}
	}
	if now.Before(s.FinishedAt) {
		return Counting{Until: s.FinishedAt}
	}
	kept := b.cut(s.annotate(answer{at: s.FinishedAt}), s.FinishedAt)
	switch {
	case kept.never:
		return Counting{Counts: true, Kept: true}
	case now.Before(kept.at):
		return Counting{Counts: true, Kept: true, Until: kept.at}
	}
	return Counting{Counts: true}
}

// Resolution is who decides for an object.
type Resolution struct {
	// Policy decides by its Rule; nil when none does, or before any policy is asked.
	Policy *Policy
	// Rule is nil where a ceiling of Policy decides.
	Rule *Rule
	// Native says that the TTL of the object's own spec has replaced the policy's.
	Native bool
	// Propagation of the deletion.
	Propagation metav1.DeletionPropagation
}

// RuleName names the rule, or nothing for a ceiling.
func (r *Resolution) RuleName() string {
	if r.Rule == nil {
		return ""
	}
	return r.Rule.Name
}
