// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"pgregory.net/rapid"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

// These are the times in TestEngine since when rules with after: Matched match objects. Each replica counts from when it first saw that a rule
// matches, or from the time that is stored, unless it has seen that the rule did not match. The World has the times of the leader.

// simMatches are what a replica knows of the rules with after: Matched.
type simMatches struct {
	since map[memory.MatchKey]simMatch
	// known are the objects that the replica knew after the last event, and applied the rules then, by namespace.
	known   sets.Set[types.UID]
	applied map[string]sets.Set[lifecycle.MatchID]
}

// simMatch is since when a rule matches an object. seen says that the replica has seen that it did not match before.
type simMatch struct {
	at   time.Time
	seen bool
}

// matchIDs returns the IDs of rules with after: Matched in marks, by their identities, and the identities of those of cluster policies.
func (e *simulation) matchIDs() (ids map[string]lifecycle.MatchID, clusterWide sets.Set[string]) {
	ids, clusterWide = map[string]lifecycle.MatchID{}, sets.New[string]()
	identities := e.MatchedRules()
	add := func(uid types.UID, p *policy.Policy, err error) {
		if err != nil {
			return
		}
		for i, id := range p.MatchIDs() {
			ids[identities[uid][i]] = id
		}
	}
	for _, p := range e.Policies {
		compiled, err := policy.Compile(p)
		add(p.UID, compiled, err)
	}
	for _, p := range e.ClusterPolicies {
		compiled, err := policy.CompileCluster(p)
		add(p.UID, compiled, err)
		clusterWide.Insert(identities[p.UID]...)
	}
	return ids, clusterWide
}

// match finds out since when rules match for each replica, and sets the times of the World to the times of the leader.
func (e *simulation) match() {
	if e.matches == nil {
		e.matches = map[*driver]*simMatches{}
	}
	ids, clusterWide := e.matchIDs()
	for _, t := range []*driver{e.leader, e.follower} {
		if t != nil {
			e.matchFor(t, ids, clusterWide)
		}
	}
	maps.DeleteFunc(e.matches, func(t *driver, _ *simMatches) bool { return t != e.leader && t != e.follower })
	e.Matched = map[types.UID]map[string]time.Time{}
	for identity, id := range ids {
		for _, f := range e.Objects {
			if m, ok := e.matches[e.leader].since[memory.MatchKey{UID: f.UID, Rule: id}]; ok {
				if e.Matched[f.UID] == nil {
					e.Matched[f.UID] = map[string]time.Time{}
				}
				e.Matched[f.UID][identity] = m.at
			}
		}
	}
}

func (e *simulation) matchFor(t *driver, ids map[string]lifecycle.MatchID, clusterWide sets.Set[string]) {
	before := e.matches[t]
	if before == nil {
		before = &simMatches{known: sets.New[types.UID]()}
	}
	after := &simMatches{
		since: map[memory.MatchKey]simMatch{}, known: sets.New[types.UID](), applied: map[string]sets.Set[lifecycle.MatchID]{},
	}
	for name, ns := range t.Namespaces {
		after.applied[name] = ns.MatchIDs
	}
	for _, f := range e.Objects {
		rec := t.Records.Get(f.UID)
		if rec == nil {
			continue
		}
		after.known.Insert(f.UID)
		if rec.NS.Removed() { // The policies that applied before still do, and the model does not know them.
			for _, r := range rec.Matching().Rules {
				after.since[memory.MatchKey{UID: f.UID, Rule: r.Rule}] = simMatch{r.Since, r.Seen}
			}
			continue
		}
		ns := e.Namespaces[f.Namespace]
		protected := ns.Protected || gc.Protects(ns.Labels) // No cluster policy selects it.
		for _, identity := range e.RulesThatMatch(f) {
			if !protected || !clusterWide.Has(identity) {
				key := memory.MatchKey{UID: f.UID, Rule: ids[identity]}
				after.since[key] = e.matchedBy(before, f, key)
			}
		}
	}
	e.matches[t] = after
}

// matchedBy returns since when a rule that matches an object does for a replica.
func (e *simulation) matchedBy(before *simMatches, f *lifecycle.Fact, key memory.MatchKey) simMatch {
	if m, still := before.since[key]; still {
		return m
	}
	m := simMatch{e.Now, before.known.Has(f.UID) && before.applied[f.Namespace].Has(key.Rule)}
	if at, stored := e.storedMatch(f, key); stored && !m.seen {
		m.at = at
	}
	return m
}

// storedMatch returns the stored time since when a rule matches an object.
func (e *simulation) storedMatch(f *lifecycle.Fact, key memory.MatchKey) (time.Time, bool) {
	for _, m := range e.stored {
		if at, ok := m.Matched[key]; ok {
			if at.Before(f.Created) {
				at = f.Created
			}
			return at, true
		}
	}
	return time.Time{}, false
}

// storeDrawnMatches stores since when rules match the drawn objects.
func (e *simulation) storeDrawnMatches() {
	ids, _ := e.matchIDs()
	for _, f := range e.Objects {
		for identity, at := range e.Matched[f.UID] {
			id, readable := ids[identity]
			if !readable {
				continue
			}
			m := e.storedIn(f.Namespace)
			m.Matched[memory.MatchKey{UID: f.UID, Rule: id}] = at
		}
	}
}

// adoptMatches is called when a replica observes stored marks.
func (e *simulation) adoptMatches(t *driver, m *memory.Marks) {
	for key := range m.Matched {
		known, ok := e.matches[t].since[key]
		i := e.indexOf(key.UID)
		if !ok || i < 0 {
			continue
		}
		if at, _ := e.storedMatch(e.Objects[i], key); !known.seen || at.After(known.at) {
			known.at = at
			e.matches[t].since[key] = known
		}
	}
}

// sameMatches reports whether both replicas count from the same times, which they do once marks are stored. It fails unless both count from
// the times that they must count from.
func (e *simulation) sameMatches(t *rapid.T) bool {
	e.both(func(d *driver) {
		for key, want := range e.matches[d].since {
			rec := d.Records.Get(key.UID)
			if rec == nil {
				continue
			}
			got, ok := rec.Matching().Since(key.Rule)
			if !ok || !got.Since.Equal(want.at) {
				t.Fatalf("%s is matched since %s, want %s", key.UID, got.Since, want.at)
			}
		}
	})
	return maps.EqualFunc(e.matches[e.leader].since, e.matches[e.follower].since, func(a, b simMatch) bool { return a.at.Equal(b.at) })
}
