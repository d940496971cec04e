// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/controller/engine/knowledge"
	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/rules/approval"
	"github.com/winnow-dev/winnow/pkg/controller/rules/assessment"
	"github.com/winnow-dev/winnow/pkg/controller/rules/freshness"
)

// stored is what is stored of assessments, and what the leader has to store. docs/decisions/0019-holds-are-stored.md has the rules, and why
// nothing slips through a change of the leader.
type stored struct {
	objects map[string]*assessment.Object // by name
	listed  bool                          // objects has all of them
	// unreadable says why objects cannot be read, unavailable why none can be listed or watched, and failed why they cannot be written.
	unreadable  map[string]string
	unavailable string
	failed      map[string]string
	// seen is the newest version of each resource that the writer of any object knew.
	seen   map[string]uint64
	seenAt time.Time // when it was last observed
	// watermarks are the stored assessments of namespaces, and wanted the ones that the leader wants stored, by the UID of the namespace.
	watermarks, wanted map[types.UID]*assessment.Namespace
	// entries has the places of wanted, and members the places of the members of holds. A member may be an object that is not known.
	entries *assessment.Shelf[types.UID]
	members *assessment.Shelf[holdIn]
	// again are the holds that name a member of another hold too.
	again map[types.UID][]holdIn
	// approved are members of holds that somebody has approved, in namespaces that are not listed yet.
	approved map[*memory.Namespace]sets.Set[types.UID]

	// term is the number of this leader, and announced says that it is stored.
	term      uint64
	announced bool
	// comparable says that namespaces can be compared with their watermarks.
	comparable bool
	outgoing
}

// holdIn is a hold of a namespace.
type holdIn struct {
	*memory.Namespace
	*approval.Hold
}

const (
	maxMembers = 5000 // of holds in one object
	maxEntries = 500  // namespaces in one object
)

func newStored() stored {
	return stored{
		objects: map[string]*assessment.Object{}, unreadable: map[string]string{}, failed: map[string]string{}, seen: map[string]uint64{},
		watermarks: map[types.UID]*assessment.Namespace{}, wanted: map[types.UID]*assessment.Namespace{},
		entries: assessment.NewShelf[types.UID](maxEntries), members: assessment.NewShelf[holdIn](maxMembers),
		again: map[types.UID][]holdIn{}, approved: map[*memory.Namespace]sets.Set[types.UID]{}, outgoing: outgoing{sent: map[string]sent{}},
	}
}

// alone reports whether nothing is stored, so that what this engine assesses counts at once.
func (g *Gate) alone() bool { return g.Config.Identity == "" }

// Leads reports whether this replica leads, and all replicas can know it, so that it may assess and delete.
func (g *Gate) Leads() bool { return g.alone() || g.announced && !g.Following }

// SetAssessment takes in a stored object. It ignores states that are older than memory.
func (g *Gate) SetAssessment(o *assessment.Object, now time.Time) {
	before := g.objects[o.Name]
	if before != nil && (before.ResourceVersion == o.ResourceVersion || memory.OlderVersion(o.ResourceVersion, before.ResourceVersion)) {
		return // It was listed again, or is reported once more.
	}
	if err := o.Validate(); err != nil {
		g.AssessmentUnreadable(o.Name, o.ResourceVersion, err.Error(), now)
		return
	}
	own := g.isOwn(o)
	g.objects[o.Name] = o
	delete(g.sent, o.Name)
	g.readable(func() { delete(g.unreadable, o.Name) })
	g.seenAt = now
	for resource, version := range o.Seen {
		g.seen[resource] = max(g.seen[resource], version)
	}
	switch {
	case o.Cluster != nil:
		g.readable(func() {
			delete(g.failed, o.Name)
			g.takeLeader(o.Cluster)
		})
	case o.Holds != nil:
		if own && g.round != nil {
			g.round.boxes.Delete(numberOf(o.Name))
		}
		g.takeHolds(numberOf(o.Name), o.Holds.Holds, own)
	default:
		g.takeWatermarks(before, o)
	}
	g.Effects.Unstored = true
}

// numberOf returns the number in the name of an object.
func numberOf(name string) int {
	n, _ := strconv.Atoi(name[strings.LastIndexByte(name, '-')+1:])
	return n
}

