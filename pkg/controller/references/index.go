// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package references

import (
	"crypto/sha256"
	"encoding/binary"
	"hash/fnv"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// Referrer is an object that refers to others.
type Referrer struct {
	UID types.UID
	// Resource is as in package kinds.
	Resource, Namespace, Name string
}

// Use says whether an object is used.
type Use uint8

const (
	// Unused: no referrer refers to the object.
	Unused Use = iota
	// Unknown: no referrer names the object, but one may refer to it.
	Unknown
	// Used: a referrer names the object.
	Used
)

// Index counts references. Most referrers are Pods, and those of one template refer to the same objects. So what a referrer refers to is
// stored once for all of them. NewIndex makes one.
type Index struct {
	referrers map[id]referrer
	groups    map[uint64]*group // by hash; a group leads to others with the same hash
	counts    map[Key]uint32    // of the groups that have a key
}

// id stands for a UID.
type id [16]byte

func idOf(uid types.UID) id {
	sum := sha256.Sum256([]byte(uid))
	return id(sum[:16])
}

type referrer struct {
	group *group
	name  string
}

// group are the referrers of one resource in one namespace with the same keys.
type group struct {
	resource, namespace string
	keys                []Key
	members             int
	example             id // the last referrer that joined; it may have left
	next                *group
}

// NewIndex returns an empty Index.
func NewIndex() *Index {
	return &Index{referrers: map[id]referrer{}, groups: map[uint64]*group{}, counts: map[Key]uint32{}}
}

// Set replaces what a referrer refers to. It returns the keys that are now in use and were not, and those that no longer are. keys must be
// as Keys returns them, and must not be changed afterwards.
func (x *Index) Set(r Referrer, keys []Key) (changed []Key) {
	if len(keys) == 0 {
		return x.Remove(r.UID)
	}
	id := idOf(r.UID)
	before := x.referrers[id]
	if g := before.group; g != nil && before.name == r.Name && g.has(r, keys) {
		return nil
	}
	g, changed := x.join(r, keys)
	g.example = id
	x.referrers[id] = referrer{g, strings.Clone(r.Name)}
	if before.group != nil {
		changed = append(changed, x.leave(before.group)...)
	}
	return changed
}

// Remove removes a referrer. It returns the keys that are no longer in use.
func (x *Index) Remove(uid types.UID) (changed []Key) {
	id := idOf(uid)
	r, ok := x.referrers[id]
	if !ok {
		return nil
	}
	delete(x.referrers, id)
	return x.leave(r.group)
}

// Used reports whether an object is used. to is Secrets or ConfigMaps.
func (x *Index) Used(to To, namespace, name string) Use {
	named, unknown := KeysOf(to, namespace, name)
	switch {
	case slices.ContainsFunc(named[:], x.counted):
		return Used
	case slices.ContainsFunc(unknown[:], x.counted):
		return Unknown
	}
	return Unused
}

func (x *Index) counted(k Key) bool { return x.counts[k] > 0 }

// Example returns a referrer that is the reason for what Used returns, without its UID, and how many such referrers there are. It takes
// time in proportion to the number of groups, and of all referrers if the last one that joined the group has left.
func (x *Index) Example(to To, namespace, name string) (example Referrer, count int) {
	named, unknown := KeysOf(to, namespace, name)
	keys := named[:]
	if !slices.ContainsFunc(keys, x.counted) {
		keys = unknown[:]
	}
	if !slices.ContainsFunc(keys, x.counted) {
		return Referrer{}, 0
	}
	var of *group
	for _, g := range x.groups {
		for ; g != nil; g = g.next {
			if slices.ContainsFunc(keys, g.contains) {
				count += g.members
				of = g
			}
		}
	}
	return Referrer{Resource: of.resource, Namespace: of.namespace, Name: x.nameOf(of)}, count
}

// nameOf returns the name of a member of a group.
func (x *Index) nameOf(g *group) string {
	if r := x.referrers[g.example]; r.group == g {
		return r.name
	}
	for _, r := range x.referrers {
		if r.group == g {
			return r.name
		}
	}
	return ""
}

// join adds a member to the group of a referrer, and returns the keys that are in use only now.
func (x *Index) join(r Referrer, keys []Key) (g *group, changed []Key) {
	hash := hashOf(r, keys)
	for g = x.groups[hash]; g != nil; g = g.next {
		if g.has(r, keys) {
			g.members++
			return g, nil
		}
	}
	g = &group{
		resource: strings.Clone(r.Resource), namespace: strings.Clone(r.Namespace), keys: keys, members: 1, next: x.groups[hash],
	}
	x.groups[hash] = g
	for _, k := range keys {
		if x.counts[k]++; x.counts[k] == 1 {
			changed = append(changed, k)
		}
	}
	return g, changed
}

// leave removes a member from a group, and returns the keys that are no longer in use.
func (x *Index) leave(g *group) (changed []Key) {
	if g.members--; g.members > 0 {
		return nil
	}
	x.drop(g)
	for _, k := range g.keys {
		if x.counts[k]--; x.counts[k] == 0 {
			delete(x.counts, k)
			changed = append(changed, k)
		}
	}
	return changed
}

// drop removes a group.
func (x *Index) drop(g *group) {
	hash := hashOf(Referrer{Resource: g.resource, Namespace: g.namespace}, g.keys)
	first := x.groups[hash]
	switch {
	case first != g:
		for first.next != g {
			first = first.next
		}
		first.next = g.next
	case g.next != nil:
		x.groups[hash] = g.next
	default:
		delete(x.groups, hash)
	}
}

// has reports whether a group is that of a referrer with these keys.
func (g *group) has(r Referrer, keys []Key) bool {
	return g.resource == r.Resource && g.namespace == r.Namespace && slices.Equal(g.keys, keys)
}

func (g *group) contains(k Key) bool {
	_, ok := slices.BinarySearch(g.keys, k)
	return ok
}

// hashOf returns the hash of the group of a referrer.
func hashOf(r Referrer, keys []Key) uint64 {
	h := fnv.New64a()
	b := append([]byte(r.Namespace+"/"+r.Resource), 0)
	for _, k := range keys {
		b = binary.LittleEndian.AppendUint64(b, uint64(k))
	}
	_, _ = h.Write(b) // It never fails.
	return h.Sum64()
}
