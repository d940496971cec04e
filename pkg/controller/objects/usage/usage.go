// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package usage knows which ConfigMaps and Secrets are in use, and since when the others are not. That nothing refers to an object follows
// only from everything that might, so nothing is unused while any source of referrers is not listed. The package is pure.
package usage

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/objects/references"
)

// Tracker knows the usage of objects of type T. New makes one. Methods that may change the usage of objects return which.
type Tracker[T comparable] struct {
	index   *references.Index
	sources map[string]*source
	// undiscovered is why it is not known which sources there are; empty if it is.
	undiscovered string
	// unready is the name of the first source that is not ready; empty if all are. People may ask for many objects why they are held.
	unready string

	objects map[T]*object[T]
	// buckets have the first object of each bucket, by the place of the references that name the objects. References in the second map
	// name objects of every namespace, and those in the third one all objects of a namespace.
	buckets [3]map[references.Key]*object[T]
	rereads rereads[T]
}

// source is where referrers are listed and watched together.
type source struct {
	*references.Source
	listed bool   // all of its referrers are known
	why    string // why it cannot be listed or watched; empty if it can
}

// object is a ConfigMap or Secret. It is in three buckets, linked with the others there.
type object[T comparable] struct {
	of    T
	id    Object
	since int64 // when it became unused, in Unix nanoseconds; 0 if it is in use, or if that is not known
	// seenInUse is set if something was seen to refer to the object.
	seenInUse bool
	// added and named are the number of rereads when the object was added, and when it was last found to be named by a referrer whose keys are
	// not stored; 0 if never.
	added, named uint32
	links        [3]links[T]
}

type links[T comparable] struct{ previous, next *object[T] }

// Object identifies an object of a Tracker.
type Object struct {
	To              references.To
	Namespace, Name string
}

// Changed are the objects whose usage may have changed.
type Changed[T comparable] struct {
	Objects []T
	// Namespaces are those where all objects may have changed. All is set for all of them.
	Namespaces []string
	All        bool
}

// New returns a Tracker without sources, which knows nothing. The referrers of a namespace may have at most so many keys together; see
// references.MaxKeys.
func New[T comparable](most int) *Tracker[T] {
	return &Tracker[T]{
		rereads: rereads[T]{begun: 1, done: 1, pending: map[*object[T]]struct{}{}},
		index:   references.NewIndex(most), sources: map[string]*source{},
		undiscovered: "the resources of the cluster are not known yet",
		objects:      map[T]*object[T]{}, buckets: [3]map[references.Key]*object[T]{{}, {}, {}},
	}
}

// SetSources sets which sources there are. why is why others may be missing; empty if none is. Sources that are new must be listed, and the
// referrers of those that no longer exist are forgotten.
func (t *Tracker[T]) SetSources(names []string, why string, now time.Time) Changed[T] {
	before, present := t.Known(), sets.New(names...)
	for name, s := range t.sources {
		if !present.Has(name) {
			s.BeginList()
			s.EndList()
			delete(t.sources, name)
		}
	}
	for name := range present {
		if t.sources[name] == nil {
			t.sources[name] = &source{Source: t.index.Source(name)}
		}
	}
	t.undiscovered = why
	return t.sourceChanged(before, now)
}

// Forget forgets all sources, because they are no longer observed.
func (t *Tracker[T]) Forget(now time.Time) Changed[T] {
	return t.SetSources(nil, "what may refer to objects is no longer observed", now)
}

// Failing records whether a source can be listed and watched; why is empty if it can.
func (t *Tracker[T]) Failing(name, why string, now time.Time) Changed[T] {
	s, before := t.sources[name], t.Known()
	if s == nil || s.why == why {
		return Changed[T]{}
	}
	s.why = why
	return t.sourceChanged(before, now)
}

// BeginList begins a list of all referrers of a source. Until it ends, memory is a mixture of old and new references.
func (t *Tracker[T]) BeginList(name string, now time.Time) Changed[T] {
	s, before := t.sources[name], t.Known()
	if s == nil {
		return Changed[T]{}
	}
	s.BeginList()
	s.listed = false
	return t.sourceChanged(before, now)
}