// RemoveAssessment takes in that somebody has deleted a stored object, or that the leader has deleted one without watermarks. What is known
// of holds stays, so that the leader stores them again.
func (g *Gate) RemoveAssessment(name string, _ time.Time) {
	before := g.objects[name]
	delete(g.objects, name)
	delete(g.sent, name)
	g.readable(func() { delete(g.unreadable, name) })
	if before == nil {
		return
	}
	switch g.Effects.Unstored = true; {
	case before.Holds != nil:
		g.members.Box(numberOf(name)).Changed = true
	case before.Cluster == nil:
		g.takeWatermarks(before, &assessment.Object{Name: name})
	}
}

// AssessmentsListed ends a list of all stored objects, which were passed to SetAssessment. All others are gone.
func (g *Gate) AssessmentsListed(present sets.Set[string], now time.Time) {
	for _, name := range slices.Concat(slices.Collect(maps.Keys(g.objects)), slices.Collect(maps.Keys(g.unreadable))) {
		if !present.Has(name) {
			g.RemoveAssessment(name, now)
		}
	}
	g.readable(func() { g.listed = true })
	g.Effects.Unstored = true
}

// AssessmentUnreadable says that an object cannot be read. Everything is held until it can be, or is gone.
func (g *Gate) AssessmentUnreadable(name, _, why string, _ time.Time) {
	g.readable(func() { g.unreadable[name] = why })
}

// AssessmentsUnavailable says that stored objects cannot be listed or watched; empty if they can.
func (g *Gate) AssessmentsUnavailable(why string, _ time.Time) {
	g.readable(func() { g.unavailable = why })
}

// AssessmentFailed says that an object cannot be written; empty if it was written. It counts as stored only when the watch reports it.
func (g *Gate) AssessmentFailed(name, why string, _ time.Time) {
	g.readable(func() {
		if delete(g.failed, name); why != "" {
			g.failed[name] = why
			g.sendAgain(name)
		}
	})
}

// readable makes a change that may end or begin WhyUnknown.
func (g *Gate) readable(change func()) {
	before := g.WhyUnknown()
	if change(); g.WhyUnknown() != before {
		g.Touched.Assessable = true
		g.TouchHolds(slices.Collect(maps.Values(g.Namespaces)))
	}
}

// WhyUnknown returns why nothing may be deleted because of stored assessments; empty if that is not so.
func (g *Gate) WhyUnknown() string {
	why := g.whyUnreadable()
	if failed := g.failed[assessment.ClusterName]; why == "" && failed != "" && !g.Following && !g.announced {
		return "Winnow cannot store that this replica leads: " + failed
	}
	return why
}

// whyUnreadable returns why the stored assessments are not known; empty if they are.
func (g *Gate) whyUnreadable() string {
	switch {
	case g.alone():
		return ""
	case g.unavailable != "":
		return "Winnow cannot observe which holds are stored: " + g.unavailable
	case !g.listed:
		return knowledge.NotListed("stored holds")
	case len(g.unreadable) > 0:
		first := slices.Min(slices.Collect(maps.Keys(g.unreadable)))
		return fmt.Sprintf("Winnow cannot read which holds are stored in %s: %s", first, g.unreadable[first])
	}
	return ""
}

// ForgetAssessments says that the store has gone back, so that older states of stored objects count. Nothing is forgotten of holds.
func (g *Gate) ForgetAssessments() {
	g.readable(func() {
		clear(g.objects)
		clear(g.sent)
		clear(g.seen)
		clear(g.unreadable)
		g.listed, g.comparable = false, false
	})
	g.members.TouchAll() // What the store has lost is written again.
	g.entries.TouchAll()
}

// behind returns a resource of which memory is older than what the writer of a stored object knew; empty if there is none. Resources that
// are not observed do not count.
func (g *Gate) behind() string {
	for resource, version := range g.seen {
		known := max(g.Versions[resource], g.Reached[resource])
		for _, c := range []freshness.Collection{freshness.Policies, freshness.ClusterPolicies, freshness.Namespaces} {
			if resource == c.String() {
				known = max(known, g.Fresh.Newest(c))
			}
		}
		if known > 0 && known < version && !g.Failing.Skipped.Has(resource) {
			return resource
		}
	}
	return ""
}

