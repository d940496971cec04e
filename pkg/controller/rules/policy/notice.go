// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
)

// Notice tells the owner of an object that its annotation cannot be read or does not have its full effect.
type Notice struct {
	// Policy is the policy that ignores or limits the annotation, or whose deletion the annotation prevents.
	Policy *Policy
	Reason Reason
	Text   string
}

// Notice returns the notice for an object that was resolved with these matches. It returns false if the annotations have their full effect,
// if that is not known yet, or if no enforcing policy matches the object.
func (e *Effective) Notice(matches []Match, b *Bounds) (Notice, bool) {
	if len(matches) == 0 || e.TTL == nil && e.KeepUntil == nil || e.Terminating {
		return Notice{}, false
	}
	n := Notice{Policy: e.by.Policy, Reason: ReasonAnnotationIgnored}
	switch {
	case e.annotations.malformed != "":
		n.Reason = ReasonInvalidAnnotation
		n.Text = fmt.Sprintf("%s does not delete this object until you correct or remove %s", n.Policy.title(), e.annotations.malformed)
	case e.annotationTTL == gc.AnnotationIgnore:
		i := slices.IndexFunc(matches, func(m Match) bool { return m.Policy.annotationTTL == gc.AnnotationIgnore })
		n.Policy = matches[i].Policy
		n.Text = fmt.Sprintf(
			"%s has no effect: %s ignores annotations. Remove the annotation, or set spec.annotationTTL of the policy to %s or %s.",
			e.quote(),
			n.Policy.title(),
			gc.AnnotationExtendOnly,
			gc.AnnotationAny,
		)
	case e.deletedWithJob():
		n.Text = fmt.Sprintf("%s has no effect: this Pod is deleted together with %s. Annotate the Job instead.", e.quote(), e.Controller)
	case e.Endless:
		n.Text = e.endlessText()
	case e.NativeTTL != nil:
		n.Text = e.nativeTTLText()
	default:
		if n.Text = e.tooShortText(matches); n.Text == "" {
			n.Text = e.tooLongText(b)
		}
	}
	return n, n.Text != ""
}

// quote returns an annotation as it was written: the TTL if the object has both.
func (e *Effective) quote() string {
	if e.TTL != nil {
		return e.quoteTTL()
	}
	return e.quoteKeepUntil()
}

func (e *Effective) quoteTTL() string {
	return fmt.Sprintf("Annotation %s: %q", gc.AnnotationTTL, *e.TTL)
}

func (e *Effective) quoteKeepUntil() string {
	return fmt.Sprintf("Annotation %s: %q", gc.AnnotationKeepUntil, *e.KeepUntil)
}

// deletedWithJob reports whether the object is a Pod that is deleted together with its Job.
func (e *Effective) deletedWithJob() bool {
	return e.Controller != nil && e.Controller.Kind == "Job" && e.withOwner && e.leftToOwner() != "" && e.Owner.State != lifecycle.OwnerAbsent
}

// endlessText is for a Pod that does not finish by itself.
func (e *Effective) endlessText() string {
	remedy := "Delete the Pod yourself, or create it with restartPolicy: OnFailure or Never."
	if e.Controller != nil {
		remedy = fmt.Sprintf("To remove the Pod, scale down or delete %s.", e.Controller)
	}
	return e.quote() + " has no effect while this Pod runs: the TTL counts from when the Pod finishes, and a Pod with restartPolicy: Always " +
		"does not finish by itself. " + remedy
}

