// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package copies

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"golang.org/x/time/rate"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/utils/clock"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/metrics"
	"github.com/winnow-dev/winnow/pkg/controller/rules/deletion"
	kept "github.com/winnow-dev/winnow/pkg/controller/write/stored"
)

const (
	// atOnce is how many objects are read and copied at once. Each may need several times its size, of up to some megabytes.
	atOnce = 4
	// requestTimeout bounds each request.
	requestTimeout = 5 * time.Second
	// slack is for how much longer than promised a copy is kept, because the DELETE follows after it.
	slack = time.Minute
	// recountAfter is how soon the copies of a namespace are counted again, if there seems to be no room.
	recountAfter = 10 * time.Second
	// conflicts is how often a copy is written at most, if others change it.
	conflicts = 3
)

// Config is what copies are stored with.
type Config struct {
	Client   dynamic.Interface
	Metadata metadata.Interface
	Clock    clock.Clock
	// Doubt compares clocks, and reports whether they are in doubt. While they are, no copy is too old.
	Doubt func(context.Context) bool
	// Budget is how many copies may be removed.
	Budget *rate.Limiter
	// PerNamespace is how many copies of a namespace are kept, and BytesPerNamespace how much room they take at most.
	PerNamespace      int
	BytesPerNamespace int64
}

// Writer stores copies. Only the leader calls it.
type Writer struct {
	Config
	rooms  rooms
	slots  chan struct{}
	stored *kept.Writer
}

// NewWriter returns a Writer.
func NewWriter(c Config) *Writer {
	return &Writer{
		Config: c, rooms: rooms{quota: usage{c.PerNamespace, c.BytesPerNamespace}}, slots: make(chan struct{}, atOnce),
		stored: kept.NewWriter(kept.Config{
			Resource: Resource, Client: c.Client, Clock: c.Clock, Budget: c.Budget, Writes: metrics.CopyWrites, Timeout: requestTimeout,
			Failure: "Cannot remove a copy of a deleted object",
		}),
	}
}

