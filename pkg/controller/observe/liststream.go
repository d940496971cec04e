// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
)

// List is a list of all objects of a resource, which is added to the tracker page by page.
type List[T any] interface {
	// Add adds some of the objects.
	Add(page []T, now time.Time)
	// End says that all objects were added, as they were at a version.
	End(resourceVersion uint64, now time.Time)
	// Abandon says that no more objects follow, although not all were added.
	Abandon(now time.Time)
}

// listStream stands between a reflector and the API server, and hands the objects of each list to the tracker as they arrive. A reflector
// itself collects a whole list before it hands on any of it, and a million objects would be in memory twice. So the reflector gets lists
// without objects. Everything else is left to it: when to list, when to watch, and how long to wait after an error.
type listStream[T any] struct {
	// lister and watcher call the API server.
	lister  cache.ListWithContextFunc
	watcher cache.WatchFuncWithContext
	report  func(context.Context, error) // whether the resource can be observed
	pages   pageSlots
	reduce  func(object any) (T, error)
	atOnce  int // how many objects are added at a time
	begin   func() List[T]
	remove  func(T)
	now     func() time.Time

	lock    sync.Mutex
	current List[T] // that has begun and not ended; nil otherwise
	stopped bool
}

// listWatch are the calls for the reflector.
func (s *listStream[T]) listWatch() *cache.ListWatch {
	return &cache.ListWatch{ListWithContextFunc: s.list, WatchFuncWithContext: s.watch}
}

// list lists all objects page by page, where the API server cannot stream lists, and returns a list without them. The options are those
// of a reflector that wants to be served from the watch cache, where one answer may have all objects.
func (s *listStream[T]) list(ctx context.Context, _ metav1.ListOptions) (runtime.Object, error) {
	version, err := eachReduced(ctx, s.pages, func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		l, err := s.lister(ctx, options)
		s.answered(ctx, err, options.Continue == "")
		return l, err
	}, s.atOnce, s.reduce, s.add)
	if err != nil {
		s.breakOff(ctx, err)
	}
	return &metav1.List{ListMeta: metav1.ListMeta{ResourceVersion: version}}, err
}

// watch returns a watch without its initial events, which the stream adds to the list. Only the last of them, which says that the list is
// complete, is left for the reflector.
func (s *listStream[T]) watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	w, err := s.watcher(ctx, options)
	initial := ptr.Deref(options.SendInitialEvents, false)
	s.answered(ctx, err, initial)
	if err != nil || !initial {
		return w, err
	}
	last, ok := s.initialEvents(ctx, w)
	if !ok { // The reflector sees that w has ended, and lists again.
		s.breakOff(ctx, errors.New("the connection was lost before all objects were listed"))
		return w, nil
	}
	if last.Type == watch.Error {
		s.breakOff(ctx, apierrors.FromObject(last.Object))
	}
	resumed := &resumedWatch{Interface: w, last: make(chan watch.Event, 1)}
	resumed.last <- last
	return resumed, nil
}

// answered handles the answer to a call. A list begins with its first answer and not with the call, so that a resource that cannot be
// listed pauses no deletes. The list begins before the tracker learns that the resource can be observed, because from the beginning of the
// list on, memory is a mixture of old and new states.
func (s *listStream[T]) answered(ctx context.Context, err error, first bool) {
	if err == nil && first {
		s.start()
	}
	s.report(ctx, err)
}

// initialEvents adds the objects of the initial events of a watch, and returns the last of these events: the bookmark that ends them, or an
// error. ok is false if the watch or ctx ends before that.
func (s *listStream[T]) initialEvents(ctx context.Context, w watch.Interface) (last watch.Event, ok bool) {
	var page []T
	for {
		select {
		case <-ctx.Done():
			return last, false
		case e, ok := <-w.ResultChan():
			switch {
			case !ok || e.Type == watch.Error:
				return e, ok
			case e.Type != watch.Bookmark:
				page = s.take(page, e)
			case endsInitialEvents(e):
				s.add(page)
				return e, true
			}
		}
	}
}

// endsInitialEvents reports whether a bookmark says that all initial events came before.
func endsInitialEvents(bookmark watch.Event) bool {
	m, err := meta.Accessor(bookmark.Object)
	return err == nil && m.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true"
}

