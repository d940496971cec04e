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
	"github.com/winnow-dev/winnow/pkg/controller/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/policy"
)

// poolKey tells apart the pools of a namespace.
type poolKey struct {
	limitKey
	resource, key string
}

// limitKey tells apart the limits of rules. A rule is named, so that a change of its policy moves nothing unless the limit changes.
type limitKey struct {
	policy  types.UID
	preview bool
	rule    string
	limit   policy.Capacity
}

// limitOf is the limit of a rule that votes, which must have one.
func limitOf(v policy.Vote) limitKey {
	return limitKey{policy: v.Policy.UID, preview: v.Policy.Preview, rule: v.Rule.Name, limit: *v.Rule.Capacity}
}

// pool are the objects that a limit of a rule counts together.
type pool struct {
	poolKey
	*capacity.Pool[*record]
}

// ceiling is a limit of a cluster policy over all its namespaces. That of a Preview policy only counts.
type ceiling struct {
	policy   *policy.Policy
	resource string
	*capacity.Ceiling[*record]
	// pending are the namespaces with changes that are yet to be weighed.
	pending sets.Set[*namespace]
}

// ceilingOf goes on with the ceiling of an earlier generation of the policy, if it is the same, or makes one.
func (e *Engine) ceilingOf(p *policy.Policy, resource string, total int, before []*ceiling) *ceiling {
	for _, c := range before {
		if c.policy.UID == p.UID && c.policy.Preview == p.Preview && c.resource == resource && c.Total() == total {
			c.policy = p
			return c
		}
	}
	flipped := e.noteOverChanged
	if p.Preview {
		flipped = func(*capacity.Member[*record]) {}
	}
	return &ceiling{
		policy: p, resource: resource, pending: sets.New[*namespace](), Ceiling: capacity.NewCeiling(total, flipped),
	}
}

// ceilingStatus is what each ceiling of the policy counts.
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

// membership is where a record is counted: in a pool or under a ceiling.
type membership struct {
	pool    *pool
	ceiling *ceiling
	member  capacity.Member[*record]
}

func (p *membership) same(o *membership) bool {
	return p.pool == o.pool && p.ceiling == o.ceiling && p.member.Kept == o.member.Kept
}

// flip notes that a record came to lie beyond a limit, or was saved; once, however many limits count it.
func (e *Engine) noteOverChanged(m *capacity.Member[*record]) {
	if c := m.Value.ensureLimitState(); !c.overChanged {
		c.overChanged = true
		e.overChanged = append(e.overChanged, m.Value)
	}
}

// updateMembership counts a record where it is to be counted now, and nowhere else.
func (e *Engine) updateMembership(rec *record, now time.Time) {
	if rec.limitState != nil {
		rec.limitState.recountAt = zeroInstant
	}
	e.scratch = e.appendMemberships(e.scratch[:0], rec, now)
	memberships := rec.memberships()
	if sameMemberships(memberships, e.scratch) {
		return
	}
	if kept := slices.ContainsFunc(e.scratch, func(p membership) bool { return p.member.Kept }); kept != rec.kept() {
		e.ready.Remove(&rec.ns.lane, rec) // It has another turn.
	}
	e.leave(rec)
	if len(e.scratch) == 0 {
		return
	}
	memberships = make([]membership, len(e.scratch))
	copy(memberships, e.scratch)
	rec.ensureLimitState().memberships = memberships
	for i := range memberships {
		p := &memberships[i]
		kept := p.member.Kept
		p.member = capacity.MakeMember(rec, rec.FinishedAt(), rec.UID())
		p.member.Kept = kept
		if p.pool != nil {
			rec.ns.pools[p.pool.poolKey] = p.pool // The record may have been the last to leave it.
			p.pool.Insert(&p.member)
		} else {
			p.ceiling.Insert(rec.ns.name, &p.member)
		}
	}
}

// sameMemberships copies none of the members.
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

// leave takes a record out of all pools and ceilings.
func (e *Engine) leave(rec *record) {
	memberships := rec.memberships()
	for i := range memberships {
		p := &memberships[i]
		p.member.Leave()
		if p.pool != nil && p.pool.Len() == 0 {
			delete(rec.ns.pools, p.pool.poolKey)
		}
	}
	if rec.limitState != nil {
		rec.limitState.memberships = nil
	}
}

// wanted appends the memberships where a record is to be counted now. Of a preview policy they are the pool and the ceilings that it would have.
func (e *Engine) appendMemberships(out []membership, rec *record, now time.Time) []membership {
	ns := rec.ns
	if ns.excluded() != "" || !ns.hasLimits {
		return out
	}
	e.match(rec)
	f, standing, at := &e.fact, policy.Resolve(e.object(rec), e.matches.Votes), 0
	if ns.limitsObject(e.matches.Votes, f) {
		out = e.appendEnforced(out, rec, rec.updateCounting(&standing, now), &at)
	}
	for _, v := range e.matches.Previews {
		if v.Rule.Capacity == nil {
			continue
		}
		if with := standing.With(v); rec.updateCounting(&with, now).InPools() {
			out = e.appendPool(out, rec, f, v, &at)
		}
	}
	return e.appendPreviewCeilings(out, rec, &standing, now)
}

