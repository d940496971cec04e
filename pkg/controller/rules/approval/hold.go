// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"crypto/sha256"
	"encoding/hex"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/controller/rules/freshness"
)

// Hold keeps the objects that a change made due, and everything else that its owner would delete in the namespace. The hold ends when
// somebody approves it, or when none of the objects is due any more.
type Hold struct {
	ID, Why string
	// Owner is the policy whose annotation approves the hold. It is empty after that policy has left the namespace, until the hold is
	// reassigned.
	Owner types.UID
	// Since is when the change was observed; zero if unknown. Objects that finished later were not made due by the change.
	Since time.Time
	// Total says that the hold exceeds the limit of all namespaces. People see all holds with the same ID as one.
	Total bool
	// Members is how many objects wait under the hold.
	Members int
	// Former are the IDs that the hold had before a change added objects to it.
	Former []string
	// ListedBy are the policies with a status that listed the hold when this replica adopted it; nil if this replica found the hold itself.
	ListedBy sets.Set[types.UID]
	// Searched says that this replica has looked for the members of a hold that it adopted.
	Searched bool
}

const (
	// formerMost is how many earlier IDs of a hold are remembered.
	formerMost = 20
	// MaxHolds is how many holds a namespace can have at a time.
	MaxHolds = 254
)

// HoldID returns the ID of the hold that a change causes in a namespace, or for "" in all namespaces together.
func HoldID(policy types.UID, namespace, change string) string {
	sum := sha256.Sum256([]byte(strings.Join([]string{string(policy), namespace, change}, "\n")))
	return hex.EncodeToString(sum[:6])
}

// MayHave reports whether an object that a policy would delete may be a member of an adopted hold. A status does not name the members, but
// objects that finished after the change cannot be among them.
func (h *Hold) MayHave(finished time.Time, policy types.UID) bool {
	return h.ListedBy.Has(policy) && (h.Since.IsZero() || !finished.After(h.Since.Add(freshness.ClockSkew)))
}

// Unsearched reports whether the hold was adopted and its members are not known yet.
func (h *Hold) Unsearched() bool { return h.ListedBy != nil && !h.Searched }

// Empty reports whether the hold has no known members.
func (h *Hold) Empty() bool { return h.Members == 0 }

// Before reports whether the hold is older than another one. The order is the same on all replicas.
func (h *Hold) Before(other *Hold) bool {
	return h.Since.Before(other.Since) || h.Since.Equal(other.Since) && h.Owner < other.Owner
}

// Extend prepares the hold for objects that a later change made due. The hold gets the ID of the later change, so that an approval of the
// old ID does not cover these objects. If this replica gave it that ID before, it gets another one. The ID of an adopted hold may be that
// of the same change, which another replica has seen before.
func (h *Hold) Extend(namespace string, by Hold) {
	h.Former = append(h.Former, h.ID)
	h.Former = h.Former[max(0, len(h.Former)-formerMost):]
	for h.ListedBy == nil && slices.Contains(h.Former, by.ID) {
		by.ID, by.Total = HoldID(h.Owner, namespace, by.ID), false
	}
	h.ID, h.Why, h.Since, h.Total = by.ID, by.Why, by.Since, by.Total
}

// Join merges another hold of the namespace into this one. The ID is new, so that an approval of one hold does not cover both.
func (h *Hold) Join(namespace string, o *Hold) {
	h.ID, h.Total = HoldID(h.Owner, namespace, h.ID+" and "+o.ID), false
	if o.Since.IsZero() || !h.Since.IsZero() && h.Since.Before(o.Since) { // An unknown time excludes no object.
		h.Since = o.Since
	}
	if o.ListedBy != nil {
		h.Searched = !h.Unsearched() && !o.Unsearched()
		h.ListedBy = h.ListedBy.Union(o.ListedBy)
	}
}

// Reassign gives the hold to another policy. The ID of a hold of all namespaces together changes, because its owner in other namespaces may
// become another policy.
func (h *Hold) Reassign(namespace string, owner types.UID, cluster bool) {
	h.Owner = owner
	if !h.Total {
		return
	}
	where := ""
	if h.Total = cluster; !cluster {
		where = namespace
	}
	h.ID = HoldID(owner, where, h.ID)
}

// Clone returns a copy that shares nothing with the hold.
func (h *Hold) Clone() *Hold {
	out := *h
	out.Former, out.ListedBy = slices.Clone(h.Former), maps.Clone(h.ListedBy)
	return &out
}

// Holds are the holds of a namespace. The index of a hold never changes; it is nil where a hold has ended.
type Holds []*Hold

// All returns the holds that have not ended.
func (hs Holds) All() iter.Seq[*Hold] {
	return func(yield func(*Hold) bool) {
		for _, h := range hs {
			if h != nil && !yield(h) {
				return
			}
		}
	}
}

// Find returns the first hold for which is returns true; nil if there is none.
func (hs Holds) Find(is func(*Hold) bool) *Hold {
	for h := range hs.All() {
		if is(h) {
			return h
		}
	}
	return nil
}

// Of returns the hold that a policy owns; nil if there is none.
func (hs Holds) Of(policy types.UID) *Hold {
	return hs.Find(func(h *Hold) bool { return h.Owner == policy })
}

// ByID returns the hold with an ID; nil if there is none.
func (hs Holds) ByID(id string) *Hold {
	return hs.Find(func(h *Hold) bool { return h.ID == id })
}

// Add adds a hold and returns it. If there are MaxHolds already, Add joins the hold to the last one, and returns that.
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
