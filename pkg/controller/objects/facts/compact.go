// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package facts stores facts in a compact form: what many objects have in common is stored only once. The package is pure except for one
// lock, which protects the table of these shared parts.
package facts

import (
	"cmp"
	"encoding/binary"
	"math"
	"math/bits"
	"slices"
	"time"
	"unsafe"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
)

// Compact is the form in which facts are stored, since there may be a million. It is immutable.
type Compact struct {
	*head
	// id is the first byte of the encoded identity. A string would take eight more bytes.
	id              *byte
	ResourceVersion uint64
	// In seconds since 1970. ended is when the object finished or, as long as it has not, when it started; 0 if neither.
	created, ended uint32
}

// Compress returns the compact form of a fact.
func Compress(f *lifecycle.Fact) *Compact {
	uid := PackUID(f.UID)
	k := &Compact{head: headOf(f, uid), id: encodeIdentity(f, uid), ResourceVersion: f.ResourceVersion}
	createdFits, endedFits := false, true
	k.created, createdFits = seconds(f.Created)
	switch {
	case f.Finished:
		k.ended, endedFits = seconds(f.FinishedAt)
	case !f.Deadline.StartedAt.IsZero():
		k.ended, endedFits = seconds(f.Deadline.StartedAt)
		endedFits = endedFits && k.ended != 0
	}
	if isRare(f) || !createdFits || !endedFits || !f.Scheduled.Equal(k.scheduledFor()) {
		full := *f
		full.Labels, full.Controller = k.labels(), k.Controller
		k.head = &head{k.shared, &full}
	}
	return k
}

// encodeIdentity returns the first byte of the length of the rest, as a varint, and then the UID, the name, and two bytes of Content.
func encodeIdentity(f *lifecycle.Fact, uid UID) *byte {
	n := len(uid.bytes) + len(f.Name) + 2
	id := binary.AppendUvarint(make([]byte, 0, (bits.Len(uint(n))+6)/7+n), uint64(n)) // A varint has seven bits in each byte.
	id = append(append(id, uid.bytes...), f.Name...)
	return unsafe.SliceData(append(id, byte(f.Content>>8), byte(f.Content)))
}

// identity is the UID, then the name, then two bytes of Content.
func (k *Compact) identity() string {
	n, size := uvarint(k.id)
	return unsafe.String((*byte)(unsafe.Add(unsafe.Pointer(k.id), size)), n)
}

// isRare reports whether a fact has any field for which Compact has none.
func isRare(f *lifecycle.Fact) bool {
	annotated := f.TTL != nil || f.KeepUntil != nil || f.Endless || f.Applied != ""
	rare := f.Terminating || f.Uncounted || f.Contradictory || f.Deadline.Set != 0 || f.Exceeded != nil || len(f.Needs) > 0
	return annotated || rare || isDoubtful(f)
}

// isDoubtful reports whether it is not known, or was not before WithFirstSeen, whether or when an object finished.
func isDoubtful(f *lifecycle.Fact) bool {
	return f.Doubt != "" || f.FirstSeen != nil || f.Failed != ""
}

// seconds returns a time as seconds since 1970, and whether they represent it exactly.
func seconds(t time.Time) (uint32, bool) {
	s := t.Unix()
	return uint32(s), s >= 0 && s <= math.MaxUint32 && t.Nanosecond() == 0
}

// UID of the object. It allocates; PackedUID does not.
func (k *Compact) UID() types.UID { return k.PackedUID().Unpack() }

// PackedUID is the UID of the object in the form in which it is stored.
func (k *Compact) PackedUID() UID { return k.uidIn(k.identity()) }

// Name of the object.
func (k *Compact) Name() string { return k.nameIn(k.identity()) }

// Content is a digest of what the object is to do; see lifecycle.Fact.
func (k *Compact) Content() lifecycle.Digest {
	id := k.identity()
	n := len(id)
	return lifecycle.Digest(id[n-2])<<8 | lifecycle.Digest(id[n-1])
}

// Created is when the object was created.
func (k *Compact) Created() time.Time {
	if k.full != nil {
		return k.full.Created
	}
	return time.Unix(int64(k.created), 0).UTC()
}

// FinishedAt is when the object finished; zero if it has not.
func (k *Compact) FinishedAt() time.Time {
	switch {
	case k.full != nil:
		return k.full.FinishedAt
	case !k.Finished:
		return time.Time{}
	}
	return time.Unix(int64(k.ended), 0).UTC()
}

// Doubt is why it is not known whether or when the object has finished; empty if it is known. When it was first seen finished is not when
// it finished.
func (k *Compact) Doubt() string {
	switch {
	case k.full == nil:
		return ""
	case k.full.FirstSeen != nil:
		return k.full.FirstSeen.Why
	}
	return cmp.Or(k.full.Failed, k.full.Doubt)
}

