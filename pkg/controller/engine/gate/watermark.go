// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/objects/kinds"
	"github.com/winnow-dev/winnow/pkg/controller/rules/approval"
	"github.com/winnow-dev/winnow/pkg/controller/rules/assessment"
	"github.com/winnow-dev/winnow/pkg/controller/rules/freshness"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

// release is raised when a release of Winnow decides differently for the same policies, so that what comes due by that is assessed.
const release = "1"

// watermark returns what is to be stored of a namespace that was assessed.
func (g *Gate) watermark(ns *memory.Namespace, now time.Time) *assessment.Namespace {
	limit := ns.Bounds.HoldAbove
	if ns.KeepsLimit {
		limit = limit.Stricter(ns.FormerHoldAbove)
	}
	ns.Counts = slices.DeleteFunc(ns.Counts, func(c assessment.Count) bool { return !now.Before(c.At.Add(approval.WindowLength)) })
	w := &assessment.Namespace{
		Name: ns.Name, UID: ns.Revision.UID, Number: ns.Number, Inputs: g.inputs(ns, true), Counts: countsOf(ns),
		LabelsSeen: g.Versions[freshness.Namespaces.String()],
		HoldAbove:  (*assessment.Limit)(&limit),
	}
	for resource, covering := range ns.Covered {
		if g.Failing.Skipped.Has(resource) && ns.Listed[resource] != covering {
			w.Unlisted = append(w.Unlisted, resource)
		}
	}
	slices.Sort(w.Unlisted)
	return w
}

// countsOf returns the counts of a namespace as they are when they were stored and read again, so that they can be compared.
func countsOf(ns *memory.Namespace) (out []assessment.Count) {
	for _, c := range ns.Counts {
		if len(c.Policies) == 0 {
			c.Policies = nil
		}
		out = append(out, c)
	}
	return out
}

// inputs returns everything that people can change and that decides what is due in a namespace.
func (g *Gate) inputs(ns *memory.Namespace, titles bool) assessment.Inputs {
	in := assessment.Inputs{Stopped: string(ns.Excluded()), Kinds: g.digestOfKinds(ns)}
	if in.Stopped == "" && ns.Unselected {
		in.Stopped = "unselected"
	}
	add := func(ps *memory.PolicyState) {
		if !ns.PolicyUIDs.Has(ps.Stored.UID) {
			return
		}
		p := assessment.Policy{UID: ps.Stored.UID, Wide: ps.Stored.Namespace == "", Generation: ps.Stored.Generation, Digest: ps.Content}
		if ps.Compiled == nil {
			p.Digest = "unreadable"
		}
		if titles {
			p.Title = ps.Stored.Title()
		}
		in.Policies = append(in.Policies, p)
	}
	for _, ps := range ns.Policies {
		add(ps)
	}
	for _, ps := range g.ClusterPolicies {
		add(ps)
	}
	if ns.Covers(kinds.ResourceQuotas) {
		for _, q := range g.Quotas.ByNamespace[ns.Name] {
			if in.Quotas == nil {
				in.Quotas = map[types.UID]string{}
			}
			in.Quotas[q.UID] = fmt.Sprint(q.Counts)
		}
	}
	return in
}

// digestOfKinds returns a digest of how Winnow reads the objects of the resources that policies of a namespace name, and of the
// ResourceLifecycles of all resources: any may control these objects.
func (g *Gate) digestOfKinds(ns *memory.Namespace) string {
	h := fnv.New64a()
	write := func(s string) { _, _ = h.Write([]byte(s + "\n")) }
	write(release)
	for _, resource := range sets.List(ns.Named) {
		if k, err := g.Table.For(resource); err == nil {
			write(resource)
			write(k.GroupVersionKind.Version)
			write(k.Source.ID)
		}
	}
	for _, k := range g.Table.WithLifecycles() {
		write(k.Resource)
		write(k.Source.ID)
	}
	return strconv.FormatUint(h.Sum64(), 16)
}

// CompareAll has all namespaces compared with their watermarks, because something has changed that any of them may depend on.
func (g *Gate) CompareAll() {
	for _, ns := range g.Namespaces {
		g.compare(ns)
	}
}

// compare has a namespace compared with its watermark.
func (g *Gate) compare(ns *memory.Namespace) {
	if g.comparable {
		g.Touched.Comparing.Insert(ns)
	}
}

