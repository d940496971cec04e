// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"
	utilflowcontrol "k8s.io/apiserver/pkg/util/flowcontrol"
	"k8s.io/klog/v2"

	"github.com/winnow-dev/winnow/pkg/storage/cached"
)

// resultBuffer is how many events wait for a slow client before reading from the host pauses.
const resultBuffer = 100

// watcher is one watch of one client.
type watcher struct {
	store     *store
	at        target
	predicate storage.SelectionPredicate
	bookmarks bool
	barriers  bool // a write of the Barrier is a bookmark too

	// initial is sent before the events of the stream.
	initial []watch.Event
	// matching has, by key, the objects that match and that the client knows. It is nil if the host selects.
	matching map[string]*storedObject

	stream *eventStream // nil if no object can have this key
	last   uint64       // resourceVersion of the last event of the stream, or of where it starts
	result chan watch.Event
	cancel context.CancelFunc
	// expire ends the stream with cached.ErrExpired, and so the watch.
	expire func()
}

// Watch implements storage.Interface. When it returns, the current resourceVersion is known and the stream of the host is open, so that the
// client misses no later event.
func (s *store) Watch(ctx context.Context, key string, opts storage.ListOptions) (watch.Interface, error) {
	return s.watch(ctx, key, opts, cached.IsOwn(ctx))
}

// watch is like Watch. With barriers, a write of the Barrier is a bookmark.
func (s *store) watch(ctx context.Context, key string, opts storage.ListOptions, barriers bool) (watch.Interface, error) {
	at, err := s.locate(key, opts.Recursive)
	if err != nil {
		return nil, err
	}
	revision, err := s.versioner.ParseResourceVersion(opts.ResourceVersion)
	if err != nil {
		return nil, apierrors.NewBadRequest("invalid resource version: " + err.Error())
	}
	w := &watcher{
		store:     s,
		at:        at,
		predicate: opts.Predicate,
		bookmarks: opts.Predicate.AllowWatchBookmarks || opts.ProgressNotify,
		result:    make(chan watch.Event, resultBuffer),
	}
	w.barriers = w.bookmarks && barriers
	watchCtx, cancel := context.WithCancel(ctx)
	streamCtx, end := context.WithCancelCause(watchCtx)
	w.cancel, w.expire = cancel, func() { end(cached.ErrExpired) }
	s.timeline.Join(w)
	if err := w.open(watchCtx, streamCtx, revision, opts); err != nil && !errors.Is(err, context.Canceled) {
		s.timeline.Leave(w)
		cancel()
		return nil, err
	}
	utilflowcontrol.WatchInitialized(ctx)
	go w.run(watchCtx, streamCtx)
	return w, nil
}

// Expire implements cached.Watch.
func (w *watcher) Expire() { w.expire() }

// Stop implements watch.Interface.
func (w *watcher) Stop() { w.cancel() }

// ResultChan implements watch.Interface.
func (w *watcher) ResultChan() <-chan watch.Event { return w.result }

// open collects the initial events, and starts the stream of the host right after them.
func (w *watcher) open(ctx, streamCtx context.Context, revision uint64, opts storage.ListOptions) error {
	start := opts.ResourceVersion
	wantsInitial := revision == 0
	if opts.SendInitialEvents != nil {
		wantsInitial = *opts.SendInitialEvents
	}
	seed, err := w.seed(ctx, revision, wantsInitial, !w.store.hostSelects(w.predicate))
	if err != nil {
		return err
	}
	if wantsInitial || revision == 0 {
		revision, start = seed, strconv.FormatUint(seed, 10)
	}
	w.last = revision
	if wantsInitial && opts.SendInitialEvents != nil && opts.Predicate.AllowWatchBookmarks {
		bookmark, err := w.bookmark(start)
		if err != nil {
			return err
		}
		if err := storage.AnnotateInitialEventsEndBookmark(bookmark); err != nil {
			return storage.NewInternalError(err)
		}
		w.initial = append(w.initial, watch.Event{Type: watch.Bookmark, Object: bookmark})
	}
	if w.at.neverExists {
		return nil
	}
	stream, err := w.store.table.watch(streamCtx, listQuery{
		location:        w.at.location,
		labels:          labelSelector(w.predicate),
		resourceVersion: start,
		bookmarks:       w.bookmarks,
	})
	w.stream = stream
	if hasExpired(streamCtx) {
		return cached.ErrExpired
	}
	return w.store.translate(ctx, err, w.at)
}

// hostSelects reports whether the predicate selects only by label. Then the host itself sends ADDED when an object begins to match, and
// DELETED when it no longer does.
func (s *store) hostSelects(predicate storage.SelectionPredicate) bool {
	predicate.Label = nil
	return predicate.Empty()
}

