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
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/utils/clock"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/metrics"
	"github.com/winnow-dev/winnow/pkg/controller/rules/deletion"
	kept "github.com/winnow-dev/winnow/pkg/controller/write/stored"
)

const (
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
	// BytesTotal is how much room the copies of all namespaces take at most. The leader counts them each hour.
	BytesTotal int64
}

// Writer stores copies. Only the leader calls it.
type Writer struct {
	Config
	rooms  rooms
	mine   mine
	stored *kept.Writer
	// undone removes what was stored for a DELETE that failed. At most deletion.CopiesAtOnce of these are under way, so they need no budget.
	undone *kept.Writer
}

// NewWriter returns a Writer.
func NewWriter(c Config) *Writer {
	remover := kept.Config{
		Resource: Resource, Client: c.Client, Clock: c.Clock, Budget: c.Budget, Writes: metrics.CopyWrites, Timeout: requestTimeout,
		Failure: "Cannot remove a copy of a deleted object",
	}
	unlimited := remover
	unlimited.Budget = rate.NewLimiter(rate.Inf, 1)
	return &Writer{
		Config: c, rooms: rooms{quota: usage{c.PerNamespace, c.BytesPerNamespace}, most: c.BytesTotal},
		stored: kept.NewWriter(remover), undone: kept.NewWriter(unlimited),
	}
}

// Keep stores the object of an order as it was read, in JSON, and returns until when the copy is kept. Once it has returned without a
// refusal, the copy is stored. A refusal says how the order ends.
func (w *Writer) Keep(ctx context.Context, o *deletion.Order, object []byte) (until time.Time, refused *deletion.Result) {
	if why := gc.CopyRefusal(o.Fact.Resource); why != "" { // No rule can ask for it.
		return time.Time{}, refusal(deletion.Refused, fmt.Sprintf("%s %s", o.Fact.Resource, why))
	}
	if o.NamespaceUID == "" { // Nobody could read the copy.
		return time.Time{}, refusal(deletion.Unknown, notStoredBecause+"the UID of its namespace is not known")
	}
	if until := w.reuse(ctx, o); !until.IsZero() {
		return until, nil
	}
	content, err := encode(object)
	if err != nil {
		return time.Time{}, refusalOf(err)
	}
	now := w.Clock.Now()
	e := entry{
		namespace: o.Fact.Namespace, name: nameOf(o.Fact.UID), namespaceUID: o.NamespaceUID,
		bytes: int64(len(content)), runsAgain: o.Kind.Finishes, decided: o.Until,
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

// Full returns how an order ends if it is known that there is no room for a copy; nil otherwise. It asks nobody, so a
// full namespace costs no requests.
func (w *Writer) Full(o *deletion.Order) *deletion.Result {
	if full := w.rooms.full(o.Fact.Namespace, w.Clock.Now()); full != "" {
		return refusalOf(errFull(full))
	}
	return nil
}

// Forget forgets what is stored, because another replica may have led.
func (w *Writer) Forget() {
	w.rooms.forget()
	w.mine.forgetAll()
}

// errFull says that there is no room for a copy.
type errFull string

func (e errFull) Error() string {
	return string(e) + " (--copies-per-namespace, --copy-bytes-per-namespace, --copy-bytes-total); room is made when copies expire, or when " +
		"an administrator deletes some " + Resource.GroupResource().String()
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
	if later, ok := deletion.Throttled(err); ok {
		later.NotSent, later.ServerError, later.Detail = true, false, notStoredBecause+err.Error()
		return &later
	}
	return refusal(deletion.Unknown, notStoredBecause+err.Error())
}

const notStoredBecause = "its copy cannot be stored: "

func refusal(outcome deletion.Outcome, detail string) *deletion.Result {
	return &deletion.Result{Outcome: outcome, NotSent: true, Detail: detail}
}

// store writes a copy, over an older one of the same object, if there is room for it.
func (w *Writer) store(ctx context.Context, e entry, content string) error {
	older, err := w.reserve(ctx, &e)
	if err != nil {
		return err
	}
	needs := usage{1, e.bytes}
	var version string
	for range conflicts {
		version, err = w.write(ctx, e, content)
		if !apierrors.IsAlreadyExists(err) && !apierrors.IsConflict(err) {
			break
		}
		found, readErr := w.findOlder(ctx, &e)
		if readErr != nil {
			err = readErr
			break
		}
		older, e.resourceVersion = found, found.version()
	}
	w.rooms.settle(e.namespace, needs, older.usage(), resultOf(err))
	if err == nil {
		w.mine.add(e, version, older.settled(e.decided))
	}
	return notStoredError(&e, err)
}

// notStoredError says why a copy was not stored; nil if it was.
func notStoredError(e *entry, err error) error {
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

// write stores a copy, and returns its resource version. The end of ctx does not cancel the request, because its outcome would be unknown.
func (w *Writer) write(ctx context.Context, e entry, content string) (version string, err error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTimeout)
	defer cancel()
	client, object := w.Client.Resource(Resource).Namespace(e.namespace), e.newObject(content)
	var written *unstructured.Unstructured
	if e.resourceVersion == "" {
		written, err = client.Create(ctx, object, metav1.CreateOptions{})
	} else {
		written, err = client.Update(ctx, object, metav1.UpdateOptions{})
	}
	result := "failed"
	switch {
	case err == nil:
		result = "ok"
	case apierrors.IsAlreadyExists(err), apierrors.IsConflict(err), kept.IsGone(err):
		result = "conflict"
	}
	metrics.CopyWrites.WithLabelValues(result).Inc()
	if err != nil {
		return "", err
	}
	return written.GetResourceVersion(), nil
}

// reserve takes room for a copy, and returns the older copy that it replaces; nil if there is none, or if that does not matter.
func (w *Writer) reserve(ctx context.Context, e *entry) (older *entry, err error) {
	needs := usage{1, e.bytes}
	if most := min(w.BytesPerNamespace, w.BytesTotal); e.bytes > most && w.PerNamespace > 0 { // No room would be enough.
		return nil, errTooLarge{bytes: int(e.bytes), most: int(most), compressed: true}
	}
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
var errNewer = errors.New("another replica of Winnow has just stored a copy of a newer state of the object")

// errOther says that two objects have the same UID. Only an API server other than that of Kubernetes could make such objects.
var errOther = errors.New("there is a copy of another object with the same UID")

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
	switch {
	case found.object.Resource != e.object.Resource, found.object.Name != e.object.Name:
		return nil, errOther
	case found.objectVersion() > e.objectVersion() && !found.settled(e.decided): // Later, the store has gone back in time.
		return nil, errNewer
	}
	return &found, nil
}

// objectVersion returns the resource version of the object that was copied, as a number; zero if it is not known.
func (e *entry) objectVersion() uint64 {
	n, _ := strconv.ParseUint(e.object.ResourceVersion, 10, 64)
	return n
}
