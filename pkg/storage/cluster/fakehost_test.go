// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
)

// fakeHost serves storedpods as a cluster does, as far as this package asks, and can do what a real cluster does only when somebody puts
// its etcd back, or when something between repeats an event.
type fakeHost struct {
	url string

	lock    sync.Mutex
	changed *sync.Cond
	// revision is the newest; only the newest is served.
	revision uint64
	objects  map[string]storedObject
	events   []fakeEvent
	pages    map[string]*storedList // by continue token
	down     bool
	epoch    int // counts what ends all watches
	requests map[string]int
}

type fakeEvent struct {
	Type   watch.EventType `json:"type"`
	Object storedObject    `json:"object"`
	// again is set for an event that is not in its order.
	again bool
}

func newFakeHost(t *testing.T) *fakeHost {
	t.Helper()
	h := &fakeHost{revision: 1000, objects: map[string]storedObject{}, pages: map[string]*storedList{}, requests: map[string]int{}}
	h.changed = sync.NewCond(&h.lock)
	server := httptest.NewServer(h)
	t.Cleanup(func() {
		h.endWatches()
		server.CloseClientConnections()
		server.Close()
	})
	h.url = server.URL
	return h
}

func (h *fakeHost) host(t *testing.T) *Host {
	t.Helper()
	host, err := NewHost(&rest.Config{Host: h.url}, "ns")
	if err != nil {
		t.Fatal(err)
	}
	return host
}

// put writes an object, as another server would, and returns its resourceVersion.
func (h *fakeHost) put(name, payload string) string {
	h.lock.Lock()
	defer h.lock.Unlock()
	object := storedObject{Payload: payload}
	object.Namespace, object.Name = "ns", name
	return h.write(&object).ResourceVersion
}

func (h *fakeHost) write(object *storedObject) *storedObject {
	kind := watch.Modified
	if _, exists := h.objects[fakeKey(object)]; !exists {
		kind = watch.Added
	}
	h.record(kind, object)
	h.objects[fakeKey(object)] = *object
	return object
}

func (h *fakeHost) record(kind watch.EventType, object *storedObject) {
	h.revision++
	object.ResourceVersion = strconv.FormatUint(h.revision, 10)
	h.events = append(h.events, fakeEvent{Type: kind, Object: *object})
	h.changed.Broadcast()
}

// repeat sends an event of the past once more on all watches.
func (h *fakeHost) repeat(resourceVersion string) {
	h.lock.Lock()
	defer h.lock.Unlock()
	for _, event := range h.events {
		if event.Object.ResourceVersion == resourceVersion {
			event.again = true
			h.events = append(h.events, event)
		}
	}
	h.changed.Broadcast()
}

// backup returns what puts everything back to how it is now, as a restore of its etcd does. The watches end if they have to.
func (h *fakeHost) backup() (restore func(endWatches bool)) {
	h.lock.Lock()
	defer h.lock.Unlock()
	objects, events, revision := maps.Clone(h.objects), slices.Clone(h.events), h.revision
	return func(endWatches bool) {
		h.lock.Lock()
		h.objects, h.events, h.revision = objects, events, revision
		h.lock.Unlock()
		if endWatches {
			h.endWatches()
		}
	}
}

func (h *fakeHost) endWatches() {
	h.lock.Lock()
	defer h.lock.Unlock()
	h.epoch++
	h.changed.Broadcast()
}

// fail makes every request fail, or no request any more.
func (h *fakeHost) fail(down bool) {
	h.lock.Lock()
	h.down = down
	h.lock.Unlock()
	if down {
		h.endWatches()
	}
}

func (h *fakeHost) count(what string) int {
	h.lock.Lock()
	defer h.lock.Unlock()
	return h.requests[what]
}

func (h *fakeHost) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.lock.Lock()
	defer h.lock.Unlock()
	_, path, _ := strings.Cut(r.URL.Path, "/v1alpha1/")
	parts := strings.Split(path, "/")
	var at location
	if parts[0] == "namespaces" {
		at.namespace, parts = parts[1], parts[2:]
	}
	if len(parts) > 1 {
		at.name = parts[1]
	}
	query := r.URL.Query()
	verb := r.Method
	switch {
	case query.Get("watch") == "true":
		verb = "WATCH"
	case verb == http.MethodGet && at.name == "":
		verb = "LIST"
	}
	h.requests[verb]++
	switch {
	case h.down:
		http.Error(w, "down", http.StatusServiceUnavailable)
	case verb == "WATCH":
		h.serveWatch(w, r, at)
	case verb == "LIST":
		h.serveList(w, at, query.Get("limit"), query.Get("continue"))
	default:
		h.serveObject(w, r, at)
	}
}

