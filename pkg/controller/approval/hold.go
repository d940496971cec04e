// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"crypto/sha256"
	"encoding/hex"
	"iter"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/controller/freshness"
)

// Hold keeps the objects that a change made due, and everything else that its policy would delete in the namespace. It ends when somebody
// approves it, or when none of those objects is due any more.
type Hold struct {
	ID, Why string
	// Owner is the policy whose annotation approves the hold; empty for a moment when that policy is gone.
	Owner types.UID
	// Since is when the change was observed. Objects that finished later were not made due by it. Zero if unknown.
	Since time.Time
	// Total says that the hold is one with those of other namespaces that have the same ID.
	Total bool
	// Members is how many objects wait under the hold.
	Members int
	// Former are the IDs that the hold had before a change added objects to it.
	Former []string
	// ListedBy are the policies whose status told a replica of the hold that the replica adopted; nil if it found the hold itself. Searched
	// says that it has looked for the objects that wait under the hold.
	ListedBy sets.Set[types.UID]
	Searched bool
}

const (
	// formerMost is how many earlier IDs of a hold are remembered.
	formerMost = 20
	// MaxHolds is how many holds a namespace can have at a time.
	MaxHolds = 254
)

// HoldID is the ID of the hold that a generation of a policy causes in a namespace, if it causes one; in all namespaces together for "".
func HoldID(policy types.UID, generation int64, namespace string) string {
	return HoldIDOf(policy, namespace, GenerationID(policy, generation))
}

// HoldIDOf is the ID of the hold that a change causes.
func HoldIDOf(policy types.UID, namespace, change string) string {
	sum := sha256.Sum256([]byte(strings.Join([]string{string(policy), namespace, change}, "\n")))
	return hex.EncodeToString(sum[:6])
}

// MayHave reports whether an object that a policy would delete may wait under an adopted hold. No status names objects, but objects that
// finished after the change were not made due by it.
func (h *Hold) MayHave(finished time.Time, policy types.UID) bool {
	return h.ListedBy.Has(policy) && (h.Since.IsZero() || !finished.After(h.Since.Add(freshness.ClockSkew)))
}

// Unsearched reports whether the hold was adopted and the objects that wait under it are yet to be looked for.
func (h *Hold) Unsearched() bool { return h.ListedBy != nil && !h.Searched }

// Empty reports whether no object is known to wait under the hold.
func (h *Hold) Empty() bool { return h.Members == 0 }

// Before reports whether the hold is older than another one. All replicas put holds in the same order.
func (h *Hold) Before(other *Hold) bool {
	return h.Since.Before(other.Since) || h.Since.Equal(other.Since) && h.Owner < other.Owner
}

// Extend has the hold take in what a later change made due, under the ID of that change, so that no approval of the old ID covers it.
func (h *Hold) Extend(by Hold) {
	h.Former = append(h.Former, h.ID)
	h.Former = h.Former[max(0, len(h.Former)-formerMost):]
	h.ID, h.Why, h.Since, h.Total = by.ID, by.Why, by.Since, by.Total
}

// Join has the hold take in another one of its namespace, under an ID of which no approval exists.
func (h *Hold) Join(namespace string, o *Hold) {
	h.ID, h.Total = HoldIDOf(h.Owner, namespace, h.ID+" and "+o.ID), false
	if h.Since.Before(o.Since) {
		h.Since = o.Since
	}
	if o.ListedBy != nil {
		h.Searched = !h.Unsearched() && !o.Unsearched()
		h.ListedBy = h.ListedBy.Union(o.ListedBy)
	}
}

// Reassign gives the hold to another policy. A hold of all namespaces together may get other owners elsewhere, so it gets an ID of its own.
func (h *Hold) Reassign(namespace string, owner types.UID, cluster bool) {
	h.Owner = owner
	if !h.Total {
		return
	}
	where := ""
	if h.Total = cluster; !cluster {
		where = namespace
	}
	h.ID = HoldIDOf(owner, where, h.ID)
}

// Holds are the holds of a namespace. The index of a hold never changes; it is nil where a hold has ended.
type Holds []*Hold

// All are the holds that have not ended.
func (hs Holds) All() iter.Seq[*Hold] {
	return func(yield func(*Hold) bool) {
		for _, h := range hs {
			if h != nil && !yield(h) {
				return
			}
		}
	}
}

// Find returns the first hold that is so; nil if none is.
func (hs Holds) Find(is func(*Hold) bool) *Hold {
	for h := range hs.All() {
		if is(h) {
			return h
		}
	}
	return nil
}

// Of returns a hold of a policy; nil if there is none.
func (hs Holds) Of(policy types.UID) *Hold {
	return hs.Find(func(h *Hold) bool { return h.Owner == policy })
}

// ByID returns the hold with an ID; nil if there is none.
func (hs Holds) ByID(id string) *Hold {
	return hs.Find(func(h *Hold) bool { return h.ID == id })
}

// Add puts in a hold of a namespace, and returns it. If there is no index left, it joins the last hold, which is returned then.
func (hs *Holds) Add(namespace string, h *Hold) *Hold {
	if i := slices.Index(*hs, nil); i >= 0 {
		(*hs)[i] = h
		return h
	}
	if len(*hs) == MaxHolds {
		last := (*hs)[MaxHolds-1]
		last.Join(namespace, h)
		return last
	}
	*hs = append(*hs, h)
	return h
}
