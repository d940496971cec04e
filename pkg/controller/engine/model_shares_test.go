// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/internal/model"
)

// This part of the model computes which share of the candidates of a rule changes made due, without the engine.

// remember notes what later changes are compared with, when an event ends.
func (e *simulation) remember() {
	e.decidedBy, e.opened = e.deciders(), map[string]time.Time{}
	for _, name := range model.DrawnNamespaces {
		if at, ok := e.Opens(name); ok {
			e.opened[name] = at
		}
	}
}

// opensSooner reports whether deletions may start sooner in a namespace than before a change.
func (e *simulation) opensSooner(namespace string) bool {
	is, ok := e.Opens(namespace)
	was, known := e.opened[namespace]
	return ok && (!known || is.Before(was))
}

// deciders returns the rules that decide for candidates, by "policy rule". Ceilings have no rules.
func (e *simulation) deciders() map[types.UID]string {
	out := map[types.UID]string{}
	for uid, a := range e.Answers() {
		if a.IsCandidate() && !strings.HasPrefix(a.By, "ceiling=") {
			out[uid] = a.By
		}
	}
	return out
}

// noteFormer notes which rules decided before a change, where other rules decide now.
func (e *simulation) noteFormer(affected map[string]bool) {
	now := e.deciders()
	for _, f := range e.Objects {
		before := e.decidedBy[f.UID]
		if _, known := e.former[f.UID]; affected[f.Namespace] && !known && before != "" && before != now[f.UID] {
			e.former[f.UID] = before
		}
	}
}

// forgetFormer forgets the former rules of a namespace, which is assessed.
func (e *simulation) forgetFormer(namespace string) {
	for _, f := range e.Objects {
		if f.Namespace == namespace {
			delete(e.former, f.UID)
		}
	}
}

// rulesBy returns the rules that decide for an object or did before, their policies, and "" for all policies; each once.
func (e *simulation) rulesBy(uid types.UID, deciders map[types.UID]string) map[string]bool {
	out := map[string]bool{}
	for _, by := range []string{deciders[uid], e.former[uid]} {
		if i := strings.LastIndex(by, " "); i >= 0 {
			out[by], out[by[:i+1]], out[""] = true, true, true
		}
	}
	return out
}

// tooLargeShares returns the candidates of each batch by rules, and whether changes of the last ten minutes made too large a share of the
// candidates of one of the rules due. There are no rules where no limit depends on them.
func (e *simulation) tooLargeShares(all []*simBatch) (byRule []map[string][]types.UID, tooLarge []bool) {
	deciders, together := e.deciders(), map[string][]types.UID{}
	for _, f := range all {
		shares := map[string][]types.UID{}
		for _, uid := range f.uids {
			if e.limits(f.namespace).percent == nil || deciders[uid] == "" {
				continue
			}
			for rule := range e.rulesBy(uid, deciders) {
				shares[rule] = append(shares[rule], uid)
				together[f.namespace+" "+rule] = append(together[f.namespace+" "+rule], uid)
			}
		}
		byRule = append(byRule, shares)
	}
	for i, f := range all {
		tooLarge = append(tooLarge, false)
		for rule := range byRule[i] {
			due, of := e.sum(f.namespace+" "+rule, together[f.namespace+" "+rule]), e.candidatesOf(f.namespace, rule, deciders)
			tooLarge[i] = tooLarge[i] || of >= gc.PercentFrom && due*100 > *e.limits(f.namespace).percent*of
		}
	}
	return byRule, tooLarge
}

// candidatesOf counts the candidates of a rule in a namespace, with those of recent changes that are gone.
func (e *simulation) candidatesOf(namespace, rule string, deciders map[types.UID]string) int {
	n := 0
	for _, f := range e.Objects {
		if f.Namespace == namespace && e.rulesBy(f.UID, deciders)[rule] {
			n++
		}
	}
	for _, w := range e.recent[namespace+" "+rule] {
		if e.Now.Before(w.at.Add(10 * time.Minute)) {
			n += w.others
		}
	}
	return n
}

// shareKey is the key in recent for a rule, or for all rules of a policy if it is empty, or for all policies if that is empty too.
func shareKey(namespace string, policy types.NamespacedName, rule string) string {
	if policy.Name == "" {
		return namespace + " "
	}
	return fmt.Sprintf("%s %s %s", namespace, model.PolicyRef{Namespace: policy.Namespace, Name: policy.Name}, rule)
}