// appendPreviewed adds the ceilings of preview policies that would count the record.
func (e *Engine) appendPreviewCeilings(out []membership, rec *record, standing *policy.Standing, now time.Time) []membership {
	for _, c := range rec.ns.previewed {
		if c.resource != rec.Resource {
			continue
		}
		with := *standing
		if i := slices.IndexFunc(e.matches.Previews, func(v policy.Vote) bool { return v.Policy == c.policy }); i >= 0 {
			with = standing.With(e.matches.Previews[i])
		}
		if rec.updateCounting(&with, now).Counts {
			out = append(out, membership{ceiling: c})
		}
	}
	return out
}

// appendMemberships adds the pools of the rules that vote, and the ceilings.
func (e *Engine) appendEnforced(out []membership, rec *record, counting policy.Counting, at *int) []membership {
	if counting.InPools() {
		for _, v := range e.matches.Votes {
			out = e.appendPool(out, rec, &e.fact, v, at)
		}
	}
	for _, c := range rec.ns.ceilings {
		if counting.Counts && c.resource == rec.Resource {
			out = append(out, membership{ceiling: c, member: capacity.Member[*record]{Kept: counting.Kept}})
		}
	}
	return out
}

// limited tells whether anything counts the object.
func (ns *namespace) limitsObject(votes []policy.Vote, f *lifecycle.Fact) bool {
	return slices.ContainsFunc(votes, func(v policy.Vote) bool { return v.Rule.Capacity != nil }) || ns.hasCeiling(f)
}

// counted tells whether a ceiling counts objects like this one.
func (ns *namespace) hasCeiling(f *lifecycle.Fact) bool {
	return slices.ContainsFunc(ns.ceilings, func(c *ceiling) bool { return c.resource == f.Resource })
}

// counting is how the object is counted now as it stands. When that changes by itself is noted.
func (rec *record) updateCounting(standing *policy.Standing, now time.Time) policy.Counting {
	out := standing.Counting(&rec.ns.bounds, now)
	if until := out.Until; !until.IsZero() {
		if c := rec.ensureLimitState(); c.recountAt == zeroInstant || until.Before(c.recountAt.time()) {
			c.recountAt = instantOf(until)
		}
	}
	return out
}

// appendPoolMembership adds the pool of a rule that the object is in. An object with a TTL of its own is in none: its TTL replaces what
// the rule says.
func (e *Engine) appendPool(out []membership, rec *record, f *lifecycle.Fact, v policy.Vote, at *int) []membership {
	by := v.Rule.Capacity
	if by == nil || f.NativeTTL != nil {
		return out
	}
	key, ok := by.PoolKey(f)
	if !ok {
		return out
	}
	k := poolKey{limitKey: limitOf(v), resource: f.Resource, key: key}
	p := rec.findPool(k, at)
	if p == nil {
		p = &pool{poolKey: k, Pool: capacity.NewPool(e.limit(rec.ns, by, f.Resource), e.noteOverChanged)}
		rec.ns.pools[k] = p
	}
	return append(out, membership{pool: p})
}

// limit is how many objects of a resource a pool of the namespace covers.
func (e *Engine) limit(ns *namespace, c *policy.Capacity, resource string) int {
	if c.PercentOfQuota == 0 {
		return c.MaxObjects
	}
	quota, ok := e.quotas.smallest(ns.name, resource)
	if !ok {
		return capacity.Unlimited
	}
	percent := int64(c.PercentOfQuota)
	return int(quota/100*percent + quota%100*percent/100) // A quota may be as large as an int64.
}

// pool finds the pool of a key, mostly where the record is already; nil when there is none.
func (rec *record) findPool(k poolKey, at *int) *pool {
	if p := rec.findMembership(at, func(p *pool) bool { return p.poolKey == k }); p != nil {
		return p.pool
	}
	return rec.ns.pools[k]
}

// over tells whether the record lies beyond the limit of a rule.
func (rec *record) over(v policy.Vote, at *int) bool {
	if v.Rule.Capacity == nil || len(rec.memberships()) == 0 {
		return false
	}
	k := limitOf(v)
	p := rec.findMembership(at, func(p *pool) bool { return p.limitKey == k })
	return p != nil && p.member.Over()
}

// find finds the record's membership in a pool; nil when there is none. Places are in the order of the votes that they come from, so that it
// is mostly the next after the one that was found last, which is at.
func (rec *record) findMembership(at *int, is func(*pool) bool) *membership {
	memberships := rec.memberships()
	for range memberships {
		if *at >= len(memberships) {
			*at = 0
		}
		p := &memberships[*at]
		if *at++; p.pool != nil && is(p.pool) {
			return p
		}
	}
	return nil
}

// overCeiling is the policy of the first ceiling that the record lies beyond.
func (rec *record) overCeiling() *policy.Policy {
	memberships := rec.memberships()
	for i := range memberships {
		if p := &memberships[i]; p.ceiling != nil && !p.ceiling.policy.Preview && p.member.Over() {
			return p.ceiling.policy
		}
	}
	return nil
}