// ConfirmFresh compares a consistent read with memory; see Knowledge.ConfirmFresh. What is stored may have been written by a replica that
// did not know yet that the store has gone back. Then no memory will ever be as new.
func (g *Gate) ConfirmFresh(r freshness.ConsistentRead, now time.Time) (agrees bool) {
	if g.behind() != "" {
		read := map[string]string{
			freshness.Policies.String(): r.Policies.Version, freshness.ClusterPolicies.String(): r.ClusterPolicies.Version,
		}
		for resource, version := range g.seen {
			newest := freshness.ParseVersion(cmp.Or(read[resource], r.Namespaces.Version))
			if newest > 0 && newest < version && !r.Began.Before(g.seenAt) {
				delete(g.seen, resource)
				g.Touched.Assessable = true
			}
		}
	}
	return g.Knowledge.ConfirmFresh(r, now)
}

// mayAssess reports whether this replica may assess changes, and end holds without approval: it leads, and memory is not older than the
// stored holds.
func (g *Gate) mayAssess() bool {
	return g.alone() || g.Leads() && g.WhyUnknown() == "" && g.comparable && g.behind() == ""
}

// Lead tells the engine that this replica is the leader from now on. It deletes nothing before it is stored that it leads, because it knows
// all earlier writes only then.
func (g *Gate) Lead() {
	g.Memory.Lead()
	g.readable(func() {
		g.term, g.announced = 0, false
		clear(g.failed)
	})
	g.Effects.Unstored = true
}

// Follow tells the engine that this replica is not the leader. What it has assessed and not stored does not count.
func (g *Gate) Follow() {
	g.Memory.Follow()
	if !g.announced {
		return
	}
	g.announced, g.wanted = false, map[types.UID]*assessment.Namespace{}
	g.outgoing = outgoing{sent: map[string]sent{}}
	for _, ns := range g.Namespaces {
		if ns.Untraced = false; ns.Assessed {
			ns.Assessed = false
			g.MarkPending(ns)
		}
		g.Touched.Comparing.Insert(ns)
	}
	for _, o := range g.objects {
		if o.Holds != nil {
			g.takeHolds(numberOf(o.Name), o.Holds.Holds, false)
		}
	}
	for _, ns := range g.Namespaces {
		g.endUnnamed(ns)
	}
}

// takeLeader takes in which replica leads.
func (g *Gate) takeLeader(c *assessment.Cluster) {
	if g.Following || g.announced || g.term == 0 || c.Leader != g.Config.Identity || c.Term < g.term {
		return
	}
	g.announced = true
	g.wanted = maps.Clone(g.watermarks)
	clear(g.Recent)
	for _, ns := range g.Namespaces {
		g.takeCounts(ns)
		if len(ns.Holds) > 0 {
			ns.StaleClearances = true
			g.holdsToCheck.Insert(ns)
			g.OrphanHolds(ns)
		}
	}
	g.joinNamedAgain()
	g.recordElsewhere()
	g.members.TouchAll()
	g.entries.TouchAll()
	g.Touched.Assessable, g.Effects.Due = true, true
}

// recordElsewhere has objects assessed that waited until another leader had assessed a change of another namespace.
func (g *Gate) recordElsewhere() {
	for _, ns := range g.Namespaces {
		if !ns.WaitsElsewhere {
			continue
		}
		ns.WaitsElsewhere = false
		for _, c := range ns.Ceilings {
			for other := range c.Pending {
				g.RecordUntraced(ns, other.Changes.Shown())
			}
		}
		g.TouchHolds([]*memory.Namespace{ns})
	}
	g.TakeChanges()
}

// takeCounts takes over what earlier leaders have counted in a namespace.
func (g *Gate) takeCounts(ns *memory.Namespace) {
	ns.Recent, ns.Counts, ns.Number = approval.Window{}, nil, 0
	w := g.watermarks[ns.Revision.UID]
	if w == nil {
		return
	}
	ns.Counts, ns.Number = slices.Clone(w.Counts), w.Number
	for _, c := range w.Counts {
		ns.Recent.Counts = append(ns.Recent.Counts, approval.Count{At: c.At, Objects: c.Objects})
		for _, uid := range c.Policies {
			if g.Recent[uid] == nil {
				g.Recent[uid] = &approval.Window{}
			}
			g.Recent[uid].Counts = append(g.Recent[uid].Counts, approval.Count{At: c.At, Objects: c.Objects})
		}
	}
}
