// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/capacity"
	"github.com/winnow-dev/winnow/pkg/controller/policy"
)

// poolKey identifies a pool of a namespace.
type poolKey struct {
	limitKey
	resource, key string
}

// limitKey identifies the limit of a rule. It has the name of the rule, so that a change of the policy affects the pool only if it changes
// the limit.
type limitKey struct {
	policy  types.UID
	preview bool
	rule    string
	limit   policy.Capacity
}

// limitKeyOf returns the key of the limit of a vote, which must have one.
func limitKeyOf(v policy.Vote) limitKey {
	return limitKey{policy: v.Policy.UID, preview: v.Policy.Preview, rule: v.Rule.Name, limit: *v.Rule.Capacity}
}

// pool ranks the objects that the limit of a rule counts together.
type pool struct {
	poolKey
	*capacity.Pool[*record]
}

// ceiling is a limit of a cluster policy for all its namespaces together. The ceiling of a Preview policy only counts.
type ceiling struct {
	policy   *policy.Policy
	resource string
	*capacity.Ceiling[*record]
	// pending are the namespaces of the ceiling with changes that are not assessed yet.
	pending sets.Set[*namespace]
}

// ceilingOf returns the same ceiling of an earlier generation of the policy, if there is one, or else a new ceiling.
func (e *Engine) ceilingOf(p *policy.Policy, resource string, total int, before []*ceiling) *ceiling {
	for _, c := range before {
		if c.policy.UID == p.UID && c.policy.Preview == p.Preview && c.resource == resource && c.Total() == total {
			c.policy = p
			return c
		}
	}
	overChanged := e.noteOverChanged
	if p.Preview {
		overChanged = func(*capacity.Member[*record]) {}
	}
	return &ceiling{
		policy: p, resource: resource, pending: sets.New[*namespace](), Ceiling: capacity.NewCeiling(total, overChanged),
	}
}

// ceilingStatus returns what each ceiling of the policy counts, sorted by resource.
func (ps *policyState) ceilingStatus() []gc.CeilingStatus {
	var out []gc.CeilingStatus
	for _, c := range ps.ceilings {
		out = append(out, gc.CeilingStatus{
			Resource: c.resource, Objects: int64(c.Len()), MaxObjects: int64(c.Total()), Over: int64(c.Over()),
		})
	}
	slices.SortFunc(out, func(a, b gc.CeilingStatus) int { return cmp.Compare(a.Resource, b.Resource) })
	return out
}

// membership is the place of a record in a pool or a ceiling; the other one is nil.
type membership struct {
	pool    *pool
	ceiling *ceiling
	member  capacity.Member[*record]
}

// same reports whether two memberships of a record are in the same pool or ceiling, and rank there in the same way.
func (m *membership) same(o *membership) bool {
	return m.pool == o.pool && m.ceiling == o.ceiling && m.member.RanksAs(&o.member)
}

// noteOverChanged adds the record of a member to overChanged, unless it is there already.
func (e *Engine) noteOverChanged(m *capacity.Member[*record]) {
	if state := m.Value.ensureLimitState(); !state.overChanged {
		state.overChanged = true
		e.overChanged = append(e.overChanged, m.Value)
	}
}

// updateMembership moves a record to the pools and ceilings that must count it now.
func (e *Engine) updateMembership(rec *record, now time.Time) {
	if rec.limitState != nil {
		rec.limitState.recountAt = zeroInstant
	}
	e.scratch = e.appendMemberships(e.scratch[:0], rec, now)
	since := e.rankedBy(rec)
	for i := range e.scratch {
		kept := e.scratch[i].member.KeptByAnnotation
		e.scratch[i].member = capacity.MakeMember(rec, since, rec.UID())
		e.scratch[i].member.KeptByAnnotation = kept
	}
	if sameMemberships(rec.memberships(), e.scratch) {
		return
	}
	if kept := slices.ContainsFunc(e.scratch, func(m membership) bool { return m.member.KeptByAnnotation }); kept != rec.keptByAnnotation() {
		e.queue.Remove(&rec.ns.lane, rec) // Before depends on kept.
	}
	e.leave(rec)
	if len(e.scratch) == 0 {
		return
	}
	memberships := slices.Clone(e.scratch)
	rec.ensureLimitState().memberships = memberships
	for i := range memberships {
		m := &memberships[i]
		if m.pool != nil {
			rec.ns.pools[m.pool.poolKey] = m.pool // leave has removed the pool if the record was the last member.
			m.pool.Insert(&m.member)
		} else {
			m.ceiling.Insert(rec.ns.name, &m.member)
		}
	}
}

