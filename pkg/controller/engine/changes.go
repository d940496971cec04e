// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
)

// change is a change by people that may have made objects of a namespace due.
type change struct {
	// id tells it apart from all others, on every replica alike; text names it to people.
	id, text string
	// policy is that which changed or was deleted, empty for any other change; wide says that it is a cluster policy, so that the change
	// reaches many namespaces.
	policy types.UID
	wide   bool
	// at is when the change was observed.
	at time.Time
	// unseen says that nobody saw the change: only what should have gone while a controller still ran is laid to it.
	unseen bool
	// write is the number of the first state of a policy that may approve what it made due: what was approved earlier, nobody had seen.
	write uint64
}

// unseenFor is how long before the end of the last controller an object must have been due, so that the status of its policy
// would have told of it.
const unseenFor = 10 * time.Second

// Resume takes in, before anything else, when a controller was last seen to run. What was due by then and is still there, though
// no status tells of it, was made due by a change that nobody saw: labels and quotas change without Winnow.
func (e *Engine) Resume(last time.Time) {
	e.resumed = last
}

// unseenChange is the change that may have happened while no controller ran; false when there was none before.
func (e *Engine) unseenChange() (change, bool) {
	return change{
		id: "unseen " + e.resumed.UTC().Format(time.RFC3339), unseen: true,
		text: "a change that was made after " + e.resumed.UTC().Format(time.RFC3339) + ", while no controller ran,",
	}, !e.resumed.IsZero()
}

// changeOf is the change that a new generation of a policy is. One that is seen for the first time, but that a controller has
// observed before, is none. One under the same generation is seen anew when it can be read again.
func changeOf(ps *policyState, created, seenAnew bool) (change, bool) {
	c := change{
		policy: ps.stored.UID, wide: ps.stored.Namespace == "", write: ps.write, id: generationChange(ps.stored.UID, ps.stored.Generation),
		text: fmt.Sprintf("generation %d of %s", ps.stored.Generation, ps.stored.title()),
	}
	switch {
	case seenAnew:
		c.id = fmt.Sprint("resource version ", ps.stored.ResourceVersion, " of ", c.id)
		c.text = ps.stored.title() + ", which can be read again,"
	case ps.altered != "":
		c.id = fmt.Sprint("content ", ps.altered, " of ", c.id)
		c.text = fmt.Sprintf("a change of generation %d of %s past the API", ps.stored.Generation, ps.stored.title())
	default:
		return c, !created || ps.stored.Status.ObservedGeneration < ps.stored.Generation
	}
	return c, true
}

func generationChange(policy types.UID, generation int64) string {
	return fmt.Sprint("generation ", generation, " of ", policy)
}

// recordChange notes a change that is to be weighed in a namespace. What is not due by now is made due by it, if it will be.
func (e *Engine) recordChange(ns *namespace, c change) {
	e.clearWithdrawn(ns, false) // The change may be what makes it due again.
	if len(ns.changes) > 0 {
		c.at = ns.changes[0].at
	}
	// One of the same policy is weighed as that one would be.
	ns.changes = slices.DeleteFunc(ns.changes, func(before change) bool { return before.policy == c.policy && before.unseen == c.unseen })
	ns.foldChanges()
	e.addChange(ns, c)
}

// changesMost is how many changes of a namespace are kept apart until they are weighed, but for those of cluster policies.
const changesMost = 20

// several stands for the policies of changes that are no longer kept apart.
const several = "several"

// foldChanges makes one of the two oldest changes that reach no other namespace, where there are many.
func (ns *namespace) foldChanges() {
	if len(ns.changes) < changesMost {
		return
	}
	narrow := func(c change) bool { return !c.wide && !c.unseen }
	i := slices.IndexFunc(ns.changes, narrow)
	if i < 0 {
		return
	}
	if j := slices.IndexFunc(ns.changes[i+1:], narrow); j >= 0 {
		folded := joinChanges([]change{ns.changes[i], ns.changes[i+1+j]})
		folded.policy = several
		ns.changes[i+1+j] = folded
		ns.changes = slices.Delete(ns.changes, i, i+1)
	}
}

// joinChanges is one change for several: no approval of any of them covers what they made due together.
func joinChanges(changes []change) change {
	ids := sets.New[string]()
	out := lastSeenChange(changes)
	for _, c := range changes {
		ids.Insert(c.id)
		out.write = max(out.write, c.write)
	}
	sum := sha256.Sum256([]byte(strings.Join(sets.List(ids), "\n")))
	out.id = "together " + hex.EncodeToString(sum[:])
	return out
}

// addChange adds a change to those that are to be weighed. What it makes due under a ceiling, it may make due in others too.
func (e *Engine) addChange(ns *namespace, c change) {
	ns.changes = append(ns.changes, c)
	e.pending.Insert(ns)
	if !ns.known {
		return // It takes nothing of a ceiling, and nobody knows for how long.
	}
	for _, ceiling := range slices.Concat(ns.ceilings, ns.left) {
		ceiling.pending.Insert(ns)
	}
}

// clearChanges is the end of recordChange. Reports tell of it, even where nothing is due.
func (e *Engine) clearChanges(ns *namespace) {
	e.invalidate(ns)
	ns.changes = nil
	e.pending.Delete(ns)
	for _, ceiling := range slices.Concat(ns.ceilings, ns.left) {
		ceiling.pending.Delete(ns)
	}
	ns.left = nil
}

// changeElsewhere tells whether a change in another namespace may have put the record beyond a ceiling that they share.
func (rec *record) changeElsewhere() (change, bool) {
	for _, p := range rec.memberships() {
		if p.ceiling != nil && p.member.Over() {
			for ns := range p.ceiling.pending {
				return ns.changes[len(ns.changes)-1], true
			}
		}
	}
	return change{}, false
}

// lastSeenChange is the last change that somebody saw, or else one that nobody did.
func lastSeenChange(changes []change) change {
	if i := last(changes, func(c change) bool { return !c.unseen }); i >= 0 {
		return changes[i]
	}
	return changes[0]
}

// last is the index of the last change that is so; -1 when none is.
func last(changes []change, is func(change) bool) int {
	for i := len(changes) - 1; i >= 0; i-- {
		if is(changes[i]) {
			return i
		}
	}
	return -1
}