// nativeTTLText is for a Job with a ttlSecondsAfterFinished that ends before the annotation does, or, if annotations can only extend, after
// it; empty for other Jobs.
func (e *Effective) nativeTTLText() string {
	native := ttl{duration: *e.NativeTTL}
	const field = "spec.ttlSecondsAfterFinished"
	given := ""
	switch {
	case e.shortens(native):
		return fmt.Sprintf("%s has no effect: %s keeps this Job for %s, and an annotation can only keep it longer (annotationTTL: %s). "+
			"Change that field instead.", e.quoteTTL(), field, native, gc.AnnotationExtendOnly)
	case e.annotations.ttl != nil && e.annotations.ttl.laterThan(native):
		given = e.quoteTTL()
	case e.keepsBeyond(native):
		given = e.quoteKeepUntil()
	default:
		return ""
	}
	return fmt.Sprintf("%s has no effect: Kubernetes deletes this Job %s after it finishes, because of %s. Raise or remove that field.",
		given, native, field)
}

// keepsBeyond reports whether keep-until is after the end of a TTL.
func (e *Effective) keepsBeyond(t ttl) bool {
	return e.Finished && e.annotations.keepUntil.After(e.EndedAt().Add(t.duration))
}

// tooShortText is for an annotation that is shorter than the policies' own TTL, and can only extend it; empty otherwise.
func (e *Effective) tooShortText(matches []Match) string {
	longest := &matches[0]
	for i := range matches {
		if m := &matches[i]; m.keepsAtLeast().laterThan(longest.keepsAtLeast()) {
			longest = m
		}
		if !e.Finished && matches[i].Rule.outcome != "" {
			return "" // Another rule may match once the outcome is known.
		}
	}
	least := longest.keepsAtLeast()
	if !e.shortens(least) {
		return ""
	}
	keeps := fmt.Sprintf("keeps this object for %s, and an annotation can only keep it longer", least)
	if least.never {
		keeps = "never deletes this object, and an annotation cannot change that"
	}
	return fmt.Sprintf("%s has no effect: %s %s (annotationTTL: %s). Set a longer time, or set annotationTTL of %s to %s.",
		e.quoteTTL(), longest.title(), keeps, gc.AnnotationExtendOnly, extendOnly(matches), gc.AnnotationAny)
}

// extendOnly names the policies whose annotations can only extend, which need not be the one that keeps the object the longest.
func extendOnly(matches []Match) string {
	var titles []string
	for i := range matches {
		if p := matches[i].Policy; p.annotationTTL == gc.AnnotationExtendOnly {
			titles = append(titles, p.title())
		}
	}
	return strings.Join(titles, " and ")
}

// shortens reports whether the annotated TTL is shorter than t, and can only extend it.
func (e *Effective) shortens(t ttl) bool {
	return e.annotations.ttl != nil && e.annotationTTL == gc.AnnotationExtendOnly && t.laterThan(*e.annotations.ttl)
}

// keepsAtLeast returns how long a match keeps an object, however many objects are in its pool.
func (m *Match) keepsAtLeast() ttl {
	if c := m.Rule.Capacity; c != nil && m.Rule.ttl.laterThan(ttl{duration: c.minAge}) {
		return ttl{duration: c.minAge}
	}
	return m.Rule.ttl
}

// tooLongText is for an annotation that maxTTL cuts; empty otherwise.
func (e *Effective) tooLongText(b *Bounds) string {
	if b.maxTTL.never {
		return ""
	}
	limited := fmt.Sprintf("keeps this object for %s only: ClusterCleanupPolicy %q sets guardrails.maxTTL. Save what you need before then.",
		b.maxTTL, b.maxTTLPolicy)
	switch {
	case e.annotations.ttl != nil && e.annotations.ttl.laterThan(b.maxTTL) && (b.forbidNever || !e.annotations.ttl.never):
		return e.quoteTTL() + " " + limited
	case e.keepsBeyond(b.maxTTL):
		return e.quoteKeepUntil() + " " + limited
	}
	return ""
}

// title names the rule and policy of a match in messages.
func (m *Match) title() string {
	if m.Rule.Name == gc.DefaultRuleName {
		return m.Policy.title()
	}
	return fmt.Sprintf("rule %q of %s", m.Rule.Name, m.Policy.title())
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
