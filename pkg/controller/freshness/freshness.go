// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package freshness decides whether a DELETE may start now: whether policies and namespaces in memory are known to be as new as the state
// of the API server, whether the clocks agree, and whether the watches of other objects still report anything. The package is pure.
package freshness

import (
	"fmt"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// For is how long after its beginning a consistent read that agreed with memory allows deletes. It is less than the promised second, so
	// that the last allowed request is sent in time.
	For = 900 * time.Millisecond
	// ClockSkew is how much the clocks of this machine and of the API server may differ.
	ClockSkew = time.Minute
	// skewFor is for how long a comparison of the clocks says something about them. Clocks are compared only while anything is due.
	skewFor = 5 * time.Minute
	// dateStep is the precision of the Date header.
	dateStep = time.Second
)

// Revision identifies a state of a policy or namespace, for the comparison with memory. Version changes with every change that decisions
// depend on: it is the generation of a policy, or the resource version of a namespace.
type Revision struct {
	UID     types.UID
	Version string
}

// SpecRevision returns the revision of a policy or a lifecycle: its status is no part of it.
func SpecRevision(uid types.UID, generation int64) Revision {
	return Revision{UID: uid, Version: strconv.FormatInt(generation, 10)}
}

// ConsistentRead is the result of a consistent read of policies and namespaces.
type ConsistentRead struct {
	// Began is when the read started. The read contains everything that was acknowledged before.
	Began time.Time
	// ServerTime is the clock of the API server when it answered; zero if the answer has no date.
	ServerTime                            time.Time
	Policies, ClusterPolicies, Namespaces Contents
}

// Contents is one collection as it was read. Revisions is nil if only the version was read.
type Contents struct {
	Version   string
	Revisions map[types.NamespacedName]Revision
}

// Collection is one of the collections that consistent reads compare with memory.
type Collection int

// The collections.
const (
	Policies Collection = iota
	ClusterPolicies
	Namespaces
	collections
)

// Freshness is how current the memory of policies and namespaces is. The zero value allows nothing.
type Freshness struct {
	confirmed time.Time // when the last read that agreed began
	// seen is the highest resource version of each collection that memory contains.
	seen [collections]uint64
	// read is the highest resource version of each collection in reads that agreed.
	read       [collections]uint64
	listed     [collections]bool
	clockDoubt string
	// skew is by how much the API server's clock was ahead at the time compared; see ClockSkew.
	skew     time.Duration
	compared time.Time
	// disagreed is when the last read that did not agree began.
	disagreed time.Time
	// moved is set if memory has changed since disagreed.
	moved bool
}

// Allows reports whether a DELETE may start. It checks both clocks: the wall clock may have been set since the read, and the monotonic
// clock stands still while the host is suspended.
func (f *Freshness) Allows(now time.Time) bool {
	wall := now.Round(0).Sub(f.confirmed.Round(0))
	return now.Before(f.Until()) && wall >= 0 && wall < For
}

// Until returns the time from which on the last read that agreed no longer allows deletes.
func (f *Freshness) Until() time.Time { return f.confirmed.Add(For) }

// Listed reports whether a collection was ever listed. Before that, its contents are not known.
func (f *Freshness) Listed(c Collection) bool { return f.listed[c] }

// AllListed reports whether all collections were ever listed.
func (f *Freshness) AllListed() bool { return f.listed == [collections]bool{true, true, true} }

// WhatIsListed returns a Freshness in which the same collections are listed, and nothing else is known.
func (f *Freshness) WhatIsListed() Freshness { return Freshness{listed: f.listed} }

// Seen records that the watch of a collection has reached a resource version.
func (f *Freshness) Seen(c Collection, version string) {
	f.seen[c], f.moved = max(f.seen[c], parse(version)), true
}

// Relisted records that the watch of a collection starts again from a list, which may be older than memory was.
func (f *Freshness) Relisted(c Collection, version string) {
	f.Revoke()
	f.seen[c], f.listed[c], f.moved = parse(version), true, true
}

// Changed records that an event with a resource version has changed memory. The event may be older than the last read that agreed because
// the watch lags. Then memory may now differ from what was read, so the read no longer counts.
func (f *Freshness) Changed(c Collection, version string) {
	if parse(version) <= f.read[c] {
		f.Revoke()
	}
}

// Revoke makes the last read that agreed no longer count.
func (f *Freshness) Revoke() { f.confirmed = time.Time{} }

// Confirm compares a consistent read with memory, and reports whether they agree: memory has seen the resource version of the read, or same
// reports that its contents are the same. Then deletes may start until For after the read began. A read that does not agree yet may be
// compared again as often as necessary, which is cheap as long as memory does not change.
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

// covers reports whether memory has seen a resource version. An invalid one was never seen.
func (f *Freshness) covers(c Collection, version string) bool {
	n := parse(version)
	return n > 0 && f.seen[c] >= n
}

// CompareClocks compares the API server's clock with the time from the beginning of a read until now, when the answer arrived. Beyond
// ClockSkew, both clocks are in doubt. It reports whether a doubt began or ended.
func (f *Freshness) CompareClocks(r ConsistentRead, now time.Time) (changed bool) {
	doubt := ""
	if at := r.ServerTime; !at.IsZero() {
		f.skew, f.compared = skew(at, r.Began.Round(0), now.Round(0)), now.Round(0)
		if f.skew.Abs() > ClockSkew {
			doubt = fmt.Sprintf("it is %s here and %s at the API server: set the clocks right",
				now.UTC().Format(time.RFC3339), at.UTC().Format(time.RFC3339))
		}
	}
	if (doubt == "") == (f.clockDoubt == "") {
		return false // The text stays the same too, or each read would lead to a new status.
	}
	f.clockDoubt = doubt
	return true
}

// skew returns by how much the API server's clock is ahead at least, if it answered with a date between two times.
func skew(date, began, now time.Time) time.Duration {
	switch latest := date.Add(dateStep); { // The Date is rounded down.
	case latest.Before(began):
		return latest.Sub(began)
	case date.After(now):
		return date.Sub(now)
	}
	return 0
}

// ClockSkew returns by how much the API server's clock is ahead at least; negative if it is behind. It is false if the clocks were not
// compared lately.
func (f *Freshness) ClockSkew(now time.Time) (ahead time.Duration, compared bool) {
	return f.skew, now.Round(0).Sub(f.compared) < skewFor
}

// ClockDoubt returns why the clocks are in doubt; empty if they agree.
func (f *Freshness) ClockDoubt() string { return f.clockDoubt }

// parse parses a resource version. It returns zero, which is older than all, for an invalid one.
func parse(version string) uint64 {
	n, err := strconv.ParseUint(version, 10, 64)
	if err != nil {
		return 0
	}
	return n
}
