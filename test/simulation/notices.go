// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/oracle"
)

// notified is the reason of what its notice keeps.
const notified = "Notified"

// told is after how long a notice that an object needs has been given.
const told = time.Minute

// notices are the notices that are stored at a revision. Of several for an object, the one counts that keeps it for longer.
func (j *judge) notices(revision int64) map[types.UID]oracle.Notice {
	out := map[types.UID]oracle.Notice{}
	for _, o := range j.store.At(marks, revision) {
		var stored struct {
			Notices map[types.UID]struct{ Given, At, Delivered time.Time }
		}
		mustDecode(o, &stored)
		for uid, n := range stored.Notices {
			out[uid] = oracle.Notice{
				Given: later(out[uid].Given, n.Given), At: later(out[uid].At, n.At), Delivered: later(out[uid].Delivered, n.Delivered),
			}
		}
	}
	return out
}

// forgotten returns a function that says whether the notice of an object counts no more by a revision: since it was given, nothing would
// have deleted the object for a moment, or only later than the notice says.
func (j *judge) forgotten(fact *lifecycle.Fact, revision int64) func() bool {
	return sync.OnceValue(func() bool {
		notice := j.notices(revision)[fact.UID]
		for at := j.store.RevisionAt(notice.Given); at <= revision; at++ {
			w := j.world(at, time.Now())
			switch a := w.Answers()[fact.UID]; {
			case a.Action == oracle.Ignore, a.Action == oracle.Keep, a.Action == oracle.Wait && a.At.After(notice.At.Add(time.Second)):
				return true
			}
		}
		return false
	})
}

// untold returns the objects that have needed a notice for some time, and have none, whether they count from a time or from before.
func (j *judge) untold(since time.Time) (out []string) {
	now := time.Now()
	w := j.settled(now, since)
	needed := []map[types.UID]time.Time{
		w.NeedsNotice(), j.settled(now.Add(-told), since).NeedsNotice(),
		j.settled(now, time.Time{}).NeedsNotice(), j.settled(now.Add(-told), time.Time{}).NeedsNotice(),
		j.returns.mayLoop(w).NeedsNotice(),
	}
	for _, f := range w.Objects {
		missing := func(needed map[types.UID]time.Time) bool { return needed[f.UID].IsZero() }
		if !slices.ContainsFunc(needed, missing) {
			out = append(out, fmt.Sprintf("%s %s/%s, due at %v, has no notice", f.Resource, f.Namespace, f.Name, needed[0][f.UID]))
		}
	}
	return out
}
