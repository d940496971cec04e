// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package copies

import (
	"fmt"
	"sync"
	"time"

	"github.com/winnow-dev/winnow/pkg/controller/metrics"
)

// usage is how much copies take.
type usage struct {
	count int
	bytes int64
}

func (u usage) plus(o usage) usage { return usage{u.count + o.count, u.bytes + o.bytes} }

func (u usage) minus(o usage) usage { return usage{u.count - o.count, u.bytes - o.bytes} }

// room is what is known of the copies of a namespace.
type room struct {
	// stored is what was listed at a time, and changes of this replica since then. It may be too high: if copies that were being written
	// during the list are counted twice, or somebody deleted some. It is listed again before that keeps a copy from being stored.
	stored usage
	listed time.Time // zero if nothing is known
	// pending is what this replica is writing. written is all that it has written since it started, to add to a list what was written
	// while it was made.
	pending, written usage
	// fullUntil is until when no copy will expire, if the list has found as many as there may be; zero otherwise.
	fullUntil time.Time
}

// rooms has the room of namespaces. It is safe for concurrent use.
type rooms struct {
	quota usage // of each namespace
	most  int64 // bytes of all namespaces
	mu    sync.Mutex
	byNS  map[string]*room
	// bytes is what all copies take, as far as it is known: what was listed, and changes of this replica since then. written is what this
	// replica has written since it started.
	bytes, writtenBytes int64
}

// fullMost is for how long at most a namespace counts as full without another look: somebody may remove copies.
const fullMost = 5 * time.Minute

// mostRooms is how many namespaces are remembered. To know a namespace again costs a list of metadata.
const mostRooms = 10_000

// of returns the room of a namespace. The caller has locked the rooms.
func (r *rooms) of(namespace string) *room {
	if r.byNS == nil {
		r.byNS = map[string]*room{}
	}
	if r.byNS[namespace] == nil {
		for name, other := range r.byNS {
			if len(r.byNS) < mostRooms {
				break
			}
			if other.pending == (usage{}) {
				delete(r.byNS, name)
			}
		}
		r.byNS[namespace] = &room{}
	}
	return r.byNS[namespace]
}

// reserve takes room for a copy that replaces what an older copy takes. It returns why there is none, and since when that is known; zero if
// nothing is known. The caller must call settle if there was room.
func (r *rooms) reserve(namespace string, needs, replaces usage) (full string, listed time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	room := r.of(namespace)
	if room.listed.IsZero() {
		return "the copies of the namespace are not counted yet", time.Time{}
	}
	switch then, all := room.stored.plus(room.pending).minus(replaces).plus(needs), r.bytes-replaces.bytes+needs.bytes; {
	case then.count > r.quota.count:
		full = tooMany(then.count, r.quota.count)
	case then.bytes > r.quota.bytes:
		full = fmt.Sprintf("the copies of the namespace would take %d bytes, and may take %d", then.bytes, r.quota.bytes)
	case all > r.most:
		full = allFull(all, r.most)
	default:
		room.pending = room.pending.plus(needs)
		return "", room.listed
	}
	return full, room.listed
}

// settle ends a reservation. If it is not known whether the copy was stored, the namespace is counted again.
func (r *rooms) settle(namespace string, needs, replaces usage, result result) {
	r.mu.Lock()
	defer r.mu.Unlock()
	room := r.of(namespace)
	room.pending = room.pending.minus(needs)
	room.pending = usage{max(room.pending.count, 0), max(room.pending.bytes, 0)} // All may have been forgotten.
	switch result {
	case stored:
		room.stored = room.stored.plus(needs).minus(replaces)
		room.written = room.written.plus(needs)
		r.wrote(needs.bytes, replaces.bytes)
	case unknown:
		room.listed = time.Time{}
		room.written = room.written.plus(needs)
		r.wrote(needs.bytes, 0)
	case notStored:
	}
}

// wrote takes in that a copy was written over another one. The caller has locked the rooms.
func (r *rooms) wrote(bytes, replaced int64) {
	r.writtenBytes += bytes
	r.setBytes(r.bytes + bytes - replaced)
}

func (r *rooms) setBytes(bytes int64) {
	r.bytes = max(bytes, 0)
	metrics.CopyBytes.Set(float64(r.bytes))
}

// writtenInAll returns how many bytes were written since this replica started.
func (r *rooms) writtenInAll() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.writtenBytes
}

// countAll sets what a list of all copies has found. before is what was written before the list.
func (r *rooms) countAll(found, before int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.setBytes(found + r.writtenBytes - before)
}

// removed takes in that a copy was removed.
func (r *rooms) removed(bytes int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.setBytes(r.bytes - bytes)
}

// written returns what was written in a namespace since this replica started.
func (r *rooms) written(namespace string) usage {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.of(namespace).written
}

// count sets what a list at a time has found, and when the first of these copies expires. before is what was written before the list.
// The list may lack copies that were written while it was read, so they are added.
func (r *rooms) count(namespace string, found, before usage, at, firstExpires time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	room := r.of(namespace)
	room.stored, room.listed, room.fullUntil = found.plus(room.written.minus(before)), at, time.Time{}
	if most := at.Add(fullMost); found.count >= r.quota.count {
		room.fullUntil = most
		if !firstExpires.IsZero() && firstExpires.Before(most) {
			room.fullUntil = firstExpires
		}
	}
}

// full returns why it is known that there is no room for another copy; empty if it is not known.
func (r *rooms) full(namespace string, now time.Time) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.bytes >= r.most {
		return allFull(r.bytes, r.most)
	}
	room := r.byNS[namespace]
	if room == nil || room.listed.IsZero() || room.stored.count < r.quota.count ||
		!now.Before(room.fullUntil) && now.Sub(room.listed) >= recountAfter {
		return ""
	}
	return tooMany(room.stored.count+1, r.quota.count)
}

func allFull(bytes, most int64) string {
	return fmt.Sprintf("the copies of all namespaces would take %d bytes, and may take %d", bytes, most)
}

func tooMany(count, most int) string {
	return fmt.Sprintf("the namespace would have %d copies, and may have %d", count, most)
}

// listed returns when the copies of a namespace were last counted; zero if they never were.
func (r *rooms) listed(namespace string) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.of(namespace).listed
}

// free takes in that a copy was removed. If the copies were counted since before, it may not have been among them.
func (r *rooms) free(namespace string, was usage, before time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if room := r.of(namespace); room.listed.Equal(before) {
		room.stored = room.stored.minus(was)
	}
}

// forget forgets what is stored, because another replica may have written since.
func (r *rooms) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, room := range r.byNS {
		room.listed = time.Time{}
	}
}

// result is what became of a write.
type result int

const (
	stored result = iota
	notStored
	unknown
)
