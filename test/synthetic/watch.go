// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package synthetic

import (
	"bufio"
	"context"
	"encoding/binary"
	"net/http"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"
)

const (
	// bookmarkEvery is how often a watch tells how far it has come, as in kube-apiserver.
	bookmarkEvery = time.Minute
	// longest is how long a watch lasts that does not say.
	longest = 30 * time.Minute
	// buffered is how much is written at once, in bytes.
	buffered = 64 << 10
)

// stream writes the events of one watch.
type stream struct {
	out       *bufio.Writer
	flush     func()
	generator *generator
	namespace string
	rv        uint64 // how far it has come
}

// watch streams events, first of what there is if that is asked for (KEP-3157), until the client goes, its time is over or all
// watches are dropped.
func (s *Server) watch(w http.ResponseWriter, r *http.Request, options metav1.ListOptions) {
	ctx, cancel := context.WithTimeout(r.Context(), time.Duration(ptr.Deref(options.TimeoutSeconds, int64(longest/time.Second)))*time.Second)
	defer cancel()
	w.Header().Set("Content-Type", runtime.ContentTypeProtobuf+";stream=watch")
	flusher := http.NewResponseController(w)
	out := &stream{
		out: bufio.NewWriterSize(w, buffered), flush: func() { _ = flusher.Flush() },
		generator: s.generator(), namespace: r.PathValue("namespace"),
	}
	out.flush() // the headers, so that the client knows
	initial := ptr.Deref(options.SendInitialEvents, options.ResourceVersion == "" || options.ResourceVersion == "0")
	if initial {
		jobs, changed, rv := s.history.state()
		out.rv = rv
		if err := out.all(ctx, jobs, changed); err != nil {
			return
		}
		if options.AllowWatchBookmarks && options.SendInitialEvents != nil {
			if err := out.bookmark(map[string]string{metav1.InitialEventsAnnotationKey: "true"}); err != nil {
				return
			}
		}
	} else {
		out.rv, _ = strconv.ParseUint(options.ResourceVersion, 10, 64) // what is no number is too old
	}
	_ = s.follow(ctx, out) // The client has gone: nobody is there to be told.
}

// follow writes what happens from now on.
func (s *Server) follow(ctx context.Context, out *stream) error {
	bookmarks := time.NewTicker(bookmarkEvery)
	defer bookmarks.Stop()
	for {
		events, news, dropped, ok := s.history.since(out.rv)
		if !ok {
			return out.expired()
		}
		for _, e := range events {
			out.rv = e.rv
			if err := out.job(e.kind, e.number, e.version); err != nil {
				return err
			}
		}
		if err := out.send(); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-dropped:
			return nil
		case <-news:
		case <-bookmarks.C:
			if err := out.bookmark(nil); err != nil {
				return err
			}
		}
	}
}

// all writes the Jobs that there are.
func (s *stream) all(ctx context.Context, jobs int, changed map[int]version) error {
	for number := range jobs {
		if v := changed[number]; !v.gone {
			if err := s.job(watch.Added, number, v); err != nil {
				return err
			}
		}
	}
	return ctx.Err()
}

func (s *stream) job(kind watch.EventType, number int, v version) error {
	if !s.generator.in(number, s.namespace) {
		return nil
	}
	return s.write(kind, "batch/v1", "Job", s.generator.make(number, v))
}

func (s *stream) bookmark(annotations map[string]string) error {
	return s.write(watch.Bookmark, "batch/v1", "Job", &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{ResourceVersion: strconv.FormatUint(s.rv, 10), Annotations: annotations},
	})
}

// expired is how a watch ends that cannot go on from where it was.
func (s *stream) expired() error {
	status := apierrors.NewResourceExpired("too old resource version: " + strconv.FormatUint(s.rv, 10)).Status()
	if err := s.write(watch.Error, "v1", "Status", &status); err != nil {
		return err
	}
	return s.send()
}

func (s *stream) send() error {
	err := s.out.Flush()
	s.flush()
	return err
}

// magic begins what is not JSON.
var magic = []byte("k8s\x00")

// write frames an event as kube-apiserver does: its length, then the event, in which the object is in an envelope that tells
// what it is.
func (s *stream) write(kind watch.EventType, version, object string, value interface{ Marshal() ([]byte, error) }) error {
	raw, err := value.Marshal()
	if err != nil {
		return err
	}
	envelope := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: version, Kind: object}, Raw: raw}
	message := make([]byte, len(magic)+envelope.Size())
	copy(message, magic)
	if _, err := envelope.MarshalTo(message[len(magic):]); err != nil {
		return err
	}
	told := metav1.WatchEvent{Type: string(kind), Object: runtime.RawExtension{Raw: message}}
	frame, err := told.Marshal()
	if err != nil {
		return err
	}
	if err := binary.Write(s.out, binary.BigEndian, uint32(len(frame))); err != nil {
		return err
	}
	_, err = s.out.Write(frame)
	return err
}
