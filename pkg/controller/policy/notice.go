// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"slices"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/lifecycle"
)

// Notice tells the owner of an object that its annotation cannot be read or does not do what it says.
type Notice struct {
	// Policy is why the annotation has no effect, or whose deletion it prevents.
	Policy *Policy
	Reason Reason
	Text   string
}

// Notice returns the notice for an object that was resolved with these votes. It returns false if the annotations do what they say, if
// that is not known yet, or if no enforcing policy matches the object.
func (s *Standing) Notice(votes []Vote, b *Bounds) (Notice, bool) {
	if len(votes) == 0 || s.TTL == nil && s.KeepUntil == nil || s.Terminating {
		return Notice{}, false
	}
	n := Notice{Policy: s.by.Policy, Reason: ReasonAnnotationIgnored}
	switch {
	case s.annotations.malformed != "":
		n.Reason = ReasonInvalidAnnotation
		n.Text = fmt.Sprintf("%s does not delete this object until you correct or remove %s", n.Policy.title(), s.annotations.malformed)
	case s.annotationTTL == gc.AnnotationIgnore:
		i := slices.IndexFunc(votes, func(v Vote) bool { return v.Policy.annotationTTL == gc.AnnotationIgnore })
		n.Policy = votes[i].Policy
		n.Text = fmt.Sprintf(
			"%s has no effect: %s ignores annotations. Remove the annotation, or set spec.annotationTTL of the policy to %s or %s.",
			s.quote(),
			n.Policy.title(),
			gc.AnnotationExtendOnly,
			gc.AnnotationAny,
		)
	case s.deletedWithJob():
		n.Text = fmt.Sprintf("%s has no effect: this Pod is deleted together with %s. Annotate the Job instead.", s.quote(), s.Controller)
	case s.Endless:
		n.Text = s.endlessText()
	case s.NativeTTL != nil:
		n.Text = s.nativeTTLText()
	default:
		if n.Text = s.tooShortText(votes); n.Text == "" {
			n.Text = s.tooLongText(b)
		}
	}
	return n, n.Text != ""
}

// quote returns an annotation as it was written: the TTL if the object has both.
func (s *Standing) quote() string {
	if s.TTL != nil {
		return s.quoteTTL()
	}
	return s.quoteKeepUntil()
}

func (s *Standing) quoteTTL() string {
	return fmt.Sprintf("Annotation %s: %q", gc.AnnotationTTL, *s.TTL)
}

func (s *Standing) quoteKeepUntil() string {
	return fmt.Sprintf("Annotation %s: %q", gc.AnnotationKeepUntil, *s.KeepUntil)
}

// deletedWithJob reports whether the object is a Pod that is deleted together with its Job.
func (s *Standing) deletedWithJob() bool {
	return s.Controller != nil && s.Controller.Kind == "Job" && s.withOwner && s.leftToOwner() && s.Owner.State != lifecycle.OwnerAbsent
}

// endlessText is for a Pod that does not finish by itself.
func (s *Standing) endlessText() string {
	remedy := "Delete the Pod yourself, or create it with restartPolicy: OnFailure or Never."
	if s.Controller != nil {
		remedy = fmt.Sprintf("To remove the Pod, scale down or delete %s.", s.Controller)
	}
	return s.quote() + " has no effect while this Pod runs: the TTL counts from when the Pod finishes, and a Pod with restartPolicy: Always " +
		"does not finish by itself. " + remedy
}

// nativeTTLText is for a Job whose ttlSecondsAfterFinished ends before the annotation does, or after it if annotations can only extend;
// empty for other Jobs.
func (s *Standing) nativeTTLText() string {
	native := ttl{duration: *s.NativeTTL}
	const field = "spec.ttlSecondsAfterFinished"
	given := ""
	switch {
	case s.shortens(native):
		return fmt.Sprintf("%s has no effect: %s keeps this Job for %s, and an annotation can only keep it longer (annotationTTL: %s). "+
			"Change that field instead.", s.quoteTTL(), field, native, gc.AnnotationExtendOnly)
	case s.annotations.ttl != nil && s.annotations.ttl.laterThan(native):
		given = s.quoteTTL()
	case s.keepsBeyond(native):
		given = s.quoteKeepUntil()
	default:
		return ""
	}
	return fmt.Sprintf("%s has no effect: Kubernetes deletes this Job %s after it finishes, because of %s. Raise or remove that field.",
		given, native, field)
}

// keepsBeyond reports whether keep-until is after the end of a TTL.
func (s *Standing) keepsBeyond(t ttl) bool {
	return s.Finished && s.annotations.keepUntil.After(s.EndedAt().Add(t.duration))
}

// tooShortText is for an annotation that is shorter than the policies' own TTL, and can only extend it; empty otherwise.
func (s *Standing) tooShortText(votes []Vote) string {
	longest := &votes[0]
	for i := range votes {
		if v := &votes[i]; v.keepsAtLeast().laterThan(longest.keepsAtLeast()) {
			longest = v
		}
		if !s.Finished && votes[i].Rule.outcome != "" {
			return "" // Another rule may match once the outcome is known.
		}
	}
	least := longest.keepsAtLeast()
	if !s.shortens(least) {
		return ""
	}
	keeps := fmt.Sprintf("keeps this object for %s, and an annotation can only keep it longer", least)
	if least.never {
		keeps = "never deletes this object, and an annotation cannot change that"
	}
	return fmt.Sprintf("%s has no effect: %s %s (annotationTTL: %s). Set a longer time, or set annotationTTL of the policy to %s.",
		s.quoteTTL(), longest.title(), keeps, gc.AnnotationExtendOnly, gc.AnnotationAny)
}

// shortens reports whether the annotated TTL is shorter than t, and can only extend it.
func (s *Standing) shortens(t ttl) bool {
	return s.annotations.ttl != nil && s.annotationTTL == gc.AnnotationExtendOnly && t.laterThan(*s.annotations.ttl)
}

// keepsAtLeast returns how long a vote keeps an object, however many objects are in its pool.
func (v *Vote) keepsAtLeast() ttl {
	if c := v.Rule.Capacity; c != nil && v.Rule.ttl.laterThan(ttl{duration: c.minAge}) {
		return ttl{duration: c.minAge}
	}
	return v.Rule.ttl
}

// tooLongText is for an annotation that maxTTL cuts; empty otherwise.
func (s *Standing) tooLongText(b *Bounds) string {
	if b.maxTTL.never {
		return ""
	}
	limited := fmt.Sprintf("keeps this object for %s only: ClusterCleanupPolicy %q sets guardrails.maxTTL. Save what you need before then.",
		b.maxTTL, b.maxTTLPolicy)
	switch {
	case s.annotations.ttl != nil && s.annotations.ttl.laterThan(b.maxTTL) && (b.forbidNever || !s.annotations.ttl.never):
		return s.quoteTTL() + " " + limited
	case s.keepsBeyond(b.maxTTL):
		return s.quoteKeepUntil() + " " + limited
	}
	return ""
}

// title names the rule and policy of a vote in messages.
func (v *Vote) title() string {
	if v.Rule.Name == gc.DefaultRuleName {
		return v.Policy.title()
	}
	return fmt.Sprintf("rule %q of %s", v.Rule.Name, v.Policy.title())
}

// title names the policy in messages.
func (p *Policy) title() string {
	if p.Cluster != nil {
		return fmt.Sprintf("ClusterCleanupPolicy %q", p.Name)
	}
	return fmt.Sprintf("CleanupPolicy %q", p.Name)
}

// String formats the duration as users write it.
func (t ttl) String() string { return gc.FormatDuration(t.duration) }
