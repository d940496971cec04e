// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/controller/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/policy"
)

const (
	// noticeQueueLimit is the length of the notice queue of a namespace. If it is full, the oldest object is dropped.
	noticeQueueLimit = 20
	// noticeEvery is the time between two notices of a namespace: a user who may annotate objects may annotate very many.
	noticeEvery = 3 * time.Second
)

// Notice says that an annotation of an object cannot be read, or has no effect.
type Notice struct {
	Fact      *lifecycle.Fact
	Policy    types.NamespacedName
	PolicyUID types.UID
	Reason    policy.Reason
	Text      string
}

// notices are the objects whose annotations must be looked at. An object is queued when its annotations are new or changed, when it
// finishes, and when its namespace is judged again, because each of these may change its notice. The engine does not remember earlier
// notices: the caller must give events for the same notice the same name.
type notices struct {
	namespaces []*namespace // those with queued objects; they take turns
	dropped    int          // how many objects were dropped since the last call of TakeNotices
}

// noticeQueue has the queued objects of a namespace, oldest first.
type noticeQueue struct {
	waiting []*record
	next    time.Time // when the next object may be looked at
}

// queueNotice queues a record, if its object has annotations that Winnow reads.
func (e *Engine) queueNotice(rec *record) {
	a := &rec.ns.noticeQueue
	if !rec.Annotated() || slices.Contains(a.waiting, rec) {
		return
	}
	switch len(a.waiting) {
	case 0:
		e.notices.namespaces = append(e.notices.namespaces, rec.ns)
	case noticeQueueLimit:
		a.waiting = a.waiting[1:]
		if !e.following {
			e.notices.dropped++
		}
	}
	a.waiting = append(a.waiting, rec)
}

// TakeNotices returns up to most notices, and how many objects were dropped since the last call, because a queue was full.
func (e *Engine) TakeNotices(most int, now time.Time) (out []Notice, dropped int) {
	for turns := len(e.notices.namespaces); turns > 0 && len(out) < most; turns-- {
		ns := e.notices.namespaces[0]
		e.notices.namespaces = e.notices.namespaces[1:]
		if n, ok := e.nextNotice(ns, now); ok {
			out = append(out, n)
		}
		if len(ns.noticeQueue.waiting) > 0 {
			e.notices.namespaces = append(e.notices.namespaces, ns)
		}
		if e.spent(ns.work()) {
			break
		}
	}
	dropped, e.notices.dropped = e.notices.dropped, 0
	return out, dropped
}

// nextNotice looks at the next object of a namespace, and returns its notice if there is one. Only a notice makes the namespace wait for
// noticeEvery.
func (e *Engine) nextNotice(ns *namespace, now time.Time) (Notice, bool) {
	a := &ns.noticeQueue
	if now.Before(a.next) {
		return Notice{}, false
	}
	rec := a.waiting[0]
	if a.waiting = a.waiting[1:]; len(a.waiting) == 0 {
		a.waiting = nil
	}
	if rec.removed() || ns.excluded() != "" {
		return Notice{}, false
	}
	standing := e.resolve(rec)
	n, ok := standing.Notice(e.asked.matches.Votes, &ns.bounds)
	if !ok {
		return Notice{}, false
	}
	a.next = now.Add(noticeEvery)
	return Notice{Fact: rec.Fact(), Policy: n.Policy.NamespacedName, PolicyUID: n.Policy.UID, Reason: n.Reason, Text: n.Text}, true
}
