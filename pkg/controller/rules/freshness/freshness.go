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
	// For is how long a consistent read that agreed with memory allows deletes, counted from its beginning. It is less than the promised
	// second, so that the last allowed request is sent in time.
	For = 900 * time.Millisecond
	// ClockSkew is how much the clocks of this machine and of the API server may differ.
	ClockSkew = time.Minute
	// skewFor is how long a comparison of the clocks is valid.
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

// SpecRevision returns the revision of a policy or a lifecycle. The status is not part of it.
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

// String implements fmt.Stringer.
func (c Collection) String() string {
	return [collections]string{"cleanuppolicies", "clustercleanuppolicies", "namespaces"}[c]
}

// Freshness is how current the memory of policies and namespaces is. The zero value allows nothing.
type Freshness struct {
	confirmed time.Time // when the last read that agreed began
	// seen is the highest resource version of each collection that memory contains.
	seen [collections]uint64
	// read is the highest resource version of each collection in reads that agreed.
	read       [collections]uint64
	listed     [collections]bool
	clockDoubt string
	// skew is how far the API server's clock was ahead at the time compared; see ClockSkew.
	skew     time.Duration
	compared time.Time
	// disagreed is when the last read that did not agree began.
	disagreed time.Time
	// moved is set if memory has changed since disagreed.
	moved bool

	failed failures
	// unconfirmed is why no reading agrees, if none has agreed for too long.
	unconfirmed string
}

// failures are readings in a row that failed or did not agree, without a pause in which nothing was read.
type failures struct {
	since, last time.Time
	why         string // of the last failure
}

const (
	// UnconfirmedAfter is how long Winnow waits for a reading that agrees before it tells people.
	UnconfirmedAfter = time.Minute
	// failureFor is the longest time between a failed reading and the next one, unless nothing is due any more.
	failureFor = 15 * time.Second
)

// Allows reports whether a DELETE may start. It checks both clocks: the wall clock may have been set since the read, and the monotonic
// clock stands still while the host is suspended.
func (f *Freshness) Allows(now time.Time) bool {
	wall := now.Round(0).Sub(f.confirmed.Round(0))
	return now.Before(f.Until()) && wall >= 0 && wall < For
}

// Until returns the time at which the last read that agreed stops allowing deletes.
func (f *Freshness) Until() time.Time { return f.confirmed.Add(For) }

// Listed reports whether a collection was ever listed. Before that, its contents are not known.
func (f *Freshness) Listed(c Collection) bool { return f.listed[c] }

// AllListed reports whether all collections were ever listed.
func (f *Freshness) AllListed() bool { return f.listed == [collections]bool{true, true, true} }

// WhatIsListed returns a Freshness in which the same collections are listed, and nothing else is known.
func (f *Freshness) WhatIsListed() Freshness { return Freshness{listed: f.listed} }

// Seen records that the watch of a collection has reached a resource version.
func (f *Freshness) Seen(c Collection, version string) {
	f.seen[c], f.moved = max(f.seen[c], ParseVersion(version)), true
}

// Newest returns the highest resource version of a collection that memory contains; zero if none is known.
func (f *Freshness) Newest(c Collection) uint64 { return f.seen[c] }

// Replays reports whether an event or a list of a collection is older than memory, so that it says nothing about the present.
func (f *Freshness) Replays(c Collection, version string) bool {
	n := ParseVersion(version)
	return n > 0 && n < f.seen[c]
}

// Relisted records that the watch of a collection starts again from a list, which does not replay.
func (f *Freshness) Relisted(c Collection, version string) {
	f.Revoke()
	f.seen[c], f.listed[c], f.moved = max(f.seen[c], ParseVersion(version)), true, true
}

// StartAnew forgets what was listed, seen and read, because the store has gone back. Only the comparison of the clocks stays valid.
func (f *Freshness) StartAnew() {
	*f = Freshness{clockDoubt: f.clockDoubt, skew: f.skew, compared: f.compared}
}