// seed lists the state from which the stream starts, and returns its resourceVersion: the newest state, or exactly the client's
// resourceVersion if the client gets no initial events. If nobody needs the objects, it only sees to it that the cluster has come as far as
// the client's resourceVersion: from later on, the host would report nothing, after a restore for ever.
func (w *watcher) seed(ctx context.Context, revision uint64, wantsInitial, selective bool) (uint64, error) {
	query, objects := w.seedQuery(revision, wantsInitial, selective)
	before := w.store.timeline.Now()
	list, err := w.store.table.list(ctx, query.paged())
	if err != nil {
		return 0, w.store.translate(ctx, err, w.at)
	}
	current, err := w.store.revisionOf(list, query, before)
	switch {
	case revision > current && wantsInitial:
		return 0, storage.NewTooLargeResourceVersionError(revision, current, 1)
	case revision > current:
		return 0, cached.ErrExpired
	case err != nil:
		return 0, err
	}
	if !objects {
		return current, nil
	}
	return current, w.takeAll(ctx, query.paged(), list, wantsInitial, selective)
}

// seedQuery returns the query of seed, and whether its objects are needed.
func (w *watcher) seedQuery(revision uint64, wantsInitial, selective bool) (query listQuery, objects bool) {
	query, objects = listQuery{location: w.at.location, labels: labelSelector(w.predicate)}, !w.at.neverExists && (wantsInitial || selective)
	if !objects {
		query.limit = 1
	} else if !wantsInitial && revision > 0 {
		query.resourceVersion, query.match = strconv.FormatUint(revision, 10), metav1.ResourceVersionMatchExact
	}
	return query, objects
}

// takeAll takes the objects of a list, of which this is the first page.
func (w *watcher) takeAll(ctx context.Context, query listQuery, page *storedList, wantsInitial, selective bool) error {
	if selective {
		w.matching = map[string]*storedObject{}
	}
	for {
		if err := w.take(page, wantsInitial, selective); err != nil || page.Continue == "" {
			return err
		}
		query = query.next(page.Continue)
		var err error
		if page, err = w.store.table.list(ctx, query); err != nil {
			return w.store.translate(ctx, err, w.at)
		}
	}
}

func (w *watcher) take(list *storedList, wantsInitial, selective bool) error {
	for i := range list.Items {
		stored := &list.Items[i]
		object, matches, err := w.decode(stored)
		if err != nil {
			return err
		}
		if !matches {
			continue
		}
		if selective {
			w.matching[w.at.keyOf(stored)] = stored
		}
		if wantsInitial {
			w.initial = append(w.initial, watch.Event{Type: watch.Added, Object: object})
		}
	}
	return nil
}

// run sends events until the client stops, its context ends, or the host ends the stream. Clients then watch again from the last
// resourceVersion.
func (w *watcher) run(ctx, streamCtx context.Context) {
	defer close(w.result)
	defer w.cancel()
	defer w.store.timeline.Leave(w)
	for _, event := range w.initial {
		if !w.send(ctx, event) {
			break
		}
	}
	w.initial = nil
	if w.stream == nil {
		<-ctx.Done()
		return
	}
	defer w.stream.close()
	for ctx.Err() == nil {
		received, err := w.stream.next()
		if err != nil && hasExpired(streamCtx) {
			w.send(ctx, errorEvent(cached.ErrExpired))
			return
		}
		if err != nil {
			klog.FromContext(ctx).V(4).Info("The cluster's API ended a watch", "resource", w.store.table.resource, "reason", err)
			return
		}
		event, err := w.transform(ctx, received)
		if err != nil {
			w.send(ctx, errorEvent(err))
			return
		}
		if event != nil && !w.send(ctx, *event) {
			return
		}
	}
}

func (w *watcher) send(ctx context.Context, event watch.Event) bool {
	select {
	case w.result <- event:
		return true
	case <-ctx.Done():
		return false
	}
}

// transform translates an event of the host for the client; nil if the client gets no event.
func (w *watcher) transform(ctx context.Context, received hostEvent) (*watch.Event, error) {
	kind := watch.EventType(received.Type)
	if kind == watch.Error {
		return nil, w.hostError(ctx, received)
	}
	stored, err := received.stored()
	if err != nil {
		return nil, storage.NewInternalError(err)
	}
	if newer, err := w.advance(ctx, kind, stored); !newer || err != nil {
		return nil, err
	}
	if barrier := isBarrier(*stored); barrier || kind == watch.Bookmark {
		return w.progress(stored, barrier)
	}
	if w.matching != nil {
		return w.transition(kind, stored)
	}
	object, _, err := w.decode(stored)
	if err != nil && kind == watch.Deleted {
		err = corruptDeletion(err)
	}
	return &watch.Event{Type: kind, Object: object}, err
}

