// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package records

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"

	"github.com/winnow-dev/winnow/pkg/controller/metrics"
	"github.com/winnow-dev/winnow/pkg/controller/write/stored"
)

// errUnserved means that the cluster does not serve chunks.
var errUnserved = fmt.Errorf("the cluster does not serve %s; see artifacts/storage", Resource.GroupResource())

// flush writes the records of each namespace once. If the API server does not answer, it leaves the others for the next time.
func (w *Writer) flush(ctx context.Context) {
	namespaces := w.buffer.namespaces()
	var next atomic.Int64
	var failed atomic.Pointer[error]
	var writing sync.WaitGroup
	for range min(workers, len(namespaces)) {
		writing.Go(func() {
			for i := next.Add(1); i <= int64(len(namespaces)) && failed.Load() == nil && ctx.Err() == nil; i = next.Add(1) {
				if err := w.flushNamespace(ctx, namespaces[i-1]); err != nil {
					failed.Store(&err)
				}
			}
		})
	}
	writing.Wait()
	var err error
	if p := failed.Load(); p != nil {
		err = *p
	}
	if errors.Is(err, errUnserved) {
		for _, k := range w.buffer.namespaces() {
			count("unserved", w.buffer.removeAll(k))
		}
	}
	if err != nil || len(namespaces) > 0 { // A round without records says nothing.
		w.errs.Log(ctx, err, "Cannot read the stored records of deleted objects")
	}
	metrics.RecordsPending.Set(float64(w.buffer.len()))
}

// flushNamespace writes the records of a namespace, as far as it can now. It returns an error if those of other namespaces would fail too.
func (w *Writer) flushNamespace(ctx context.Context, k key) error {
	if first := w.buffer.first(k, 1); len(first) > 0 && w.Clock.Since(first[0].added) > checkAfter {
		if there, err := w.isThere(ctx, k); err != nil {
			return err
		} else if !there {
			count("gone", w.buffer.removeAll(k))
			return nil
		}
	}
	open, err := w.openOf(ctx, k)
	for last := w.buffer.last(k); ctx.Err() == nil; {
		first := w.firstOf(k, last)
		if len(first) == 0 {
			return nil
		}
		if err == nil {
			err = w.flushChunk(ctx, k, &open, first)
		}
		switch {
		case err == nil:
			continue
		case errors.Is(err, errOfNamespace), apierrors.IsForbidden(err):
			w.stored.Log(ctx, err, k.name, "")
			count("dropped", w.buffer.removeBefore(k, w.Clock.Now().Add(-giveUpAfter)))
			return nil
		case errors.Is(err, errChanged):
			open, err = w.openOf(ctx, k)
			continue
		case errors.Is(err, errAgain):
			return nil
		}
		return err
	}
	return nil
}

// firstOf returns the first records of a namespace; none if the rest waits for the next round. last is the number of its last record when
// this round began there. While much is deleted, more would always follow, so these wait unless some would be dropped by then.
func (w *Writer) firstOf(k key, last uint64) []pending {
	first := w.buffer.first(k, w.perChunk())
	if len(first) > 0 && first[0].number > last && w.buffer.waiting(k) < wakeAt {
		return nil
	}
	return first
}