// take adds the object of an event to a page, and returns the page for the next event. Objects may change and be removed before the initial
// events end.
func (s *listStream[T]) take(page []T, e watch.Event) []T {
	reduced, err := s.reduce(e.Object)
	if err != nil {
		skipped(e.Object, err)
		return page
	}
	if e.Type != watch.Deleted {
		if page = append(page, reduced); len(page) < s.atOnce {
			return page
		}
	}
	s.add(page)
	if e.Type == watch.Deleted {
		s.remove(reduced)
	}
	return make([]T, 0, s.atOnce)
}

func (s *listStream[T]) start() {
	s.lock.Lock()
	defer s.lock.Unlock()
	if !s.stopped {
		s.current = s.begin()
	}
}

func (s *listStream[T]) add(page []T) {
	s.lock.Lock()
	defer s.lock.Unlock()
	if s.current != nil && len(page) > 0 {
		s.current.Add(page, s.now())
	}
}

// end ends the list, which was complete at a version. The reflector calls Replace when a list or the initial events are complete, and
// the sink calls end. A version that cannot be parsed counts as 0, so that no object is removed because of it.
func (s *listStream[T]) end(resourceVersion string) {
	s.lock.Lock()
	defer s.lock.Unlock()
	if s.current != nil {
		version, _ := strconv.ParseUint(resourceVersion, 10, 64)
		s.current.End(version, s.now())
		s.current = nil
	}
}

// breakOff abandons the list that has not ended. Memory is a mixture of old and new states then, so the resource counts as one that cannot
// be observed until the next list begins. If ctx has ended, stop abandons the list.
func (s *listStream[T]) breakOff(ctx context.Context, why error) {
	s.lock.Lock()
	defer s.lock.Unlock()
	if s.current != nil && ctx.Err() == nil {
		s.report(ctx, why)
		s.current.Abandon(s.now())
		s.current = nil
	}
}

// stop abandons the list and makes later calls do nothing, because a list call of the reflector may still be running.
func (s *listStream[T]) stop() {
	s.lock.Lock()
	s.stopped = true
	s.lock.Unlock()
	s.breakOff(context.Background(), errors.New("not all objects were listed"))
}

// resumedWatch is a watch that begins with the last of its initial events.
type resumedWatch struct {
	watch.Interface
	last chan watch.Event
}

// ResultChan implements watch.Interface. A reflector asks for the channel before each event.
func (w *resumedWatch) ResultChan() <-chan watch.Event {
	if len(w.last) > 0 {
		return w.last
	}
	return w.Interface.ResultChan()
}

// pageSize is how many objects are listed and added at a time.
const pageSize = 500

// eachReduced lists objects page by page, as they were at one resource version, and returns that version. It adds so many at a time.
func eachReduced[T any](
	ctx context.Context, pages pageSlots, list cache.ListWithContextFunc, atOnce int, reduce func(any) (T, error), add func([]T),
) (resourceVersion string, err error) {
	err = eachPage(ctx, pages, list, pageSize, func(l runtime.Object, m metav1.ListInterface) error {
		resourceVersion = m.GetResourceVersion()
		page := make([]T, 0, min(atOnce, meta.LenList(l)))
		err := meta.EachListItem(l, func(object runtime.Object) error {
			reduced, err := reduce(object)
			if err != nil {
				skipped(object, err)
				return nil
			}
			if page = append(page, reduced); len(page) == atOnce {
				add(page)
				page = make([]T, 0, atOnce)
			}
			return nil
		})
		if err == nil {
			add(page)
		}
		return err
	})
	if err != nil {
		return "", err
	}
	return resourceVersion, nil
}

// eachPage lists objects, at most so many at a time, and calls do with each page before it requests the next one.
func eachPage(
	ctx context.Context, pages pageSlots, list cache.ListWithContextFunc, most int64,
	do func(page runtime.Object, m metav1.ListInterface) error,
) error {
	options := metav1.ListOptions{Limit: most}
	for {
		next, err := onePage(ctx, pages, list, options, do)
		if err != nil || next == "" {
			return err
		}
		options.Continue = next
	}
}

// onePage is eachPage for one page. It returns what the next one is requested with; empty if there is none.
func onePage(
	ctx context.Context, pages pageSlots, list cache.ListWithContextFunc, options metav1.ListOptions,
	do func(page runtime.Object, m metav1.ListInterface) error,
) (next string, err error) {
	done, err := pages.take(ctx)
	if err != nil {
		return "", err
	}
	defer done()
	page, err := list(ctx, options)
	if err != nil {
		return "", err
	}
	m, err := meta.ListAccessor(page)
	if err != nil {
		return "", err
	}
	return m.GetContinue(), do(page, m)
}
