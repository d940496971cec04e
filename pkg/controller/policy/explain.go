// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/lifecycle"
)

// Asked are the policies that Matches.Ask was called with, in the order of its arguments.
type Asked struct{ Own, Previews, Cluster, ClusterPreviews []*Policy }

// Consider returns what each policy says about the object: first those of the namespace, then cluster policies, each by name. m are the
// votes that the Standing combines, and those of Preview policies.
func (s *Standing) Consider(m *Matches, asked Asked) []gc.ConsideredPolicy {
	byName := func(a, b *Policy) int { return cmp.Compare(a.Name, b.Name) }
	var out []gc.ConsideredPolicy
	for _, p := range slices.SortedFunc(slices.Values(slices.Concat(asked.Own, asked.Previews)), byName) {
		out = append(out, s.consider(p, m, false))
	}
	replaced := slices.ContainsFunc(m.Votes, func(v Vote) bool { return v.Policy.Cluster == nil })
	for _, p := range slices.SortedFunc(slices.Values(slices.Concat(asked.Cluster, asked.ClusterPreviews)), byName) {
		out = append(out, s.consider(p, m, replaced))
	}
	return out
}

// consider returns what one policy says about the object. replaced says that policies of the namespace decide instead of it.
func (s *Standing) consider(p *Policy, m *Matches, replaced bool) gc.ConsideredPolicy {
	rule, tried := p.try(s.Fact)
	out := gc.ConsideredPolicy{CandidatePolicy: Name(p, rule), Rules: tried}
	if rule == nil {
		out.Result = gc.ConsideredNoMatch
		return out
	}
	out.Message = rule.describe()
	if replaced { // Its pools do not count the object, so its answer is not known.
		out.Result = gc.ConsideredReplaced
		return out
	}
	for _, v := range slices.Concat(m.Votes, m.Previews) {
		if v.Policy == p && v.doubt.reason == "" {
			out.KeepsUntil = s.format(v.answer(&s.Object))
		}
	}
	switch {
	case p.Preview:
		out.Result = gc.ConsideredPreview
	case p == s.by.Policy:
		out.Result = gc.ConsideredDecides
	default:
		out.Result = gc.ConsideredKeepsLess
	}
	return out
}

// try returns the rule that match returns, and all rules up to it.
func (p *Policy) try(f *lifecycle.Fact) (rule *Rule, tried []gc.ConsideredRule) {
	for _, r := range p.rules {
		why := r.mismatch(f)
		matches, unclear := why == "", false
		if matches {
			meets, doubt := p.meetsConditions(r, f)
			matches, unclear = meets, doubt.reason != ""
			why = doubt.detail
			if !meets && !unclear {
				why = r.unmetCondition(f)
			}
		}
		tried = append(tried, gc.ConsideredRule{Name: r.Name, Matches: matches, Message: why})
		if matches || unclear {
			return r, tried
		}
	}
	if p.defaults != nil {
		why := p.defaults.mismatch(f)
		tried = append(tried, gc.ConsideredRule{Name: gc.DefaultRuleName, Matches: why == "", Message: why})
		if why == "" {
			return p.defaults, tried
		}
	}
	return nil, tried
}

// mismatch returns why matches returns false; empty if it returns true.
func (r *Rule) mismatch(f *lifecycle.Fact) string {
	switch {
	case r.matches(f):
		return ""
	case r.all && !f.Finishes:
		return "it is for resources that have a lifecycle"
	case !r.all && !slices.Contains(r.resources, f.Resource):
		return "it is for " + strings.Join(r.resources, ", ")
	case r.outcome != "" && f.Finished && f.Outcome != r.outcome:
		return fmt.Sprintf("it is for the outcome %s, and this is %s", r.outcome, f.Outcome)
	}
	return fmt.Sprintf("the labels do not match its selector %q", r.selector)
}

// unmetCondition names the first match condition that the object does not meet.
func (r *Rule) unmetCondition(f *lifecycle.Fact) string {
	for i := range r.conditions {
		if matches, failure, known := f.Conditions.Result(r.conditions[i].expression.String()); known && failure == "" && !matches {
			return fmt.Sprintf("match condition %q is false", r.conditions[i].name)
		}
	}
	return ""
}

// events are what a TTL is counted from, to people.
var events = map[gc.After]string{gc.AfterFinished: "finish", gc.AfterCreated: "creation", gc.AfterUnused: "last use"}