// progress returns the bookmark for a bookmark or barrier of the host; nil if the client gets none.
func (w *watcher) progress(stored *storedObject, barrier bool) (*watch.Event, error) {
	if !w.bookmarks || barrier && !w.barriers {
		return nil, nil
	}
	bookmark, err := w.bookmark(stored.ResourceVersion)
	return &watch.Event{Type: watch.Bookmark, Object: bookmark}, err
}

// hasExpired reports whether a stream was ended because the cluster has gone back in time.
func hasExpired(streamCtx context.Context) bool {
	return errors.Is(context.Cause(streamCtx), cached.ErrExpired)
}

// advance reports whether an event is newer than all before it, and takes its resourceVersion. The cluster reports changes in their order:
// an event that comes again, or too late, must not bring back what was before.
func (w *watcher) advance(ctx context.Context, kind watch.EventType, stored *storedObject) (bool, error) {
	revision, err := w.store.versioner.ParseResourceVersion(stored.ResourceVersion)
	switch {
	case err != nil:
		return false, storage.NewInternalError(err)
	case revision < w.last || revision == w.last && kind != watch.Bookmark:
		klog.FromContext(ctx).Info("Ignoring an older event of a watch", "resource", w.store.table.resource, "type", kind,
			"namespace", stored.Namespace, "name", stored.Name, "resourceVersion", revision, "last", w.last)
		return false, nil
	}
	w.last = revision
	w.store.timeline.Saw(w, revision)
	return true, nil
}

// transition returns the event for an object that begins to match, still matches, or no longer does.
func (w *watcher) transition(kind watch.EventType, stored *storedObject) (*watch.Event, error) {
	key := w.at.keyOf(stored)
	shown, wasShown := w.matching[key]
	var object runtime.Object
	var matches bool
	var err error
	if kind != watch.Deleted {
		if object, matches, err = w.decode(stored); err != nil {
			return nil, err
		}
	}
	switch {
	case matches && wasShown:
		w.matching[key] = stored
		return &watch.Event{Type: watch.Modified, Object: object}, nil
	case matches:
		w.matching[key] = stored
		return &watch.Event{Type: watch.Added, Object: object}, nil
	case !wasShown:
		return nil, nil
	}
	// The client gets what it was last shown, at the resourceVersion of the change.
	delete(w.matching, key)
	shown.ResourceVersion = stored.ResourceVersion
	object, _, err = w.decode(shown)
	return &watch.Event{Type: watch.Deleted, Object: object}, err
}

func (w *watcher) decode(stored *storedObject) (object runtime.Object, matches bool, err error) {
	object = w.store.newFunc()
	if err := w.store.decode(stored, w.at.keyOf(stored), object); err != nil {
		return nil, false, err
	}
	matches, err = w.predicate.Matches(object)
	return object, err == nil && matches, nil
}

// bookmark returns an object that has only a resourceVersion.
func (w *watcher) bookmark(resourceVersion string) (runtime.Object, error) {
	object := w.store.newFunc()
	accessor, err := meta.Accessor(object)
	if err != nil {
		return nil, storage.NewInternalError(err)
	}
	accessor.SetResourceVersion(resourceVersion)
	return object, nil
}

func (w *watcher) hostError(ctx context.Context, received hostEvent) error {
	var status metav1.Status
	if err := json.Unmarshal(received.Object, &status); err != nil {
		return storage.NewInternalError(err)
	}
	if status.Code == http.StatusGone {
		return apierrors.NewResourceExpired(watchExpired)
	}
	return w.store.translateStatus(ctx, status, w.at)
}

func (e hostEvent) stored() (*storedObject, error) {
	stored := &storedObject{}
	return stored, json.Unmarshal(e.Object, stored)
}

// errorEvent returns the event that ends a watch.
func errorEvent(err error) watch.Event {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		status = apierrors.NewInternalError(err)
	}
	reported := status.Status()
	return watch.Event{Type: watch.Error, Object: &reported}
}

// corruptDeletion is the error for the deletion of an object that cannot be decoded.
func corruptDeletion(err error) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status:  metav1.StatusFailure,
		Code:    http.StatusInternalServerError,
		Reason:  metav1.StatusReasonStoreReadError,
		Message: "saw a DELETED event, but object data is corrupt - " + err.Error(),
	}}
}

func resourceVersionOf(object runtime.Object) string {
	accessor, err := meta.Accessor(object)
	if err != nil {
		return ""
	}
	return accessor.GetResourceVersion()
}
