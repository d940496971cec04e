// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package copies

import (
	"context"
	"sync"
	"time"

	"github.com/winnow-dev/winnow/pkg/controller/rules/deletion"
)

const (
	// settledAfter is how long after a copy was stored no DELETE for which it was stored can be under way any more, of this replica or of one
	// that has led before. Orders lapse within a second, Winnow waits for half a minute, and the API server ends requests after a minute.
	settledAfter = 2 * time.Minute
	// mostMine is how many copies are remembered before old ones are forgotten. To forget one costs a write, or a copy that nobody needs.
	mostMine = 1000
)

// settled reports whether at a time no DELETE for which a copy was stored was under way any more; true for nil. That must have been so when
// the next order was decided on, and not only when its copy is stored: the leader may pause in between.
func (e *entry) settled(at time.Time) bool {
	return e == nil || !e.at.IsZero() && at.Sub(e.at) >= settledAfter
}

// own is a copy that this replica has stored since it leads, for a DELETE that was answered.
type own struct {
	entry
	// alone is set if no DELETE was under way any more for the copy that it has replaced.
	alone bool
}

// mine are the copies that this replica has stored lately. It is safe for concurrent use.
type mine struct {
	mu     sync.Mutex
	byName map[string]own
}

func (e *entry) key() string { return e.namespace + "/" + e.name }

func keyOf(o *deletion.Order) string { return o.Fact.Namespace + "/" + nameOf(o.Fact.UID) }

func (m *mine) add(e entry, version string, alone bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.byName == nil {
		m.byName = map[string]own{}
	}
	if len(m.byName) >= mostMine {
		for key, other := range m.byName {
			if other.settled(e.at) {
				delete(m.byName, key)
			}
		}
	}
	e.resourceVersion = version
	m.byName[e.key()] = own{e, alone}
}

func (m *mine) get(key string) (own, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	found, ok := m.byName[key]
	return found, ok
}

// take forgets a copy, and returns it.
func (m *mine) take(key string) (own, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	found, ok := m.byName[key]
	delete(m.byName, key)
	return found, ok
}

func (m *mine) forgetAll() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.byName = nil
}

// reuse returns until when the copy is kept that this replica has stored for an earlier try to delete the same state of the object; zero if
// there is none, or if it is not kept for long enough. What another replica has stored is not used, because that one may remove it.
func (w *Writer) reuse(ctx context.Context, o *deletion.Order) time.Time {
	found, ok := w.mine.get(keyOf(o))
	if !ok || found.objectVersion() != o.Fact.ResourceVersion || found.namespaceUID != o.NamespaceUID ||
		found.until.Before(w.Clock.Now().Add(o.KeepCopy+slack/2)) {
		return time.Time{}
	}
	stored, err := w.findOlder(ctx, &found.entry)
	if err != nil || stored.version() != found.resourceVersion {
		return time.Time{}
	}
	return found.until
}

// Ended takes in how an order has ended. If the object was surely not deleted, and no other DELETE can delete it, its copy is removed:
// otherwise, objects that cannot be deleted would take the room of others. If the order ends because the API server asks to wait, or
// because there is something wrong with the copy, the next try needs the copy.
func (w *Writer) Ended(ctx context.Context, o *deletion.Order, result deletion.Result) {
	switch {
	case result.Unanswered(), result.Outcome == deletion.Accepted, result.Outcome == deletion.NotFound:
		w.mine.take(keyOf(o))
	case result.Outcome == deletion.Refused, result.Outcome == deletion.Unauthorized, result.Outcome == deletion.Conflict,
		result.Outcome == deletion.Released:
		// It is forgotten first, so that nobody uses it while it is removed.
		if found, ok := w.mine.take(keyOf(o)); ok && found.alone {
			w.undo(ctx, &found.entry)
		}
	}
}

// undo removes a copy that is not needed.
func (w *Writer) undo(ctx context.Context, e *entry) {
	before := w.rooms.listed(e.namespace)
	if w.removeWith(ctx, w.undone, e) {
		w.rooms.free(e.namespace, e.usage(), before)
		w.rooms.removed(e.bytes)
	}
}
