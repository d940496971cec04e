// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
)

// effectiveAnswer is when an object may be deleted, and who decides. The reason is the one that it has once it is due.
type effectiveAnswer struct {
	moment
	policy      PolicyRef
	by, reason  string
	propagation metav1.DeletionPropagation
}

// effectiveAnswer applies everything that adjusts the answer, in the order of docs/semantics.md. An object without matches is never
// deleted, unless a ceiling decides. A ceiling decides only as long as the policies do not want the object gone.
func (c *recomputation) effectiveAnswer(f *lifecycle.Fact) effectiveAnswer {
	out := effectiveAnswer{moment: moment{never: true}}
	if len(c.matches[f.UID]) > 0 {
		out = c.latestMatch(f)
		out.moment = c.adjusted(f, out.moment)
	}
	atOnce := c.notBeforeMinTTL(f, moment{at: c.endedAt(f)})
	wanted := !moment{at: c.Now}.before(out.moment)
	if ceiling, over := c.ceilings[f.UID]; over {
		taken := effectiveAnswer{moment: atOnce, policy: ceiling, by: "ceiling=" + ceiling.Name, reason: "OverCeiling",
			propagation: metav1.DeletePropagationBackground}
		if wanted && c.noticeKeeps(f, out, taken) || !wanted && atOnce.before(out.moment) {
			out = taken
		}
	}
	if f.Propagation != "" { // A DELETE with another policy would remove the finalizers.
		out.propagation = f.Propagation
	}
	return out
}

// noticeKeeps reports whether policies would delete an object by now, but for a notice that is over later than the notice that the ceiling
// respects.
func (c *recomputation) noticeKeeps(f *lifecycle.Fact, policies, ceiling effectiveAnswer) bool {
	end := c.noticeEnd(f, policies)
	return moment{at: c.Now}.before(end) && c.noticeEnd(f, ceiling).before(end)
}

// adjusted returns the answer of the matches after the native TTL, the annotations and the guardrails.
func (c *recomputation) adjusted(f *lifecycle.Fact, m moment) moment {
	if f.NativeTTL != nil && f.Finished {
		m = moment{at: f.FinishedAt.Add(*f.NativeTTL)}
	}
	return c.notBeforeMinTTL(f, c.notAfterMaxTTL(f, c.annotated(f, m)))
}

// latestMatch returns the latest answer of the matches, of equal ones the first.
func (c *recomputation) latestMatch(f *lifecycle.Fact) effectiveAnswer {
	var out effectiveAnswer
	for i, v := range c.matches[f.UID] {
		m, reason := c.answerOf(v, f)
		if i == 0 || out.before(m) {
			out = effectiveAnswer{moment: m, policy: v.policy, by: v.policy.String() + " " + v.rule, reason: reason, propagation: v.propagation}
		}
	}
	return out
}

// answerOf returns the earlier of TTL and capacity, which deletes nothing before minAge.
func (c *recomputation) answerOf(v match, f *lifecycle.Fact) (moment, string) {
	since, byTime := c.countsFrom(v, f), c.timeAnswerOf(v, f)
	if !c.overLimit[f.UID][v.policy] {
		return byTime, "Expired"
	}
	byNumber := moment{at: since}
	if v.capacity.MinAge != nil {
		byNumber = after(since, v.capacity.MinAge)
	}
	if byNumber.before(byTime) {
		return byNumber, "OverCapacity"
	}
	return byTime, "Expired"
}

// timeAnswerOf returns when the TTL of a match ends.
func (c *recomputation) timeAnswerOf(v match, f *lifecycle.Fact) moment {
	return after(c.countsFrom(v, f), v.ttl)
}

// countsFrom is the time from which a match counts.
func (c *recomputation) countsFrom(v match, f *lifecycle.Fact) time.Time {
	at := f.FinishedAt
	switch v.after {
	case gc.AfterCreated:
		at = f.Created
	case gc.AfterMatched:
		if at = c.matchedSince(f, v.identity); v.failed {
			at = time.Time{} // Nobody knows whether it matches.
		}
	case gc.AfterUnused:
		return f.Usage.Since
	case gc.AfterFinished:
	}
	return c.notBeforeOwnerUnless(v.onceCounted && c.counted(f), f, at)
}

// annotations are the parsed annotations of an object; empty if the matches ignore annotations.
type annotations struct {
	ttl       *gc.TTL
	keepUntil time.Time
	malformed bool
}

