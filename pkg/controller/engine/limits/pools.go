// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package limits

import (
	"cmp"
	"slices"
	"time"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/rules/capacity"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

// limitKeyOf returns the key of the limit of a match. The match must have a limit.
func limitKeyOf(match policy.Match) memory.LimitKey {
	return memory.LimitKey{Policy: match.Policy.UID, Preview: match.Policy.Preview, Rule: match.Rule.Name, Limit: *match.Rule.Capacity}
}

// CeilingStatus returns what each ceiling of the policy counts, sorted by resource.
func CeilingStatus(ps *memory.PolicyState) []gc.CeilingStatus {
	var out []gc.CeilingStatus
	for _, c := range ps.Ceilings {
		out = append(out, gc.CeilingStatus{
			Resource: c.Resource, Objects: int64(c.Len()), MaxObjects: int64(c.Total()), Over: int64(c.Over()),
		})
	}
	slices.SortFunc(out, func(a, b gc.CeilingStatus) int { return cmp.Compare(a.Resource, b.Resource) })
	return out
}

// Count notes since when rules match a record, and moves it to the pools and ceilings that must count it now.
func (l *Limits) Count(rec *memory.Record, now time.Time) {
	rec.Flags.Set(memory.MustCount, false)
	l.noteMatching(rec, now)
	rec.ForgetRecount()
	l.scratch = l.appendMemberships(l.scratch[:0], rec, now)
	if sameMemberships(rec.Membership, l.scratch) {
		return
	}
	isKept := func(m memory.Membership) bool { return m.Member.KeptByAnnotation }
	if slices.ContainsFunc(l.scratch, isKept) != rec.KeptByAnnotation() {
		l.Queue.Remove(&rec.NS.Queue, rec) // Record.Before depends on KeptByAnnotation.
	}
	l.Leave(rec)
	if len(l.scratch) == 0 {
		return
	}
	memberships := slices.Clone(l.scratch)
	for i := range memberships[1:] {
		memberships[i].Next = &memberships[i+1]
	}
	rec.Membership = &memberships[0]
	for m := rec.Membership; m != nil; m = m.Next {
		if m.Pool != nil {
			rec.NS.Pools[m.Pool.PoolKey] = m.Pool // Leave has removed the pool if the record was the last member.
			m.Pool.Insert(&m.Member)
		} else {
			m.Ceiling.Insert(rec.NS.Name, &m.Member)
		}
	}
}

// sameMemberships reports whether the memberships of a record, of which m is the first, are the same as others.
func sameMemberships(m *memory.Membership, others []memory.Membership) bool {
	for i := range others {
		if m == nil || !m.Same(&others[i]) {
			return false
		}
		m = m.Next
	}
	return m == nil
}

// Leave removes a record from all pools and ceilings. A pool without members is removed.
func (l *Limits) Leave(rec *memory.Record) {
	for m := rec.Membership; m != nil; m = m.Next {
		m.Member.Leave()
		if m.Pool != nil && m.Pool.Len() == 0 {
			delete(rec.NS.Pools, m.Pool.PoolKey)
		}
	}
	rec.Membership = nil
}

// appendMemberships appends the memberships that a record must have now, including memberships by Preview policies.
func (l *Limits) appendMemberships(out []memory.Membership, rec *memory.Record, now time.Time) []memory.Membership {
	ns := rec.NS
	if ns.Excluded() != "" || !ns.HasLimits {
		return out
	}
	l.Match(rec)
	// Over of the matches may be of an earlier state, but how an object counts does not depend on Over.
	effective, next := policy.Resolve(l.Object(rec), l.Asked.Matches.Enforced), rec.Membership
	switch {
	case effective.Unevaluated():
		out = appendFormerCeilings(rec, &effective, out)
	case HasCeiling(ns, rec.Resource) || slices.ContainsFunc(l.Asked.Matches.Enforced, hasCapacity):
		out = l.appendEnforced(out, rec, &effective, updateCounting(rec, &effective, now), &next)
	}
	for _, match := range l.Asked.Matches.Previews {
		if !hasCapacity(match) {
			continue
		}
		if with := effective.With(match); updateCounting(rec, &with, now).InPools() {
			out = l.appendPool(out, rec, &effective, match, &next)
		}
	}
	return l.appendPreviewCeilings(out, rec, &effective, now)
}

// appendFormerCeilings appends the ceilings that count the record already. They keep counting it until its match conditions are evaluated.
// Otherwise the shares of other namespaces would grow meanwhile, and the change of the conditions would make the objects there due a second
// time.
func appendFormerCeilings(rec *memory.Record, effective *policy.Effective, out []memory.Membership) []memory.Membership {
	for m := rec.Membership; m != nil; m = m.Next {
		if m.Ceiling != nil && rec.Finished && !rec.Terminating() && slices.Contains(rec.NS.Ceilings, m.Ceiling) {
			out = append(out, inCeiling(m.Ceiling, rec, effective, m.Member.KeptByAnnotation))
		}
	}
	return out
}

// hasCapacity reports whether the rule of a match has a limit.
func hasCapacity(match policy.Match) bool { return match.Rule.Capacity != nil }

// appendPreviewCeilings appends the ceilings of Preview policies that would count the record.
func (l *Limits) appendPreviewCeilings(
	out []memory.Membership, rec *memory.Record, effective *policy.Effective, now time.Time,
) []memory.Membership {
	for _, c := range rec.NS.PreviewCeilings {
		if c.Resource != rec.Resource {
			continue
		}
		with := *effective
		if i := slices.IndexFunc(l.Asked.Matches.Previews, func(match policy.Match) bool { return match.Policy == c.Policy }); i >= 0 {
			with = effective.With(l.Asked.Matches.Previews[i])
		}
		if updateCounting(rec, &with, now).InCeilings() {
			out = append(out, inCeiling(c, rec, &with, false))
		}
	}
	return out
}

// appendEnforced appends the pools of enforcing policies that match, and the ceilings.
func (l *Limits) appendEnforced(
	out []memory.Membership, rec *memory.Record, effective *policy.Effective, counting policy.Counting, next **memory.Membership,
) []memory.Membership {
	if counting.InPools() {
		for _, match := range l.Asked.Matches.Enforced {
			out = l.appendPool(out, rec, effective, match, next)
		}
	}
	for _, c := range rec.NS.Ceilings {
		if counting.InCeilings() && c.Resource == rec.Resource {
			out = append(out, inCeiling(c, rec, effective, counting.KeptByAnnotation))
		}
	}
	return out
}

// inCeiling returns the membership of a record in a ceiling, which ranks objects by when they ended.
func inCeiling(c *memory.Ceiling, rec *memory.Record, effective *policy.Effective, kept bool) memory.Membership {
	out := c.In(capacity.MakeMember(rec, effective.EndedAt()))
	out.Member.KeptByAnnotation = kept
	return out
}

// HasCeiling reports whether a ceiling counts the objects of a resource.
func HasCeiling(ns *memory.Namespace, resource string) bool {
	return slices.ContainsFunc(ns.Ceilings, func(c *memory.Ceiling) bool { return c.Resource == resource })
}

// updateCounting returns how limits count the object now. It sets RecountAt to the time when this changes, or earlier.
func updateCounting(rec *memory.Record, effective *policy.Effective, now time.Time) policy.Counting {
	out := effective.Counting(&rec.NS.Bounds, now)
	if until := out.Until; !until.IsZero() {
		rec.RecountBy(until)
	}
	return out
}

// appendPool appends the pool of a match that the matched record is in, if any. An object with a native TTL is in no pool, because the
// native TTL replaces the rule.
func (l *Limits) appendPool(
	out []memory.Membership, rec *memory.Record, effective *policy.Effective, match policy.Match, next **memory.Membership,
) []memory.Membership {
	c := match.Rule.Capacity
	if c == nil || l.Asked.fact.NativeTTL != nil {
		return out
	}
	key, ok := c.PoolKey(&l.Asked.fact)
	if !ok {
		return out
	}
	k := memory.PoolKey{LimitKey: limitKeyOf(match), Resource: rec.Resource, Key: key}
	p := findPool(rec, k, next)
	if p == nil {
		p = memory.NewPool(k, l.poolLimit(rec.NS, c, rec.Resource), l.TouchOver)
		rec.NS.Pools[k] = p
	}
	return append(out, p.In(capacity.MakeMember(rec, match.RankedBy(&effective.Object))))
}

// poolLimit returns how many objects of a resource a pool of the namespace keeps.
func (l *Limits) poolLimit(ns *memory.Namespace, c *policy.Capacity, resource string) int {
	if c.PercentOfQuota == 0 {
		return c.MaxObjects
	}
	quota, ok := l.Quotas.Smallest(ns.Name, resource)
	if !ok {
		return capacity.Unlimited
	}
	percent := int64(c.PercentOfQuota)
	return int(quota/100*percent + quota%100*percent/100) // quota*percent may overflow.
}

// findPool returns the pool of a key in the record's namespace; nil if there is none. It looks at the record's memberships first, see
// findMembership.
func findPool(rec *memory.Record, k memory.PoolKey, next **memory.Membership) *memory.Pool {
	if m := findMembership(rec, next, func(p *memory.Pool) bool { return p.PoolKey == k }); m != nil {
		return m.Pool
	}
	return rec.NS.Pools[k]
}

// SetPool notes in a match whether its pool counts the record, and whether the record is over its limit; see findMembership for next.
func SetPool(rec *memory.Record, match *policy.Match, next **memory.Membership) {
	match.Counted, match.Over, match.Unlimited = false, false, false
	if !hasCapacity(*match) || rec.Membership == nil {
		return
	}
	k := limitKeyOf(*match)
	if m := findMembership(rec, next, func(p *memory.Pool) bool { return p.LimitKey == k }); m != nil {
		_, limited := m.Member.Limit()
		match.Counted, match.Over, match.Unlimited = true, m.Member.Over(), !limited
	}
}

// findMembership returns the record's membership in a pool; nil if there is none. The search begins at *next, which becomes the one after
// the last membership that was looked at. Memberships have the order of the matches that they come from, so the search usually ends at once
// if the caller begins with the first membership, and asks for one match after another.
func findMembership(rec *memory.Record, next **memory.Membership, is func(*memory.Pool) bool) *memory.Membership {
	for _, part := range [...][2]*memory.Membership{{*next, nil}, {rec.Membership, *next}} {
		for m := part[0]; m != nil && m != part[1]; m = m.Next {
			if *next = m.Next; m.Pool != nil && is(m.Pool) {
				return m
			}
		}
	}
	return nil
}

// OverCeilings returns the policies of two ceilings that the record is over: the first with a policy that is not suspended, and the first
// with a suspended one; nil if there is none.
func OverCeilings(rec *memory.Record) (running, suspended *policy.Policy) {
	for m := rec.Membership; m != nil; m = m.Next {
		switch {
		case m.Ceiling == nil, m.Ceiling.Policy.Preview, !m.Member.Over():
		case !m.Ceiling.Policy.Suspend:
			return m.Ceiling.Policy, suspended
		case suspended == nil:
			suspended = m.Ceiling.Policy
		}
	}
	return nil, suspended
}
