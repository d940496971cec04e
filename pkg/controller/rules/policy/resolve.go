// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
)

// Object is a fact together with what is known about the object from elsewhere.
type Object struct {
	*lifecycle.Fact
	// Owner is the state of the object's controller.
	Owner lifecycle.Ownership
	// Announced is the stored notice of its deletion; zero if there is none.
	Announced Announcement
	// Recreated is set if the object came back under its name each time it was deleted.
	Recreated bool
}

// Effective combines the matches on an object, before ceilings, guardrails and the time are applied.
type Effective struct {
	Object
	options
	// latest is the latest answer of the matches, and by is the match that gives it; empty if there are no matches.
	latest answer
	by     Resolution
	// counts is the rule from whose time durations are counted that no rule sets: of the rules with the trigger, the one whose event happened
	// last. It is nil if there are no matches.
	counts *Rule
	// matched is the last time when a rule with after: Matched began to match; zero if there is none. The other triggers happen to an object
	// in a known order, but it may match long after it finished. marked is set if any match counts from a time that Winnow has noted.
	matched time.Time
	marked  bool
	// latestWithoutQuotas is the latest answer if percentOfQuota limits nothing, and latestByTime if no limit by count does.
	latestWithoutQuotas, latestByTime answer
	// unlimited is set if a match keeps the object forever, and limits no number. pooled is set if a match limits only the number, and its
	// pool counts the object. outside is the first such match whose pool does not count the object; empty if there is none.
	unlimited, pooled bool
	outside           Resolution
	// annotationTTL is the strictest mode of the matches.
	annotationTTL gc.AnnotationTTLMode
	annotations   annotations
	// doubt is why it is not known which rule matches; zero if it is known. unnoted is why it is not known since when one does.
	doubt, unnoted cause
	// deadline is how long the object may run, and deadlineBy is the match that sets it; zero unless all matches set a deadline.
	deadline   time.Duration
	deadlineBy Resolution
	// wait is what the object waits for before it is deleted, and waitsBy is the match that says so; nil if it waits for nothing.
	wait    *wait
	waitsBy Match
	// notice is how long before its deletion the object is announced, and noticeBy is the match that says so; zero if none does.
	notice   time.Duration
	noticeBy Match
	// noticeRequired says that the receiver of notifications must acknowledge the notice.
	noticeRequired bool
}

var strictness = map[gc.AnnotationTTLMode]int{gc.AnnotationAny: 0, gc.AnnotationExtendOnly: 1, gc.AnnotationIgnore: 2}

// Resolve combines the matches on an object. Without matches, the options have the API's defaults.
func Resolve(o Object, matches []Match) Effective {
	e := Effective{
		Object: o, latest: answer{never: true}, latestWithoutQuotas: answer{never: true}, latestByTime: answer{never: true},
		annotationTTL: gc.AnnotationExtendOnly, options: defaultOptions,
	}
	for i := range matches {
		e.add(&matches[i])
	}
	if e.annotationTTL != gc.AnnotationIgnore {
		e.annotations = readAnnotations(o.Fact)
	}
	return e
}

// With returns the Effective as if a match of a Preview policy were enforced too. A policy of the namespace then replaces the matches of
// cluster policies.
func (e *Effective) With(m Match) Effective {
	if e.by.Policy != nil && e.by.Policy.Cluster != nil && m.Policy.Cluster == nil {
		return Resolve(e.Object, []Match{m})
	}
	out := *e
	if out.add(&m); out.annotationTTL == gc.AnnotationIgnore {
		out.annotations = annotations{}
	}
	return out
}

// add adds a match.
func (e *Effective) add(m *Match) {
	first := e.by.Policy == nil
	if first || strictness[m.Policy.annotationTTL] > strictness[e.annotationTTL] {
		e.annotationTTL = m.Policy.annotationTTL
	}
	if first {
		e.options = m.Rule.options
	} else {
		e.options.add(&m.Rule.options)
	}
	e.doubt, e.unnoted = cmp.Or(e.doubt, m.doubt), cmp.Or(e.unnoted, e.notNoted(m.Rule))
	e.addTime(m.Rule)
	e.addDeadline(m, first)
	e.addWait(m)
	e.addNotice(m)
	e.addAnswer(m, first)
	e.addLimit(m)
}

