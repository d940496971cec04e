// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"pgregory.net/rapid"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/internal/model"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

// These are the times in TestEngine since when rules with after: Matched match objects. Each replica counts from when it first saw that a
// rule matches, and for an object that is new to it, from the time that was stored when it started. The World has the times of the leader.

// simMatches are what a replica knows of the rules with after: Matched that match now.
type simMatches map[memory.MatchKey]memory.MatchMark

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

// match finds out since when rules match for each replica, and sets the times of the World to the times of the leader. A time is zero while
// it cannot be noted.
func (e *simulation) match() {
	if e.matches == nil {
		e.matches, e.inherited = map[*driver]simMatches{}, map[*driver]simMatches{}
		e.judged = map[*driver]map[types.UID]uint64{}
	}
	ids, clusterWide := e.matchIDs()
	e.noteUnmatched(ids)
	for _, t := range []*driver{e.leader, e.follower} {
		if t != nil {
			e.matchFor(t, ids, clusterWide)
		}
	}
	maps.DeleteFunc(e.matches, func(t *driver, _ simMatches) bool { return t != e.leader && t != e.follower })
	maps.DeleteFunc(e.judged, func(t *driver, _ map[types.UID]uint64) bool { return t != e.leader && t != e.follower })
	maps.DeleteFunc(e.inherited, func(t *driver, _ simMatches) bool { return t != e.leader && t != e.follower })
	e.Matched = map[types.UID]map[string]time.Time{}
	for identity, id := range ids {
		for _, f := range e.Objects {
			if m, ok := e.matches[e.leader][memory.MatchKey{UID: f.UID, Rule: id}]; ok {
				if e.Matched[f.UID] == nil {
					e.Matched[f.UID] = map[string]time.Time{}
				}
				e.Matched[f.UID][identity] = m.Since
			}
		}
	}
}

// noteUnmatched notes which rules do not match which objects now.
func (e *simulation) noteUnmatched(ids map[string]lifecycle.MatchID) {
	if e.unmatched == nil {
		e.unmatched = map[memory.MatchKey]time.Time{}
	}
	for _, f := range e.Objects {
		matching := sets.New(e.RulesThatMatch(f)...)
		for identity, id := range ids {
			if !matching.Has(identity) {
				e.unmatched[memory.MatchKey{UID: f.UID, Rule: id}] = e.Now
			}
		}
	}
}

// checkMatched fails if a rule with after: Matched deletes an object by time that it has not matched for so long. answers are the answers
// before the deletion.
func (e *simulation) checkMatched(t *rapid.T, f *lifecycle.Fact, answers map[types.UID]model.Answer) {
	if answers[f.UID].Reason != string(policy.ReasonExpired) || f.NativeTTL != nil || f.TTL != nil {
		return
	}
	ids, _ := e.matchIDs()
	check := func(uid types.UID, ref model.PolicyRef, rules []gc.CleanupRule) {
		identities := e.MatchedRules()[uid]
		for _, r := range rules {
			if r.After != gc.AfterMatched || len(identities) == 0 {
				continue
			}
			identity := identities[0]
			identities = identities[1:]
			at, seen := e.unmatched[memory.MatchKey{UID: f.UID, Rule: ids[identity]}]
			if answers[f.UID].By == ref.String()+" "+r.Name && seen && e.Now.Sub(at) < e.leastTTL(r.TTL, f) {
				t.Fatalf("%s is deleted at %s, and %s did not match it at %s", f.UID, e.Now, identity, at)
			}
		}
	}
	for _, p := range e.Policies {
		check(p.UID, model.PolicyRef{Namespace: p.Namespace, Name: p.Name}, p.Spec.Rules)
	}
	for _, p := range e.ClusterPolicies {
		check(p.UID, model.PolicyRef{Name: p.Name}, p.Spec.Rules)
	}
}

