// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/rules/assessment"
)

// outgoing is what the leader has yet to store.
type outgoing struct {
	// joined are records that have become members of holds, and assessed the namespaces that were assessed, both since they were last placed.
	joined   []*memory.Record
	assessed []*memory.Namespace
	// round is what is being stored now; nil if nothing is.
	round *round
	// sent are the objects that were returned to be written, and that no watch has reported since.
	sent map[string]sent
	// lessAt is when objects were last written only because something was removed.
	lessAt time.Time
}

// round is what is stored together: the objects of holds that had changed when it began, and then what was assessed by then. What changes
// meanwhile waits for the next round, or holds that change all the time would keep what is assessed elsewhere from being stored.
type round struct {
	less       bool          // boxes from which something was removed are written too
	boxes      sets.Set[int] // whose holds are not stored yet
	namespaces []assessed
}

// assessed is a namespace, and the number of its assessment.
type assessed struct {
	*memory.Namespace
	number uint64
}

type sent struct {
	*assessment.Object
	at time.Time
}

const (
	// sendMost is how many objects are returned together.
	sendMost = 10
	// sendAgainAfter is how long a written object may take to be reported.
	sendAgainAfter = 10 * time.Second
)

// AssessmentsToStore returns the objects to write next. An object without contents must be deleted, and one without a resource version
// created. Holds come first, then namespaces, once the holds are stored. It returns nothing unless this replica leads.
func (g *Gate) AssessmentsToStore(now time.Time) []*assessment.Object {
	if g.Effects.Unstored = false; g.alone() || g.Following || g.whyUnreadable() != "" {
		return nil
	}
	g.giveUp(now)
	if !g.announced {
		return g.send(nil, g.leader(), now)
	}
	if g.round == nil && !g.beginRound(now) {
		g.Effects.Unstored = true
		return nil
	}
	out, done := g.holdsToStore(now)
	if done && g.round.boxes.Len() == 0 {
		if !g.leaderStored() {
			return g.send(nil, g.leader(), now)
		}
		if out, done = g.namespacesToStore(now); done {
			g.round = nil
			done = !g.anyChanged()
		}
	}
	g.Effects.Unstored = !done
	return out
}

// beginRound places the new members of holds, and begins a round. It reports false if the budget is spent first.
func (g *Gate) beginRound(now time.Time) bool {
	for len(g.joined) > 0 {
		rec := g.joined[0]
		if g.joined = g.joined[1:]; rec.Hold() != nil && !rec.Removed() {
			g.members.Put(rec.UID(), holdIn{rec.NS, rec.Hold()}, sizeOf(rec.Hold()))
		}
		if g.Spent(1) {
			return false
		}
	}
	less := now.Sub(g.lessAt) >= g.Config.RemovalsEvery
	if less {
		g.lessAt = now
	}
	g.round = &round{less: less, boxes: sets.New(changed(g.members, less)...)}
	for _, ns := range g.assessed {
		g.round.namespaces = append(g.round.namespaces, assessed{ns, ns.Number})
	}
	g.assessed = nil
	return true
}

// anyChanged reports whether the next round has anything to store.
func (g *Gate) anyChanged() bool {
	return len(g.joined)+len(g.assessed)+len(changed(g.members, false)) > 0
}

// changed returns the numbers of the boxes of a shelf that have changed, or from which something was removed if less is set.
func changed[G comparable](s *assessment.Shelf[G], less bool) []int {
	return slices.DeleteFunc(s.Numbers(), func(n int) bool { return !s.Box(n).Changed && (!s.Box(n).Less || !less) })
}

// giveUp has objects written again that no watch has reported for too long.
func (g *Gate) giveUp(now time.Time) {
	for name, s := range g.sent {
		if now.Sub(s.at) >= sendAgainAfter {
			g.sendAgain(name)
		}
	}
}

// leaderStored reports whether what is stored of this leader is up to date. Somebody may have deleted it, or the store has gone back.
func (g *Gate) leaderStored() bool {
	is := g.objects[assessment.ClusterName]
	return is != nil && is.Cluster.Leader == g.Config.Identity && is.Cluster.Holds >= g.holdsObjects()
}

