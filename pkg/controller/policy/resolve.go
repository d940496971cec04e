// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/lifecycle"
)

// Object is a fact together with what is known about the object from elsewhere.
type Object struct {
	*lifecycle.Fact
	// Owner is the state of its controller.
	Owner lifecycle.Ownership
	// Recreated is set if the object came back under its name each time it was deleted.
	Recreated bool
}

// Standing combines the votes on an object, before ceilings, guardrails and the time are applied.
type Standing struct {
	Object
	// latest is the latest answer of the votes, and by is who gives it; empty if there are no votes.
	latest answer
	by     Resolution
	// latestWithoutQuotas is the latest answer if percentOfQuota limits nothing.
	latestWithoutQuotas answer
	// unlimited is set if a vote keeps the object forever, and limits no number. outside is the first vote that limits only the number, and
	// whose pool does not count the object; empty if there is none.
	unlimited bool
	outside   Resolution
	// annotationTTL is the strictest of the votes.
	annotationTTL gc.AnnotationTTLMode
	// withOwner is set if any vote leaves the object to its owner.
	withOwner bool
	// managedElsewhere is Delete only if all votes say so.
	managedElsewhere gc.ManagedElsewherePolicy
	annotations      annotations
	// doubt is why it is not known which rule matches; empty if it is known.
	doubt doubt
	// after is what durations are counted from that are not those of one rule: the last of what the votes count from.
	after gc.After
	// deadline is how long the object may run, and deadlineBy is who says so; zero if not all votes say so.
	deadline   time.Duration
	deadlineBy Resolution
}

// afterOrder orders what happens to an object: it is created, becomes unused, and finishes. What can become unused never finishes, so with
// votes of both kinds it is no candidate.
var afterOrder = map[gc.After]int{gc.AfterCreated: 0, gc.AfterUnused: 1, gc.AfterFinished: 2}

var strictness = map[gc.AnnotationTTLMode]int{gc.AnnotationAny: 0, gc.AnnotationExtendOnly: 1, gc.AnnotationIgnore: 2}

// Resolve combines the votes on an object. Without votes, the options have the API's defaults.
func Resolve(o Object, votes []Vote) Standing {
	s := Standing{
		Object: o, latest: answer{never: true}, latestWithoutQuotas: answer{never: true},
		annotationTTL: gc.AnnotationExtendOnly, withOwner: true, managedElsewhere: gc.ManagedElsewhereHold, after: gc.AfterFinished,
	}
	for i := range votes {
		s.add(&votes[i])
	}
	if s.annotationTTL != gc.AnnotationIgnore {
		s.annotations = readAnnotations(o.Fact)
	}
	return s
}

// With returns the Standing if a Preview policy had a vote too. A policy of the namespace then replaces the votes of cluster policies.
func (s *Standing) With(v Vote) Standing {
	if s.by.Policy != nil && s.by.Policy.Cluster != nil && v.Policy.Cluster == nil {
		return Resolve(s.Object, []Vote{v})
	}
	out := *s
	if out.add(&v); out.annotationTTL == gc.AnnotationIgnore {
		out.annotations = annotations{}
	}
	return out
}

// add adds a vote.
func (s *Standing) add(v *Vote) {
	first := s.by.Policy == nil
	if first || strictness[v.Policy.annotationTTL] > strictness[s.annotationTTL] {
		s.annotationTTL = v.Policy.annotationTTL
	}
	if first || v.Rule.managedElsewhere != gc.ManagedElsewhereDelete {
		s.managedElsewhere = v.Rule.managedElsewhere
	}
	if s.doubt.reason == "" {
		s.doubt = v.doubt
	}
	s.withOwner = v.Rule.withOwner || !first && s.withOwner
	if first || afterOrder[v.Rule.after] > afterOrder[s.after] {
		s.after = v.Rule.after
	}
	s.addDeadline(v, first)
	s.addAnswer(v, first)
	s.addLimit(v)
}