// rankedBy returns the time by which limits rank a record that they count; zero if they do not count it.
func (e *Engine) rankedBy(rec *record) time.Time {
	if len(e.scratch) == 0 {
		return time.Time{}
	}
	object := e.object(rec)
	return object.EndedAt()
}

// sameMemberships is slices.EqualFunc without copies of members, which may be in pools.
func sameMemberships(a, b []membership) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !a[i].same(&b[i]) {
			return false
		}
	}
	return true
}

// leave removes a record from all pools and ceilings. A pool without members is removed.
func (e *Engine) leave(rec *record) {
	memberships := rec.memberships()
	for i := range memberships {
		m := &memberships[i]
		m.member.Leave()
		if m.pool != nil && m.pool.Len() == 0 {
			delete(rec.ns.pools, m.pool.poolKey)
		}
	}
	if rec.limitState != nil {
		rec.limitState.memberships = nil
	}
}

// appendMemberships appends the memberships that a record must have now, including those that it would have by Preview policies.
func (e *Engine) appendMemberships(out []membership, rec *record, now time.Time) []membership {
	ns := rec.ns
	if ns.excluded() != "" || !ns.hasLimits {
		return out
	}
	e.match(rec)
	// Over of the votes may be of an earlier state, but how an object counts does not depend on Over.
	standing, next := policy.Resolve(e.object(rec), e.asked.matches.Votes), 0
	switch {
	case standing.Unevaluated():
		out = rec.appendFormerCeilings(out)
	case ns.hasCeiling(rec.Resource) || slices.ContainsFunc(e.asked.matches.Votes, hasCapacity):
		out = e.appendEnforced(out, rec, rec.updateCounting(&standing, now), &next)
	}
	for _, v := range e.asked.matches.Previews {
		if !hasCapacity(v) {
			continue
		}
		if with := standing.With(v); rec.updateCounting(&with, now).InPools() {
			out = e.appendPool(out, rec, v, &next)
		}
	}
	return e.appendPreviewCeilings(out, rec, &standing, now)
}

// appendFormerCeilings appends the ceilings that count the record already. They go on until its match conditions are evaluated. Otherwise
// the shares of other namespaces would grow for that time, and what was due there would become due again by the change of the conditions.
func (rec *record) appendFormerCeilings(out []membership) []membership {
	for _, m := range rec.memberships() {
		if m.ceiling != nil && rec.Finished && !rec.Terminating() && slices.Contains(rec.ns.ceilings, m.ceiling) {
			out = append(out, membership{ceiling: m.ceiling, member: capacity.Member[*record]{KeptByAnnotation: m.member.KeptByAnnotation}})
		}
	}
	return out
}

// hasCapacity reports whether the rule of a vote has a limit.
func hasCapacity(v policy.Vote) bool { return v.Rule.Capacity != nil }

// appendPreviewCeilings appends the ceilings of Preview policies that would count the record.
func (e *Engine) appendPreviewCeilings(out []membership, rec *record, standing *policy.Standing, now time.Time) []membership {
	for _, c := range rec.ns.previewCeilings {
		if c.resource != rec.Resource {
			continue
		}
		with := *standing
		if i := slices.IndexFunc(e.asked.matches.Previews, func(v policy.Vote) bool { return v.Policy == c.policy }); i >= 0 {
			with = standing.With(e.asked.matches.Previews[i])
		}
		if rec.updateCounting(&with, now).Counts {
			out = append(out, membership{ceiling: c})
		}
	}
	return out
}

// appendEnforced appends the pools of enforcing policies that vote, and the ceilings.
func (e *Engine) appendEnforced(out []membership, rec *record, counting policy.Counting, next *int) []membership {
	if counting.InPools() {
		for _, v := range e.asked.matches.Votes {
			out = e.appendPool(out, rec, v, next)
		}
	}
	for _, c := range rec.ns.ceilings {
		if counting.Counts && c.resource == rec.Resource {
			out = append(out, membership{ceiling: c, member: capacity.Member[*record]{KeptByAnnotation: counting.KeptByAnnotation}})
		}
	}
	return out
}

