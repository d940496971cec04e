// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package tracker

import (
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// FreshFor is how long after its beginning a reading that agreed with memory allows deletes. It is less than the second that
// is promised, so that a request which is allowed last is on its way in time.
const FreshFor = 900 * time.Millisecond

// Stamp identifies a state of an object for the comparison with memory. Version is what moves with every change that
// matters: of a policy its generation, of a namespace its resource version.
type Stamp struct {
	UID     types.UID
	Version string
}

// Reading is what a consistent read of policies and namespaces said.
type Reading struct {
	// Began is when the read was started: what was acknowledged before it is in it.
	Began                           time.Time
	Policies                        map[types.NamespacedName]Stamp
	Namespaces                      map[string]Stamp
	PolicyVersion, NamespaceVersion string
}

// freshness is the part of a Tracker that knows how current its memory of policies and namespaces is.
type freshness struct {
	agreed                          time.Time // when the last reading that agreed was begun
	policyVersion, namespaceVersion version
	// readPolicies and readNamespaces are the highest versions of readings that agreed.
	readPolicies, readNamespaces uint64
}

// version is the highest resource version of a collection that memory has taken in.
type version struct{ seen uint64 }

func (v *version) advance(rv string) { v.seen = max(v.seen, parseVersion(rv)) }
func (v *version) reset(rv string)   { v.seen = parseVersion(rv) }

// covers tells whether rv has been seen. One that cannot be read has not.
func (v *version) covers(rv string) bool {
	n := parseVersion(rv)
	return n > 0 && v.seen >= n
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
// the reading at version read: then memory no longer is what the reading agreed with, though it said the same for a moment.
func (f *freshness) replayed(rv string, read uint64) {
	if parseVersion(rv) <= read {
		f.disagree()
	}
}

// ObservePolicies takes in that the watch of policies has come as far as rv.
func (t *Tracker) ObservePolicies(rv string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.policyVersion.advance(rv)
}

// ObserveNamespaces takes in that the watch of namespaces has come as far as rv.
func (t *Tracker) ObserveNamespaces(rv string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.namespaceVersion.advance(rv)
}

// Agree compares a reading with memory. They agree when memory is known to be as new, or says the same. Then deletes may be
// taken until FreshFor after the reading began.
func (t *Tracker) Agree(r Reading) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	policies := t.policyVersion.covers(r.PolicyVersion) || t.samePolicies(r.Policies)
	namespaces := t.namespaceVersion.covers(r.NamespaceVersion) || t.sameNamespaces(r.Namespaces)
	if !policies || !namespaces {
		return false
	}
	if r.Began.After(t.agreed) {
		t.agreed = r.Began
	}
	t.readPolicies = max(t.readPolicies, parseVersion(r.PolicyVersion))
	t.readNamespaces = max(t.readNamespaces, parseVersion(r.NamespaceVersion))
	wake(t.changed)
	return true
}

func (t *Tracker) samePolicies(read map[types.NamespacedName]Stamp) bool {
	n := 0
	for _, ns := range t.namespaces {
		for _, ps := range ns.policies {
			stamp := PolicyStamp(ps.stored.UID, ps.stored.Generation)
			if read[types.NamespacedName{Namespace: ns.name, Name: ps.name}] != stamp {
				return false
			}
			n++
		}
	}
	return n == len(read)
}

func (t *Tracker) sameNamespaces(read map[string]Stamp) bool {
	n := 0
	for _, ns := range t.namespaces {
		if !ns.known {
			continue
		}
		if read[ns.name] != ns.stamp {
			return false
		}
		n++
	}
	return n == len(read)
}

// PolicyStamp is the stamp of a policy.
func PolicyStamp(uid types.UID, generation int64) Stamp {
	return Stamp{UID: uid, Version: strconv.FormatInt(generation, 10)}
}
