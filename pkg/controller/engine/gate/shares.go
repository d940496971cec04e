// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/rules/approval"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

// NoteFormerRule notes which rule decided for a record before the changes that are not assessed yet, unless it decides now too.
func (g *Gate) NoteFormerRule(rec *memory.Record, by policy.Resolution) {
	ns := rec.NS
	if len(ns.Changes) == 0 || rec.Rule == nil || !rec.Decision().Candidate() {
		return
	}
	former := keyOf(rec.Policy, rec.Rule)
	if _, known := ns.FormerRules[rec]; known || by.Rule != nil && keyOf(by.Policy, by.Rule) == former {
		return
	}
	if ns.FormerRules == nil {
		ns.FormerRules = map[*memory.Record]approval.RuleKey{}
	}
	ns.FormerRules[rec] = former
}

func keyOf(p *policy.Policy, r *policy.Rule) approval.RuleKey {
	return approval.RuleKey{Policy: p.NamespacedName, Rule: r.Name}
}

// rulesOf returns the rules whose candidate a record is or was before the changes, their policies, and all policies together; each once.
func rulesOf(rec *memory.Record) iter.Seq[approval.RuleKey] {
	var out [5]approval.RuleKey
	n := 0
	add := func(rule approval.RuleKey) {
		for _, key := range []approval.RuleKey{rule, {Policy: rule.Policy}, {}} {
			if !slices.Contains(out[:n], key) {
				out[n], n = key, n+1
			}
		}
	}
	if rec.Rule != nil && rec.Decision().Candidate() {
		add(keyOf(rec.Policy, rec.Rule))
	}
	if former, ok := rec.NS.FormerRules[rec]; ok {
		add(former)
	}
	return slices.Values(out[:n])
}

// addShares divides batches of a namespace by rules, if a limit depends on them: by the rules that decide, by those that decided before the
// changes, so that no change takes all that a rule keeps by removing the rule, by policies, so that it is of no use to divide a rule, and
// all together, so that it is of no use to divide a policy. Ceilings have no rules.
func (g *Gate) addShares(ns *memory.Namespace, all []*batch) {
	if limits := g.holdLimits(ns); !limits.Percent.Limits() || len(all) == 0 {
		return
	}
	candidates := map[approval.RuleKey]int{}
	for _, rec := range ns.Records {
		for rule := range rulesOf(rec) {
			candidates[rule]++
		}
	}
	for _, b := range all {
		byRule := map[approval.RuleKey][]*memory.Record{}
		for _, rec := range b.records {
			if rec.Rule == nil || !rec.Decision().Candidate() {
				continue
			}
			for rule := range rulesOf(rec) {
				byRule[rule] = append(byRule[rule], rec)
			}
		}
		for rule, records := range byRule {
			b.Shares = append(b.Shares, g.share(ns, b.policy, rule, records, candidates[rule]))
		}
		// Messages name the first share that is too large: of a rule rather than of all rules.
		slices.SortFunc(b.Shares, func(x, y approval.Share) int { return strings.Compare(y.Of, x.Of) })
	}
}

// share counts records of a namespace for which a rule decides, or decided before the changes.
func (g *Gate) share(
	ns *memory.Namespace, p *policy.Policy, rule approval.RuleKey, records []*memory.Record, candidates int,
) approval.Share {
	if ns.RecentShares == nil {
		ns.RecentShares = approval.Shares{}
	}
	out := approval.Share{
		RuleKey: rule, Of: nameOf(rule, p), Objects: len(records), Candidates: candidates, Recent: ns.RecentShares.Window(rule),
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

// nameOf names a rule in messages about a policy.
func nameOf(rule approval.RuleKey, p *policy.Policy) string {
	name := "all rules"
	switch {
	case rule.Policy.Name == "":
		return "all policies of the namespace"
	case rule.Rule != "":
		name = fmt.Sprintf("rule %q", rule.Rule)
	}
	if rule.Policy == p.NamespacedName {
		return name
	}
	return name + " of " + gc.PolicyTitle(rule.Policy.Namespace, rule.Policy.Name)
}
