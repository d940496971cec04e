// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"slices"
	"time"

	"github.com/winnow-dev/winnow/pkg/controller/objects/references"
)

// rereads find what those referrers name in other namespaces whose keys are not stored, because their namespaces are overfull: see
// references.MaxKeys. Everything else about such a namespace remains in it.
//
// When such keys arrive, the objects that they name are noted. Other objects that are added later may be named too. They are not unused
// before all referrers of the overfull namespaces were read once more since. That also shows which objects are no longer named.
type rereads[T comparable] struct {
	// begun counts the rereads, and done is the last that was complete. What was noted before it has begun no longer holds.
	begun, done uint32
	// pending are the objects that are named, or may be. Only they are affected when a reread is done.
	pending map[*object[T]]struct{}
	// settling are the pending objects that remain to be looked at after a reread.
	settling []*object[T]
}

// Step takes in at most so many keys of what was set and removed, or looks at so many objects after a reread. It reports whether there is
// more to do.
func (t *Tracker[T]) Step(most int, now time.Time) (out Changed[T], more bool) {
	before := t.index.AnyOverfull()
	d := t.index.Step(most)
	out = t.changed(d.Changed, now)
	if len(d.Dropped) > 0 {
		out.add(t.note(d.Namespace, d.Dropped, now))
	}
	if t.index.AnyOverfull() != before { // All objects are known to be named or not, or none is.
		t.rereads.begun++
		t.finishReread(t.rereads.begun)
	}
	if d.More {
		return out, true
	}
	out.Objects = append(out.Objects, t.settle(most, now)...)
	return out, len(t.rereads.settling) > 0
}

func (c *Changed[T]) add(d Changed[T]) {
	c.Objects, c.Namespaces, c.All = append(c.Objects, d.Objects...), append(c.Namespaces, d.Namespaces...), c.All || d.All
}

// note notes the objects in other namespaces that keys of a namespace name.
func (t *Tracker[T]) note(namespace string, keys []references.Key, now time.Time) (out Changed[T]) {
	for _, key := range keys {
		t.each(key, &out, func(o *object[T]) bool {
			if o.id.To&key.To() == 0 || o.id.Namespace == namespace || o.named == t.rereads.begun {
				return false
			}
			o.named = t.rereads.begun
			t.rereads.pending[o] = struct{}{}
			t.refresh(o, now)
			return true
		})
	}
	return out
}

// unstored returns what keys say of an object that are not stored.
func (t *Tracker[T]) unstored(o *object[T]) references.Use {
	switch {
	case !t.index.AnyOverfull():
		return references.Unused
	case o.named >= t.rereads.done:
		return references.Used
	case o.added >= t.rereads.done:
		return references.Unknown
	}
	return references.Unused
}

// explainRereads says why an object may be in use although no stored key names it.
func (t *Tracker[T]) explainRereads(o *object[T]) string {
	switch t.unstored(o) {
	case references.Used:
		return "an object outside the namespace refers to it"
	case references.Unknown:
		return "another namespace contains too many names, and Winnow has not read them again yet"
	case references.Unused:
	}
	return ""
}

// NeedsReread reports whether BeginReread returns any.
func (t *Tracker[T]) NeedsReread() bool {
	return len(t.rereads.pending) > 0 && t.index.AnyOverfull() && t.Known()
}

// IsOverfull reports whether some referrers in a namespace have keys that are not stored. There may be room for them once others are set
// or removed.
func (t *Tracker[T]) IsOverfull(namespace string) bool { return t.index.IsOverfull(namespace) }

// BeginReread begins to read again all referrers of the namespaces that it returns. It returns none if that would tell nothing.
func (t *Tracker[T]) BeginReread() (number uint32, namespaces []string) {
	if !t.NeedsReread() {
		return 0, nil
	}
	t.rereads.begun++
	return t.rereads.begun, t.index.Overfull()
}

// Reread says that a referrer of a namespace that is read again has these keys. Step takes them in.
func (t *Tracker[T]) Reread(namespace string, keys []references.Key) { t.index.Drop(namespace, keys) }

// EndReread says that all referrers of all namespaces were passed to Reread, and that Step has taken them in.
func (t *Tracker[T]) EndReread(number uint32) {
	if number > t.rereads.done {
		t.finishReread(number)
	}
}

func (t *Tracker[T]) finishReread(number uint32) {
	t.rereads.done = number
	t.rereads.settling = make([]*object[T], 0, len(t.rereads.pending))
	for o := range t.rereads.pending {
		t.rereads.settling = append(t.rereads.settling, o)
	}
}

// settle looks at some of the objects that have been pending when a reread was done, and returns those that no longer are.
func (t *Tracker[T]) settle(most int, now time.Time) (settled []T) {
	r := &t.rereads
	n := min(most, len(r.settling))
	for _, o := range r.settling[:n] {
		if _, ok := r.pending[o]; ok && t.unstored(o) == references.Unused {
			delete(r.pending, o)
			t.refresh(o, now)
			settled = append(settled, o.of)
		}
	}
	if r.settling = r.settling[n:]; len(r.settling) == 0 {
		r.settling = nil
	}
	return slices.Clip(settled)
}
