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
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
)

// Asked are the policies that Matches.Ask was called with, in the order of its arguments.
type Asked struct{ Own, Previews, Cluster, ClusterPreviews []*Policy }

// Explain returns what each policy says about the object: first the policies of the namespace, then the cluster policies, both by name. m
// has the matches that the Effective combines, and the matches of Preview policies.
func (e *Effective) Explain(m *Matches, asked Asked) []gc.ConsideredPolicy {
	byName := func(a, b *Policy) int { return cmp.Compare(a.Name, b.Name) }
	var out []gc.ConsideredPolicy
	for _, p := range slices.SortedFunc(slices.Values(slices.Concat(asked.Own, asked.Previews)), byName) {
		out = append(out, e.explain(p, m, false))
	}
	replaced := slices.ContainsFunc(m.Enforced, func(match Match) bool { return match.Policy.Cluster == nil })
	for _, p := range slices.SortedFunc(slices.Values(slices.Concat(asked.Cluster, asked.ClusterPreviews)), byName) {
		out = append(out, e.explain(p, m, replaced))
	}
	return out
}

// explain returns what one policy says about the object. replaced says that policies of the namespace decide instead.
func (e *Effective) explain(p *Policy, m *Matches, replaced bool) gc.ConsideredPolicy {
	rule, tried := p.try(e.Fact)
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
	for _, v := range slices.Concat(m.Enforced, m.Previews) {
		if v.Policy == p && v.doubt.reason == "" {
			out.KeepsUntil = e.keepsUntil(&v)
		}
	}
	switch {
	case p.Preview:
		out.Result = gc.ConsideredPreview
	case p == e.by.Policy:
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
		return "it applies to resources that have a lifecycle"
	case !r.all && !slices.Contains(r.resources, f.Resource):
		return "it applies to " + strings.Join(r.resources, ", ")
	case r.outcome != "" && f.Finished && f.Outcome != r.outcome:
		return fmt.Sprintf("it applies to the outcome %s, and the outcome is %s", r.outcome, f.Outcome)
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

// describe says what the rule keeps.
func (r *Rule) describe() string {
	var parts []string
	switch {
	case !r.ttl.never:
		parts = append(parts, fmt.Sprintf("keeps objects for %s after their %s", r.ttl, r.trigger.Event))
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
	if r.wait != nil {
		parts = append(parts, r.wait.String())
	}
	if r.notice != 0 {
		to := ""
		if r.noticeRequired {
			to = " and after the receiver of notifications has acknowledged that"
		}
		parts = append(parts, fmt.Sprintf("gives notice %s before it deletes them%s", ttl{duration: r.notice}, to))
	}
	return strings.Join(parts, ", and ")
}

// Name names a policy and one of its rules; r is nil if there is none.
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

// keepsUntil formats the answer of a match; empty if newer objects end it, because no time does.
func (e *Effective) keepsUntil(m *Match) string {
	a := m.answer(&e.Object)
	if a.never && m.Counted && !m.Unlimited && m.Rule.Capacity != nil {
		return ""
	}
	return e.format(a)
}

// format returns an answer as an RFC 3339 time, or "never"; empty if it counts from a finish time that is not known.
func (e *Effective) format(a answer) string {
	switch {
	case a.never:
		return string(gc.TTLNever)
	case e.since().IsZero() || a.at.Before(e.Created):
		return ""
	}
	return gc.WholeSecond(a.at).UTC().Format(time.RFC3339)
}

// Adjustments returns what changes the answer of the matches at now, in this order.
func (e *Effective) Adjustments(limits Limits, now time.Time) []gc.CandidateAdjustment {
	t := &trace{effective: e}
	e.adjust(limits, now, t)
	return t.adjustments
}

// trace collects what changes an answer. A nil trace collects nothing.
type trace struct {
	effective   *Effective
	adjustments []gc.CandidateAdjustment
}

// add adds a step from one answer to another, if they differ.
func (t *trace) add(source, policy string, from, to answer) {
	if t == nil || !from.laterThan(to) && !to.laterThan(from) {
		return
	}
	t.adjustments = append(t.adjustments, gc.CandidateAdjustment{
		Source: source, Policy: policy, From: t.effective.format(from), To: t.effective.format(to),
	})
}

// addAnnotation adds the step of the annotations.
func (t *trace) addAnnotation(from, to answer) {
	if t == nil {
		return
	}
	source := gc.AnnotationTTL
	if !to.never && to.at.Equal(t.effective.annotations.keepUntil) {
		source = gc.AnnotationKeepUntil
	}
	t.add("annotation "+source, "", from, to)
}

// Since returns the event from which the TTL is counted, and when it happened; zero if it has not happened yet.
func (e *Effective) Since() (gc.After, time.Time) {
	t, at := e.last()
	return t.After, at
}

// SinceNote says where the time of Since comes from, if the object does not say it; empty if there is nothing to say.
func (e *Effective) SinceNote() string {
	t, _ := e.last()
	return t.note(e.Fact)
}

// EffectiveTTL returns how long the object is kept if no limit by count applies; empty if that is not known, or if only a limit by count
// applies. matches are the matches that the Effective combines.
func (e *Effective) EffectiveTTL(matches []Match, b *Bounds) gc.TTL {
	if e.failed().reason != "" || len(matches) == 0 {
		return ""
	}
	within := slices.Clone(matches)
	for i := range within {
		within[i].Over = false
	}
	byTime := Resolve(e.Object, within)
	_, a := byTime.answer(Limits{Bounds: b}, time.Time{})
	_, since := byTime.Since()
	switch {
	case a.never && byTime.decideNever().Reason == ReasonWithinCapacity:
		return ""
	case a.never:
		return gc.TTLNever
	case since.IsZero():
		return ""
	}
	return gc.TTL(gc.FormatDuration(a.at.Sub(since)))
}

// WhenDue returns why the object will be held when it is due, apart from a wait; empty if no reason is known.
func (e *Effective) WhenDue() (Reason, string) {
	hold := e.hold()
	return hold.reason, hold.detail
}

// Extension says how to keep a waiting object for longer.
func (e *Effective) Extension(limits Limits) string {
	b := limits.Bounds
	switch {
	case limits.Over != nil:
		return "No annotation protects it from the ceiling of " + limits.Over.title() + ": only a larger ceiling keeps it longer"
	case e.NativeTTL != nil:
		return "Its own spec sets its TTL: change that to keep it longer"
	case e.annotationTTL == gc.AnnotationIgnore:
		return "Its policies ignore annotations: only a policy can keep it longer"
	case !e.extends(ttl{never: true}, limits):
		return "No annotation keeps it longer: guardrails.maxTTL of " + b.maxTTLPolicy + " limits that to " + b.maxTTL.String()
	case b.maxTTL.never:
		return gc.ToKeepLonger
	case !b.forbidNever:
		return fmt.Sprintf("%s; guardrails.maxTTL of %s limits that to %s, unless it is kept forever", gc.ToKeepLonger, b.maxTTLPolicy, b.maxTTL)
	}
	return fmt.Sprintf("%s; guardrails.maxTTL of %s limits that to %s", gc.ToKeepLonger, b.maxTTLPolicy, b.maxTTL)
}

// extends reports whether an annotation with a TTL would keep the object for longer.
func (e *Effective) extends(own ttl, limits Limits) bool {
	annotated := *e
	annotated.annotations.ttl = &own
	_, before := e.answer(limits, time.Time{})
	_, after := annotated.answer(limits, time.Time{})
	return after.laterThan(before)
}

// whyOutside returns why no pool counts the object, although a rule limits only the number.
func (e *Effective) whyOutside() string {
	out := &Match{Policy: e.outside.Policy, Rule: e.outside.Rule}
	hold := e.hold()
	_, inPool := out.Rule.Capacity.PoolKey(e.Fact)
	switch {
	case e.runs():
		return e.whyRuns()
	case hold.reason != "":
		return fmt.Sprintf("%s: %s", hold.reason, cmp.Or(hold.detail, hold.reason.summary()))
	case !inPool && out.Rule.Capacity.per == gc.CapacityPerOwner:
		return "it has no controller, and " + out.title() + " counts the objects of each controller"
	case !inPool:
		return fmt.Sprintf("it has no label %q, and %s counts the objects of each value", out.Rule.Capacity.labelKey, out.title())
	case e.annotations.ttl != nil || !e.annotations.keepUntil.IsZero():
		return "its annotations keep it longer than " + out.title() + " may"
	}
	t, at := e.last()
	return fmt.Sprintf("it counts from its %s, which is in the future: %s", t.Event, at.UTC().Format(time.RFC3339))
}
