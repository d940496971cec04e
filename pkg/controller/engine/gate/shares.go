// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/rules/approval"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

// addShares divides batches of a namespace by rules, if a limit depends on them. Ceilings have no rules.
func (g *Gate) addShares(ns *memory.Namespace, byPolicy map[*policy.Policy]*batch) {
	if limits := g.holdLimits(ns); !limits.Percent.Limits() || len(byPolicy) == 0 {
		return
	}
	candidates := map[*policy.Rule]int{}
	for _, rec := range ns.Records {
		if rec.Rule != nil && rec.Decision().Candidate() {
			candidates[rec.Rule]++
		}
	}
	for p, b := range byPolicy {
		byRule := map[*policy.Rule][]*memory.Record{}
		for _, rec := range b.records {
			if rec.Rule != nil && rec.Decision().Candidate() {
				byRule[rec.Rule] = append(byRule[rec.Rule], rec)
			}
		}
		for rule, records := range byRule {
			b.Shares = append(b.Shares, g.share(ns, p, rule, records, candidates[rule]))
		}
		slices.SortFunc(b.Shares, func(x, y approval.Share) int { return strings.Compare(x.Rule, y.Rule) })
	}
}

// share counts records of a namespace for which a rule decides.
func (g *Gate) share(ns *memory.Namespace, p *policy.Policy, rule *policy.Rule, records []*memory.Record, candidates int) approval.Share {
	out := approval.Share{
		Rule: rule.Name, Objects: len(records), Candidates: candidates, Recent: ns.RecentOf(approval.RuleKey{Policy: p.UID, Rule: rule.Name}),
	}
	for _, rec := range records {
		if g.overdue(rec) {
			out.Overdue++
		}
	}
	out.UIDs = func(yield func(types.UID) bool) {
		for _, rec := range records {
			if !yield(rec.UID()) {
				return
			}
		}
	}
	return out
}