// describe says what the rule keeps.
func (r *Rule) describe() string {
	var parts []string
	switch {
	case !r.ttl.never:
		parts = append(parts, fmt.Sprintf("keeps objects for %s after their %s", r.ttl, events[r.after]))
	case r.Capacity == nil:
		parts = append(parts, "keeps objects without a limit")
	}
	if c := r.Capacity; c != nil {
		number := fmt.Sprint(c.MaxObjects)
		if c.PercentOfQuota != 0 {
			number = fmt.Sprintf("%d %% of the quota", c.PercentOfQuota)
		}
		parts = append(parts, "keeps the newest: "+number)
	}
	return strings.Join(parts, ", and ")
}

// Name names a policy and one of its rules; nil is none.
func Name(p *Policy, r *Rule) gc.CandidatePolicy {
	out := gc.CandidatePolicy{Kind: gc.KindCleanupPolicy, Name: p.Name, Mode: gc.ModeEnforce}
	if p.Cluster != nil {
		out.Kind = gc.KindClusterCleanupPolicy
	}
	if p.Preview {
		out.Mode = gc.ModePreview
	}
	if r != nil {
		out.Rule = r.Name
	}
	return out
}

// format returns an answer as an RFC 3339 time, or "never"; empty if it counts from a finish that is not known.
func (s *Standing) format(a answer) string {
	switch {
	case a.never:
		return string(gc.TTLNever)
	case s.since().IsZero() || a.at.Before(s.Created):
		return ""
	}
	return gc.WholeSecond(a.at).UTC().Format(time.RFC3339)
}

// Adjustments returns what changes the answer of the votes at now, in this order.
func (s *Standing) Adjustments(limits Limits, now time.Time) []gc.CandidateAdjustment {
	t := &trace{standing: s}
	s.adjust(limits, now, t)
	return t.adjustments
}

// trace collects what changes an answer. A nil trace collects nothing.
type trace struct {
	standing    *Standing
	adjustments []gc.CandidateAdjustment
}

// add adds a step from one answer to another, if they differ.
func (t *trace) add(source, policy string, from, to answer) {
	if t == nil || !from.laterThan(to) && !to.laterThan(from) {
		return
	}
	t.adjustments = append(t.adjustments, gc.CandidateAdjustment{
		Source: source, Policy: policy, From: t.standing.format(from), To: t.standing.format(to),
	})
}

// addAnnotation adds the step of the annotations.
func (t *trace) addAnnotation(from, to answer) {
	if t == nil {
		return
	}
	source := gc.AnnotationTTL
	if !to.never && to.at.Equal(t.standing.annotations.keepUntil) {
		source = gc.AnnotationKeepUntil
	}
	t.add("annotation "+source, "", from, to)
}

// Since returns what the TTL is counted from, and when that was; zero if it has not happened yet.
func (s *Standing) Since() (gc.After, time.Time) {
	return s.after, s.since()
}

// EffectiveTTL returns how long the object is kept by time, whatever limits by count say; empty if that is not known. votes are those that
// the Standing combines.
func (s *Standing) EffectiveTTL(votes []Vote, b *Bounds) gc.TTL {
	if failed, _ := s.failed(); failed != "" || len(votes) == 0 {
		return ""
	}
	within := slices.Clone(votes)
	for i := range within {
		within[i].Over = false
	}
	byTime := Resolve(s.Object, within)
	_, a := byTime.answer(Limits{Bounds: b}, time.Time{})
	_, since := byTime.Since()
	switch {
	case a.never:
		return gc.TTLNever
	case since.IsZero():
		return ""
	}
	return gc.TTL(gc.FormatDuration(a.at.Sub(since)))
}

// WhenDue returns why the object will be held when it is due; empty if nothing is known that will hold it.
func (s *Standing) WhenDue() (Reason, string) { return s.hold() }

// Extension says how to keep an object that waits for longer.
func (s *Standing) Extension(limits Limits) string {
	b := limits.Bounds
	switch {
	case limits.Over != nil:
		return "No annotation protects it from the ceiling of " + limits.Over.title() + ": only a larger ceiling keeps it longer"
	case s.NativeTTL != nil:
		return "Its own spec sets its TTL: change that to keep it longer"
	case s.annotationTTL == gc.AnnotationIgnore:
		return "Its policies ignore annotations: only a policy can keep it longer"
	case !s.extends(ttl{never: true}, limits):
		return "No annotation keeps it longer: guardrails.maxTTL of " + b.maxTTLPolicy + " limits that to " + b.maxTTL.String()
	case b.maxTTL.never:
		return "To keep it longer, annotate it with " + gc.AnnotationTTL
	case !b.forbidNever:
		return fmt.Sprintf("To keep it longer, annotate it with %s; guardrails.maxTTL of %s limits that to %s, unless it says never",
			gc.AnnotationTTL, b.maxTTLPolicy, b.maxTTL)
	}
	return fmt.Sprintf("To keep it longer, annotate it with %s; guardrails.maxTTL of %s limits that to %s",
		gc.AnnotationTTL, b.maxTTLPolicy, b.maxTTL)
}

