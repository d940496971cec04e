// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package limits

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/objects/kinds"
	"github.com/winnow-dev/winnow/pkg/controller/rules/approval"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

// SetQuota handles a new state of a quota. It ignores states that are older than memory.
func (l *Limits) SetQuota(q *memory.Quota, now time.Time) {
	if l.Quotas.Set(q) {
		l.quotasChanged([]*memory.Quota{q}, now)
	}
}

// RemoveQuota handles the removal of a quota.
func (l *Limits) RemoveQuota(q *memory.Quota, now time.Time) {
	if l.Quotas.Remove(q) {
		l.quotasChanged([]*memory.Quota{q}, now)
	}
}

// ReplaceQuotas replaces all quotas with a list.
func (l *Limits) ReplaceQuotas(all []*memory.Quota, now time.Time) {
	listed, changed := map[types.NamespacedName]bool{}, []*memory.Quota(nil)
	for _, q := range all {
		listed[q.NamespacedName] = true
		if l.Quotas.SetListed(q) {
			changed = append(changed, q)
		}
	}
	for _, q := range l.Quotas.Except(listed) {
		l.Quotas.Remove(q)
		changed = append(changed, q)
	}
	l.quotasChanged(changed, now)
	l.Quotas.Listed = true
}

// ForgetQuotas forgets all quotas, because they are no longer observed.
func (l *Limits) ForgetQuotas() {
	l.Quotas = memory.NewQuotas()
	for _, ns := range l.Namespaces {
		l.updateQuotaLimits(ns)
	}
}

// quotasChanged updates the limits of the namespaces of quotas that have changed, and touches their objects if these matter.
func (l *Limits) quotasChanged(all []*memory.Quota, now time.Time) {
	affected := sets.New[*memory.Namespace]()
	for _, q := range all {
		ns, ok := l.Namespaces[q.Namespace]
		if !ok {
			continue
		}
		l.updateQuotaLimits(ns)
		if !ns.Covers(kinds.ResourceQuotas) {
			continue
		}
		affected.Insert(ns)
		if l.Quotas.Listed { // Until then quotas are only read for the first time, which is no change.
			l.RecordChange(ns, approval.Change{
				ID: fmt.Sprint("quota ", q.UID, " ", q.ResourceVersion), Text: fmt.Sprintf("a change of ResourceQuota %q", q.Name), Write: l.Writes + 1,
			})
		}
	}
	l.Changed(affected.UnsortedList(), now)
}

// updateQuotaLimits updates the limits of all pools of a namespace that depend on quotas. Some of these pools may no longer be needed, but
// may be used again before they are removed.
func (l *Limits) updateQuotaLimits(ns *memory.Namespace) {
	for _, p := range ns.Pools {
		if p.Limit.PercentOfQuota != 0 {
			p.SetLimit(l.poolLimit(ns, &p.Limit, p.Resource))
		}
	}
}

// MissingQuotas returns each "count/<resource>" that percentOfQuota of a policy needs and that no quota of the namespace has.
func (l *Limits) MissingQuotas(ns *memory.Namespace, p *policy.Policy) []string {
	var out []string
	for _, resource := range p.QuotaResources(l.Table.Finishing) {
		if _, ok := l.Quotas.Smallest(ns.Name, resource); !ok {
			out = append(out, memory.CountPrefix+resource)
		}
	}
	return out
}
