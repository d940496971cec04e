// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/controller/rules/capacity"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

// PoolKey identifies a pool of a namespace.
type PoolKey struct {
	LimitKey
	Resource, Key string
}

// LimitKey identifies the limit of a rule. It has the name of the rule, so that a change of the policy affects the pool only if it changes
// the limit.
type LimitKey struct {
	Policy  types.UID
	Preview bool
	Rule    string
	Limit   policy.Capacity
}

// Pool ranks the objects that the limit of a rule counts together.
type Pool struct {
	PoolKey
	*capacity.Pool[*Record]
	counter Counter
}

// NewPool returns a pool without members; see capacity.NewPool.
func NewPool(key PoolKey, limit int, overChanged func(*capacity.Member[*Record])) *Pool {
	p := &Pool{PoolKey: key, Pool: capacity.NewPool(limit, overChanged)}
	p.counter.Pool = p
	return p
}

// Ceiling is a limit of a cluster policy for all its namespaces together. The ceiling of a Preview policy only counts.
type Ceiling struct {
	Policy   *policy.Policy
	Resource string
	*capacity.Ceiling[*Record]
	// Pending are the namespaces of the ceiling with changes that are not assessed yet.
	Pending sets.Set[*Namespace]
	counter Counter
}

// NewCeiling returns a ceiling without members; see capacity.NewCeiling.
func NewCeiling(p *policy.Policy, resource string, total int, overChanged func(*capacity.Member[*Record])) *Ceiling {
	c := &Ceiling{Policy: p, Resource: resource, Pending: sets.New[*Namespace](), Ceiling: capacity.NewCeiling(total, overChanged)}
	c.counter.Ceiling = c
	return c
}

// Counter is a pool or a ceiling; the other one is nil.
type Counter struct {
	Pool    *Pool
	Ceiling *Ceiling
}

// Membership is the place of a record in a pool or a ceiling. There may be millions, so it takes 48 bytes.
type Membership struct {
	*Counter
	Member capacity.Member[*Record]
	Next   *Membership // of the same record
}

// In returns the membership of a record in the pool.
func (p *Pool) In(m capacity.Member[*Record]) Membership {
	return Membership{Counter: &p.counter, Member: m}
}

// In returns the membership of a record in the ceiling.
func (c *Ceiling) In(m capacity.Member[*Record]) Membership {
	return Membership{Counter: &c.counter, Member: m}
}

// Same reports whether two memberships of a record are in the same pool or ceiling, and rank there in the same way.
func (m *Membership) Same(o *Membership) bool {
	return m.Counter == o.Counter && m.Member.RanksAs(&o.Member)
}

// limitTimes are when an object counts differently because time passes, and when a pool or ceiling last put it over its limit.
type limitTimes struct{ recountAt, overSince Instant }

var noLimitTimes = limitTimes{ZeroInstant, ZeroInstant}

func (rec *Record) limitTimes() limitTimes {
	if rec.Flags.Has(hasLimitTimes) {
		return rec.NS.limitTimes[rec]
	}
	return noLimitTimes
}

func (rec *Record) setLimitTimes(times limitTimes) {
	ns := rec.NS
	if rec.Flags.Set(hasLimitTimes, times != noLimitTimes); times == noLimitTimes {
		if delete(ns.limitTimes, rec); len(ns.limitTimes) == 0 {
			ns.limitTimes = nil // The map would keep its memory.
		}
		return
	}
	if ns.limitTimes == nil {
		ns.limitTimes = map[*Record]limitTimes{}
	}
	ns.limitTimes[rec] = times
}

// OverSince returns when a pool or ceiling last put the object over its limit; zero if never.
func (rec *Record) OverSince() time.Time { return rec.limitTimes().overSince.Time() }

// SetOverSince sets OverSince to now after Over of a membership has changed, unless the record is due: then it stays due since the
// time that is already known. If Over has become false, OverSince does not matter.
func (rec *Record) SetOverSince(now time.Time) {
	rec.Flags.Set(OverChanged, false)
	if !rec.Due {
		times := rec.limitTimes()
		times.overSince = InstantOf(now)
		rec.setLimitTimes(times)
	}
}

// RecountAt returns when the object counts differently because time passes; zero if never.
func (rec *Record) RecountAt() time.Time { return rec.limitTimes().recountAt.Time() }

// RecountBy sets RecountAt, unless it is earlier already.
func (rec *Record) RecountBy(t time.Time) {
	if times := rec.limitTimes(); times.recountAt == ZeroInstant || t.Before(times.recountAt.Time()) {
		times.recountAt = InstantOf(t)
		rec.setLimitTimes(times)
	}
}

// ForgetRecount sets RecountAt to zero.
func (rec *Record) ForgetRecount() {
	if times := rec.limitTimes(); times.recountAt != ZeroInstant {
		times.recountAt = ZeroInstant
		rec.setLimitTimes(times)
	}
}
