// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package freshness says whether a delete may start now: whether what is remembered of policies and namespaces is known to be as new
// as the API server's own state, whether the clocks agree, and whether the watches of other objects still tell anything.
package freshness

import (
	"fmt"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// For is how long after its beginning a consistent read that agreed with memory allows deletes. It is less than the second that is
	// promised, so that a request which is allowed last is on its way in time.
	For = 900 * time.Millisecond
	// ClockSkew is how far the clocks of this machine and of the API server may be apart.
	ClockSkew = time.Minute
	// dateStep is what the Date of an answer leaves out.
	dateStep = time.Second
)

// Revision identifies a state of an object for the comparison with memory. Version is what moves with every change that
// matters: of a policy its generation, of a namespace its resource version.
type Revision struct {
	UID     types.UID
	Version string
}

// PolicyRevision is that of a policy.
func PolicyRevision(uid types.UID, generation int64) Revision {
	return Revision{UID: uid, Version: strconv.FormatInt(generation, 10)}
}

// ConsistentRead is what a consistent read of policies and namespaces said.
type ConsistentRead struct {
	// Began is when the read was started: what was acknowledged before it is in it.
	Began time.Time
	// ServerTime is the clock of the API server when it answered; zero when it did not say.
	ServerTime                            time.Time
	Policies, ClusterPolicies, Namespaces Contents
}

// Contents is one collection as it was read. Revisions is nil if only the version was read.
type Contents struct {
	Version   string
	Revisions map[types.NamespacedName]Revision
}

// Collection is what consistent reads are compared with memory for.
type Collection int

// What there is.
const (
	Policies Collection = iota
	ClusterPolicies
	Namespaces
	collections
)

// Freshness is how current the memory of policies and namespaces is. The zero value allows nothing.
type Freshness struct {
	confirmed time.Time // when the last read that agreed was begun
	// seen is the highest resource version of each collection that memory has taken in, read that of reads that agreed.
	seen, read [collections]uint64
	listed     [collections]bool
	clockDoubt string
	// disagreed is when the last read that did not agree was begun, moved whether memory has taken anything in since.
	disagreed time.Time
	moved     bool
}

// Allows reports whether a delete may start. A clock that was set since makes all reads old, and so does a host that was suspended,
// while which the monotonic clock stands still.
func (f *Freshness) Allows(now time.Time) bool {
	wall := now.Round(0).Sub(f.confirmed.Round(0))
	return now.Before(f.Until()) && wall >= 0 && wall < For
}

// Until is when the last read that agreed allows nothing any more.
func (f *Freshness) Until() time.Time { return f.confirmed.Add(For) }

// Listed reports whether a collection was listed once: before, it is not known what is in it.
func (f *Freshness) Listed(c Collection) bool { return f.listed[c] }

// AllListed reports whether all collections were.
func (f *Freshness) AllListed() bool { return f.listed == [collections]bool{true, true, true} }

// WhatIsListed is a Freshness that knows the same collections to be listed, and nothing else.
func (f *Freshness) WhatIsListed() Freshness { return Freshness{listed: f.listed} }

// Seen takes in that the watch of a collection has come as far as a resource version.
func (f *Freshness) Seen(c Collection, version string) {
	f.seen[c], f.moved = max(f.seen[c], parse(version)), true
}

// Relisted takes in that the watch of a collection starts over, from a list that may be older than what was known.
func (f *Freshness) Relisted(c Collection, version string) {
	f.Doubt()
	f.seen[c], f.listed[c], f.moved = parse(version), true, true
}

// Changed takes in that memory was changed by an event of a resource version. A watch that lags may tell what was undone again before
// the last read: then memory no longer is what that read agreed with, though it said the same for a moment.
func (f *Freshness) Changed(c Collection, version string) {
	if parse(version) <= f.read[c] {
		f.Doubt()
	}
}

// Doubt forgets the last read that agreed.
func (f *Freshness) Doubt() { f.confirmed = time.Time{} }

// Confirm compares a consistent read with memory, and reports whether they agree: memory is known to be as new, or same reports that it
// has the same contents. Then deletes may start until For after the read began. A read that does not agree yet may be compared again and
// again: this costs little while memory does not move.
func (f *Freshness) Confirm(r ConsistentRead, same func(Collection, map[types.NamespacedName]Revision) bool) bool {
	if r.Began.Equal(f.disagreed) && !f.moved {
		return false
	}
	read := [collections]Contents{Policies: r.Policies, ClusterPolicies: r.ClusterPolicies, Namespaces: r.Namespaces}
	for c, contents := range read {
		if !f.covers(Collection(c), contents.Version) && (contents.Revisions == nil || !same(Collection(c), contents.Revisions)) {
			f.disagreed, f.moved = r.Began, false
			return false
		}
	}
	if r.Began.After(f.confirmed) {
		f.confirmed = r.Began
	}
	for c, contents := range read {
		f.read[c] = max(f.read[c], parse(contents.Version))
	}
	return true
}

// covers reports whether a resource version has been seen. One that cannot be read has not.
func (f *Freshness) covers(c Collection, version string) bool {
	n := parse(version)
	return n > 0 && f.seen[c] >= n
}

// CompareClocks doubts both clocks while that of the API server is not where ours was during a read, which was received at now. It
// reports whether they are doubted from now on, or no longer.
func (f *Freshness) CompareClocks(r ConsistentRead, now time.Time) (changed bool) {
	doubt := ""
	earliest, latest := r.Began.Round(0).Add(-ClockSkew-dateStep), now.Round(0).Add(ClockSkew)
	if at := r.ServerTime; !at.IsZero() && (at.Before(earliest) || at.After(latest)) {
		doubt = fmt.Sprintf("it is %s here and %s at the API server: set the clocks right",
			now.UTC().Format(time.RFC3339), at.UTC().Format(time.RFC3339))
	}
	if (doubt == "") == (f.clockDoubt == "") {
		return false // In the same words as before, or a status would be written for each read.
	}
	f.clockDoubt = doubt
	return true
}

// ClockDoubt is why no clock is believed; empty when they agree.
func (f *Freshness) ClockDoubt() string { return f.clockDoubt }

// parse reads a resource version; zero, older than any, when it cannot be read.
func parse(version string) uint64 {
	n, err := strconv.ParseUint(version, 10, 64)
	if err != nil {
		return 0
	}
	return n
}