// addAnswer adds the answer of a vote.
func (s *Standing) addAnswer(v *Vote, first bool) {
	a := v.answer(&s.Object)
	if sure := v.answerWithoutQuotas(&s.Object); first || sure.laterThan(s.latestWithoutQuotas) {
		s.latestWithoutQuotas = sure
	}
	if first || s.decides(v, a) {
		s.latest, s.by = a, Resolution{Policy: v.Policy, Rule: v.Rule, Propagation: v.Rule.propagation}
	}
}

// addLimit adds whether a vote limits anything for the object.
func (s *Standing) addLimit(v *Vote) {
	switch {
	case !v.Rule.ttl.never:
	case v.Rule.Capacity == nil:
		s.unlimited = true
	case !v.Counted && s.outside.Rule == nil:
		s.outside = Resolution{Policy: v.Policy, Rule: v.Rule}
	}
}

// decides reports whether a vote decides instead of those added before: the later answer does, and of equal answers the policy whose
// name comes first.
func (s *Standing) decides(v *Vote, a answer) bool {
	return a.laterThan(s.latest) || !s.latest.laterThan(a) && v.Policy.Name < s.by.Policy.Name
}

// answerWithoutQuotas returns the answer of a vote if percentOfQuota limits nothing.
func (v *Vote) answerWithoutQuotas(o *Object) answer {
	if v.Over && v.Rule.Capacity.PercentOfQuota != 0 {
		return (&Vote{Policy: v.Policy, Rule: v.Rule}).answer(o)
	}
	return v.answer(o)
}

// since is what the TTL of the annotation, minTTL and maxTTL are counted from.
func (s *Standing) since() time.Time { return s.Object.since(s.after) }

// since is what a TTL is counted from.
func (o *Object) since(after gc.After) time.Time {
	switch after {
	case gc.AfterCreated:
		return o.notBeforeOwner(o.Created)
	case gc.AfterUnused:
		return o.Usage.Since
	case gc.AfterFinished:
	}
	return o.EndedAt()
}

// EndedAt is when the object finished or, if that is later, when its controller did, which needed it until then; zero if it has not
// finished, or nobody knows when.
func (o *Object) EndedAt() time.Time { return o.notBeforeOwner(o.FinishedAt) }

// notBeforeOwner returns at, unless it is not zero and the controller finished later.
func (o *Object) notBeforeOwner(at time.Time) time.Time {
	if at.IsZero() || at.After(o.Owner.FinishedAt) {
		return at
	}
	return o.Owner.FinishedAt
}

// excluded returns why the object is no candidate, whatever the policies say; empty if it may be one.
func (s *Standing) excluded() Reason {
	switch {
	case s.after == gc.AfterFinished && !s.Finished && s.Failed == "":
		return ReasonNotFinished
	case s.after == gc.AfterUnused && s.Usage.State == lifecycle.InUse:
		return ReasonInUse
	case s.leftToOwner():
		return ReasonLeftToOwner
	}
	return ""
}

// leftToOwner reports whether the object goes only with its controller.
func (s *Standing) leftToOwner() bool {
	switch s.Owner.State {
	case lifecycle.OwnerRunning, lifecycle.OwnerAbsent:
		return true
	case lifecycle.OwnerFinished, lifecycle.OwnerInDoubt:
		return s.withOwner
	case lifecycle.OwnerNone, lifecycle.OwnerUnknown:
	}
	return false
}

// failed returns why it is not known which rule decides, or whether the object has finished; empty if both are known.
func (s *Standing) failed() (reason Reason, detail string) {
	if s.Failed != "" {
		return ReasonExpressionError, s.Failed
	}
	return s.doubt.reason, s.doubt.detail
}

