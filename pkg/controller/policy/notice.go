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
	// Policy is the one that makes it so.
	Policy *Policy
	Reason Reason
	Text   string
}

// Notice looks at the annotations of an object that was resolved with these votes. It reports false if they do what they say, if that
// cannot be told yet, and if no policy that enforces matches the object.
func (s *Standing) Notice(votes []Vote, b *Bounds) (Notice, bool) {
	if len(votes) == 0 || s.TTL == nil && s.KeepUntil == nil || s.Terminating {
		return Notice{}, false
	}
	n := Notice{Policy: s.by.Policy, Reason: ReasonAnnotationIgnored}
	switch {
	case s.own.malformed != "":
		n.Reason = ReasonInvalidAnnotation
		n.Text = fmt.Sprintf("%s does not delete this object until you correct or remove %s", n.Policy.title(), s.own.malformed)
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
	case s.goesWithJob():
		n.Text = fmt.Sprintf("%s has no effect: this Pod is deleted together with %s. Annotate the Job instead.", s.quote(), s.Controller)
	case s.Endless:
		n.Text = s.endless()
	case s.NativeTTL != nil:
		n.Text = s.beyondNative()
	default:
		if n.Text = s.tooShort(votes); n.Text == "" {
			n.Text = s.tooLong(b)
		}
	}
	return n, n.Text != ""
}

// quote is an annotation as it was written; of two that of the TTL.
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

// goesWithJob reports whether the object is a Pod that is left to its Job.
func (s *Standing) goesWithJob() bool {
	return s.withOwner && s.Controller != nil && s.Controller.Kind == "Job" &&
		(s.Owner == lifecycle.OwnerRunning || s.Owner == lifecycle.OwnerFinished)
}

// endless is what to tell of a Pod that does not finish.
func (s *Standing) endless() string {
	remedy := "Delete the Pod yourself, or create it with restartPolicy: OnFailure or Never."
	if s.Controller != nil {
		remedy = fmt.Sprintf("To remove the Pod, scale down or delete %s.", s.Controller)
	}
	return s.quote() + " has no effect while this Pod runs: the TTL counts from when the Pod finishes, and a Pod with restartPolicy: Always " +
		"does not finish by itself. " + remedy
}

// beyondNative is what to tell of a Job that Kubernetes deletes sooner than an annotation asks for, or that has a longer TTL than one that
// can only be extended; empty for any other.
func (s *Standing) beyondNative() string {
	native := ttl{duration: *s.NativeTTL}
	const field = "spec.ttlSecondsAfterFinished"
	given := ""
	switch {
	case s.shortens(native):
		return fmt.Sprintf("%s has no effect: %s keeps this Job for %s, and an annotation can only keep it longer (annotationTTL: %s). "+
			"Change that field instead.", s.quoteTTL(), field, native, gc.AnnotationExtendOnly)
	case s.own.ttl != nil && s.own.ttl.laterThan(native):
		given = s.quoteTTL()
	case s.keepsBeyond(native):
		given = s.quoteKeepUntil()
	default:
		return ""
	}
	return fmt.Sprintf("%s has no effect: Kubernetes deletes this Job %s after it finishes, because of %s. Raise or remove that field.",
		given, native, field)
}

// keepsBeyond reports whether the object is to be kept until a time that is after a TTL.
func (s *Standing) keepsBeyond(t ttl) bool {
	return s.Finished && s.own.until.After(s.FinishedAt.Add(t.duration))
}

// tooShort is what to tell if an annotation asks for less than each of the votes keeps, and can only extend that.
func (s *Standing) tooShort(votes []Vote) string {
	longest := &votes[0]
	for i := range votes {
		if v := &votes[i]; v.least().laterThan(longest.least()) {
			longest = v
		}
		if !s.Finished && votes[i].Rule.outcome != "" {
			return "" // Another rule may match once the outcome is known.
		}
	}
	least := longest.least()
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

// shortens reports whether the TTL of the object itself is shorter than one that it can only extend.
func (s *Standing) shortens(t ttl) bool {
	return s.own.ttl != nil && s.annotationTTL == gc.AnnotationExtendOnly && t.laterThan(*s.own.ttl)
}

// least is how long a vote keeps an object, however many there are.
func (v *Vote) least() ttl {
	if c := v.Rule.Capacity; c != nil && v.Rule.ttl.laterThan(ttl{duration: c.minAge}) {
		return ttl{duration: c.minAge}
	}
	return v.Rule.ttl
}

// tooLong is what to tell if the bounds end an annotation early.
func (s *Standing) tooLong(b *Bounds) string {
	if b.maxTTL.never {
		return ""
	}
	limited := fmt.Sprintf("keeps this object for %s only: ClusterCleanupPolicy %q sets guardrails.maxTTL. Save what you need before then.",
		b.maxTTL, b.maxTTLOf)
	switch {
	case s.own.ttl != nil && s.own.ttl.laterThan(b.maxTTL) && (b.cutNever || !s.own.ttl.never):
		return s.quoteTTL() + " " + limited
	case s.keepsBeyond(b.maxTTL):
		return s.quoteKeepUntil() + " " + limited
	}
	return ""
}

// title names a vote to people.
func (v *Vote) title() string {
	if v.Rule.Name == gc.DefaultRuleName {
		return v.Policy.title()
	}
	return fmt.Sprintf("rule %q of %s", v.Rule.Name, v.Policy.title())
}

// title names a policy to people of one of its namespaces.
func (p *Policy) title() string {
	if p.Cluster != nil {
		return fmt.Sprintf("ClusterCleanupPolicy %q", p.Name)
	}
	return fmt.Sprintf("CleanupPolicy %q", p.Name)
}

// String is how long it is as people write it.
func (t ttl) String() string { return gc.FormatDuration(t.duration) }