// addTime notes from when durations are counted that no rule sets.
func (e *Effective) addTime(r *Rule) {
	e.marked = e.marked || r.trigger.marked
	if at := e.Object.since(r); r.trigger == &afterMatched && at.After(e.matched) {
		e.matched = at
	}
	if r.trigger != e.trigger {
		return
	}
	if e.counts == nil || e.counts.trigger != e.trigger || e.Object.since(r).After(e.Object.since(e.counts)) {
		e.counts = r
	}
}

// addAnswer adds the answer of a match.
func (e *Effective) addAnswer(m *Match, first bool) {
	a := m.answer(&e.Object)
	sure, byTime := a, a
	if m.Over {
		byTime = m.answerByTime(&e.Object)
		if m.Rule.Capacity.PercentOfQuota != 0 { // Without quotas, it limits nothing.
			sure = byTime
		}
	}
	if first || sure.laterThan(e.latestWithoutQuotas) {
		e.latestWithoutQuotas = sure
	}
	if first || byTime.laterThan(e.latestByTime) {
		e.latestByTime = byTime
	}
	if first || e.decides(m, a) {
		e.latest, e.by = a, Resolution{Policy: m.Policy, Rule: m.Rule, Propagation: m.Rule.propagation}
	}
}

// addLimit notes whether a match limits how long or how many objects are kept.
func (e *Effective) addLimit(m *Match) {
	switch {
	case !m.Rule.ttl.never:
	case m.Rule.Capacity == nil, m.Unlimited:
		e.unlimited = true
	case m.Counted:
		e.pooled = true
	case e.outside.Rule == nil:
		e.outside = Resolution{Policy: m.Policy, Rule: m.Rule}
	}
}

// decides reports whether a match decides instead of the matches added before: the later answer decides, and of equal answers the answer of
// the policy with the first name.
func (e *Effective) decides(m *Match, a answer) bool {
	return a.laterThan(e.latest) || !e.latest.laterThan(a) && m.Policy.Name < e.by.Policy.Name
}

// answerByTime returns the answer of a match if no limit by count applies.
func (m *Match) answerByTime(o *Object) answer {
	return (&Match{Policy: m.Policy, Rule: m.Rule}).answer(o)
}

// since is the time from which the TTL of the annotation is counted.
func (e *Effective) since() time.Time {
	_, at := e.last()
	return at
}

// last returns the trigger of the last event that a match counts from, and when it happened; zero if that is not known.
func (e *Effective) last() (*trigger, time.Time) {
	at := e.trigger.since(e.Fact, e.counts, e.owner().FinishedAt)
	if !at.IsZero() && e.matched.After(at) {
		return &afterMatched, e.matched
	}
	return e.trigger, at
}

// maxTTLEnds returns when maxTTL ends, if there is one. It counts from the end of an object that has finished, unless since is earlier.
// Otherwise a rule that always begins to match anew, because it is changed again and again, would keep the object forever.
func (e *Effective) maxTTLEnds(b *Bounds) time.Time {
	from := e.since()
	if ended := e.EndedAt(); e.Finished && !ended.IsZero() && ended.Before(from) {
		from = ended
	}
	return from.Add(b.maxTTL.duration)
}

// minTTLEnds returns when minTTL ends. It counts from since, and from the end of an object that has finished. If since is later than the
// end, minTTL keeps nothing beyond maxTTL because of that.
func (e *Effective) minTTLEnds(b *Bounds) time.Time {
	at := e.since().Add(b.minTTL)
	ended := e.EndedAt()
	if !e.Finished || ended.IsZero() {
		return at
	}
	if latest := e.maxTTLEnds(b); !b.maxTTL.never && latest.Before(at) {
		at = latest
	}
	if byEnd := ended.Add(b.minTTL); at.Before(byEnd) {
		return byEnd
	}
	return at
}

