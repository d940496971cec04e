// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package approval decides which changes by people must wait until somebody approves them: changes that make more objects due at once
// than a guardrail allows. The package knows only numbers of objects; pkg/controller/engine knows the objects.
package approval

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

// Change is what a person did that may have made objects of a namespace due.
type Change struct {
	// ID is the same on every replica, and unique unless Recurs is set. Text names the change in messages.
	ID, Text string
	// Recurs says that another change may have this ID later. A hold that it causes has an ID of its own for the objects that it begins with.
	Recurs bool
	// Policy is the policy that was written or deleted; empty for any other change.
	Policy types.UID
	// Wide says that Policy is a cluster policy, so that the change reaches many namespaces.
	Wide bool
	// At is when the change was observed.
	At time.Time
	// Unseen says that no controller ran when the change was made. Only objects that were due while the previous controller still ran are
	// attributed to the change.
	Unseen bool
	// Matches says that the change was made before, and that objects which began to match a rule by it have become due now. No other objects
	// are attributed to it.
	Matches bool
	// Write is the number of the first policy state that may approve the change. Somebody who approved an ID in an earlier state had not
	// seen the change.
	Write uint64
}

// GenerationID returns the ID of the change that wrote a generation of a policy.
func GenerationID(policy types.UID, generation int64) string {
	return fmt.Sprint("generation ", generation, " of ", policy)
}

// Changes are the changes of a namespace that are not checked yet, oldest first.
type Changes []Change

const (
	// maxChanges is how many changes of a namespace are kept before older ones are joined. Changes of cluster policies are never joined.
	maxChanges = 20
	// several stands for the policies of changes that were joined.
	several = "several"
)

// Record adds a change. It replaces an earlier change of the same policy; a change without a policy replaces another one without a policy.
// Objects that the earlier change made due are attributed to the new change, which therefore counts from the time when the oldest change
// was observed.
func (c *Changes) Record(change Change) {
	if len(*c) > 0 {
		change.At = (*c)[0].At
	}
	*c = slices.DeleteFunc(*c, func(before Change) bool { return before.Policy == change.Policy && before.Unseen == change.Unseen })
	c.joinOldest()
	*c = append(*c, change)
}

// joinOldest joins the two oldest changes that reach no other namespace, if there are maxChanges or more.
func (c *Changes) joinOldest() {
	all := *c
	if len(all) < maxChanges {
		return
	}
	narrow := func(change Change) bool { return !change.Wide && !change.Unseen }
	i := slices.IndexFunc(all, narrow)
	if i < 0 {
		return
	}
	if j := slices.IndexFunc(all[i+1:], narrow); j >= 0 {
		joined := Changes{all[i], all[i+1+j]}.join()
		joined.Policy = several
		all[i+1+j] = joined
		*c = slices.Delete(all, i, i+1)
	}
}

// SetObserved sets when the changes were observed, unless that is set already.
func (c Changes) SetObserved(at time.Time) {
	for i := range c {
		if c[i].At.IsZero() {
			c[i].At = at
		}
	}
}

// Has reports whether the changes include a change with this ID.
func (c Changes) Has(id string) bool {
	return c.last(func(change Change) bool { return change.ID == id }) >= 0
}

// join returns one change that stands for all. Its ID is new, so that an approval of one of the changes does not cover all of them.
func (c Changes) join() Change {
	ids := sets.New[string]()
	out := c.Shown()
	for _, change := range c {
		ids.Insert(change.ID)
		out.Write, out.Recurs = max(out.Write, change.Write), out.Recurs || change.Recurs
	}
	sum := sha256.Sum256([]byte(strings.Join(sets.List(ids), "\n")))
	out.ID = "together " + hex.EncodeToString(sum[:])
	return out
}

// Unseen reports whether there is an unseen change.
func (c Changes) Unseen() bool { return c.last(func(change Change) bool { return change.Unseen }) >= 0 }

// MayMakeDue reports whether any change may have made objects due that are not due by an earlier one; see Unseen and Matches.
func (c Changes) MayMakeDue() bool {
	return c.last(func(change Change) bool { return !change.Unseen && !change.Matches }) >= 0
}

// DivideUnseen returns the unseen changes, and those by which rules began to match, if there are both and no other change. Each object can
// be attributed to one of them.
func (c Changes) DivideUnseen() (unseen, matches Changes, ok bool) {
	for _, change := range c {
		if change.Matches {
			matches = append(matches, change)
		} else {
			unseen = append(unseen, change)
		}
	}
	return unseen, matches, len(unseen) > 0 && len(matches) > 0 && !c.MayMakeDue()
}

// OnlyMatches reports whether there are changes, and Matches is set in all of them.
func (c Changes) OnlyMatches() bool {
	return len(c) > 0 && c.last(func(change Change) bool { return !change.Matches }) < 0
}

// Shown returns the change that messages name: the last change that is not unseen, or else an unseen one.
func (c Changes) Shown() Change {
	if i := c.last(func(change Change) bool { return !change.Unseen }); i >= 0 {
		return c[i]
	}
	return c[0]
}

// last returns the index of the last change for which is returns true; -1 if there is none.
func (c Changes) last(is func(Change) bool) int {
	for i, change := range slices.Backward(c) {
		if is(change) {
			return i
		}
	}
	return -1
}
