// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
)

// identityOf identifies a rule with after: Matched, its policy, and what decides which objects match. It is empty for other rules.
func (p policy) identityOf(r gc.CleanupRule) string {
	if r.After != gc.AfterMatched {
		return ""
	}
	out := fmt.Sprintf("%s %s %s", p.uid, r.Name, metav1.FormatLabelSelector(r.Selector))
	for _, c := range r.MatchConditions {
		out += fmt.Sprintf(" %q", c.Expression)
	}
	return out
}

// MatchedRules returns the identities of the rules with after: Matched of each policy that can be read, in their order, by its UID.
func (w *World) MatchedRules() map[types.UID][]string {
	out := map[types.UID][]string{}
	for _, p := range slices.Concat(w.namespaced(), w.clusterWide()) {
		for _, r := range p.spec.Rules {
			if id := p.identityOf(r); id != "" && readable(p) {
				out[p.uid] = append(out[p.uid], id)
			}
		}
	}
	return out
}

// RulesThatMatch returns the identities of the rules with after: Matched that match an object now, of Preview policies too.
func (w *World) RulesThatMatch(f *lifecycle.Fact) []string {
	var out []string
	add := func(v match) {
		if v.identity != "" && !v.failed {
			out = append(out, v.identity)
		}
	}
	for _, v := range w.matchesOn(f, PolicyRef{}) {
		add(v)
	}
	for _, p := range slices.Concat(w.namespaced(), w.clusterWide()) {
		if p.spec.Mode != gc.ModePreview {
			continue
		}
		for _, v := range w.matchesOn(f, p.ref) {
			if v.policy == p.ref {
				add(v)
			}
		}
	}
	return out
}

// unnoted reports whether it is not noted since when a rule with after: Matched matches that matches now.
func (c *recomputation) unnoted(f *lifecycle.Fact) bool {
	return slices.ContainsFunc(c.matches[f.UID], func(v match) bool {
		at, known := c.Matched[f.UID][v.identity]
		return v.identity != "" && known && at.IsZero()
	})
}

// matchedSince returns since when a rule matches an object: since now if nothing is known.
func (w *World) matchedSince(f *lifecycle.Fact, identity string) time.Time {
	if at, ok := w.Matched[f.UID][identity]; ok {
		return at
	}
	return w.Now
}

// drawMatched draws since when the rules with after: Matched match that do.
func (w *World) drawMatched(t *rapid.T) {
	for _, f := range w.Objects {
		for _, identity := range w.RulesThatMatch(f) {
			if rarely(t, 3) {
				continue
			}
			if w.Matched[f.UID] == nil {
				w.Matched[f.UID] = map[string]time.Time{}
			}
			w.Matched[f.UID][identity] = w.Now.Add(-pick(t, drawnAges...))
		}
	}
}
