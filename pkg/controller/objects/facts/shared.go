// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"encoding/binary"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"
	"unsafe"
	"weak"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
)

// head is what a Compact has a pointer to.
type head struct {
	*shared
	full *lifecycle.Fact // the whole fact if a Compact cannot represent it; nil for most objects, which have the head of their shared
}

// shared has what several objects have in common. It exists once for all of them, as long as any of them exists. The exported fields mean
// the same as in lifecycle.Fact. It also implements labels.Labels for these objects, unless hasPlaceholders is set.
type shared struct {
	Resource, Namespace string
	Outcome             gc.Outcome
	NativeTTL           *time.Duration
	Controller          *lifecycle.Owner
	Conditions          lifecycle.Results
	Propagation         metav1.DeletionPropagation
	Rereads             lifecycle.Rereads
	Finished            bool

	scheduledBy     lifecycle.ScheduledBy
	uidLength       uint16 // of the stored form
	uidIsUUID       bool
	deadlineFixed   bool // see lifecycle.Deadline
	hasPlaceholders bool
	encodedLabels   encodedLabels
	// blocks are where every 16th label begins in encodedLabels, except the first one.
	blocks []uint32
}

// Placeholders stand for the values of labels that repeat the UID or name of their object. The API server sets such labels on each Job,
// and without placeholders no two of these Jobs could share anything. No valid label contains the character NUL.
const (
	uidPlaceholder  = "\x00uid"
	namePlaceholder = "\x00name"
)

// interned has each shared by its encoded contents. The pointers are weak, so a shared is freed with the last of its objects.
var interned = struct {
	sync.Mutex
	all map[string]weak.Pointer[head]
	// Buffers of headOf: a key, and the keys of labels.
	key    []byte
	labels []string
}{all: map[string]weak.Pointer[head]{}}

// headOf returns the shared part of a fact, with its head.
func headOf(f *lifecycle.Fact, uid UID) *head {
	interned.Lock()
	defer interned.Unlock()
	key, labelsAt := appendKey(interned.key[:0], f, uid)
	interned.key = key
	if k := interned.all[string(key)].Value(); k != nil {
		return k
	}
	stored := string(key)
	encoded := stored[labelsAt:]
	k := &struct { // One object, so that the head exists as long as the shared does: the pointer to the head is weak.
		head
		of shared
	}{of: shared{
		Resource: f.Resource, Namespace: f.Namespace, Finished: f.Finished, Outcome: f.Outcome, NativeTTL: f.NativeTTL,
		Controller: f.Controller, Conditions: f.Conditions, Propagation: f.Propagation, Rereads: f.Rereads,
		uidLength: uint16(len(uid.bytes)), uidIsUUID: uid.isUUID, scheduledBy: scheduledBy(f),
		deadlineFixed:   f.Deadline.Fixed,
		encodedLabels:   encodedLabels(encoded),
		blocks:          encodedLabels(encoded).blocks(),
		hasPlaceholders: strings.Contains(encoded, uidPlaceholder) || strings.Contains(encoded, namePlaceholder),
	}}
	k.shared = &k.of
	interned.all[stored] = weak.Make(&k.head)
	runtime.AddCleanup(&k.head, forgetShared, stored)
	return &k.head
}

// forgetShared is called after a shared was freed. A new one may have been interned under the same key in the meantime.
func forgetShared(key string) {
	interned.Lock()
	defer interned.Unlock()
	if interned.all[key].Value() == nil {
		delete(interned.all, key)
	}
}

// appendKey appends the encoded contents of the shared part of a fact. The labels begin at labelsAt. The caller has the lock.
func appendKey(key []byte, f *lifecycle.Fact, uid UID) (_ []byte, labelsAt int) {
	key = appendFlag(binary.AppendUvarint(key, uint64(len(uid.bytes))), uid.isUUID)
	key = appendString(appendString(key, f.Resource), f.Namespace)
	key = appendString(appendString(key, string(f.Outcome)), string(f.Propagation))
	key = appendFlag(appendFlag(key, f.Finished), f.Deadline.Fixed)
	if key = appendFlag(key, f.NativeTTL != nil); f.NativeTTL != nil {
		key = binary.AppendVarint(key, int64(*f.NativeTTL))
	}
	if key = appendFlag(key, f.Controller != nil); f.Controller != nil {
		c := f.Controller
		key = appendString(appendString(key, c.Group), c.Kind)
		key = appendString(appendString(key, c.Name), string(c.UID))
	}
	key = append(key, byte(scheduledBy(f)), byte(f.Rereads))
	key = appendConditions(key, &f.Conditions)
	labelsAt = len(key)
	switch all := f.Labels.(type) {
	case nil:
	case labels.Set:
		interned.labels = slices.AppendSeq(interned.labels[:0], maps.Keys(all))
		slices.Sort(interned.labels)
		for _, k := range interned.labels {
			key = appendString(appendString(key, k), placeholder(all[k], f))
		}
	case *shared:
		key = append(key, all.encodedLabels...)
	case *placeholderLabels:
		key = append(key, all.encodedLabels...)
	default: // Without its labels, an object would be matched by other rules.
		panic(fmt.Sprintf("labels as %T cannot be kept", all))
	}
	return key, labelsAt
}