func (h *fakeHost) serveObject(w http.ResponseWriter, r *http.Request, at location) {
	var sent storedObject
	if r.Method == http.MethodPost || r.Method == http.MethodPut {
		if err := json.NewDecoder(r.Body).Decode(&sent); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		at.name = sent.Name
	}
	sent.Namespace = at.namespace
	stored, exists := h.objects[at.namespace+"/"+at.name]
	switch {
	case r.Method == http.MethodPost && exists:
		refuse(w, http.StatusConflict, metav1.StatusReasonAlreadyExists, at)
	case r.Method != http.MethodPost && !exists:
		refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound, at)
	case r.Method == http.MethodPut && sent.ResourceVersion != stored.ResourceVersion:
		refuse(w, http.StatusConflict, metav1.StatusReasonConflict, at)
	case r.Method == http.MethodPost, r.Method == http.MethodPut:
		answer(w, http.StatusOK, h.write(&sent))
	case r.Method == http.MethodDelete:
		delete(h.objects, fakeKey(&stored))
		h.record(watch.Deleted, &stored)
		answer(w, http.StatusOK, metav1.Status{Status: metav1.StatusSuccess})
	default:
		answer(w, http.StatusOK, stored)
	}
}

func (h *fakeHost) serveList(w http.ResponseWriter, at location, limit, token string) {
	list := h.pages[token]
	if token == "" {
		list = &storedList{}
		list.ResourceVersion = strconv.FormatUint(h.revision, 10)
		for _, object := range h.objects {
			if at.namespace == "" || at.namespace == object.Namespace {
				list.Items = append(list.Items, object)
			}
		}
		slices.SortFunc(list.Items, func(a, b storedObject) int { return cmp.Compare(fakeKey(&a), fakeKey(&b)) })
	}
	page := *list
	if most, _ := strconv.Atoi(limit); most > 0 && len(list.Items) > most {
		rest := *list
		page.Items, rest.Items = list.Items[:most], list.Items[most:]
		page.Continue = fmt.Sprint("page-", len(h.pages))
		h.pages[page.Continue] = &rest
	}
	answer(w, http.StatusOK, page)
}

// serveWatch sends what comes after the resourceVersion until the client goes or the watch ends.
func (h *fakeHost) serveWatch(w http.ResponseWriter, r *http.Request, at location) {
	go func() {
		<-r.Context().Done()
		h.lock.Lock()
		defer h.lock.Unlock()
		h.changed.Broadcast()
	}()
	from, _ := strconv.ParseUint(r.URL.Query().Get("resourceVersion"), 10, 64)
	w.WriteHeader(http.StatusOK)
	w.(http.Flusher).Flush()
	next := len(h.events)
	for i, event := range h.events {
		if revision, _ := strconv.ParseUint(event.Object.ResourceVersion, 10, 64); revision > from {
			next = i
			break
		}
	}
	for epoch := h.epoch; epoch == h.epoch && r.Context().Err() == nil; {
		for ; next < len(h.events); next++ {
			event := h.events[next]
			revision, _ := strconv.ParseUint(event.Object.ResourceVersion, 10, 64)
			if (at.namespace == "" || at.namespace == event.Object.Namespace) && (revision > from || event.again) {
				_ = json.NewEncoder(w).Encode(event)
			}
		}
		w.(http.Flusher).Flush()
		h.changed.Wait()
	}
}

func fakeKey(object *storedObject) string { return object.Namespace + "/" + object.Name }

func answer(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body)
}

func refuse(w http.ResponseWriter, code int, reason metav1.StatusReason, at location) {
	answer(w, code, metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Code: int32(code), Reason: reason,
		Details: &metav1.StatusDetails{Kind: "storedpods", Name: at.name},
	})
}
