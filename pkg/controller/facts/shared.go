// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"encoding/binary"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
	"weak"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/lifecycle"
)

// shared is what an object has in common with others: it is there once for all of them, for as long as there are any. The fields are
// those of Fact. It is the labels of its objects, too, unless own says that some are of each object alone.
type shared struct {
	Resource, Namespace string
	Finished            bool
	Outcome             gc.Outcome
	NativeTTL           *time.Duration
	Controller          *lifecycle.Owner
	Propagation         metav1.DeletionPropagation

	scheduledBy lifecycle.ScheduledBy
	uidLength   uint16
	own         bool
	list        labelList
}

// The values of labels that repeat the UID or the name of their object, as the API server gives to each Job that has no labels:
// without these, every such Job would be shared to none. No value of a label may have such a character.
const (
	ownUID  = "\x00uid"
	ownName = "\x00name"
)

// interned are all of them, by all that they say. They are held weakly: a shared goes with the last of its objects.
var interned = struct {
	sync.Mutex
	all map[string]weak.Pointer[shared]
	key []byte // scratch
}{all: map[string]weak.Pointer[shared]{}}

// sharedOf is the shared of an object with this fact.
func sharedOf(f *lifecycle.Fact) *shared {
	interned.Lock()
	defer interned.Unlock()
	key, list := appendKey(interned.key[:0], f)
	interned.key = key
	if k := interned.all[string(key)].Value(); k != nil {
		return k
	}
	own := string(key)
	all := own[list:]
	k := &shared{
		Resource: f.Resource, Namespace: f.Namespace, Finished: f.Finished, Outcome: f.Outcome, NativeTTL: f.NativeTTL,
		Controller: f.Controller, Propagation: f.Propagation, uidLength: uint16(len(f.UID)), list: labelList(all), scheduledBy: scheduledBy(f),
		own: strings.Contains(all, ownUID) || strings.Contains(all, ownName),
	}
	interned.all[own] = weak.Make(k)
	runtime.AddCleanup(k, forgetShared, own)
	return k
}

// forgetShared is called when a shared is gone. Another of the same key may have come meanwhile.
func forgetShared(key string) {
	interned.Lock()
	defer interned.Unlock()
	if interned.all[key].Value() == nil {
		delete(interned.all, key)
	}
}

// appendKey appends all that makes up a shared; from list on, that are the labels.
func appendKey(key []byte, f *lifecycle.Fact) (_ []byte, list int) {
	key = binary.AppendUvarint(key, uint64(len(f.UID)))
	key = appendString(appendString(key, f.Resource), f.Namespace)
	key = appendString(appendString(key, string(f.Outcome)), string(f.Propagation))
	key = appendFlag(key, f.Finished)
	if key = appendFlag(key, f.NativeTTL != nil); f.NativeTTL != nil {
		key = binary.AppendVarint(key, int64(*f.NativeTTL))
	}
	if key = appendFlag(key, f.Controller != nil); f.Controller != nil {
		c := f.Controller
		key = appendString(appendString(key, c.Group), c.Kind)
		key = appendString(appendString(key, c.Name), string(c.UID))
	}
	key = append(key, byte(scheduledBy(f)))
	list = len(key)
	switch all := f.Labels.(type) {
	case nil:
	case labels.Set:
		for _, k := range slices.Sorted(maps.Keys(all)) {
			key = appendString(appendString(key, k), placeholder(all[k], f))
		}
	case *shared:
		key = append(key, all.list...)
	case ownLabels:
		key = append(key, all.list...)
	default: // Without its labels an object would fall under other rules.
		panic(fmt.Sprintf("labels as %T cannot be kept", all))
	}
	return key, list
}

// scheduledBy is how the name of a Job says for when it was scheduled, as its CronJob had it if nobody else did.
func scheduledBy(f *lifecycle.Fact) lifecycle.ScheduledBy {
	switch {
	case f.Scheduled.IsZero() || f.Controller == nil || !f.Scheduled.Equal(lifecycle.ScheduleInName(f.Name, f.Controller.Name)):
		return lifecycle.ScheduledByField
	case f.Created.Before(f.Scheduled):
		return lifecycle.ScheduledByName
	}
	return lifecycle.ScheduledByCreation
}

// placeholder is the value of a label as it is kept for all that have the same.
func placeholder(value string, f *lifecycle.Fact) string {
	switch value {
	case "":
	case string(f.UID):
		return ownUID
	case f.Name:
		return ownName
	}
	return value
}

func appendFlag(key []byte, flag bool) []byte {
	if flag {
		return append(key, 1)
	}
	return append(key, 0)
}

// appendString keeps strings apart by their lengths.
func appendString(key []byte, s string) []byte {
	return append(binary.AppendUvarint(key, uint64(len(s))), s...)
}

// labelList are labels in the order of their keys, as appendString has them, each key before its value.
type labelList string

// cut takes the first string off.
func (l labelList) cut() (first string, rest labelList) {
	n, size := uint64(0), 0
	for shift := 0; ; shift += 7 { // As binary.Uvarint, which takes no string.
		b := l[size]
		n |= uint64(b&0x7f) << shift
		if size++; b < 0x80 {
			break
		}
	}
	return string(l[size : size+int(n)]), l[size+int(n):]
}

var (
	_ labels.Labels = &shared{}
	_ labels.Labels = ownLabels{}
)

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
	for l := k.list; l != ""; {
		var key, value string
		key, l = l.cut()
		if value, l = l.cut(); key == label {
			return value, true
		}
	}
	return "", false
}

// ownLabels are those of an object with some of its own.
type ownLabels struct {
	*shared
	id string // as in Compact
}

// Get implements labels.Labels.
func (l ownLabels) Get(label string) string {
	value, _ := l.Lookup(label)
	return value
}

// Lookup implements labels.Labels.
func (l ownLabels) Lookup(label string) (string, bool) {
	value, ok := l.shared.Lookup(label)
	switch value {
	case ownUID:
		value = l.id[:l.uidLength]
	case ownName:
		value = l.id[l.uidLength:]
	}
	return value, ok
}