// since is the time from which the TTL of a rule is counted.
func (o *Object) since(r *Rule) time.Time {
	return r.trigger.since(o.Fact, r, o.ownerFor(&r.options).FinishedAt)
}

// EndedAt is when the object finished, or when its controller finished if that is later, because the controller needed the object until
// then; zero if the object has not finished, or it is not known when.
func (e *Effective) EndedAt() time.Time { return notBefore(e.FinishedAt, e.owner().FinishedAt) }

// owner returns the state of the controller for the matches together.
func (e *Effective) owner() *lifecycle.Ownership { return e.ownerFor(&e.options) }

// ownerFor returns the state of the controller for some choices: a Job is no owner of a counted Pod if they say so.
func (o *Object) ownerFor(choices *options) *lifecycle.Ownership {
	if choices.onceCounted && o.Owner.Counted {
		return &noOwner
	}
	return &o.Owner
}

var noOwner lifecycle.Ownership

// Unevaluated reports whether it is not known yet which rule matches, because match conditions have not been evaluated.
func (e *Effective) Unevaluated() bool { return e.doubt.reason == ReasonUnobserved }

// RankedBy is the time by which the pool of a match ranks the object: the time from which its rule counts.
func (m *Match) RankedBy(o *Object) time.Time { return o.since(m.Rule) }

// CandidateSince is the time by which due objects are ordered: the time from which the rule of r counts, as in its pool. An object that
// runs counts from its creation.
func (e *Effective) CandidateSince(r Resolution) time.Time {
	at := e.EndedAt()
	if r.Rule != nil {
		at = e.Object.since(r.Rule)
	}
	if at.IsZero() {
		return e.Created
	}
	return at
}

// Counting is how limits count an object.
type Counting struct {
	// Counts is set if limits count the object: pools, unless its annotations keep it, and ceilings, if it has finished.
	Counts, Finished bool
	// KeptByAnnotation is set if its annotations keep the object, so that pools do not count it.
	KeptByAnnotation bool
	// Until is when Counts or KeptByAnnotation changes because time passes; zero if never.
	Until time.Time
}

// InPools reports whether pools count the object.
func (c Counting) InPools() bool { return c.Counts && !c.KeptByAnnotation }

// InCeilings reports whether ceilings count the object. They are for what finishes.
func (c Counting) InCeilings() bool { return c.Counts && c.Finished }

// Counting returns how limits count the object at now. What still runs is not counted: it cannot be deleted, so it must not take the place
// of another object. Guardrails limit how long its annotations keep it.
func (e *Effective) Counting(b *Bounds, now time.Time) Counting {
	if e.hold().reason != "" || e.excluded() != "" || e.Terminating || e.runs() {
		return Counting{}
	}
	from := e.since()
	if e.Finished {
		from = e.EndedAt()
	}
	if now.Before(from) {
		return Counting{Until: from}
	}
	out := Counting{Counts: true, Finished: e.Finished}
	kept := b.applyMaxTTL(e.annotate(answer{at: from}), e.maxTTLEnds(b))
	switch {
	case kept.never:
		out.KeptByAnnotation = true
	case now.Before(kept.at):
		out.KeptByAnnotation, out.Until = true, kept.at
	}
	return out
}

// runs reports whether the object can finish and has not, and may not be deleted before. A controller would create it again, or needs it.
func (e *Effective) runs() bool {
	return e.Finishes && !e.Finished && (!e.deletesUnfinished || e.Controller != nil)
}

// Resolution is who decides for an object.
type Resolution struct {
	// Policy is nil if none decides.
	Policy *Policy
	// Rule is nil if a ceiling of Policy decides.
	Rule *Rule
	// Native is set if the native TTL replaces the policy's answer.
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
