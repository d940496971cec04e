// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package tracker

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// FreshFor is how long after its beginning a reading that agreed with memory allows deletes. It is less than the second that
	// is promised, so that a request which is allowed last is on its way in time.
	FreshFor = 900 * time.Millisecond
	// clocksApart is how far the clocks of this machine and of the API server may lie apart.
	clocksApart = time.Minute
	// dateStep is what the Date of an answer leaves out.
	dateStep = time.Second
)

// Stamp identifies a state of an object for the comparison with memory. Version is what moves with every change that
// matters: of a policy its generation, of a namespace its resource version.
type Stamp struct {
	UID     types.UID
	Version string
}

// Reading is what a consistent read of policies and namespaces said.
type Reading struct {
	// Began is when the read was started: what was acknowledged before it is in it.
	Began time.Time
	// ServerTime is the clock of the API server when it answered; zero when it did not say.
	ServerTime                            time.Time
	Policies, ClusterPolicies, Namespaces Contents
}

// Contents is one collection as it was read.
type Contents struct {
	Version string
	Stamps  map[types.NamespacedName]Stamp
}

// collection is what readings hold memory against.
type collection int

const (
	policies collection = iota
	clusterPolicies
	namespaces
	collections
)

// freshness is the part of a Tracker that knows how current its memory of policies and namespaces is.
type freshness struct {
	agreed time.Time // when the last reading that agreed was begun
	// seen is the highest resource version of each collection that memory has taken in, read that of readings that agreed.
	seen, read [collections]uint64
	// begun says that a collection was listed once: before, it is not known what is in it.
	begun [collections]bool
	// clockDoubt is why no clock is believed; empty when they agree.
	clockDoubt string
}

// fresh tells whether deletes may be taken. A clock that was set in between makes all readings old, and so does a host that was
// suspended, while which the monotonic clock stands still.
func (f *freshness) fresh(now time.Time) bool {
	wall := now.Round(0).Sub(f.agreed.Round(0))
	return now.Before(f.agreed.Add(FreshFor)) && wall >= 0 && wall < FreshFor
}

// allBegun tells whether it is known what is in all collections.
func (f *freshness) allBegun() bool { return f.begun == [collections]bool{true, true, true} }

func (f *freshness) advance(c collection, rv string) { f.seen[c] = max(f.seen[c], parseVersion(rv)) }

// restart takes in that the watch of a collection starts over, from a list that may be older than what was known.
func (f *freshness) restart(c collection, rv string) {
	f.disagree()
	f.seen[c], f.begun[c] = parseVersion(rv), true
}

// covers tells whether rv has been seen. One that cannot be read has not.
func (f *freshness) covers(c collection, rv string) bool {
	n := parseVersion(rv)
	return n > 0 && f.seen[c] >= n
}

// parseVersion reads a resource version; zero, older than any, when it cannot be read.
func parseVersion(rv string) uint64 {
	n, err := strconv.ParseUint(rv, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

func (f *freshness) disagree() { f.agreed = time.Time{} }

// replayed takes in that memory was changed by an event of version rv. A watch that lags may tell what was undone again before
// the last reading: then memory no longer is what the reading agreed with, though it said the same for a moment.
func (f *freshness) replayed(c collection, rv string) {
	if parseVersion(rv) <= f.read[c] {
		f.disagree()
	}
}

// ObservePolicies takes in that the watch of policies has come as far as rv.
func (t *Tracker) ObservePolicies(rv string) { t.observe(policies, rv) }

// ObserveClusterPolicies takes in that the watch of cluster policies has come as far as rv.
func (t *Tracker) ObserveClusterPolicies(rv string) { t.observe(clusterPolicies, rv) }

// ObserveNamespaces takes in that the watch of namespaces has come as far as rv.
func (t *Tracker) ObserveNamespaces(rv string) { t.observe(namespaces, rv) }

func (t *Tracker) observe(c collection, rv string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.advance(c, rv)
}

// Agree compares a reading with memory. They agree when memory is known to be as new, or says the same. Then deletes may be
// taken until FreshFor after the reading began. It was received at now.
func (t *Tracker) Agree(r Reading, now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.compareClocks(r, now)
	read := [collections]Contents{policies: r.Policies, clusterPolicies: r.ClusterPolicies, namespaces: r.Namespaces}
	for c, contents := range read {
		if !t.covers(collection(c), contents.Version) && !t.same(collection(c), contents.Stamps) {
			return false
		}
	}
	if r.Began.After(t.agreed) {
		t.agreed = r.Began
	}
	for c, contents := range read {
		t.read[c] = max(t.read[c], parseVersion(contents.Version))
	}
	wake(t.changed)
	return true
}

// compareClocks holds everything while the clock of the API server is not where ours was during the reading.
func (t *Tracker) compareClocks(r Reading, now time.Time) {
	doubt := ""
	earliest, latest := r.Began.Round(0).Add(-clocksApart-dateStep), now.Round(0).Add(clocksApart)
	if at := r.ServerTime; !at.IsZero() && (at.Before(earliest) || at.After(latest)) {
		doubt = fmt.Sprintf("it is %s here and %s at the API server: set the clocks right",
			now.UTC().Format(time.RFC3339), at.UTC().Format(time.RFC3339))
	}
	if (doubt == "") != (t.clockDoubt == "") {
		t.clockDoubt = doubt
		t.rejudgeAll(now)
	}
}

func (t *Tracker) same(c collection, read map[types.NamespacedName]Stamp) bool {
	n, all := 0, true
	compare := func(name types.NamespacedName, stamps ...Stamp) {
		n++
		theirs, ok := read[name]
		all = all && ok && (len(stamps) == 0 || slices.Contains(stamps, theirs))
	}
	switch c {
	case clusterPolicies:
		comparePolicies(t.clusters, compare)
	case policies:
		for _, ns := range t.namespaces {
			comparePolicies(ns.policies, compare)
		}
	case namespaces:
		for _, ns := range t.namespaces {
			if ns.known {
				compare(types.NamespacedName{Name: ns.name}, ns.stamp)
			}
		}
	}
	return all && n == len(read)
}

// comparePolicies compares one that cannot be read by its name alone: it is not known which state of it that is, and whichever it
// is, it holds all that it could select.
func comparePolicies(all []*policyState, compare func(types.NamespacedName, ...Stamp)) {
	for _, ps := range all {
		if ps.err != nil {
			compare(ps.stored.named())
			continue
		}
		compare(ps.stored.named(), PolicyStamp(ps.stored.UID, ps.stored.Generation), AlteredStamp(ps.stored.UID, ps.stored.ResourceVersion))
	}
}

// AlteredStamp is the stamp of a policy that somebody has written past the API: its generation says nothing, only this very version
// of it is known to be the same.
func AlteredStamp(uid types.UID, resourceVersion string) Stamp {
	return Stamp{UID: uid, Version: "version " + resourceVersion}
}

// PolicyStamp is the stamp of a policy.
func PolicyStamp(uid types.UID, generation int64) Stamp {
	return Stamp{UID: uid, Version: strconv.FormatInt(generation, 10)}
}
