// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package assessments

import (
	"context"
	"time"

	"golang.org/x/time/rate"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"

	"github.com/winnow-dev/winnow/pkg/controller/metrics"
	"github.com/winnow-dev/winnow/pkg/controller/rules/assessment"
	"github.com/winnow-dev/winnow/pkg/controller/write/stored"
)

const (
	// budget is how many writes a second there may be, and most at once.
	budget, most = 5, 10
	// retryFirst is how long the writer waits after a write has failed, and retryMost how long after many.
	retryFirst, retryMost = 200 * time.Millisecond, 5 * time.Second
	// reportedWithin is how soon the watch must report that an object has changed. After that, all are listed again.
	reportedWithin = 5 * time.Second
)

// Tracker says what must be stored.
type Tracker interface {
	// AssessmentsToStore returns the objects to write next, each in the version that was observed. One without contents must be deleted. All
	// may be written at the same time. Each is returned once, until AssessmentFailed or the watch says what became of it.
	AssessmentsToStore(now time.Time) []*assessment.Object
	// Unstored receives when AssessmentsToStore may return something.
	Unstored() <-chan struct{}
	// AssessmentFailed takes in why an object was not written; empty if it was. Only the watch says that it is stored.
	AssessmentFailed(name, why string, now time.Time)
}

// Config is what a Writer works with.
type Config struct {
	Tracker Tracker
	Client  dynamic.Interface
	Clock   clock.WithTicker
	// Confirm fails unless a consistent read has seen less than 900 ms ago that this replica leads. It is called before each write.
	Confirm func(context.Context) error
	// Relist has the objects listed again, because the watch does not report what was written.
	Relist func()
}

// Writer stores assessments. It runs on the leader alone. Nothing is deleted before what it depends on is stored, so it does not wait, as
// the writer of marks does, until there is more to write.
type Writer struct {
	Config
	stored *stored.Writer
	// outdated are the versions, by the name of the object, on top of which nothing can be written any more, because the object has changed.
	outdated map[string]outdated
}

// outdated is a version that an object no longer has. since is when that became known, or when all were last listed again because of it.
type outdated struct {
	version string
	since   time.Time
}

// NewWriter returns a Writer, which Run starts.
func NewWriter(c Config) *Writer {
	return &Writer{Config: c, stored: stored.NewWriter(stored.Config{
		Resource: Resource, Client: c.Client, Clock: c.Clock, Budget: rate.NewLimiter(budget, most), Writes: metrics.AssessmentWrites,
		Confirm: c.Confirm, Failure: "Cannot store what is held and which changes have been assessed",
	})}
}

// Run writes until ctx ends. After failures it waits, longer each time, so that the watch can report what has changed, and the API server
// recover.
func (w *Writer) Run(ctx context.Context) {
	w.outdated = map[string]outdated{}
	for failures := 0; ctx.Err() == nil; {
		select {
		case <-ctx.Done():
			return
		case <-w.Tracker.Unstored():
		}
		if w.flush(ctx) {
			failures = 0
			continue
		}
		timer := w.Clock.NewTimer(min(retryFirst<<min(failures, 10), retryMost))
		failures++
		select {
		case <-ctx.Done():
		case <-timer.C():
		}
		timer.Stop()
	}
}

// flush writes what must be stored, and reports whether all writes have succeeded.
func (w *Writer) flush(ctx context.Context) bool {
	succeeded := true
	for _, o := range w.Tracker.AssessmentsToStore(w.Clock.Now()) {
		err := w.write(ctx, o)
		if ctx.Err() != nil {
			return false
		}
		w.answered(o, err)
		succeeded = succeeded && err == nil
	}
	return succeeded
}

// answered tells the tracker what became of a write.
func (w *Writer) answered(o *assessment.Object, err error) {
	now := w.Clock.Now()
	if err == nil || changed(err) {
		w.outdate(o, now)
	}
	why := ""
	if err != nil {
		why = err.Error()
	}
	w.Tracker.AssessmentFailed(o.Name, why, now)
}

// outdate remembers that an object has changed, and has all listed again if the watch does not report that.
func (w *Writer) outdate(o *assessment.Object, now time.Time) {
	before, ok := w.outdated[o.Name]
	if ok && before.version == o.ResourceVersion {
		if now.Sub(before.since) < reportedWithin {
			return
		}
		w.Relist()
	}
	w.outdated[o.Name] = outdated{o.ResourceVersion, now}
}

func (w *Writer) write(ctx context.Context, o *assessment.Object) error {
	object, err := encode(o)
	if err != nil {
		return err
	}
	return w.stored.Write(ctx, stored.Change{Object: object, Delete: o.Holds == nil && len(o.Namespaces) == 0 && o.Cluster == nil, Cost: 1})
}

// changed reports whether the cluster has another version of an object than was observed, or none.
func changed(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || stored.Gone(err)
}
