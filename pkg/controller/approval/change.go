// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package approval decides which changes by people must wait until somebody approves them: changes that make more objects due at once
// than a guardrail allows. It knows numbers of objects only; pkg/controller/engine knows the objects.
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

// Change is something that people changed and that may have made objects of a namespace due.
type Change struct {
	// ID differs from that of all other changes, and is the same on every replica. Text names the change to people.
	ID, Text string
	// Policy is the policy that was changed or deleted; empty for any other change.
	Policy types.UID
	// Wide says that Policy is a cluster policy, so that the change reaches many namespaces.
	Wide bool
	// At is when the change was observed.
	At time.Time
	// Unseen says that no controller ran when the change was made. Only objects that should have gone while one still ran are attributed to
	// it.
	Unseen bool
	// Write is the number of the first state of a policy that may approve the change: whoever approved something in an earlier state had
	// not seen the change.
	Write uint64
}

// GenerationID is the ID of the change that a generation of a policy is.
func GenerationID(policy types.UID, generation int64) string {
	return fmt.Sprint("generation ", generation, " of ", policy)
}

// Changes are the changes of a namespace that are yet to be assessed, oldest first.
type Changes []Change

const (
	// MaxChanges is how many changes of a namespace are kept apart, apart from those of cluster policies.
	MaxChanges = 20
	// several stands for the policies of changes that are no longer kept apart.
	several = "several"
)

// Record adds a change. One of the same policy that was recorded before is assessed as the new one.
func (c *Changes) Record(change Change) {
	if len(*c) > 0 {
		change.At = (*c)[0].At
	}
	*c = slices.DeleteFunc(*c, func(before Change) bool { return before.Policy == change.Policy && before.Unseen == change.Unseen })
	c.Fold()
	*c = append(*c, change)
}

// Fold joins the two oldest changes that reach no other namespace, if there are many changes.
func (c *Changes) Fold() {
	all := *c
	if len(all) < MaxChanges {
		return
	}
	narrow := func(change Change) bool { return !change.Wide && !change.Unseen }
	i := slices.IndexFunc(all, narrow)
	if i < 0 {
		return
	}
	if j := slices.IndexFunc(all[i+1:], narrow); j >= 0 {
		folded := Changes{all[i], all[i+1+j]}.Join()
		folded.Policy = several
		all[i+1+j] = folded
		*c = slices.Delete(all, i, i+1)
	}
}

// SetObserved sets when the changes were observed, where that is not set yet.
func (c Changes) SetObserved(at time.Time) {
	for i := range c {
		if c[i].At.IsZero() {
			c[i].At = at
		}
	}
}

// Has reports whether a change is among them.
func (c Changes) Has(id string) bool {
	return c.last(func(change Change) bool { return change.ID == id }) >= 0
}

// Join returns one change for all. No approval of any of them covers what they made due together.
func (c Changes) Join() Change {
	ids := sets.New[string]()
	out := c.Shown()
	for _, change := range c {
		ids.Insert(change.ID)
		out.Write = max(out.Write, change.Write)
	}
	sum := sha256.Sum256([]byte(strings.Join(sets.List(ids), "\n")))
	out.ID = "together " + hex.EncodeToString(sum[:])
	return out
}

// Shown is the change that people are told of: the last that somebody saw, or else one that nobody did.
func (c Changes) Shown() Change {
	if i := c.last(func(change Change) bool { return !change.Unseen }); i >= 0 {
		return c[i]
	}
	return c[0]
}

// last returns the index of the last change that is so; -1 if none is.
func (c Changes) last(is func(Change) bool) int {
	for i, change := range slices.Backward(c) {
		if is(change) {
			return i
		}
	}
	return -1
}