// sends reports whether any object whose name begins with a prefix is being written.
func (g *Gate) sends(prefix string) bool {
	for name := range g.sent {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// sendAgain has an object written again that was not written, or not reported.
func (g *Gate) sendAgain(name string) {
	delete(g.sent, name)
	switch {
	case strings.HasPrefix(name, assessment.HoldsPrefix):
		g.members.Box(numberOf(name)).Changed = true
	case strings.HasPrefix(name, assessment.NamespacesPrefix):
		g.entries.Box(numberOf(name)).Changed = true
	}
	g.Effects.Unstored = true
}

// send adds an object to the objects to write, unless an earlier state of it is being written.
func (g *Gate) send(out []*assessment.Object, o *assessment.Object, now time.Time) []*assessment.Object {
	if _, busy := g.sent[o.Name]; busy {
		return out
	}
	if before := g.objects[o.Name]; before != nil {
		o.ResourceVersion = before.ResourceVersion
	}
	o.Seen = maps.Clone(g.Versions)
	g.sent[o.Name] = sent{o, now}
	return append(out, o)
}

// isOwn reports whether a stored object is what this replica has just written.
func (g *Gate) isOwn(o *assessment.Object) bool {
	s, ok := g.sent[o.Name]
	return ok && g.announced && same(s.Object, o)
}

// same reports whether two states of an object have the same contents.
func same(a, b *assessment.Object) bool {
	return reflect.DeepEqual(a.Holds, b.Holds) && reflect.DeepEqual(a.Namespaces, b.Namespaces)
}

func (g *Gate) leader() *assessment.Object {
	if is := g.objects[assessment.ClusterName]; is != nil && (!g.announced || is.Cluster.Leader != g.Config.Identity) {
		g.term = max(g.term, is.Cluster.Term+1)
	}
	g.term = max(g.term, 1)
	return &assessment.Object{
		Name: assessment.ClusterName, Cluster: &assessment.Cluster{Leader: g.Config.Identity, Term: g.term, Holds: g.holdsObjects()},
	}
}

// holdsObjects returns how many objects of holds there are.
func (g *Gate) holdsObjects() int {
	n := 0
	if is := g.objects[assessment.ClusterName]; is != nil {
		n = is.Cluster.Holds
	}
	for name, o := range g.objects {
		if o.Holds != nil {
			n = max(n, numberOf(name)+1)
		}
	}
	return n
}

// lost reports whether somebody has deleted holds, so that nothing that was assessed says what may be deleted.
func (g *Gate) lost() bool {
	if g.objects[assessment.ClusterName] == nil {
		return len(g.objects) > 0
	}
	for n := range g.holdsObjects() {
		if g.objects[fmt.Sprint(assessment.HoldsPrefix, n)] == nil {
			return true
		}
	}
	return false
}

// holdsToStore returns the objects of holds to write, as many as the budget allows, and whether these are all.
func (g *Gate) holdsToStore(now time.Time) (out []*assessment.Object, done bool) {
	return toStore(g, g.members, assessment.HoldsPrefix, g.round.boxes.UnsortedList(), now, func(o *assessment.Object, n int) (stored bool) {
		o.Holds = holdsOf(g.members.Box(n))
		is := g.objects[o.Name]
		if stored = is == nil && len(o.Holds.Holds) == 0 || is != nil && same(is, o); stored {
			g.round.boxes.Delete(n)
		}
		return stored
	})
}

// toStore returns the objects for some boxes of a shelf, as many as the budget allows, and whether these are all. fill fills an object, and
// reports whether it is stored already.
func toStore[G comparable](g *Gate, s *assessment.Shelf[G], prefix string, boxes []int, now time.Time,
	fill func(o *assessment.Object, n int) (stored bool),
) (out []*assessment.Object, done bool) {
	for _, n := range slices.Sorted(slices.Values(boxes)) {
		b := s.Box(n)
		o := &assessment.Object{Name: fmt.Sprint(prefix, n)}
		if _, busy := g.sent[o.Name]; busy {
			continue
		}
		b.Changed, b.Less = false, false
		if fill(o, n) {
			continue
		}
		out = g.send(out, o, now)
		if len(out) == sendMost || g.Spent(1+len(b.Groups)) {
			return out, false
		}
	}
	return out, true
}

// holdsOf returns what is stored of the holds in a box.
func holdsOf(b *assessment.Box[holdIn]) *assessment.Holds {
	out := &assessment.Holds{}
	for in, of := range b.Groups {
		out.Holds = append(out.Holds, assessment.Hold{
			ID: in.ID, Namespace: in.Name, Owner: in.Owner, Former: append([]string(nil), in.Former...), Total: in.Total,
			Since: in.Since.UTC().Round(0), Why: in.Why, Number: in.Hold.Number, Members: sets.List(of.Entries),
		})
	}
	slices.SortFunc(out.Holds, func(a, b assessment.Hold) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.ID, b.ID))
	})
	return out
}

