// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/winnow-dev/winnow/test/simulation/apiserver"
)

// unseen is for how long an object may cease to match a rule without a replica that starts, or lists again, seeing it.
const unseen = 3 * time.Minute

// matched is since when rules with after: Matched match objects.
type matched struct {
	changes []change
	spells  map[types.UID]map[string]*spell // by the identity of the rule
}

// change is a revision at which an object may have begun or ceased to match.
type change struct {
	revision int64
	at       time.Time
	// of is the object that has changed, and object its new state; nil if it is gone. With an empty UID, all may match or not.
	of     types.UID
	object *apiserver.Object
}

// spell is the time for which a rule matches an object. A break that is shorter than unseen does not end it. Who sees the last break counts
// from when it was over.
type spell struct {
	since, resumed time.Time
	until          time.Time // zero while it matches
	from, to       int64     // the revisions at which it began and ended
	former         *spell
}

// observe notes a change of an object, a namespace, or what people want of a policy. It is called with the lock of the store.
func (m *matched) observe(r apiserver.Resource, e apiserver.Event) {
	c := change{revision: e.Revision, at: e.Time}
	switch {
	case slices.Contains(judgedResources, r.GroupResource()):
		if c.of = e.Object.Meta.UID; e.Type != watch.Deleted {
			c.object = e.Object
		}
	case !slices.Contains([]schema.GroupResource{policies, clusterPolicies, namespaces}, r.GroupResource()):
		return
	}
	m.changes = append(m.changes, c)
}

// follow takes in what has changed.
func (j *judge) follow() {
	for _, c := range j.matched.changes {
		w := j.rules(c.revision, c.at)
		rules := map[types.UID][]string{}
		switch {
		case len(w.MatchedRules()) == 0:
		case c.of == "":
			for _, f := range j.objects(view{objects: c.revision, now: c.at}, 0) {
				rules[f.UID] = w.RulesThatMatch(f)
			}
		case c.object != nil:
			rules[c.of] = w.RulesThatMatch(j.fact(c.object))
		}
		j.matched.take(c, rules)
	}
	j.matched.changes = nil
}

// take takes in which rules match what may have changed.
func (m *matched) take(c change, rules map[types.UID][]string) {
	m.end(c, rules)
	for uid, identities := range rules {
		for _, identity := range identities {
			if m.spells[uid] == nil {
				m.spells[uid] = map[string]*spell{}
			}
			s := m.spells[uid][identity]
			if s == nil || !s.until.IsZero() && c.at.Sub(s.until) > unseen {
				s = &spell{since: c.at, resumed: c.at, from: c.revision, former: s}
			}
			if !s.until.IsZero() {
				s.until, s.resumed = time.Time{}, c.at
			}
			m.spells[uid][identity] = s
		}
	}
}

// end ends the spells of rules that do not match any more, and forgets those that ended long ago.
func (m *matched) end(c change, rules map[types.UID][]string) {
	for uid, spells := range m.spells {
		for identity, s := range spells {
			if (c.of == "" || c.of == uid) && s.until.IsZero() && !slices.Contains(rules[uid], identity) {
				s.until, s.to = c.at, c.revision
			}
		}
		maps.DeleteFunc(spells, func(_ string, s *spell) bool { return !s.until.IsZero() && c.at.Sub(s.until) > kept })
	}
	maps.DeleteFunc(m.spells, func(_ types.UID, spells map[string]*spell) bool { return len(spells) == 0 })
}

// restored takes in that the store went back to a revision: what matches is as it was.
func (m *matched) restored(c change) {
	for _, spells := range m.spells {
		for identity, s := range spells {
			for s != nil && s.from > c.revision {
				s = s.former
			}
			if spells[identity] = s; s == nil {
				delete(spells, identity)
			} else if s.to > c.revision {
				s.until = time.Time{}
			}
		}
	}
	m.changes = []change{c}
}

// times returns since when each rule matches each object, for a replica that has seen no breaks.
func (m *matched) times() map[types.UID]map[string]time.Time {
	return m.all(func(s *spell) time.Time { return s.since })
}

// timesSince returns since when each rule matches each object, for a replica that has seen all breaks, and nothing before a time.
func (m *matched) timesSince(begin time.Time) map[types.UID]map[string]time.Time {
	return m.all(func(s *spell) time.Time { return later(s.resumed, begin) })
}

func (m *matched) all(of func(*spell) time.Time) map[types.UID]map[string]time.Time {
	out := map[types.UID]map[string]time.Time{}
	for uid, spells := range m.spells {
		out[uid] = map[string]time.Time{}
		for identity, s := range spells {
			if s.until.IsZero() || time.Since(s.until) <= unseen {
				out[uid][identity] = of(s)
			}
		}
	}
	return out
}
