// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"fmt"
	"hash/maphash"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"

	"github.com/winnow-dev/winnow/pkg/controller/engine/knowledge"
	"github.com/winnow-dev/winnow/pkg/controller/objects/kinds"
	"github.com/winnow-dev/winnow/pkg/controller/observe/decode"
)

// referrerReader tells the tracker what the objects of a resource refer to. It is for one reflector.
type referrerReader struct {
	*Observer
	k              *kinds.Referrer
	unstructuredOf func(object any) (*unstructured.Unstructured, error)
	logged         sets.Set[string] // messages
	// told are the digests of the objects that the watch has reported since the last list, as the tracker knows them, by the digests of
	// their UIDs. If two of these are the same, the object before is forgotten. The digest of an object contains its UID.
	told map[uint64]uint64
	seed maphash.Seed
}

func (o *Observer) newReferrerReader(k *kinds.Referrer) *referrerReader {
	return &referrerReader{
		Observer: o, k: k, unstructuredOf: decode.UnstructuredFrom(k), logged: sets.New[string](),
		told: map[uint64]uint64{}, seed: maphash.MakeSeed(),
	}
}

// sink takes in what follows a list.
func (r *referrerReader) sink() *sink[runtime.Object] {
	return &sink[runtime.Object]{reduce: itself, upsert: r.upsert, remove: r.remove}
}

// itself reduces nothing: whether an object is read at all depends on the one before.
func itself(object any) (runtime.Object, error) {
	o, ok := object.(runtime.Object)
	if !ok {
		return nil, fmt.Errorf("%T is no object", object)
	}
	return o, nil
}

func (r *referrerReader) upsert(object runtime.Object) {
	e, encoded := object.(*decode.Encoded)
	if !encoded { // It is not compared, and neither is the next one with it.
		r.tell(object)
		if m, err := meta.Accessor(object); err == nil {
			delete(r.told, r.uid(m))
		}
		return
	}
	uid, digest := r.uid(e), e.Digest(r.seed)
	if before, ok := r.told[uid]; ok && before == digest && !r.Tracker.IsOverfull(e.Namespace) {
		return // The tracker knows what it refers to, and had room for it.
	}
	r.tell(object)
	r.told[uid] = digest
}

func (r *referrerReader) tell(object runtime.Object) {
	r.Tracker.SetReferring(r.read(object), r.Clock.Now())
}

func (r *referrerReader) uid(object metav1.Object) uint64 {
	return maphash.String(r.seed, string(object.GetUID()))
}

func (r *referrerReader) remove(object runtime.Object) {
	m, err := meta.Accessor(object)
	if err != nil {
		skipped(object, err)
		return
	}
	delete(r.told, r.uid(m))
	for _, source := range r.k.Sources() {
		r.Tracker.RemoveReferrer(source, decode.ReferrerOf(m).UID, r.Clock.Now())
	}
}

// read returns what an object refers to, for each of the sources of its resource.
func (r *referrerReader) read(object runtime.Object) []knowledge.Referring {
	u, err := r.unstructuredOf(object)
	if err != nil {
		r.log(err, "Cannot decode the objects of a resource. Nothing is unused as long as there are such objects", object)
		return decode.Unreadable(r.k, object)
	}
	all, err := decode.ReferringOf(r.k, u)
	if err != nil {
		r.log(err, "Cannot tell what the objects of a resource refer to. Nothing is unused in the namespaces of such objects", object)
	}
	return all
}

// log logs why an object cannot be read. Others most often fail for the same reason.
func (r *referrerReader) log(err error, text string, object runtime.Object) {
	if r.logged.Has(text) {
		return
	}
	r.logged.Insert(text)
	m, _ := meta.Accessor(object)
	klog.Background().Error(err, text, "resource", r.k.Resource(), "first", klog.KObj(m))
}

// beginList begins a list of all objects. The tracker forgets those that it does not have.
func (r *referrerReader) beginList() List[runtime.Object] {
	clear(r.told)
	for _, source := range r.k.Sources() {
		r.Tracker.BeginReferrers(source, r.Clock.Now())
	}
	return referrerList{r}
}

// referrerList passes a list of referrers to the tracker.
type referrerList struct{ *referrerReader }

// Add implements List.
func (l referrerList) Add(page []runtime.Object, now time.Time) {
	for _, object := range page {
		l.Tracker.SetReferring(l.read(object), now)
	}
}

// End implements List.
func (l referrerList) End(_ uint64, now time.Time) {
	for _, source := range l.k.Sources() {
		l.Tracker.EndReferrers(source, now)
	}
}

// Abandon implements List. Nothing is unused until a list ends.
func (l referrerList) Abandon(time.Time) {}
