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
	// noticeQueueLimit is how many annotated objects of a namespace wait to be looked at. Of more, the last ones do.
	noticeQueueLimit = 20
	// noticeEvery is how often a namespace has its turn: whoever may annotate objects may annotate very many.
	noticeEvery = 3 * time.Second
)

// Notice tells of an annotation of an object that cannot be read, or that does not do what it says.
type Notice struct {
	Fact      *lifecycle.Fact
	Policy    types.NamespacedName
	PolicyUID types.UID
	Reason    policy.Reason
	Text      string
}

// notices are the objects whose annotations are yet to be looked at. An object is among them when its annotations are new or changed, when
// it finishes, and when its namespace is judged anew, since all of that may change what there is to tell. Nothing is remembered of what was
// told: whoever writes the events has to give the same name to the same notice.
type notices struct {
	namespaces []*namespace // each that has such objects, in turn
	dropped    int
}

// noticeQueue are those of a namespace, oldest first.
type noticeQueue struct {
	waiting []*record
	next    time.Time // when the next one may be looked at
}

// queueNotice has the annotations of a record looked at, if it has any.
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

// TakeNotices returns up to most notices, and how many objects were passed over since it was asked last, because there were too many.
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

// nextNotice looks at the next object of a namespace, if it is the namespace's turn.
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
	n, ok := standing.Notice(e.matches.Votes, &ns.bounds)
	if !ok {
		return Notice{}, false
	}
	a.next = now.Add(noticeEvery)
	return Notice{Fact: rec.Fact(), Policy: n.Policy.NamespacedName, PolicyUID: n.Policy.UID, Reason: n.Reason, Text: n.Text}, true
}