// Changed records that an event with a resource version has changed memory. The event may be older than the last read that agreed because
// the watch lags. Then memory may now differ from the read, so the read no longer counts.
func (f *Freshness) Changed(c Collection, version string) {
	if ParseVersion(version) <= f.read[c] {
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
			f.failed.why = fmt.Sprintf("the watch of %s has reported up to resourceVersion %d, and the stored state at %s is different",
				Collection(c), f.seen[c], contents.Version)
			return false
		}
	}
	f.failed = failures{}
	if r.Began.After(f.confirmed) {
		f.confirmed = r.Began
	}
	for c, contents := range read {
		f.read[c] = max(f.read[c], ParseVersion(contents.Version))
	}
	return true
}

// Failed records that a reading has failed, or has not agreed with memory before it was too old to be used. why is empty if Confirm knows.
func (f *Freshness) Failed(why string, now time.Time) {
	if now.Sub(f.failed.last) > failureFor {
		f.failed.since = now
	}
	if f.failed.last = now; why != "" {
		f.failed.why = why
	}
}

// UpdateUnconfirmed updates Unconfirmed, and reports whether it has begun or ended. lost says that this replica no longer reads.
func (f *Freshness) UpdateUnconfirmed(now time.Time, lost bool) (changed bool) {
	before := f.unconfirmed
	switch {
	case lost:
		f.failed, f.unconfirmed = failures{}, ""
	case f.failed.last.IsZero():
		f.unconfirmed = ""
	case before == "" && now.Sub(f.failed.since) >= UnconfirmedAfter && now.Sub(f.failed.last) <= failureFor:
		f.unconfirmed = fmt.Sprintf("no read of the API server has confirmed since %s what Winnow knows of policies and namespaces: %s",
			f.failed.since.UTC().Format(time.RFC3339), f.failed.why)
	}
	return (before == "") != (f.unconfirmed == "")
}

// Unconfirmed returns why no reading agrees, if that has been so for longer than UnconfirmedAfter; empty otherwise.
func (f *Freshness) Unconfirmed() string { return f.unconfirmed }

// covers reports whether memory has seen a resource version. An invalid one was never seen.
func (f *Freshness) covers(c Collection, version string) bool {
	n := ParseVersion(version)
	return n > 0 && f.seen[c] >= n
}

// notCompared is why a replica that has just started doubts the clocks.
const notCompared = "the API server has not said yet what time it is"

// DoubtClocks puts both clocks in doubt until they are compared.
func (f *Freshness) DoubtClocks() { f.clockDoubt = notCompared }

// CompareClocks compares the API server's clock with the time from the beginning of a request until now, when the answer arrived. Beyond
// ClockSkew, both clocks are in doubt, until they are compared again and agree: an answer without a date says nothing. It reports whether a
// doubt began or ended.
func (f *Freshness) CompareClocks(date, began, now time.Time) (changed bool) {
	if date.IsZero() {
		return false
	}
	doubt := ""
	f.skew, f.compared = skew(date, began.Round(0), now.Round(0)), now.Round(0)
	if f.skew.Abs() > ClockSkew {
		doubt = fmt.Sprintf("it is %s here and %s at the API server: set the clocks right",
			now.UTC().Format(time.RFC3339), date.UTC().Format(time.RFC3339))
	}
	if (doubt == "") == (f.clockDoubt == "") && f.clockDoubt != notCompared {
		return false // The text must not change either, or each read would lead to a new status.
	}
	f.clockDoubt = doubt
	return true
}

// skew returns how far the API server's clock is ahead at least, if it answered with a date between two times.
func skew(date, began, now time.Time) time.Duration {
	switch latest := date.Add(dateStep); { // The Date is rounded down.
	case latest.Before(began):
		return latest.Sub(began)
	case date.After(now):
		return date.Sub(now)
	}
	return 0
}

// ClockSkew returns how far the API server's clock is ahead at least; negative if it is behind. It returns false if the clocks were not
// compared lately.
func (f *Freshness) ClockSkew(now time.Time) (ahead time.Duration, compared bool) {
	return f.skew, now.Round(0).Sub(f.compared) < skewFor
}

// ClockDoubt returns why the clocks are in doubt; empty if they agree.
func (f *Freshness) ClockDoubt() string { return f.clockDoubt }

// ParseVersion parses a resource version. It returns zero, which is older than all, for an invalid one.
func ParseVersion(version string) uint64 {
	n, err := strconv.ParseUint(version, 10, 64)
	if err != nil {
		return 0
	}
	return n
}
