// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"math"
	"time"
)

// Bounds are the guardrails of a namespace: of all cluster policies that select it, the strictest.
type Bounds struct {
	// PerMinute is how many deletions may be sent in a minute.
	PerMinute int
	HoldAbove HoldAbove

	minTTL   time.Duration
	maxTTL   ttl
	maxTTLOf string // the name of the cluster policy that sets it
	cutNever bool
}

// HoldAbove is how many objects one change may make due at once in a namespace, and in all that it reaches; negative where no cluster
// policy says. ObjectsOf and TotalOf name the policies that do.
type HoldAbove struct {
	Objects, Total     int
	ObjectsOf, TotalOf string
}

// NoHoldAbove says nothing.
var NoHoldAbove = HoldAbove{Objects: -1, Total: -1}

// Stricter has the smaller numbers of both.
func (h HoldAbove) Stricter(o HoldAbove) HoldAbove {
	if stricter(h.Objects, o.Objects) != h.Objects {
		h.Objects, h.ObjectsOf = o.Objects, o.ObjectsOf
	}
	if stricter(h.Total, o.Total) != h.Total {
		h.Total, h.TotalOf = o.Total, o.TotalOf
	}
	return h
}

// NoBounds restrain nothing.
var NoBounds = Bounds{PerMinute: math.MaxInt, HoldAbove: NoHoldAbove, maxTTL: ttl{never: true}}

// BoundsOf puts together the guardrails of cluster policies. Those of a Preview policy bind nothing.
func BoundsOf(policies []*Policy) Bounds {
	out := NoBounds
	for _, p := range policies {
		if p.Preview {
			continue
		}
		b := &p.Cluster.bounds
		out.PerMinute = min(out.PerMinute, b.PerMinute)
		out.HoldAbove = out.HoldAbove.Stricter(HoldAbove{b.HoldAbove.Objects, b.HoldAbove.Total, p.Name, p.Name})
		out.minTTL = max(out.minTTL, b.minTTL)
		if out.maxTTL.laterThan(b.maxTTL) {
			out.maxTTL, out.maxTTLOf = b.maxTTL, p.Name
		}
		out.cutNever = out.cutNever || b.cutNever
	}
	return out
}

// stricter is the smaller of two numbers; a negative one says nothing.
func stricter(a, b int) int {
	if a < 0 || b >= 0 && b < a {
		return b
	}
	return a
}

// cut is the answer that the longest allowed TTL leaves of a. What is never due stays so, unless that is not allowed.
func (b *Bounds) cut(a answer, finished time.Time) answer {
	if b.maxTTL.never || a.never && !b.cutNever {
		return a
	}
	if latest := finished.Add(b.maxTTL.duration); a.never || a.at.After(latest) {
		a.at, a.never = latest, false
	}
	return a
}

// raise is the answer that the shortest allowed TTL makes of a.
func (b *Bounds) raise(a answer, finished time.Time) answer {
	if earliest := finished.Add(b.minTTL); !a.never && a.at.Before(earliest) {
		a.at = earliest
	}
	return a
}