// EndList ends the list that has begun last. Referrers that were not set since are gone.
func (t *Tracker[T]) EndList(name string, now time.Time) Changed[T] {
	s, before := t.sources[name], t.Known()
	if s == nil {
		return Changed[T]{}
	}
	s.EndList()
	s.listed, s.why = true, ""
	return t.sourceChanged(before, now)
}

// SetReferrer replaces what a referrer refers to; see references.Source. It counts once Step has taken it in.
func (t *Tracker[T]) SetReferrer(name string, r references.Referrer, keys []references.Key) {
	if s := t.sources[name]; s != nil {
		s.Set(r, keys)
	}
}

// RemoveReferrer removes a referrer. It counts until Step has taken that in.
func (t *Tracker[T]) RemoveReferrer(name string, uid types.UID) {
	if s := t.sources[name]; s != nil {
		s.Remove(uid)
	}
}

// Unknown returns why it is not known what refers to objects; empty if it is.
func (t *Tracker[T]) Unknown() string {
	if t.undiscovered != "" {
		return t.undiscovered
	}
	switch s := t.sources[t.unready]; {
	case t.unready == "":
		return ""
	case s.why != "":
		return s.why
	}
	return "Winnow has not listed all " + t.unready + " yet"
}

// Add adds an object. If it is not known to be in use, it is unused since the given time at the latest; zero if that is not known.
func (t *Tracker[T]) Add(of T, id Object, since, now time.Time) {
	if t.objects[of] != nil {
		return
	}
	o := &object[T]{of: of, id: id, added: t.rereads.begun}
	if !since.IsZero() {
		o.since = since.UnixNano()
	}
	t.objects[of] = o
	for i, key := range id.places() {
		first := t.buckets[i][key]
		if o.links[i].next = first; first != nil {
			first.links[i].previous = o
		}
		t.buckets[i][key] = o
	}
	if t.index.AnyOverfull() {
		t.rereads.pending[o] = struct{}{}
	}
	t.refresh(o, now)
}

// Delete removes an object.
func (t *Tracker[T]) Delete(of T) {
	o := t.objects[of]
	if o == nil {
		return
	}
	delete(t.objects, of)
	delete(t.rereads.pending, o)
	for i, key := range o.id.places() {
		previous, next := o.links[i].previous, o.links[i].next
		if next != nil {
			next.links[i].previous = previous
		}
		switch {
		case previous != nil:
			previous.links[i].next = next
		case next != nil:
			t.buckets[i][key] = next
		default:
			delete(t.buckets[i], key)
		}
	}
}

// Has reports whether an object was added.
func (t *Tracker[T]) Has(of T) bool { return t.objects[of] != nil }

// Adopt says that an object has been unused since a time, as another replica, or this one before it started, has observed it. It reports
// whether that changes anything: what is in use now is not unused, and what was seen in use is unused since it was seen for the last time.
func (t *Tracker[T]) Adopt(of T, since time.Time) bool {
	o, at := t.objects[of], since.UnixNano()
	switch {
	case o == nil, t.use(o) == references.Used, o.since == at, o.seenInUse && (o.since == 0 || at < o.since):
		return false
	}
	o.since = at
	return true
}

// Usage returns the usage of an object.
func (t *Tracker[T]) Usage(of T) lifecycle.Usage {
	o := t.objects[of]
	if o == nil {
		return lifecycle.Usage{}
	}
	var out lifecycle.Usage
	if o.since != 0 {
		out.Since = time.Unix(0, o.since).UTC()
	}
	switch use := t.use(o); {
	case use == references.Used:
		out = lifecycle.Usage{State: lifecycle.InUse}
	case use == references.Unused && t.Known():
		out.State = lifecycle.Unused
	}
	return out
}

// Look returns what the usage of an object would be if it was added now.
func (t *Tracker[T]) Look(id Object, now time.Time) lifecycle.Usage {
	switch use := t.use(&object[T]{id: id}); { // That it would have to wait for a reread matters to no forecast.
	case use == references.Used:
		return lifecycle.Usage{State: lifecycle.InUse}
	case use == references.Unused && t.Known():
		return lifecycle.Usage{State: lifecycle.Unused, Since: now.Round(0).UTC()}
	}
	return lifecycle.Usage{}
}