// takeWatermarks takes in the watermarks of an object.
func (g *Gate) takeWatermarks(before, o *assessment.Object) {
	was := map[types.UID]*assessment.Namespace{}
	if before != nil {
		for i := range before.Namespaces {
			was[before.Namespaces[i].UID] = &before.Namespaces[i]
		}
	}
	n := numberOf(o.Name)
	for i := range o.Namespaces {
		w := &o.Namespaces[i]
		g.takeWatermark(n, w)
		delete(was, w.UID)
	}
	for uid, w := range was {
		if g.watermarks[uid] == w { // It is in no other object.
			delete(g.watermarks, uid)
			g.compareNamed(w)
		}
	}
	if g.announced {
		g.entries.Box(n).Changed = true
	}
}

func (g *Gate) takeWatermark(n int, w *assessment.Namespace) {
	before, ns := g.watermarks[w.UID], g.Namespaces[w.Name]
	g.watermarks[w.UID] = w
	if before != nil && reflect.DeepEqual(before, w) && (ns == nil || len(ns.Changes) == 0 && !g.comparing(ns)) {
		if g.wanted[w.UID] == before {
			g.wanted[w.UID] = w
		}
		if !g.announced {
			g.entries.PutAt(n, w.UID, w.UID, sizeOfWatermark(w))
		}
		return // It was written along with another one.
	}
	if !g.announced {
		g.entries.PutAt(n, w.UID, w.UID, sizeOfWatermark(w))
		if ns != nil && before != nil && w.Number > before.Number {
			ns.Untraced = false
		}
	} else if mine := g.wanted[w.UID]; mine != nil && reflect.DeepEqual(mine, w) {
		g.wanted[w.UID] = w
	}
	g.compareNamed(w)
}

// compareNamed has the namespace of a watermark compared.
func (g *Gate) compareNamed(w *assessment.Namespace) {
	if ns := g.Namespaces[w.Name]; ns != nil {
		g.compare(ns)
	}
}

// BecomeComparable compares all namespaces with their watermarks once all are known.
func (g *Gate) BecomeComparable() {
	if g.comparable || g.alone() || g.whyUnreadable() != "" || !g.Fresh.AllListed() {
		return
	}
	if g.comparable = true; g.lost() {
		for uid, w := range g.watermarks {
			unknown := *w
			unknown.Inputs = assessment.Inputs{}
			g.watermarks[uid] = &unknown
		}
	}
	g.Touched.Comparing = sets.New(slices.Collect(maps.Values(g.Namespaces))...)
}

// comparing reports whether it is not known yet if a change is pending in a namespace.
func (g *Gate) comparing(ns *memory.Namespace) bool {
	return !g.alone() && (!g.comparable || g.Touched.Comparing.Has(ns))
}

// Comparing reports whether it is not known yet if changes are pending in any of the namespaces.
func (g *Gate) Comparing(all []*memory.Namespace) bool { return slices.ContainsFunc(all, g.comparing) }

// CompareNamespaces finds out in which namespaces changes are pending, until the budget is spent.
func (g *Gate) CompareNamespaces(now time.Time) {
	for ns := range g.Touched.Comparing {
		if g.Touched.Comparing.Delete(ns); ns.Known {
			g.compareNow(ns, now)
		}
		if g.Spent(ns.Work()) {
			return
		}
	}
}

// compareNow ends the changes of a namespace if its watermark contains them. Otherwise it finds changes that this replica has not seen.
func (g *Gate) compareNow(ns *memory.Namespace, now time.Time) {
	w := g.watermarks[ns.Revision.UID]
	switch {
	case len(ns.PolicyUIDs) == 0, g.contains(w, ns):
		g.endChanges(ns, w)
	case len(ns.Changes) == 0:
		g.recordDifferences(ns, w, now)
	}
}

// contains reports whether a watermark contains all changes of a namespace.
func (g *Gate) contains(w *assessment.Namespace, ns *memory.Namespace) bool {
	switch {
	case w == nil, w.UID != ns.Revision.UID, ns.Untraced:
		return false
	case w.LabelsSeen < ns.LabelsAt, g.announced && len(ns.Changes) > 0 && !ns.Assessed:
		return false // What has changed may have been undone before anything was assessed.
	case g.announced && (w.Number != ns.Number || g.wanted[w.UID] != w):
		return false // A leader takes no watermark from another one.
	case ns.Holds.Find(func(h *approval.Hold) bool { return h.Number > w.Number }) != nil:
		return false
	case slices.ContainsFunc(w.Unlisted, func(resource string) bool { return ns.Covers(resource) && !g.Failing.Skipped.Has(resource) }):
		return false
	}
	in := g.inputs(ns, false)
	return w.Inputs.Equal(&in)
}