func appendConditions(key []byte, r *lifecycle.Results) []byte {
	if key = appendFlag(key, r.Conditions != nil); r.Conditions == nil {
		return key
	}
	key = appendString(appendString(key, r.Digest), r.Values)
	for _, failure := range r.Failures {
		key = appendString(key, failure)
	}
	return key
}

// scheduledBy returns where the scheduled time of a Job is found in its compact form.
func scheduledBy(f *lifecycle.Fact) lifecycle.ScheduledBy {
	switch {
	case f.Scheduled.IsZero() || f.Controller == nil || !f.Scheduled.Equal(lifecycle.ScheduleInName(f.Name, f.Controller.Name)):
		return lifecycle.ScheduledByField
	case f.Created.Before(f.Scheduled):
		return lifecycle.ScheduledByName
	}
	return lifecycle.ScheduledByCreation
}

// placeholder returns the value of a label as it is stored.
func placeholder(value string, f *lifecycle.Fact) string {
	switch value {
	case "":
	case string(f.UID):
		return uidPlaceholder
	case f.Name:
		return namePlaceholder
	}
	return value
}

func appendFlag(key []byte, flag bool) []byte {
	if flag {
		return append(key, 1)
	}
	return append(key, 0)
}

// appendString appends the length of a string, then the string.
func appendString(key []byte, s string) []byte {
	return append(binary.AppendUvarint(key, uint64(len(s))), s...)
}

// encodedLabels are keys and values in turn, in the order of the keys, each encoded by appendString.
type encodedLabels string

// next decodes the first string.
func (l encodedLabels) next() (first string, rest encodedLabels) {
	n, size := uvarint(unsafe.StringData(string(l)))
	return string(l[size : size+int(n)]), l[size+int(n):]
}

// uvarint decodes what binary.AppendUvarint has encoded, and returns how many bytes that takes. It is like binary.Uvarint, which accepts
// neither a string nor a pointer.
func uvarint(first *byte) (n uint64, size int) {
	for shift := 0; ; shift += 7 {
		b := *(*byte)(unsafe.Add(unsafe.Pointer(first), size))
		n |= uint64(b&0x7f) << shift
		if size++; b < 0x80 {
			return n, size
		}
	}
}

// perBlock is how many labels are looked through one by one. Few objects have more, but an object may have tens of thousands, and every
// rule of every policy may ask for one.
const perBlock = 16

// blocks returns where every block of labels begins, except the first one.
func (l encodedLabels) blocks() []uint32 {
	var out []uint32
	for n, rest := 0, l; rest != ""; n++ {
		if n > 0 && n%perBlock == 0 {
			out = append(out, uint32(len(l)-len(rest)))
		}
		_, rest = rest.next()
		_, rest = rest.next()
	}
	return out
}

var (
	_ labels.Labels = &shared{}
	_ labels.Labels = &placeholderLabels{}
)

// uidIn returns the UID in the id of an object; see Compact.
func (k *shared) uidIn(id string) UID { return UID{id[:k.uidLength], k.uidIsUUID} }

// nameIn returns the name in the id of an object; see Compact.
func (k *shared) nameIn(id string) string { return id[k.uidLength : len(id)-2] }

// Has implements labels.Labels.
func (k *shared) Has(label string) bool {
	_, ok := k.Lookup(label)
	return ok
}

// Get implements labels.Labels.
func (k *shared) Get(label string) string {
	value, _ := k.Lookup(label)
	return value
}

// Lookup implements labels.Labels.
func (k *shared) Lookup(label string) (string, bool) {
	for l := k.block(label); l != ""; {
		var key, value string
		key, l = l.next()
		if value, l = l.next(); key == label {
			return value, true
		}
	}
	return "", false
}

// block returns the block of labels that has a label if any has it.
func (k *shared) block(label string) encodedLabels {
	begin, end := 0, len(k.encodedLabels)
	next := sort.Search(len(k.blocks), func(i int) bool {
		first, _ := k.encodedLabels[k.blocks[i]:].next()
		return first > label
	})
	if next > 0 {
		begin = int(k.blocks[next-1])
	}
	if next < len(k.blocks) {
		end = int(k.blocks[next])
	}
	return k.encodedLabels[begin:end]
}

// placeholderLabels are the labels of one object whose shared part has placeholders. The identity, which is elsewhere in memory, is read
// only for a label that needs it.
type placeholderLabels Compact

// Get implements labels.Labels.
func (l *placeholderLabels) Get(label string) string {
	value, _ := l.Lookup(label)
	return value
}

// Lookup implements labels.Labels.
func (l *placeholderLabels) Lookup(label string) (string, bool) {
	value, ok := l.shared.Lookup(label)
	switch value {
	case uidPlaceholder:
		value = string((*Compact)(l).UID())
	case namePlaceholder:
		value = (*Compact)(l).Name()
	}
	return value, ok
}
