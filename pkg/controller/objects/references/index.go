// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package references

import (
	"crypto/sha256"
	"encoding/binary"
	"hash/fnv"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// Referrer is an object that refers to others.
type Referrer struct {
	UID             types.UID
	Namespace, Name string
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

// Index counts references. Most referrers are Pods, and Pods of one template refer to the same objects. So these references are stored once
// for all of them. NewIndex makes one. What is set and removed counts once Step has taken it in: a referrer can have so many keys that
// others should not wait for all of them.
type Index struct {
	groups map[uint64]*group // by hash; a group leads to others with the same hash
	counts map[Key]count     // of the groups that have a key
	tasks  []task            // in order
	// rooms are what the referrers of each namespace take, at most so many keys. overfull counts the wide groups of each namespace.
	rooms    map[string]*room
	most     int
	overfull map[string]int
}

// count are the groups that have a key. example is one of them; nil if that is to be looked for.
type count struct {
	groups  uint32
	example *group
}

// Exemptions is the prefix of the names of sources whose objects are used without a reference. Each is its own referrer, with the reason as
// its name.
const Exemptions = "exempt "

// Source are the referrers that are listed and watched together: usually all objects of one resource. Index.Source makes one.
type Source struct {
	index *Index
	name  string
	// referrers are by UID. While they are listed again, unlisted has those that the list did not contain so far.
	referrers, unlisted map[id]referrer
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

// group are the referrers of one source in one namespace with the same keys.
type group struct {
	source    *Source
	namespace string
	keys      []Key
	// wide says that the referrers have other keys, for which there is no room in their namespace. They may refer to everything in it.
	wide    bool
	members int
	example id // the last referrer that joined; it may have left
	hash    uint64
	next    *group
}

// NewIndex returns an empty Index, in which the referrers of a namespace may have at most so many keys together.
func NewIndex(most int) *Index {
	return &Index{groups: map[uint64]*group{}, counts: map[Key]count{}, rooms: map[string]*room{}, most: most, overfull: map[string]int{}}
}

// Source returns a new source without referrers.
func (x *Index) Source(name string) *Source {
	return &Source{index: x, name: name, referrers: map[id]referrer{}}
}

// Name returns the name of the source.
func (s *Source) Name() string { return s.name }

// Set replaces what a referrer refers to. keys must be as Keys returns them, and must not be changed afterwards.
func (s *Source) Set(r Referrer, keys []Key) {
	if len(keys) == 0 {
		s.Remove(r.UID)
		return
	}
	id := idOf(r.UID)
	before := s.referrers[id]
	if old, ok := s.unlisted[id]; ok {
		before = old
		delete(s.unlisted, id)
	}
	if g := before.group; g != nil && before.name == r.Name && g.has(s, r.Namespace, keys, false) {
		s.referrers[id] = before
		return
	}
	g := s.join(r.Namespace, keys)
	g.example = id
	s.referrers[id] = referrer{g, strings.Clone(r.Name)}
	if before.group != nil {
		s.index.leave(before.group)
	}
}

// Remove removes a referrer.
func (s *Source) Remove(uid types.UID) {
	id := idOf(uid)
	for _, all := range s.all() {
		if r, ok := all[id]; ok {
			delete(all, id)
			s.index.leave(r.group)
		}
	}
}

func (s *Source) all() [2]map[id]referrer { return [2]map[id]referrer{s.referrers, s.unlisted} }

// BeginList says that all referrers of the source are listed from now on, with Set. They count until EndList, also if they are not listed.
func (s *Source) BeginList() {
	if s.unlisted == nil {
		s.unlisted, s.referrers = s.referrers, map[id]referrer{}
		return
	}
	maps.Copy(s.unlisted, s.referrers) // The list before has not ended.
	clear(s.referrers)
}

// EndList removes the referrers that were not listed.
func (s *Source) EndList() {
	for _, r := range s.unlisted {
		s.index.leave(r.group)
	}
	s.unlisted = nil
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

func (x *Index) counted(k Key) bool { return x.counts[k].groups > 0 }

// Example returns a referrer that is the reason for what Used returns, without its UID, and the name of its source; empty if there is none.
// others says that there are more. Now and then it takes time in proportion to the number of groups, or of the referrers of a source.
func (x *Index) Example(to To, namespace, name string) (source string, example Referrer, others bool) {
	named, unknown := KeysOf(to, namespace, name)
	keys := slices.DeleteFunc(named[:], func(k Key) bool { return !x.counted(k) })
	if len(keys) == 0 {
		keys = slices.DeleteFunc(unknown[:], func(k Key) bool { return !x.counted(k) })
	}
	if len(keys) == 0 {
		return "", Referrer{}, false
	}
	c := x.counts[keys[0]]
	if c.example == nil {
		c.example = x.groupWith(keys[0])
		x.counts[keys[0]] = c
	}
	g := c.example
	if g == nil {
		return "", Referrer{}, false // The last one has left, and Step has not taken it in.
	}
	others = c.groups > 1 || g.members > 1 ||
		slices.ContainsFunc(keys[1:], func(k Key) bool { return x.counts[k].groups > 1 || !g.contains(k) })
	return g.source.name, Referrer{Namespace: g.namespace, Name: g.source.nameOf(g)}, others
}

// groupWith returns a group that has a key.
func (x *Index) groupWith(k Key) *group {
	for _, g := range x.groups {
		for ; g != nil; g = g.next {
			if g.contains(k) {
				return g
			}
		}
	}
	return nil
}

// nameOf returns the name of a member of a group.
func (s *Source) nameOf(g *group) string {
	for _, all := range s.all() {
		if r := all[g.example]; r.group == g {
			return r.name
		}
	}
	for _, all := range s.all() {
		for id, r := range all {
			if r.group == g {
				g.example = id
				return r.name
			}
		}
	}
	return ""
}

// join adds a member to the group of a namespace with these keys.
func (s *Source) join(namespace string, keys []Key) *group {
	x, wanted := s.index, &group{source: s, namespace: namespace, keys: keys, hash: s.hash(namespace, keys)}
	if g := x.find(wanted); g != nil {
		g.members++
		return g
	}
	if s.limited(namespace) && !x.makeRoom(namespace, len(keys)) {
		defer x.Drop(namespace, keys)
		wanted.widen()
		if g := x.find(wanted); g != nil {
			g.members++
			return g
		}
	}
	wanted.namespace, wanted.members = strings.Clone(namespace), 1
	x.insert(wanted)
	return wanted
}

// find returns the group that is like another one; nil if there is none.
func (x *Index) find(like *group) *group {
	for g := x.groups[like.hash]; g != nil; g = g.next {
		if g.has(like.source, like.namespace, like.keys, like.wide) {
			return g
		}
	}
	return nil
}

// insert adds a group.
func (x *Index) insert(g *group) {
	g.next = x.groups[g.hash]
	x.groups[g.hash] = g
	x.enter(g)
	x.do(task{what: counting, group: g, keys: g.keys, begins: g.wide})
}

// leave removes a member from a group.
func (x *Index) leave(g *group) {
	if g.members--; g.members > 0 {
		return
	}
	x.drop(g)
	x.do(task{what: discounting, group: g, keys: g.keys, ends: g.wide})
}

// drop removes a group.
func (x *Index) drop(g *group) {
	x.exit(g)
	first := x.groups[g.hash]
	switch {
	case first != g:
		for first.next != g {
			first = first.next
		}
		first.next = g.next
	case g.next != nil:
		x.groups[g.hash] = g.next
	default:
		delete(x.groups, g.hash)
	}
}

// has reports whether a group has the referrers of a source and a namespace with these keys.
func (g *group) has(s *Source, namespace string, keys []Key, wide bool) bool {
	return g.source == s && g.namespace == namespace && g.wide == wide && slices.Equal(g.keys, keys)
}

func (g *group) contains(k Key) bool {
	_, ok := slices.BinarySearch(g.keys, k)
	return ok
}

// hash returns the hash of a group.
func (s *Source) hash(namespace string, keys []Key) uint64 {
	h := fnv.New64a()
	b := append([]byte(namespace+"/"+s.name), 0)
	for _, k := range keys {
		b = binary.LittleEndian.AppendUint64(b, uint64(k))
	}
	_, _ = h.Write(b) // It never fails.
	return h.Sum64()
}
