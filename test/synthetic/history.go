// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package synthetic

import (
	"errors"
	"maps"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// begin is the resource version before the first event, above those that Jobs are generated with.
const begin = 1_000_000_000

// event is one that watches tell.
type event struct {
	kind   watch.EventType
	number int
	version
}

// history is what has become of the Jobs. What was generated is not in it.
type history struct {
	mu      sync.Mutex
	jobs    int // how many were generated
	changed map[int]version
	// events since resource version oldest, each one version above the one before.
	events  []event
	oldest  uint64
	deleted map[int]time.Time // when the DELETE was received
	news    chan struct{}     // closed with the next event
	dropped chan struct{}     // closed when all watches are to end
}

func newHistory() *history {
	h := &history{oldest: begin, news: make(chan struct{}), dropped: make(chan struct{})}
	h.reset(0)
	return h
}

// reset generates new Jobs.
func (h *history) reset(jobs int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.jobs, h.changed, h.deleted = jobs, map[int]version{}, map[int]time.Time{}
	h.forget()
}

// expire makes every watch start from a list.
func (h *history) expire() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.forget()
}

func (h *history) forget() {
	h.oldest, h.events = h.newest()+1, nil
	close(h.dropped)
	h.dropped = make(chan struct{})
}

func (h *history) newest() uint64 { return h.oldest + uint64(len(h.events)) }

// state is which Jobs there are, in which versions, at which resource version.
func (h *history) state() (jobs int, changed map[int]version, rv uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.jobs, maps.Clone(h.changed), h.newest()
}

// since are the events after a resource version, and what is closed when there are more, or when the watch is to end. It is
// false when they are not all known any more.
func (h *history) since(rv uint64) (events []event, news, dropped <-chan struct{}, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if rv < h.oldest || rv > h.newest() {
		return nil, nil, nil, false
	}
	return h.events[rv-h.oldest:], h.news, h.dropped, true
}

func (h *history) modify(number int, annotations map[string]string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.add(event{watch.Modified, number, version{annotations: annotations}})
}

func (h *history) add(e event) {
	e.rv = h.newest() + 1
	h.events = append(h.events, e)
	h.changed[e.number] = e.version
	close(h.news)
	h.news = make(chan struct{})
}

// get is the version of a Job; false when it is gone or was never there.
func (h *history) get(number int) (version, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	v := h.changed[number]
	return v, number >= 0 && number < h.jobs && !v.gone
}

var (
	jobResource     = batchv1.Resource("jobs")
	errPrecondition = errors.New("it is not in the state that the preconditions name")
)

// remove takes a Job out as the API server does: if it is still what the caller knows.
func (h *history) remove(number int, given string, preconditions *metav1.Preconditions, at time.Time) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	v := h.changed[number]
	if number < 0 || number >= h.jobs || v.gone {
		return apierrors.NewNotFound(jobResource, given)
	}
	if p := preconditions; p != nil {
		if p.UID != nil && *p.UID != uid(number) || p.ResourceVersion != nil && *p.ResourceVersion != v.of(number) {
			return apierrors.NewConflict(jobResource, given, errPrecondition)
		}
	}
	h.deleted[number] = at
	v.gone = true
	h.add(event{watch.Deleted, number, v})
	return nil
}

func (h *history) deletedAt(number int) time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.deleted[number]
}

func (h *history) deletions() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.deleted)
}