// leastTTL returns a TTL, or a maxTTL that is less, or zero if maxTTL has ended since the object finished.
func (e *simulation) leastTTL(ttl *gc.TTL, f *lifecycle.Fact) time.Duration {
	least := time.Duration(math.MaxInt64)
	add := func(ttl *gc.TTL, limits bool) {
		if ttl == nil {
			return
		}
		d, err := gc.ParseDuration(string(*ttl))
		switch {
		case err != nil:
		case limits && f.Finished && e.Now.Sub(f.FinishedAt) >= d:
			least = 0
		default:
			least = min(least, d)
		}
	}
	add(ttl, false)
	for _, p := range e.ClusterPolicies {
		if p.Spec.Guardrails != nil {
			add(p.Spec.Guardrails.MaxTTL, true)
		}
	}
	return least
}

func (e *simulation) matchFor(t *driver, ids map[string]lifecycle.MatchID, clusterWide sets.Set[string]) {
	after, judged := simMatches{}, map[types.UID]uint64{}
	if e.matches[t] == nil {
		e.inherited[t] = e.storedMatches()
	}
	for _, f := range e.Objects {
		rec := t.Records.Get(f.UID)
		if rec == nil {
			continue
		}
		judged[f.UID] = f.ResourceVersion
		if rec.NS.Removed() { // The policies that applied before still do, and the model does not know them.
			for _, r := range rec.Matching().Rules {
				after[memory.MatchKey{UID: f.UID, Rule: r.Rule}] = memory.MatchMark{Since: r.Since, ByChange: r.ByChange}
			}
			continue
		}
		ns := e.Namespaces[f.Namespace]
		protected := ns.Protected || gc.Protects(ns.Labels) // No cluster policy selects it.
		for _, identity := range e.RulesThatMatch(f) {
			if !protected || !clusterWide.Has(identity) {
				key := memory.MatchKey{UID: f.UID, Rule: ids[identity]}
				after[key] = e.matchOf(t, rec, f, key)
			}
		}
	}
	e.matches[t], e.judged[t] = after, judged
	maps.DeleteFunc(e.inherited[t], func(key memory.MatchKey, _ memory.MatchMark) bool {
		return t.Records.Get(key.UID) != nil || e.paused(key, ids)
	})
}

// paused reports whether a rule does not apply to the namespace of an object, so that it starts anew when it does.
func (e *simulation) paused(key memory.MatchKey, ids map[string]lifecycle.MatchID) bool {
	i := e.indexOf(key.UID)
	if i < 0 || !e.known(e.Objects[i].Namespace) {
		return false
	}
	name, rules := e.Objects[i].Namespace, e.MatchedRules()
	is := func(identity string) bool { return ids[identity] == key.Rule }
	return !slices.ContainsFunc(e.Policies, func(p *gc.CleanupPolicy) bool {
		return p.Namespace == name && slices.ContainsFunc(rules[p.UID], is)
	}) && !slices.ContainsFunc(e.ClusterPolicies, func(p *gc.ClusterCleanupPolicy) bool {
		return slices.ContainsFunc(rules[p.UID], is) && e.selects(p, name)
	})
}

// matchOf returns the match of a rule on an object, which a replica has a record of.
func (e *simulation) matchOf(t *driver, rec *memory.Record, f *lifecycle.Fact, key memory.MatchKey) memory.MatchMark {
	m := e.matchedBy(t, f, key)
	r, _ := rec.Matching().Of(key.Rule)
	_, matched := e.matches[t][key]
	switch {
	case !matched:
		m.ByChange = r.ByChange // See TestMatchesByChange.
	case e.budget > 0 && e.judged[t][f.UID] != f.ResourceVersion && r.Since.Equal(e.Now):
		m.Since = r.Since // The replica has not come to judge the state before, so it starts anew.
	}
	return m
}

