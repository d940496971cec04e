// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/lifecycle"
)

// settled is when an object may go and who says so. The reason is that of the deletion, once it is due.
type settled struct {
	moment
	policy      PolicyRef
	by, reason  string
	propagation metav1.DeletionPropagation
}

// settle goes through what adjusts the answer in the order of the contract. An object without votes never goes, unless a
// ceiling takes it.
func (c *recomputation) settle(f *lifecycle.Fact) settled {
	out := settled{moment: moment{never: true}}
	if len(c.votes[f.UID]) > 0 {
		out = c.latestVote(f)
		if f.NativeTTL != nil {
			out.moment = moment{at: f.FinishedAt.Add(*f.NativeTTL)}
		}
		out.moment = c.annotated(f, out.moment)
		out.moment = c.notAfterMaxTTL(f, out.moment)
	}
	atOnce := moment{at: f.FinishedAt}
	if ceiling, over := c.ceilings[f.UID]; over && atOnce.before(out.moment) {
		out = settled{moment: atOnce, policy: ceiling, by: "ceiling=" + ceiling.Name, reason: "OverCeiling",
			propagation: metav1.DeletePropagationBackground}
	}
	if f.Propagation != "" { // Its finalizers ask for it, and any other would strip them.
		out.propagation = f.Propagation
	}
	out.moment = c.notBeforeMinTTL(f, out.moment)
	return out
}

// latestVote is the answer of the votes: all must agree that the object may go, and of equal ones the first decides.
func (c *recomputation) latestVote(f *lifecycle.Fact) settled {
	var out settled
	for i, v := range c.votes[f.UID] {
		m, reason := c.answerOf(v, f)
		if i == 0 || out.before(m) {
			out = settled{moment: m, policy: v.policy, by: v.policy.String() + " " + v.rule, reason: reason, propagation: v.propagation}
		}
	}
	return out
}

// answerOf is the earlier of TTL and capacity, which takes nothing before minAge.
func (c *recomputation) answerOf(v vote, f *lifecycle.Fact) (moment, string) {
	byTime := after(f, v.ttl)
	if !c.beyond[f.UID][v.policy] {
		return byTime, "Expired"
	}
	byNumber := moment{at: f.FinishedAt}
	if v.capacity.MinAge != nil {
		byNumber = after(f, v.capacity.MinAge)
	}
	if byNumber.before(byTime) {
		return byNumber, "OverCapacity"
	}
	return byTime, "Expired"
}

// annotations are what an object's own say, as far as the votes let them be looked at.
type annotations struct {
	ttl       *gc.TTL
	until     time.Time
	malformed bool
}

func (c *recomputation) annotations(f *lifecycle.Fact) annotations {
	var out annotations
	if annotationMode(c.votes[f.UID]) == gc.AnnotationIgnore {
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
			out.until = until
		} else {
			out.malformed = true
		}
	}
	return out
}

// annotated lets a TTL of the object's own lengthen the answer, or replace it where all votes say Any; keep-until only
// lengthens.
func (c *recomputation) annotated(f *lifecycle.Fact, m moment) moment {
	own := c.annotations(f)
	if own.ttl != nil {
		if annotationMode(c.votes[f.UID]) == gc.AnnotationAny {
			m = after(f, own.ttl)
		} else {
			m = later(m, after(f, own.ttl))
		}
	}
	return later(m, moment{at: own.until})
}

// notAfterMaxTTL cuts to the smallest maxTTL; "never" only where it is not allowed.
func (c *recomputation) notAfterMaxTTL(f *lifecycle.Fact, m moment) moment {
	allowNever := true
	for _, p := range c.binding(f.Namespace) {
		if g := p.cluster.Guardrails; g != nil && g.AllowNever != nil && !*g.AllowNever {
			allowNever = false
		}
	}
	if m.never && allowNever {
		return m
	}
	for _, p := range c.binding(f.Namespace) {
		if g := p.cluster.Guardrails; g != nil && g.MaxTTL != nil {
			m = earlier(m, after(f, g.MaxTTL))
		}
	}
	return m
}

// notBeforeMinTTL waits for the largest minTTL, whatever maxTTL and ceilings say.
func (c *recomputation) notBeforeMinTTL(f *lifecycle.Fact, m moment) moment {
	for _, p := range c.binding(f.Namespace) {
		if g := p.cluster.Guardrails; g != nil && g.MinTTL != nil {
			m = later(m, after(f, g.MinTTL))
		}
	}
	return m
}