// endChanges ends the changes of a namespace, and has what is due cleared.
func (g *Gate) endChanges(ns *memory.Namespace, w *assessment.Namespace) {
	if ns.FormerHoldAbove = policy.NoHoldAbove; w != nil {
		ns.FormerHoldAbove = limitOf(w)
	}
	if g.announced && len(ns.PolicyUIDs) == 0 && w != nil { // If a policy comes back, what is due is due by the change.
		g.forgetWatermark(ns)
	}
	ceilings := slices.Concat(ns.Ceilings, ns.FormerCeilings)
	if len(ns.Changes) > 0 {
		g.ClearChanges(ns)
		g.resetClearances(ns, false)
	}
	if !g.announced && w != nil {
		ns.Number = w.Number
		g.forgetListed(ns)
	}
	g.TouchHolds([]*memory.Namespace{ns})
	for _, c := range ceilings {
		if g.Following && len(c.Pending) == 0 {
			g.endWaiting(c)
		}
	}
}

// forgetWatermark removes what is stored of the assessment of a namespace without policies.
func (g *Gate) forgetWatermark(ns *memory.Namespace) {
	uid := ns.Revision.UID
	delete(g.wanted, uid)
	if _, box, ok := g.entries.Group(uid); ok {
		g.entries.Remove(uid)
		g.entries.Box(box).Changed = true
		g.Effects.Unstored = true
	}
}

// endWaiting has objects cleared that waited for a change of another namespace under a ceiling.
func (g *Gate) endWaiting(c *memory.Ceiling) {
	for _, ns := range g.Namespaces {
		if ns.WaitsElsewhere && slices.Contains(ns.Ceilings, c) {
			ns.WaitsElsewhere = false
			g.TouchHolds([]*memory.Namespace{ns})
		}
	}
}

func limitOf(w *assessment.Namespace) policy.HoldAbove {
	if w.HoldAbove == nil {
		return policy.NoHoldAbove
	}
	return policy.HoldAbove(*w.HoldAbove)
}

// recordDifferences records the changes that differ from the watermark of a namespace. Their IDs are the same on each replica.
func (g *Gate) recordDifferences(ns *memory.Namespace, w *assessment.Namespace, now time.Time) {
	if w == nil {
		w = &assessment.Namespace{}
	}
	if w.Kinds == "" { // Nothing is known of an assessment.
		g.adoptAll(ns)
	}
	ns.FormerHoldAbove = ns.FormerHoldAbove.Stricter(limitOf(w))
	left := map[types.UID]assessment.Policy{}
	for _, p := range w.Policies {
		left[p.UID] = p
	}
	in := g.inputs(ns, false)
	for _, p := range in.Policies {
		if was, known := left[p.UID]; was.Generation != p.Generation || was.Digest != p.Digest {
			c := memory.ChangeOf(g.PolicyOf(ns, p.UID), false)
			if !known || was.Generation == p.Generation { // The generation may have been assessed and approved here before.
				c.ID, c.Write = fmt.Sprintf("%s after assessment %d of %s", c.ID, w.Number, ns.Revision.UID), g.Writes+1
			}
			g.RecordChange(ns, c)
		}
		delete(left, p.UID)
	}
	for _, p := range slices.SortedFunc(maps.Values(left), func(a, b assessment.Policy) int { return cmp.Compare(a.UID, b.UID) }) {
		g.recordGone(ns, p)
	}
	if len(ns.Changes) == 0 {
		g.RecordChange(ns, approval.Change{
			ID:   fmt.Sprint("assessment ", w.Number, " of ", ns.Revision.UID),
			Text: fmt.Sprintf("a change of namespace %q, its quotas, or how Winnow reads its objects", ns.Name), Write: g.Writes + 1,
		})
	}
	ns.Changes.SetObserved(now)
	g.TakeChanges()
	g.Touched.Comparing.Delete(ns)
	g.Touched.Assessable = true
	g.TouchHolds([]*memory.Namespace{ns})
}

// recordGone records that a policy does not apply any more.
func (g *Gate) recordGone(ns *memory.Namespace, p assessment.Policy) {
	for _, ps := range g.ClusterPolicies {
		if ps.Stored.UID == p.UID {
			ns.FormerCeilings = append(ns.FormerCeilings, ps.Ceilings...)
			g.RecordChange(ns, approval.Change{
				ID: "namespace " + ns.Revision.Version, Text: fmt.Sprintf("a change of the labels of namespace %q", ns.Name), Write: g.Writes + 1,
			})
			return
		}
	}
	g.RecordChange(ns, approval.Change{
		Policy: p.UID, Wide: p.Wide, Write: g.Writes + 1, ID: fmt.Sprint("deleted ", p.UID), Text: "the deletion of " + p.Title,
	})
}