// Enter waits until the object of an order may be read and copied: whole objects take memory. The caller must call leave, unless ctx has
// ended.
func (w *Writer) Enter(ctx context.Context) (leave func(), err error) {
	select {
	case w.slots <- struct{}{}:
		return func() { <-w.slots }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Keep stores the object of an order as it was read, in JSON, and returns until when the copy is kept. Once it has returned without a
// refusal, the copy is stored. A refusal says how the order ends.
func (w *Writer) Keep(ctx context.Context, o *deletion.Order, object []byte) (until time.Time, refused *deletion.Result) {
	if why := gc.CopyRefusal(o.Fact.Resource); why != "" { // No rule can ask for it.
		return time.Time{}, refusal(deletion.Refused, fmt.Sprintf("%s %s", o.Fact.Resource, why))
	}
	content, err := encode(object)
	if err != nil {
		return time.Time{}, refusalOf(err)
	}
	now := w.Clock.Now()
	e := entry{
		namespace: o.Fact.Namespace, name: nameOf(o.Fact.UID), bytes: int64(len(content)), runsAgain: o.Kind.Finishes,
		at: now.Truncate(time.Microsecond), until: now.Add(o.KeepCopy + slack).Truncate(time.Microsecond),
		object: gc.RecordObject{
			Resource: o.Fact.Resource, Name: o.Fact.Name, UID: o.Fact.UID, ResourceVersion: strconv.FormatUint(o.Fact.ResourceVersion, 10),
		},
	}
	if err := w.store(ctx, e, content); err != nil {
		return time.Time{}, refusalOf(err)
	}
	return e.until, nil
}

// Forget forgets how many copies there are, because another replica may have led.
func (w *Writer) Forget() { w.rooms.forget() }

// errFull says that there is no room for a copy.
type errFull string

func (e errFull) Error() string {
	return string(e) + " (--copies-per-namespace, --copy-bytes-per-namespace); room is made when copies expire, or if you delete some " +
		Resource.GroupResource().String()
}

// errUnserved means that the cluster does not serve copies.
var errUnserved = fmt.Errorf("the cluster does not serve %s; see artifacts/storage", Resource.GroupResource())

// refusalOf returns how an order ends whose copy is not stored.
func refusalOf(err error) *deletion.Result {
	var full errFull
	var tooLarge errTooLarge
	switch {
	case errors.As(err, &full):
		return refusal(deletion.CopyQuotaExceeded, err.Error())
	case errors.As(err, &tooLarge):
		return refusal(deletion.CopyTooLarge, err.Error())
	}
	return refusal(deletion.Unknown, "its copy cannot be stored: "+err.Error())
}

func refusal(outcome deletion.Outcome, detail string) *deletion.Result {
	return &deletion.Result{Outcome: outcome, NotSent: true, Detail: detail}
}

// store writes a copy, over an older one of the same object, if there is room for it.
func (w *Writer) store(ctx context.Context, e entry, content string) error {
	older, err := w.reserve(ctx, &e)
	if err != nil {
		return err
	}
	needs, replaces := usage{1, e.bytes}, older.usage()
	for range conflicts {
		err = w.write(ctx, e, content)
		if !apierrors.IsAlreadyExists(err) && !apierrors.IsConflict(err) {
			break
		}
		found, readErr := w.findOlder(ctx, &e)
		if readErr != nil {
			err = readErr
			break
		}
		e.resourceVersion, replaces = found.version(), found.usage()
	}
	w.rooms.settle(e.namespace, needs, replaces, resultOf(err))
	switch {
	case apierrors.IsRequestEntityTooLargeError(err):
		return errTooLarge{bytes: int(e.bytes), most: maxCompressed, compressed: true}
	case apierrors.IsNotFound(err) && !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse) && e.resourceVersion != "":
		return errors.New("it was removed at the same time")
	case kept.IsGone(err):
		return errors.New("the namespace is being deleted")
	case apierrors.IsNotFound(err):
		return errUnserved
	}
	return err
}

// resultOf says what became of a write.
func resultOf(err error) result {
	var status apierrors.APIStatus
	switch {
	case err == nil:
		return stored
	case errors.As(err, &status) && status.Status().Code < 500:
		return notStored
	}
	return unknown
}

func (w *Writer) write(ctx context.Context, e entry, content string) (err error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	client, object := w.Client.Resource(Resource).Namespace(e.namespace), e.newObject(content)
	if e.resourceVersion == "" {
		_, err = client.Create(ctx, object, metav1.CreateOptions{})
	} else {
		_, err = client.Update(ctx, object, metav1.UpdateOptions{})
	}
	result := "failed"
	switch {
	case err == nil:
		result = "ok"
	case apierrors.IsAlreadyExists(err), apierrors.IsConflict(err), kept.IsGone(err):
		result = "conflict"
	}
	metrics.CopyWrites.WithLabelValues(result).Inc()
	return err
}

// reserve takes room for a copy, and returns the older copy that it replaces; nil if there is none, or if that does not matter.
func (w *Writer) reserve(ctx context.Context, e *entry) (older *entry, err error) {
	needs := usage{1, e.bytes}
	full, listed := w.rooms.reserve(e.namespace, needs, usage{})
	if full == "" {
		return nil, nil
	}
	if listed.IsZero() {
		if err := w.recount(ctx, e.namespace); err != nil {
			return nil, err
		}
	}
	if older, err = w.findOlder(ctx, e); err != nil {
		return nil, err
	}
	e.resourceVersion = older.version()
	if full, listed = w.rooms.reserve(e.namespace, needs, older.usage()); full == "" {
		return older, nil
	}
	if w.Clock.Since(listed) >= recountAfter {
		if err := w.recount(ctx, e.namespace); err != nil {
			return nil, err
		}
		full, _ = w.rooms.reserve(e.namespace, needs, older.usage())
	}
	if full != "" {
		return nil, errFull(full)
	}
	return older, nil
}

// usage is what a copy takes; nothing for nil.
func (e *entry) usage() usage {
	if e == nil {
		return usage{}
	}
	return usage{1, e.bytes}
}

// version returns the resource version on which the next one is written; empty if there is no copy yet.
func (e *entry) version() string {
	if e == nil {
		return ""
	}
	return e.resourceVersion
}

// errNewer says that another replica has stored a newer state, for a DELETE that it may have sent by now.
var errNewer = errors.New("a copy of a newer state of the object is stored already")

// findOlder returns the stored copy that a copy replaces; nil if there is none. A replica that no longer leads must not replace what the
// leader has stored for its DELETE.
func (w *Writer) findOlder(ctx context.Context, e *entry) (*entry, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	m, err := w.Metadata.Resource(Resource).Namespace(e.namespace).Get(ctx, e.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	found := describe(m)
	if found.objectVersion() > e.objectVersion() {
		return nil, errNewer
	}
	return &found, nil
}

// objectVersion returns the resource version of the object that was copied, as a number; zero if it is not known.
func (e *entry) objectVersion() uint64 {
	n, _ := strconv.ParseUint(e.object.ResourceVersion, 10, 64)
	return n
}
