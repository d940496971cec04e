// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"sync"
	"time"

	"github.com/winnow-dev/winnow/test/cluster"
)

const (
	// lateMost is how long before a DELETE something may have begun to use its object. Winnow uses what it has read for up to a second, and
	// reading and deleting take some time.
	lateMost = 2 * time.Second
	// seenMost is how long a use may last that Winnow does not see, because one of its lists begins after it, or a watch is late.
	seenMost = 2 * time.Second
)

// uses is when ConfigMaps and Secrets were in use. It checks DELETEs of them by that.
type uses struct {
	lock      sync.Mutex
	contents  map[string]*content // by key
	pending   []contentDeletion
	restarted time.Time // of the API server, the last time
	faults    *faults   // nil without them

	requests, late int
}

// content is a ConfigMap or Secret. None comes back under its name.
type content struct {
	sent  time.Time // its creation
	stays bool
	spans []span
}

// span is the time of one use: from when it was acknowledged until the request that ended it was sent, zero while it lasts.
type span struct{ from, until time.Time }

type contentDeletion struct {
	key string
	at  time.Time
}

// contentKey names a ConfigMap or Secret.
func contentKey(resource, namespace, name string) string {
	return resource + "/" + namespace + "/" + name
}

func newUses() *uses { return &uses{contents: map[string]*content{}} }

// isContent reports whether a request is about a ConfigMap or Secret.
func isContent(e *cluster.AuditEvent) bool {
	return e.ObjectRef.Resource == configMapKind.resource.Resource || e.ObjectRef.Resource == secretKind.resource.Resource
}

// created records that the creation of an object was sent at a time. stays is set if no policy is about it.
func (u *uses) created(key string, stays bool, sent time.Time) {
	u.lock.Lock()
	defer u.lock.Unlock()
	c := u.content(key)
	c.sent, c.stays = sent, stays
}

// content returns the content with this key. Something may refer to it before it is there.
func (u *uses) content(key string) *content {
	c := u.contents[key]
	if c == nil {
		c = &content{}
		u.contents[key] = c
	}
	return c
}

// begin records a use that was acknowledged at a time.
func (u *uses) begin(key string, acked time.Time) {
	u.lock.Lock()
	defer u.lock.Unlock()
	c := u.content(key)
	c.spans = append(c.spans, span{from: acked})
}

// end records that the request was sent that ends the last use, if it still lasts.
func (u *uses) end(key string, sent time.Time) {
	u.lock.Lock()
	defer u.lock.Unlock()
	if c := u.content(key); len(c.spans) > 0 && c.spans[len(c.spans)-1].until.IsZero() {
		c.spans[len(c.spans)-1].until = sent
	}
}

// serverRestarted records when the API server was killed and started again.
func (u *uses) serverRestarted(at time.Time) {
	u.lock.Lock()
	defer u.lock.Unlock()
	u.restarted = at
}

// take records a DELETE that was sent at a time.
func (u *uses) take(e *cluster.AuditEvent, at time.Time) {
	u.lock.Lock()
	defer u.lock.Unlock()
	u.requests++
	key := contentKey(e.ObjectRef.Resource, e.ObjectRef.Namespace, e.ObjectRef.Name)
	u.pending = append(u.pending, contentDeletion{key, at})
}

// check checks the DELETEs that were received until a time, and returns what is wrong with them.
func (u *uses) check(until time.Time) (faults []string) {
	u.lock.Lock()
	defer u.lock.Unlock()
	var rest []contentDeletion
	for _, d := range u.pending {
		if d.at.After(until) {
			rest = append(rest, d)
		} else if fault := u.fault(d); fault != "" {
			faults = append(faults, fmt.Sprintf("%s at %s: %s", d.key, d.at.Format(time.StampMilli), fault))
		}
	}
	u.pending = rest
	return faults
}

// fault returns what is wrong with a DELETE; empty if nothing is.
func (u *uses) fault(d contentDeletion) string {
	c := u.contents[d.key]
	switch {
	case c == nil || c.sent.IsZero():
		return "nobody created it"
	case c.stays:
		return "no policy is about it"
	}
	late, seen := lateMost, seenMost
	if d.at.Sub(u.restarted) < catchUp { // Requests take long, and watches end.
		late, seen = catchUp, catchUp
	}
	late += u.faults.behind(d.at, referring...)
	since := c.sent
	for _, s := range c.spans {
		if s.at(d.at) {
			if used := d.at.Sub(s.from); used > late {
				return fmt.Sprintf("it had been in use for %v", used)
			}
			u.late++
		} else if s.until.Before(d.at) && s.until.Sub(s.from) > seen+u.faults.behind(s.until, referring...) && s.until.After(since) {
			since = s.until
		}
	}
	// Times are rounded down to seconds.
	if unused := d.at.Sub(since); unused < contentsTTL-time.Second {
		return fmt.Sprintf("it had been unused for %v only", unused)
	}
	return ""
}

// at reports whether the use lasts at a time.
func (s span) at(t time.Time) bool { return s.from.Before(t) && (s.until.IsZero() || s.until.After(t)) }