// Needs are the names of what the object controls and needs.
func (k *Compact) Needs() []string {
	if k.full == nil {
		return nil
	}
	return k.full.Needs
}

// SameAsOwner reports whether both states mean the same for what the object controls.
func (k *Compact) SameAsOwner(o *Compact) bool {
	return k.Finished == o.Finished && k.FinishedAt().Equal(o.FinishedAt()) && k.Doubt() == o.Doubt() && slices.Equal(k.Needs(), o.Needs()) &&
		k.Terminating() == o.Terminating() && k.Rereads == o.Rereads
}

// Undated reports whether the object has finished at a time that it does not say, and WithFirstSeen has not set the time yet.
func (k *Compact) Undated() bool { return k.full != nil && k.full.Finished && k.full.Doubt != "" }

// FirstSeen is set if FinishedAt is when Winnow first saw the object finished; see lifecycle.Fact.
func (k *Compact) FirstSeen() *lifecycle.FirstSeen {
	if k.full == nil {
		return nil
	}
	return k.full.FirstSeen
}

// WithFirstSeen returns the fact of an object that does not say when it finished, with when Winnow first saw it finished.
func (k *Compact) WithFirstSeen(at time.Time, seen lifecycle.FirstSeen) *Compact {
	out, full := *k, *k.full
	if full.Doubt != "" {
		seen.Why = full.Doubt
	}
	full.FinishedAt, full.Doubt, full.FirstSeen = at, "", &seen
	full.Labels = out.labels() // Those of before would keep k alive.
	out.head = &head{k.shared, &full}
	return &out
}

// Deadline is the zero value once the object has finished.
func (k *Compact) Deadline() lifecycle.Deadline {
	switch {
	case k.full != nil:
		return k.full.Deadline
	case k.Finished || k.ended == 0:
		return lifecycle.Deadline{Fixed: k.deadlineFixed}
	}
	return lifecycle.Deadline{StartedAt: time.Unix(int64(k.ended), 0).UTC(), Fixed: k.deadlineFixed}
}

// Exceeded is set if the object has finished because of a deadline that Winnow had set.
func (k *Compact) Exceeded() *lifecycle.Exceeded {
	if k.full == nil {
		return nil
	}
	return k.full.Exceeded
}

// scheduledFor returns the scheduled time that the name contains; zero if it contains none.
func (k *Compact) scheduledFor() time.Time {
	if k.scheduledBy == lifecycle.ScheduledByField {
		return time.Time{}
	}
	return lifecycle.ScheduleInName(k.Name(), k.Controller.Name)
}

// Terminating reports whether the object is being deleted.
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

func (k *Compact) labels() labels.Labels {
	if k.hasPlaceholders {
		return (*placeholderLabels)(k)
	}
	return k.shared
}

// LabelSet returns all labels of the object; nil if it has none.
func (k *Compact) LabelSet() labels.Set {
	var out labels.Set
	all := k.labels()
	for l := k.encodedLabels; l != ""; {
		var key string
		key, l = l.next()
		if _, l = l.next(); out == nil {
			out = labels.Set{}
		}
		out[key] = all.Get(key)
	}
	return out
}

// Fact returns the whole fact.
func (k *Compact) Fact() *lifecycle.Fact {
	own := *k // A record may get another Compact in the same place.
	f := &lifecycle.Fact{}
	if own.Unpack(f); f.ScheduledBy != lifecycle.ScheduledByField {
		f.Scheduled, f.ScheduledBy = k.scheduledFor(), lifecycle.ScheduledByField
	}
	if f.Stored != nil {
		f.UID, f.Name, f.Content, f.Stored = k.UID(), k.Name(), k.Content(), nil
	}
	return f
}

// Unpack stores the fact in f, without allocating, and without reading the identity: f.Stored has what it says. If the name contains the
// scheduled time, f.ScheduledBy says so.
func (k *Compact) Unpack(f *lifecycle.Fact) {
	if k.full != nil {
		*f = *k.full
		return
	}
	*f = lifecycle.Fact{
		Resource: k.Resource, Namespace: k.Namespace, Stored: k, ResourceVersion: k.ResourceVersion, Labels: k.labels(),
		Created: k.Created(), Finished: k.Finished, Outcome: k.Outcome, FinishedAt: k.FinishedAt(), NativeTTL: k.NativeTTL,
		Deadline: k.Deadline(), Controller: k.Controller, ScheduledBy: k.scheduledBy,
		Conditions: k.Conditions, Propagation: k.Propagation, Rereads: k.Rereads,
	}
}

// Named returns what the object is known by.
func (k *Compact) Named() (namespace, resource, name string) {
	return k.Namespace, k.Resource, k.Name()
}