// hasCeiling reports whether a ceiling counts the objects of a resource.
func (ns *namespace) hasCeiling(resource string) bool {
	return slices.ContainsFunc(ns.ceilings, func(c *ceiling) bool { return c.resource == resource })
}

// updateCounting returns how limits count the object now. recountAt becomes no later than when that changes because time passes.
func (rec *record) updateCounting(standing *policy.Standing, now time.Time) policy.Counting {
	out := standing.Counting(&rec.ns.bounds, now)
	if until := out.Until; !until.IsZero() {
		if state := rec.ensureLimitState(); state.recountAt == zeroInstant || until.Before(state.recountAt.time()) {
			state.recountAt = instantOf(until)
		}
	}
	return out
}

// appendPool appends the pool of a vote that the matched record is in, if any. An object with a native TTL is in no pool, because the
// native TTL replaces the rule.
func (e *Engine) appendPool(out []membership, rec *record, v policy.Vote, next *int) []membership {
	c := v.Rule.Capacity
	if c == nil || e.asked.fact.NativeTTL != nil {
		return out
	}
	key, ok := c.PoolKey(&e.asked.fact)
	if !ok {
		return out
	}
	k := poolKey{limitKey: limitKeyOf(v), resource: rec.Resource, key: key}
	p := rec.findPool(k, next)
	if p == nil {
		p = &pool{poolKey: k, Pool: capacity.NewPool(e.poolLimit(rec.ns, c, rec.Resource), e.noteOverChanged)}
		rec.ns.pools[k] = p
	}
	return append(out, membership{pool: p})
}

// poolLimit returns how many objects of a resource a pool of the namespace keeps.
func (e *Engine) poolLimit(ns *namespace, c *policy.Capacity, resource string) int {
	if c.PercentOfQuota == 0 {
		return c.MaxObjects
	}
	quota, ok := e.quotas.smallest(ns.name, resource)
	if !ok {
		return capacity.Unlimited
	}
	percent := int64(c.PercentOfQuota)
	return int(quota/100*percent + quota%100*percent/100) // quota*percent may overflow.
}

// findPool returns the pool of a key in the record's namespace; nil if there is none. It looks at the record's memberships first, see
// findMembership.
func (rec *record) findPool(k poolKey, next *int) *pool {
	if m := rec.findMembership(next, func(p *pool) bool { return p.poolKey == k }); m != nil {
		return m.pool
	}
	return rec.ns.pools[k]
}

// inPool reports whether the pool of a vote counts the record, and whether the record is over its limit; see findMembership for next.
func (rec *record) inPool(v policy.Vote, next *int) (counted, over bool) {
	if !hasCapacity(v) || len(rec.memberships()) == 0 {
		return false, false
	}
	k := limitKeyOf(v)
	m := rec.findMembership(next, func(p *pool) bool { return p.limitKey == k })
	return m != nil, m != nil && m.member.Over()
}

// findMembership returns the record's membership in a pool; nil if there is none. The search begins at the index *next, which becomes the
// index after the last membership that was looked at. Memberships have the order of the votes that they come from, so the search mostly
// ends at once if the caller asks for one vote after another.
func (rec *record) findMembership(next *int, is func(*pool) bool) *membership {
	memberships := rec.memberships()
	for range memberships {
		if *next >= len(memberships) {
			*next = 0
		}
		m := &memberships[*next]
		if *next++; m.pool != nil && is(m.pool) {
			return m
		}
	}
	return nil
}

// overCeilings returns the policy of the first ceiling that the record is over, of those whose policies are not suspended, and of those
// whose policies are; nil if there is none.
func (rec *record) overCeilings() (running, suspended *policy.Policy) {
	memberships := rec.memberships()
	for i := range memberships {
		m := &memberships[i]
		switch {
		case m.ceiling == nil, m.ceiling.policy.Preview, !m.member.Over():
		case !m.ceiling.policy.Suspend:
			return m.ceiling.policy, suspended
		case suspended == nil:
			suspended = m.ceiling.policy
		}
	}
	return nil, suspended
}