// extends reports whether an annotation with a TTL would keep the object for longer.
func (s *Standing) extends(own ttl, limits Limits) bool {
	annotated := *s
	annotated.annotations.ttl = &own
	_, before := s.answer(limits, time.Time{})
	_, after := annotated.answer(limits, time.Time{})
	return after.laterThan(before)
}

// whyOutside returns why no pool counts the object, although a rule limits only the number.
func (s *Standing) whyOutside() string {
	out := &Vote{Policy: s.outside.Policy, Rule: s.outside.Rule}
	reason, detail := s.hold()
	if detail == "" {
		detail = summaries[reason]
	}
	_, inPool := out.Rule.Capacity.PoolKey(s.Fact)
	switch {
	case reason != "":
		return fmt.Sprintf("%s: %s", reason, detail)
	case !inPool && out.Rule.Capacity.per == gc.CapacityPerOwner:
		return "it has no controller, and " + out.title() + " counts the objects of each controller"
	case !inPool:
		return fmt.Sprintf("it has no label %q, and %s counts the objects of each value", out.Rule.Capacity.labelKey, out.title())
	case s.annotations.ttl != nil || !s.annotations.keepUntil.IsZero():
		return "its annotations keep it longer than " + out.title() + " may"
	}
	return "it counts from its finish, which is in the future: " + s.FinishedAt.UTC().Format(time.RFC3339)
}

// Sentence says why, to people.
func (d Decision) Sentence() string {
	if d.Detail == "" {
		return summaries[d.Reason]
	}
	return summaries[d.Reason] + ": " + d.Detail
}

var summaries = map[Reason]string{
	ReasonNoPolicy:                "No policy matches it, and no ceiling counts it",
	ReasonNamespaceTerminating:    "The namespace is being deleted, and takes it along",
	ReasonNamespaceProtected:      "The namespace is protected",
	ReasonNamespaceUnknown:        "The namespace is not known yet",
	ReasonNotFinished:             "It has not finished",
	ReasonInUse:                   "It is in use",
	ReasonLeftToOwner:             "It is left to its owner, and goes with it",
	ReasonUnderCeiling:            "Only a ceiling counts it, and does not take it",
	ReasonNever:                   "It is kept without a time limit",
	ReasonOutsideCapacity:         "It is kept, because no limit counts it",
	ReasonNotDue:                  "It is kept until it is due",
	ReasonExpired:                 "Its TTL has ended",
	ReasonOverCapacity:            "It is over a limit by count: newer objects fill the limit",
	ReasonOverCeiling:             "It is over a ceiling: newer objects fill the share of the namespace",
	ReasonTerminating:             "It is being deleted",
	ReasonExpressionError:         "An expression failed for it",
	ReasonFinishTimeUnknown:       "It is not known since when it is a candidate",
	ReasonReferrersUnknown:        "It is not known whether anything refers to it",
	ReasonStillRunning:            "It still runs",
	ReasonInvalidAnnotation:       "An annotation cannot be read",
	ReasonOwnerActive:             "Its owner may still need it",
	ReasonUncounted:               "Its Job has not counted it yet",
	ReasonConflictingFinalizers:   "Its finalizers contradict each other",
	ReasonManagedElsewhere:        "It is managed elsewhere",
	ReasonRecreateLoop:            "It comes back",
	ReasonPolicyUnreadable:        "A policy cannot be read",
	ReasonSuspended:               "Deletions are suspended",
	ReasonHeld:                    "A change made too many objects due at once, and waits for approval",
	ReasonClockInDoubt:            "Clocks disagree",
	ReasonUnobserved:              "Something that the decision depends on is not observed",
	ReasonUnauthorized:            "Winnow lacks a permission",
	ReasonRefused:                 "The API server refused the request",
	ReasonContended:               "It changes too often",
	ReasonRetrying:                "The last request failed, and is tried again",
	ReasonActiveDeadline:          "It gets a deadline",
	ReasonActiveDeadlineWithdrawn: "Its deadline is taken back",
}