func (c *recomputation) annotations(f *lifecycle.Fact) annotations {
	var out annotations
	if annotationMode(c.matches[f.UID]) == gc.AnnotationIgnore {
		return out
	}
	if f.TTL != nil {
		ttl := gc.TTL(*f.TTL)
		if readableTTL(ttl) {
			out.ttl = &ttl
		} else {
			out.malformed = true
		}
	}
	if f.KeepUntil != nil {
		until, err := time.Parse(time.RFC3339, *f.KeepUntil)
		if err == nil {
			out.keepUntil = until
		} else {
			out.malformed = true
		}
	}
	return out
}

// annotated applies the annotations: the TTL extends the answer, or replaces it if all matches say Any; keep-until only extends it.
func (c *recomputation) annotated(f *lifecycle.Fact, m moment) moment {
	own := c.annotations(f)
	if own.ttl != nil {
		if annotationMode(c.matches[f.UID]) == gc.AnnotationAny {
			m = after(c.sinceWhen(f), own.ttl)
		} else {
			m = later(m, after(c.sinceWhen(f), own.ttl))
		}
	}
	return later(m, moment{at: own.keepUntil})
}

// notAfterMaxTTL cuts the answer to the smallest maxTTL, and "never" only if it is not allowed.
func (c *recomputation) notAfterMaxTTL(f *lifecycle.Fact, m moment) moment {
	allowNever := true
	for _, p := range c.enforcedIn(f.Namespace) {
		if g := p.cluster.Guardrails; g != nil && g.AllowNever != nil && !*g.AllowNever {
			allowNever = false
		}
	}
	if m.never && allowNever {
		return m
	}
	for _, p := range c.enforcedIn(f.Namespace) {
		if g := p.cluster.Guardrails; g != nil && g.MaxTTL != nil {
			m = earlier(m, c.maxTTLEnds(f, g))
		}
	}
	return m
}

// maxTTLEnds returns when the maxTTL of a guardrail ends. If the object has finished, it counts from its end, unless the rules count from
// an earlier time.
func (c *recomputation) maxTTLEnds(f *lifecycle.Fact, g *gc.Guardrails) moment {
	end := after(c.sinceWhen(f), g.MaxTTL)
	if ended := c.endedAt(f); f.Finished && !ended.IsZero() {
		end = earlier(end, after(ended, g.MaxTTL))
	}
	return end
}

// minTTLEnds returns when the largest minTTL ends; false if there is none. If the object has finished, it counts from its end, or from a
// later time that the rules count from. In the latter case, it keeps nothing beyond maxTTL, unless it does so if it counts from the end.
func (c *recomputation) minTTLEnds(f *lifecycle.Fact) (moment, bool) {
	var least time.Duration
	longest := moment{never: true}
	for _, p := range c.enforcedIn(f.Namespace) {
		if g := p.cluster.Guardrails; g != nil && g.MinTTL != nil {
			least = max(least, duration(*g.MinTTL))
		}
		if g := p.cluster.Guardrails; g != nil && g.MaxTTL != nil {
			longest = earlier(longest, c.maxTTLEnds(f, g))
		}
	}
	since, ended := c.sinceWhen(f), c.endedAt(f)
	byRules := moment{at: since.Add(least)}
	if !f.Finished || ended.IsZero() {
		return byRules, least > 0
	}
	byEnd := moment{at: ended.Add(least)}
	if longest.before(byRules) {
		byRules = longest
	}
	return later(byEnd, byRules), least > 0
}

// notBeforeMinTTL raises the answer to the largest minTTL, and to the end of the object or its controller.
func (c *recomputation) notBeforeMinTTL(f *lifecycle.Fact, m moment) moment {
	if end, ok := c.minTTLEnds(f); ok {
		m = later(m, end)
	}
	if f.FirstSeen != nil { // What does not say when it finished has finished some time before it was first seen.
		m = later(m, moment{at: c.notBeforeOwner(f, m.at)})
	} else {
		m = later(m, moment{at: c.endedAt(f)})
	}
	marked := f.FirstSeen != nil || slices.ContainsFunc(c.matches[f.UID], func(v match) bool {
		return oneOf(v.after, gc.AfterMatched, gc.AfterUnused)
	})
	if marked && !m.never && m.at.After(c.sinceWhen(f)) && m.at.After(f.FinishedAt) { // Rounded up.
		m.at = m.at.Add(time.Second - 1).Truncate(time.Second)
	}
	return m
}