// unclear returns why it is not known when the object is due; empty if it is known.
func (s *Standing) unclear() (reason Reason, detail string) {
	if reason, detail := s.failed(); reason != "" {
		return reason, detail
	}
	switch {
	case s.Doubt != "" && s.after != gc.AfterCreated:
		return ReasonFinishTimeUnknown, s.Doubt
	case s.after == gc.AfterCreated && s.Created.IsZero():
		return ReasonFinishTimeUnknown, "it has no creation time"
	case s.after == gc.AfterUnused && s.Usage.State == lifecycle.UsageUnknown && s.Usage.Since.IsZero():
		return ReasonReferrersUnknown, ""
	}
	return "", ""
}

// Unevaluated reports whether it is not known yet which rule matches, because match conditions have not been evaluated.
func (s *Standing) Unevaluated() bool { return s.doubt.reason == ReasonUnobserved }

// hold returns why the object may not be deleted in its present state; empty if it may.
func (s *Standing) hold() (reason Reason, detail string) {
	if reason, detail := s.unclear(); reason != "" {
		return reason, detail
	}
	switch {
	case s.after == gc.AfterUnused && s.Usage.State == lifecycle.UsageUnknown:
		return ReasonReferrersUnknown, ""
	case s.annotations.malformed != "":
		return ReasonInvalidAnnotation, s.annotations.malformed
	case s.Owner.State == lifecycle.OwnerUnknown, s.Owner.State == lifecycle.OwnerInDoubt:
		return ReasonOwnerActive, s.Owner.Detail
	case s.Uncounted:
		return ReasonUncounted, "the Job controller has not counted this Pod yet"
	case s.Contradictory:
		return ReasonConflictingFinalizers,
			"it has both finalizers orphan and foregroundDeletion, and a delete would remove one of them; remove the one you do not want"
	case s.Applied != "" && s.managedElsewhere != gc.ManagedElsewhereDelete:
		return ReasonManagedElsewhere, s.Applied + ` would create it again; to delete it anyway, set managedElsewhere: Delete in a rule for it`
	case s.Recreated && s.managedElsewhere != gc.ManagedElsewhereDelete:
		return ReasonRecreateLoop, "within a minute of each deletion something created it again; stop that, use a new name each time, or " +
			"set managedElsewhere: Delete in a rule for it"
	}
	return "", ""
}

// Counting is how limits count an object.
type Counting struct {
	// Counts is set if ceilings count the object.
	Counts bool
	// KeptByAnnotation is set if its annotations keep the object, so that pools do not count it.
	KeptByAnnotation bool
	// Until is when Counts or Kept changes because time passes; zero if never.
	Until time.Time
}

// InPools reports whether pools count the object, and not only ceilings.
func (c Counting) InPools() bool { return c.Counts && !c.KeptByAnnotation }

// Counting returns how limits count the object at now. Guardrails limit how long its annotations keep it.
func (s *Standing) Counting(b *Bounds, now time.Time) Counting {
	if reason, _ := s.hold(); reason != "" || s.excluded() != "" || s.Terminating || !s.Finished {
		return Counting{}
	}
	ended := s.EndedAt()
	if now.Before(ended) {
		return Counting{Until: ended}
	}
	kept := b.applyMaxTTL(s.annotate(answer{at: ended}), s.since())
	switch {
	case kept.never:
		return Counting{Counts: true, KeptByAnnotation: true}
	case now.Before(kept.at):
		return Counting{Counts: true, KeptByAnnotation: true, Until: kept.at}
	}
	return Counting{Counts: true}
}

// Resolution is who decides for an object.
type Resolution struct {
	// Policy is nil if none decides.
	Policy *Policy
	// Rule is nil if a ceiling of Policy decides.
	Rule *Rule
	// Native is set if the native TTL has replaced the policy's answer.
	Native      bool
	Propagation metav1.DeletionPropagation
}

// RuleName returns the name of the rule; empty for a ceiling.
func (r *Resolution) RuleName() string {
	if r.Rule == nil {
		return ""
	}
	return r.Rule.Name
}