// Known reports whether Unknown is empty.
func (t *Tracker[T]) Known() bool { return t.undiscovered == "" && t.unready == "" }

// Explain says what refers to an object, or why that is not known; empty if nothing does. It names a referrer in the namespace of the
// object if mayName reports true for its source, and otherwise only the source.
func (t *Tracker[T]) Explain(of T, mayName func(source string) bool) string {
	o := t.objects[of]
	if o == nil {
		return ""
	}
	source, example, others := t.index.Example(o.id.To, o.id.Namespace, o.id.Name)
	if source == "" {
		return cmp.Or(t.Unknown(), t.explainRereads(o))
	}
	if strings.HasPrefix(source, references.Exemptions) {
		return example.Name
	}
	what, verb := source+"/"+example.Name, "refer"
	switch {
	case example.Namespace != o.id.Namespace:
		what = "an object of " + source + " outside the namespace"
	case !mayName(source):
		what = "an object of " + source
	}
	if others {
		what += " and others"
	}
	switch {
	case t.use(o) != references.Used && t.index.IsOverfull(o.id.Namespace):
		return what + fmt.Sprintf(" may refer to everything in the namespace: the objects of the namespace have more than %d names together",
			t.index.Most())
	case t.use(o) != references.Used:
		return what + " may refer to everything in the namespace"
	case !others:
		verb = "refers"
	}
	return what + " " + verb + " to it"
}

func (t *Tracker[T]) use(o *object[T]) references.Use {
	return max(t.index.Used(o.id.To, o.id.Namespace, o.id.Name), t.unstored(o))
}

// refresh notes that an object is in use, or has become unused.
func (t *Tracker[T]) refresh(o *object[T], now time.Time) {
	switch use := t.use(o); {
	case use == references.Used:
		o.since, o.seenInUse = 0, true
	case use != references.Unused || o.since != 0 || !t.Known():
	default:
		o.since = now.UnixNano()
	}
}

// sourceChanged returns the objects that are affected by a change of the sources.
func (t *Tracker[T]) sourceChanged(wasKnown bool, now time.Time) Changed[T] {
	t.unready = ""
	for name, s := range t.sources {
		if ready := s.listed && s.why == ""; !ready && (t.unready == "" || name < t.unready) {
			t.unready = name
		}
	}
	if t.Known() == wasKnown {
		return Changed[T]{}
	}
	for _, o := range t.objects {
		t.refresh(o, now)
	}
	return Changed[T]{All: true}
}

// changed returns the objects that are affected by a change of whether references exist.
func (t *Tracker[T]) changed(keys []references.Key, now time.Time) (out Changed[T]) {
	for _, key := range keys {
		t.each(key, &out, func(o *object[T]) bool {
			t.refresh(o, now)
			return true
		})
	}
	return out
}

// each calls do with each object that a key is about, and adds to out those for which it returns true, or the namespaces of all of them.
func (t *Tracker[T]) each(key references.Key, out *Changed[T], do func(*object[T]) bool) {
	place := key.Place()
	if place == all(references.All) {
		out.All = true
		for _, o := range t.objects {
			do(o)
		}
		return
	}
	for i := range t.buckets {
		found := false
		for o := t.buckets[i][place]; o != nil; o = o.links[i].next {
			if !do(o) {
				continue
			}
			if found = true; i < 2 {
				out.Objects = append(out.Objects, o.of)
			}
		}
		if i == 2 && found {
			out.Namespaces = append(out.Namespaces, t.buckets[i][place].id.Namespace)
		}
	}
}

// places returns the places of the references that name the object.
func (o *Object) places() [3]references.Key {
	out := [3]references.Key{2: all(o.Namespace)}
	for i, namespace := range []string{o.Namespace, references.All} {
		out[i] = references.Reference{Namespace: namespace, Name: o.Name}.Key().Place()
	}
	return out
}

// all returns the place of references to all objects of a namespace.
func all(namespace string) references.Key {
	return references.Reference{Namespace: namespace, Name: references.All}.Key().Place()
}