// matchedBy returns since when a rule that matches an object does for a replica. What was stored when the replica started counts for the
// first state of the object that it knows.
func (e *simulation) matchedBy(t *driver, f *lifecycle.Fact, key memory.MatchKey) memory.MatchMark {
	if mark, ok := e.inherited[t][key]; ok {
		return since(mark, f)
	}
	m := e.matches[t][key]
	if m.Since.IsZero() && !e.clockInDoubt {
		m.Since = e.Now
	}
	return m
}

// storedMatches returns all stored times since when rules match objects.
func (e *simulation) storedMatches() simMatches {
	out := simMatches{}
	for _, m := range e.stored {
		maps.Copy(out, m.Matched)
	}
	return out
}

// since returns a stored time, or the creation of its object if that is later.
func since(mark memory.MatchMark, f *lifecycle.Fact) memory.MatchMark {
	if mark.Since.Before(f.Created) {
		mark.Since = f.Created
	}
	return mark
}

// storedMatch returns the stored time since when a rule matches an object.
func (e *simulation) storedMatch(f *lifecycle.Fact, key memory.MatchKey) (memory.MatchMark, bool) {
	for _, m := range e.stored {
		if mark, ok := m.Matched[key]; ok {
			return since(mark, f), true
		}
	}
	return memory.MatchMark{}, false
}

// byChange reports whether an object that a policy decides for matches since a change that nobody has assessed yet.
func (e *simulation) byChange(uid types.UID, decider model.PolicyRef) bool {
	for _, id := range e.idsOf(decider) {
		if e.matches[e.leader][memory.MatchKey{UID: uid, Rule: id}].ByChange {
			return !strings.HasPrefix(e.Answers()[uid].By, "ceiling=")
		}
	}
	return false
}

// matchAssessed says that the change since which an object matches is assessed.
func (e *simulation) matchAssessed(uid types.UID, decider model.PolicyRef) {
	if !e.byChange(uid, decider) {
		return
	}
	for _, id := range e.idsOf(decider) {
		for _, matches := range e.matches {
			key := memory.MatchKey{UID: uid, Rule: id}
			if m, ok := matches[key]; ok {
				m.ByChange = false
				matches[key] = m
			}
		}
	}
}

// idsOf returns the IDs of the rules of a policy with after: Matched.
func (e *simulation) idsOf(decider model.PolicyRef) []lifecycle.MatchID {
	ids, _ := e.matchIDs()
	var out []lifecycle.MatchID
	for _, identity := range e.MatchedRules()[e.uidOf(decider)] {
		if id, ok := ids[identity]; ok {
			out = append(out, id)
		}
	}
	return out
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
			m.Matched[memory.MatchKey{UID: f.UID, Rule: id}] = memory.MatchMark{Since: at}
		}
	}
}

// adoptMatches is called when a replica observes stored marks. A later time than its own counts.
func (e *simulation) adoptMatches(t *driver, m *memory.Marks) {
	for key := range m.Matched {
		known, ok := e.matches[t][key]
		i := e.indexOf(key.UID)
		if !ok || i < 0 || known.Since.IsZero() {
			continue
		}
		if at, _ := e.storedMatch(e.Objects[i], key); at.Since.After(known.Since) {
			known.Since, known.ByChange = at.Since, known.ByChange || at.ByChange
			e.matches[t][key] = known
		}
	}
}

// sameMatches reports whether both replicas count from the same times. It fails unless both count from the times that they must count from.
func (e *simulation) sameMatches(t *rapid.T) bool {
	e.both(func(d *driver) {
		for key, want := range e.matches[d] {
			rec := d.Records.Get(key.UID)
			if rec == nil {
				continue
			}
			got, ok := rec.Matching().Of(key.Rule)
			if !ok || !got.Since.Equal(want.Since) {
				t.Fatalf("%s is matched since %s, want %s", key.UID, got.Since, want.Since)
			}
		}
	})
	return maps.EqualFunc(e.matches[e.leader], e.matches[e.follower], memory.MatchMark.Equal)
}
