// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package facts is how facts are kept: what many objects have in common is there once for all of them. It is the one place of the
// controller outside of the tracker that takes a lock.
package facts

import (
	"math"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/controller/lifecycle"
)

// Compact is a fact in the form in which it is kept, since there may be a million: what it has in common with others is shared with
// them. It is never changed once made.
type Compact struct {
	*shared
	full *lifecycle.Fact // the whole fact, where the other fields cannot say all of it; nil for most
	id   string          // UID, then name
	// ResourceVersion of the state that was reduced.
	ResourceVersion uint64
	// In seconds since 1970; 0 while it runs.
	created, finished uint32
}

// Compress makes the small form of a fact.
func Compress(f *lifecycle.Fact) *Compact {
	k := &Compact{shared: sharedOf(f), id: string(f.UID) + f.Name, ResourceVersion: f.ResourceVersion}
	var fits [2]bool
	k.created, fits[0] = seconds(f.Created)
	if fits[1] = true; f.Finished {
		k.finished, fits[1] = seconds(f.FinishedAt)
	}
	annotated := f.TTL != nil || f.KeepUntil != nil || f.Endless || f.Applied != ""
	stuck := f.Terminating || f.Uncounted || f.Doubt != "" || f.Contradictory
	if annotated || stuck || fits != [2]bool{true, true} || !f.Scheduled.Equal(k.scheduledFor()) {
		full := *f
		full.Labels, full.Controller = k.labels(), k.Controller
		k.full = &full
	}
	return k
}

// seconds are those since 1970; false when that cannot tell the time.
func seconds(t time.Time) (uint32, bool) {
	s := t.Unix()
	return uint32(s), s >= 0 && s <= math.MaxUint32 && t.Nanosecond() == 0
}

// UID of the object.
func (k *Compact) UID() types.UID { return types.UID(k.id[:k.uidLength]) }

// Name of the object.
func (k *Compact) Name() string { return k.id[k.uidLength:] }

// Created is when the object was created.
func (k *Compact) Created() time.Time {
	if k.full != nil {
		return k.full.Created
	}
	return time.Unix(int64(k.created), 0).UTC()
}

// FinishedAt is as in the fact.
func (k *Compact) FinishedAt() time.Time {
	switch {
	case k.full != nil:
		return k.full.FinishedAt
	case !k.Finished:
		return time.Time{}
	}
	return time.Unix(int64(k.finished), 0).UTC()
}

// scheduledFor is what the name says of that.
func (k *Compact) scheduledFor() time.Time {
	if k.scheduledBy == lifecycle.ScheduledByField {
		return time.Time{}
	}
	return lifecycle.ScheduleInName(k.Name(), k.Controller.Name)
}

// Terminating says that the object is being deleted.
func (k *Compact) Terminating() bool { return k.full != nil && k.full.Terminating }

// Annotated reports whether the object has any of our annotations.
func (k *Compact) Annotated() bool {
	return k.full != nil && (k.full.TTL != nil || k.full.KeepUntil != nil)
}

// SameAnnotations reports whether both states have the same of our annotations.
func (k *Compact) SameAnnotations(o *Compact) bool {
	if !k.Annotated() || !o.Annotated() {
		return k.Annotated() == o.Annotated()
	}
	same := func(a, b *string) bool { return a == b || a != nil && b != nil && *a == *b }
	return same(k.full.TTL, o.full.TTL) && same(k.full.KeepUntil, o.full.KeepUntil)
}

// labels are those of the object.
func (k *Compact) labels() labels.Labels {
	if k.shared.own {
		return ownLabels{k.shared, k.id}
	}
	return k.shared
}

// Fact is the whole fact.
func (k *Compact) Fact() *lifecycle.Fact {
	f := &lifecycle.Fact{}
	if k.Unpack(f); f.ScheduledBy != lifecycle.ScheduledByField {
		f.Scheduled, f.ScheduledBy = k.scheduledFor(), lifecycle.ScheduledByField
	}
	return f
}

// Unpack makes f the fact, but for what its name says.
func (k *Compact) Unpack(f *lifecycle.Fact) {
	if k.full != nil {
		*f = *k.full
		return
	}
	*f = lifecycle.Fact{
		Resource: k.Resource, Namespace: k.Namespace, Name: k.Name(), UID: k.UID(), ResourceVersion: k.ResourceVersion, Labels: k.labels(),
		Created: k.Created(), Finished: k.Finished, Outcome: k.Outcome, FinishedAt: k.FinishedAt(), NativeTTL: k.NativeTTL,
		Controller: k.Controller, ScheduledBy: k.scheduledBy, Propagation: k.Propagation,
	}
}