// isThere reports whether a namespace still exists, and is not another one of the same name.
func (w *Writer) isThere(ctx context.Context, k key) (bool, error) {
	if k.uid == "" {
		return true, nil
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	ns, err := w.Metadata.Resource(corev1.SchemeGroupVersion.WithResource("namespaces")).Get(ctx, k.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil && ns.UID == k.uid, err
}

// openChunk is the chunk of a namespace that takes the next records.
type openChunk struct {
	number uint64
	stored bool
	// remembered is set if this replica has just written it, so that it was not read before the next write.
	remembered bool
	// count is how many records the chunk has, and room is how many more the namespace may have, as far as this replica knows.
	count, room int
	// known are the states in earlier chunks that may be those of pending records up to the number knownTo. It is nil once these are stored.
	known   sets.Set[state]
	knownTo uint64
}

// openOf returns the chunk of a namespace that takes the next records. It lists the chunks if that is not remembered.
func (w *Writer) openOf(ctx context.Context, k key) (openChunk, error) {
	if remembered, ok := w.open.Get(k); ok {
		return remembered.(openChunk), nil
	}
	return w.lastOf(ctx, k)
}

// lastOf lists the chunks of a namespace, and returns the last one.
func (w *Writer) lastOf(ctx context.Context, k key) (openChunk, error) {
	upTo, oldest := w.buffer.last(k), w.buffer.oldest(k)
	chunks, err := list(ctx, w.Metadata, k.name)
	if err != nil || len(chunks) == 0 {
		return openChunk{room: w.PerNamespace}, err
	}
	last := chunks[len(chunks)-1]
	open := openChunk{
		number: last.number, stored: true, count: last.count, room: w.roomBeside(chunks), known: sets.New[state](), knownTo: upTo,
	}
	for _, c := range chunks[:len(chunks)-1] {
		if !c.newest.IsZero() && c.newest.Before(oldest) {
			continue
		}
		if err := w.learn(ctx, k, &open, c.number); err != nil {
			return open, err
		}
	}
	return open, nil
}

// learn adds the states in a chunk to those that are known.
func (w *Writer) learn(ctx context.Context, k key, open *openChunk, number uint64) error {
	object, err := w.get(ctx, k.name, number)
	switch {
	case stored.IsGone(err):
		return nil
	case err != nil:
		return fmt.Errorf("%w: %w", errOfNamespace, err)
	}
	all, _ := decode(object) // Readers tell people of what cannot be read.
	open.known.Insert(states(all)...)
	return nil
}

func (w *Writer) get(ctx context.Context, namespace string, number uint64) (*unstructured.Unstructured, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	return w.Client.Resource(Resource).Namespace(namespace).Get(ctx, nameOf(number), metav1.GetOptions{})
}

var (
	// errOfNamespace means that writes to a namespace fail.
	errOfNamespace = errors.New("its records cannot be written")
	// errAgain means that the chunks of a namespace must be read again in the next round, and errChanged that they must be read at once,
	// because a write on top of what was remembered has failed.
	errAgain   = errors.New("its chunks must be read again")
	errChanged = errors.New("its last chunk is not as it was written")
)

// flushChunk writes the first records of a namespace, as many as fit into a chunk.
func (w *Writer) flushChunk(ctx context.Context, k key, open *openChunk, first []pending) error {
	object, before, err := w.content(ctx, k, open)
	if err != nil {
		w.open.Remove(k)
		return err
	}
	all, upTo := w.fill(before, first, open.known)
	if added := len(all) - len(before); added > 0 {
		if err := encode(object, all); err != nil {
			return fmt.Errorf("%w: %w", errOfNamespace, err)
		}
		if result := w.stored.Try(ctx, stored.Change{Object: object, Cost: 1}); result != stored.Done {
			return w.notWritten(k, open, result)
		}
		open.stored = true
		open.has(len(all))
		count("stored", added)
		if !isFull(object, len(all), w.perChunk()) {
			w.written.Add(k, object, rememberWritten)
		}
	}
	w.buffer.removeTo(k, upTo)
	if next := w.buffer.first(k, 1); len(next) == 0 || next[0].number > open.knownTo {
		open.known = nil
	}
	w.open.Add(k, *open)
	// The next round reads a full chunk all the same, because that shows that the namespace is still the same one.
	if open.stored && isFull(object, len(all), w.perChunk()) {
		open.next(all)
	}
	return nil
}

// notWritten is called when a chunk was not written. The error says when the chunks are read again.
func (w *Writer) notWritten(k key, open *openChunk, result stored.Result) error {
	switch {
	case result == stored.Failed:
		w.open.Remove(k)
		count("dropped", w.buffer.removeBefore(k, w.Clock.Now().Add(-giveUpAfter)))
	case !open.stored: // The namespace has gone. Otherwise only the chunk may have gone, which is found out when it is read.
		count("gone", w.buffer.removeAll(k))
		w.open.Remove(k)
	}
	if open.remembered {
		return errChanged
	}
	return errAgain
}

// fill adds the first pending records that are not known yet to those of a chunk, until the chunk is full. It returns the number of the
// last pending record that need not be written again.
func (w *Writer) fill(before []record, first []pending, known sets.Set[state]) (all []record, upTo uint64) {
	all, here := before, sets.New(states(before)...)
	for i := range first {
		if state := stateOf(&first[i].record); !known.Has(state) && !here.Has(state) {
			if len(all) >= w.perChunk() {
				break
			}
			here.Insert(state)
			all = append(all, first[i].record)
		}
		upTo = first[i].number
	}
	return all, upTo
}

// content returns the chunk that takes the next records. If it is full, has gone or cannot be read, the next one takes them.
func (w *Writer) content(ctx context.Context, k key, open *openChunk) (*unstructured.Unstructured, []record, error) {
	open.remembered = false
	if open.stored {
		object, err := w.current(ctx, k, open)
		var all []record
		switch {
		case stored.IsGone(err): // It was deleted, or its namespace was.
			newer, err := w.afterGone(ctx, k, open)
			if err != nil {
				return nil, nil, err
			}
			if newer {
				return w.content(ctx, k, open)
			}
		case err != nil:
			return nil, nil, fmt.Errorf("%w: %w", errOfNamespace, err)
		default:
			if all, err = decode(object); err != nil { // It stays as it is. Readers tell people.
				klog.FromContext(ctx).Error(err, "Cannot add to the records of deleted objects")
				break
			}
			if open.has(len(all)); !isFull(object, len(all), w.perChunk()) {
				return object, all, nil
			}
		}
		open.next(all)
	}
	if open.room < w.perChunk() {
		w.trim(ctx, k.name, open)
	}
	return newChunk(k.name, open.number), nil, nil
}

// current returns the chunk that is open. It reads it unless this replica has just written it. If somebody else has changed or deleted it
// since, the next write fails, and the chunk is read after all.
func (w *Writer) current(ctx context.Context, k key, open *openChunk) (*unstructured.Unstructured, error) {
	written, ok := w.written.Get(k)
	w.written.Remove(k) // Until the next write has succeeded.
	if ok {
		if object := written.(*unstructured.Unstructured); object.GetName() == nameOf(open.number) {
			open.remembered = true
			return object, nil
		}
	}
	return w.get(ctx, k.name, open.number)
}

// afterGone is called when a chunk that was stored has gone. It finds out what is stored now, and reports whether other replicas have
// written newer chunks. A chunk with a lower number than these would be removed before them.
func (w *Writer) afterGone(ctx context.Context, k key, open *openChunk) (newer bool, err error) {
	there, err := w.isThere(ctx, k)
	if err != nil {
		return false, err
	}
	if !there {
		count("gone", w.buffer.removeAll(k))
		return false, errAgain
	}
	last, err := w.lastOf(ctx, k)
	if err != nil {
		return false, err
	}
	if newer = last.number > open.number; !newer && last.stored { // Nothing is added to it, so it is not read later.
		err = w.learn(ctx, k, &last, last.number)
	}
	last.number = max(last.number, open.number)
	*open = last
	return newer, err
}

// has takes how many records the chunk has now. Other replicas may have added some.
func (o *openChunk) has(count int) {
	o.room -= count - o.count
	o.count = count
}

// next begins a new chunk after the one that has these records.
func (o *openChunk) next(all []record) {
	if o.known != nil {
		o.known.Insert(states(all)...)
	}
	o.number, o.stored, o.count = o.number+1, false, 0
}

// state is what a DELETE was for. An object that came back from a backup, and was deleted again, has another one.
type state struct {
	uid             types.UID
	resourceVersion string
}

func stateOf(r *record) state { return state{r.Object.UID, r.Object.ResourceVersion} }

func states(all []record) []state {
	out := make([]state, len(all))
	for i := range all {
		out[i] = stateOf(&all[i])
	}
	return out
}

// trim removes the chunks of a namespace that are too many, before a new one.
func (w *Writer) trim(ctx context.Context, namespace string, open *openChunk) {
	chunks, err := list(ctx, w.Metadata, namespace)
	if err != nil {
		return // The remover tries again within the hour.
	}
	old := tooMany(chunks, w.PerNamespace-w.perChunk())
	for _, c := range old {
		if remove(ctx, w.stored, c) == stored.Failed {
			return // Otherwise a chunk would be missing in the middle.
		}
	}
	open.room = w.roomBeside(chunks[len(old):])
}

// roomBeside returns how many more records a namespace may have beside those of chunks.
func (w *Writer) roomBeside(chunks []chunk) int {
	room := w.PerNamespace
	for _, c := range chunks {
		room -= c.count
	}
	return room
}
