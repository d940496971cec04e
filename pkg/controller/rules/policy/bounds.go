// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"math"
	"time"
)

// Bounds are the guardrails of a namespace: the strictest of all cluster policies that select it.
type Bounds struct {
	// PerMinute is how many deletions may be sent in a minute.
	PerMinute int
	HoldAbove HoldAbove
	// RequireAccount is the name of a cluster policy that wants every policy to name an account; empty if there is none.
	RequireAccount string

	minTTL                     time.Duration
	minNotice                  time.Duration
	minNoticePolicy            string // the name of the cluster policy that sets minNotice
	maxTTL                     ttl
	minTTLPolicy, maxTTLPolicy string // the names of the cluster policies that set minTTL and maxTTL
	forbidNever                bool
}

// HoldAbove is how many objects one change may make due at once in one namespace (Objects), and in all namespaces that it reaches
// (Total), and what share of the objects of a rule in one namespace (Percent). A negative number means that no cluster policy sets the
// limit. ObjectsOf, PercentOf and TotalOf name the cluster policies that do.
type HoldAbove struct {
	Objects, Percent, Total       int
	ObjectsOf, PercentOf, TotalOf string
}

// NoHoldAbove sets no limit.
var NoHoldAbove = HoldAbove{Objects: -1, Percent: -1, Total: -1}

// Stricter returns the smaller limits of both.
func (h HoldAbove) Stricter(o HoldAbove) HoldAbove {
	if stricter(h.Objects, o.Objects) != h.Objects {
		h.Objects, h.ObjectsOf = o.Objects, o.ObjectsOf
	}
	if stricter(h.Percent, o.Percent) != h.Percent {
		h.Percent, h.PercentOf = o.Percent, o.PercentOf
	}
	if stricter(h.Total, o.Total) != h.Total {
		h.Total, h.TotalOf = o.Total, o.TotalOf
	}
	return h
}

// NoBounds limit nothing.
var NoBounds = Bounds{PerMinute: math.MaxInt, HoldAbove: NoHoldAbove, maxTTL: ttl{never: true}}

// BoundsOf combines the guardrails of cluster policies. Guardrails of Preview policies have no effect.
func BoundsOf(policies []*Policy) Bounds {
	out := NoBounds
	for _, p := range policies {
		if p.Preview {
			continue
		}
		b := &p.Cluster.bounds
		out.PerMinute = min(out.PerMinute, b.PerMinute)
		h := b.HoldAbove
		h.ObjectsOf, h.PercentOf, h.TotalOf = p.Name, p.Name, p.Name
		out.HoldAbove = out.HoldAbove.Stricter(h)
		if b.minTTL > out.minTTL {
			out.minTTL, out.minTTLPolicy = b.minTTL, p.Name
		}
		if b.minNotice > out.minNotice {
			out.minNotice, out.minNoticePolicy = b.minNotice, p.Name
		}
		if out.maxTTL.laterThan(b.maxTTL) {
			out.maxTTL, out.maxTTLPolicy = b.maxTTL, p.Name
		}
		out.forbidNever = out.forbidNever || b.forbidNever
		out.RequireAccount = cmp.Or(out.RequireAccount, b.RequireAccount)
	}
	return out
}

// stricter returns the smaller of two limits. A negative number is no limit.
func stricter(a, b int) int {
	if a < 0 || b >= 0 && b < a {
		return b
	}
	return a
}

// applyMaxTTL cuts an answer to latest, which is when maxTTL ends. Never stays never, unless allowNever is false.
func (b *Bounds) applyMaxTTL(a answer, latest time.Time) answer {
	if b.maxTTL.never || a.never && !b.forbidNever {
		return a
	}
	if a.never || a.at.After(latest) {
		a.at, a.never = latest, false
	}
	return a
}

// applyMinTTL raises an answer to earliest, which is when minTTL ends. Without one, an answer may be earlier than what durations count
// from: the TTL of the object itself counts from its end, whatever the rules count from.
func (b *Bounds) applyMinTTL(a answer, earliest time.Time) answer {
	if b.minTTL > 0 && !a.never && a.at.Before(earliest) {
		a.at = earliest
	}
	return a
}
