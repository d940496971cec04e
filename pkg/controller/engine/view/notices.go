// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

const (
	// NoticeQueueLimit is the length of the notice queue of a namespace. If it is full, the oldest object is dropped.
	NoticeQueueLimit = 20
	// NoticeEvery is the time between two notices of a namespace: a user who may annotate objects may annotate very many.
	NoticeEvery = 3 * time.Second
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
// finishes, and when its namespace is settled again, because each of these may change its notice. The engine does not remember earlier
// notices: the caller must give events for the same notice the same name.
type notices struct {
	namespaces []*memory.Namespace // those with queued objects; they take turns
	dropped    int                 // how many objects were dropped since the last call of TakeNotices
}

// QueueNotice queues a record, if its object has annotations that Winnow reads.
func (v *View) QueueNotice(rec *memory.Record) {
	a := &rec.NS.NoticeQueue
	if !rec.Annotated() || slices.Contains(a.Waiting, rec) {
		return
	}
	switch len(a.Waiting) {
	case 0:
		v.notices.namespaces = append(v.notices.namespaces, rec.NS)
	case NoticeQueueLimit:
		a.Waiting = a.Waiting[1:]
		if !v.Following {
			v.notices.dropped++
		}
	}
	a.Waiting = append(a.Waiting, rec)
}

// TakeNotices returns up to most notices, and how many objects were dropped since the last call, because a queue was full.
func (v *View) TakeNotices(most int, now time.Time) (out []Notice, dropped int) {
	for turns := len(v.notices.namespaces); turns > 0 && len(out) < most; turns-- {
		ns := v.notices.namespaces[0]
		v.notices.namespaces = v.notices.namespaces[1:]
		if n, ok := v.nextNotice(ns, now); ok {
			out = append(out, n)
		}
		if len(ns.NoticeQueue.Waiting) > 0 {
			v.notices.namespaces = append(v.notices.namespaces, ns)
		}
		if v.Spent(ns.Work()) {
			break
		}
	}
	dropped, v.notices.dropped = v.notices.dropped, 0
	return out, dropped
}

// nextNotice looks at the next object of a namespace, and returns its notice if there is one. Only a notice makes the namespace wait for
// NoticeEvery.
func (v *View) nextNotice(ns *memory.Namespace, now time.Time) (Notice, bool) {
	a := &ns.NoticeQueue
	if now.Before(a.Next) {
		return Notice{}, false
	}
	rec := a.Waiting[0]
	if a.Waiting = a.Waiting[1:]; len(a.Waiting) == 0 {
		a.Waiting = nil
	}
	if rec.Removed() || ns.Excluded() != "" {
		return Notice{}, false
	}
	effective := v.Resolve(rec)
	n, ok := effective.Notice(v.Asked.Matches.Enforced, &ns.Bounds)
	if !ok {
		return Notice{}, false
	}
	a.Next = now.Add(NoticeEvery)
	return Notice{Fact: rec.Fact(), Policy: n.Policy.NamespacedName, PolicyUID: n.Policy.UID, Reason: n.Reason, Text: n.Text}, true
}