// namespacesToStore returns the objects of namespaces to write, as many as the budget allows, and whether these are all.
func (g *Gate) namespacesToStore(now time.Time) (out []*assessment.Object, done bool) {
	for len(g.round.namespaces) > 0 {
		ns := g.round.namespaces[0]
		if g.round.namespaces = g.round.namespaces[1:]; ns.Assessed && ns.Number == ns.number {
			w := g.watermark(ns.Namespace, now)
			if is := g.watermarks[w.UID]; is != nil && reflect.DeepEqual(is, w) { // Another leader has stored the same.
				w = is
				g.compare(ns.Namespace)
			}
			g.wanted[w.UID] = w
			g.entries.Put(w.UID, w.UID, sizeOfWatermark(w))
		}
		if g.Spent(1) {
			return nil, false
		}
	}
	return toStore(g, g.entries, assessment.NamespacesPrefix, changed(g.entries, g.round.less), now, g.fillWatermarks)
}

// fillWatermarks fills an object with the watermarks of a box that are needed, and reports whether it is stored already.
func (g *Gate) fillWatermarks(o *assessment.Object, n int) (stored bool) {
	for _, uid := range slices.Sorted(maps.Keys(g.entries.Box(n).Groups)) {
		w := g.wanted[uid]
		if w == nil || !g.needed(w) {
			delete(g.wanted, uid)
			g.entries.Remove(uid)
			continue
		}
		o.Namespaces = append(o.Namespaces, *w)
	}
	is := g.objects[o.Name]
	return is == nil && len(o.Namespaces) == 0 || is != nil && same(is, o)
}

// needed reports whether the watermark of a namespace is needed: the namespace is there, and has policies.
func (g *Gate) needed(w *assessment.Namespace) bool {
	ns := g.Namespaces[w.Name]
	return ns != nil && ns.Known && ns.Revision.UID == w.UID && len(ns.PolicyUIDs) > 0 || !g.comparable
}

// sizeOfWatermark returns about how many bytes a watermark takes.
func sizeOfWatermark(w *assessment.Namespace) assessment.Size {
	n := 300 + 80*len(w.Quotas) + 64*len(w.Unlisted)
	for i := range w.Policies {
		n += 160 + len(w.Policies[i].Title) + len(w.Policies[i].Digest)
	}
	for i := range w.Counts {
		n += 80 + 40*len(w.Counts[i].Policies)
	}
	return assessment.Size{Entry: n}
}

// Expire touches the objects whose timers have ended; see Decider.Expire. The leader also looks whether members were removed, or whether an
// object must be written again.
func (g *Gate) Expire(now time.Time) (more bool) {
	if !g.alone() && !g.Following && (len(g.sent) > 0 || now.Sub(g.lessAt) >= g.Config.RemovalsEvery) {
		g.Effects.Unstored = true
	}
	return g.Decider.Expire(now)
}
