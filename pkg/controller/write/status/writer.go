// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"golang.org/x/time/rate"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/pkg/controller/engine/knowledge"
	"github.com/winnow-dev/winnow/pkg/controller/engine/view"
	"github.com/winnow-dev/winnow/pkg/controller/metrics"
	"github.com/winnow-dev/winnow/pkg/controller/objects/kinds"
	"github.com/winnow-dev/winnow/pkg/controller/rules/deletion"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
	"github.com/winnow-dev/winnow/pkg/controller/rules/report"
	"github.com/winnow-dev/winnow/pkg/controller/rules/turns"
	gcclient "github.com/winnow-dev/winnow/pkg/generated/clientset/versioned/typed/gc/v1alpha1"
)

const (
	// budget is how many writes a second status and events may make together.
	budget = 10
	// noticesMost is how many of these may be about annotations, however many objects are annotated.
	noticesMost = 2
	// wentBackMost is how many may be about policies and namespaces that have gone back.
	wentBackMost = 5
	// wentBackFor is for how long events about them are useful. Until then, events that cannot be written are tried again.
	wentBackFor = 10 * time.Minute
	// flushEvery is how often changes are written.
	flushEvery = time.Second
	// countsEvery is how often counts are written while more than many objects are being deleted: nobody reads each count, and the API
	// server is busy. Together with flushEvery, it still keeps the promise of five seconds.
	countsEvery = 3 * time.Second
	many        = 10
	// costly is how long the reports of one flush may take: after more than that, the next ones are made after countsEvery. So they take a
	// small part of the time, also while a million objects are listed.
	costly = flushEvery / 20
)

// Tracker has what a Writer writes. Namespaces are identified by name, and "" stands for the cluster policies.
type Tracker interface {
	// PolicyNamespaces returns all namespaces with policies, TakeUnwritten those whose reports may have changed since the last call, and
	// PopUrgent the next one where somebody waits to see a new spec observed.
	PolicyNamespaces() []string
	TakeUnwritten() []string
	PopUrgent() (string, bool)
	// Incomplete reports whether Reports would know only a part.
	Incomplete(namespace string) bool
	Reports(namespace string) []report.Report
	// Kinds is the table of the resources of the objects.
	Kinds() *kinds.Table
	TakeNotices(most int, now time.Time) (out []view.Notice, dropped int)
	// NoticeNamespaces returns the namespaces that may have notices of deletions to be given, and NoticesToGive up to most of these notices,
	// except those of policies that pause. NoticesGiven says which were given, and reports whether that counts.
	NoticeNamespaces() []string
	NoticesToGive(namespace string, pauses func(of types.UID) bool, most int, now time.Time) []view.DeletionNotice
	NoticesGiven(given map[types.UID]policy.Announcement, now time.Time) (known bool)
	// TakeWentBack returns policies and namespaces that have gone back because the store has.
	TakeWentBack(most int) []knowledge.WentBack
}

// Config is what a Writer works with.
type Config struct {
	Tracker  Tracker
	Policies gcclient.GcV1alpha1Interface
	Events   kubernetes.Interface
	Clock    clock.PassiveClock
	// Served returns what the cluster says of a resource.
	Served func(resource string) gc.ServedResource
	// Instance names this replica in events.
	Instance string
	// Reported is called with the reports on all policies of a namespace, or for "" on the cluster policies, whenever they may have changed.
	// It must not change them.
	Reported func(namespace string, reports []report.Report)
	// Announced is called with notices of deletions after their events were written. It may be nil.
	Announced func(given []view.DeletionNotice, at time.Time)
	// Deliver is called again and again, to send the notices that the receiver of notifications must acknowledge. It may be nil.
	Deliver func()
}

// Writer writes the status of policies, and events about deletions, warnings and notices.
type Writer struct {
	Config
	budget  *rate.Limiter
	pending sets.Set[string] // namespaces whose status must be written, "" for the cluster policies
	// delayed says since when changed counts of a namespace have waited to be written.
	delayed map[string]time.Time
	last    string // the namespace whose turn was last
	// reported is when reports were made last, and reporting how long that took. gathered is set if that was countsEvery after the ones
	// before, so that changed counts have waited for long enough.
	reported  time.Time
	reporting time.Duration
	gathered  bool
	// counted are the labels that metrics.Policies counts the policies of a namespace by.
	counted    map[string][][]string
	correlator correlator
	// wentBack are the policies and namespaces of which no event was written yet.
	wentBack []knowledge.WentBack
	notices  noticeWriter
}

// New returns a Writer, which Run starts.
func New(c Config) *Writer {
	return &Writer{
		Config: c, budget: rate.NewLimiter(budget, budget), pending: sets.New[string](), delayed: map[string]time.Time{},
		counted:    map[string][][]string{},
		correlator: newCorrelator(c.Tracker.Kinds),
		notices:    noticeWriter{windows: map[noticeKey]*noticeWindow{}, pauses: map[noticeKey]time.Time{}},
	}
}

// Gone counts deletions whose objects are gone, for the next event.
func (w *Writer) Gone(gone []deletion.Gone) { w.correlator.addGone(gone) }

// Run writes until ctx ends.
func (w *Writer) Run(ctx context.Context) {
	w.pending.Insert(w.Tracker.PolicyNamespaces()...)
	defer func() {
		clear(w.counted)
		metrics.Policies.Reset()
	}()
	wait.NonSlidingUntilWithContext(ctx, w.flush, flushEvery)
}

// flush writes until the next flush is due. Namespaces that had no turn by then are first in the next flush.
func (w *Writer) flush(ctx context.Context) {
	w.pending.Insert(w.Tracker.TakeUnwritten()...)
	end := w.Clock.Now().Add(flushEvery)
	done := sets.New[string]()
	flush := func(ns string) {
		if done.Insert(ns); w.flushNamespace(ctx, ns) {
			w.pending.Delete(ns)
		}
	}
	over := func() bool { return ctx.Err() != nil || !w.Clock.Now().Before(end) }
	// Urgent namespaces go before each other one: a write may wait for the budget, while somebody waits to see a new spec observed.
	flushUrgent := func() {
		for !over() {
			urgent, ok := w.Tracker.PopUrgent()
			if !ok {
				break
			}
			flush(urgent)
		}
	}
	for _, ns := range w.turns() {
		if ns != "" {
			flushUrgent()
		}
		if over() {
			w.reporting = 0 // Those that are left have waited already.
			break
		}
		if !done.Has(ns) {
			flush(ns)
		}
		if ns != "" {
			w.last = ns
		}
	}
	flushUrgent()
	if ctx.Err() != nil {
		return
	}
	w.flushEvents(ctx)
}

// flushEvents writes events about deletions, and about what has gone back, and notices.
func (w *Writer) flushEvents(ctx context.Context) {
	for _, e := range w.correlator.dueDeletions(w.Clock.Now(), budget) {
		w.write(ctx, "event", func() error { return w.createEvent(ctx, e) })
	}
	w.giveNotices(ctx)
	w.wentBack = append(w.wentBack, w.Tracker.TakeWentBack(wentBackMost-len(w.wentBack))...)
	w.wentBack = slices.DeleteFunc(w.wentBack, func(back knowledge.WentBack) bool {
		return w.Clock.Since(back.Since) > wentBackFor || w.write(ctx, "event", func() error { return w.createEvent(ctx, wentBackEvent(&back)) })
	})
	notices, dropped := w.Tracker.TakeNotices(noticesMost, w.Clock.Now())
	metrics.StatusWrites.WithLabelValues("event", "dropped").Add(float64(dropped))
	for i := range notices {
		e := w.correlator.noticeEvent(&notices[i])
		w.write(ctx, "event", func() error { return w.createEvent(ctx, e) })
	}
}

// turns returns the namespaces whose status must be written now, beginning where the last flush ended. The cluster policies are few, and
// always come first.
func (w *Writer) turns() []string {
	now := w.Clock.Now()
	gathered := now.Sub(w.reported) >= countsEvery-flushEvery/2 // Flushes are not that exact.
	if w.reporting > costly && !gathered {
		return nil
	}
	w.reported, w.reporting, w.gathered = now, 0, gathered
	all := turns.After(w.last, sets.List(w.pending))
	if w.pending.Has("") {
		all = append([]string{""}, all...)
	}
	return all
}

// flushNamespace writes the status of the policies of a namespace that have changed, and their warnings. It reports whether nothing is left
// to be written.
func (w *Writer) flushNamespace(ctx context.Context, ns string) bool {
	if w.Tracker.Incomplete(ns) {
		return false
	}
	began := w.Clock.Now()
	reports := w.Tracker.Reports(ns)
	w.reporting += w.Clock.Since(began)
	w.Reported(ns, reports)
	w.correlator.forget(ns, reports)
	w.count(ns, reports)
	done, waited, delayed := true, w.waited(ns), false
	for _, r := range reports {
		if gc.Unreadable(r.Stored) != "" { // A write would lose the parts that cannot be read. The server itself shows the condition.
			continue
		}
		r.Meant = w.meant(r.Unserved)
		status := Of(&r, metav1.NewTime(w.Clock.Now()))
		switch {
		case apiequality.Semantic.DeepEqual(status, *r.Status):
		case !waited && w.mayDelay(&status, &r):
			delayed = true
		default:
			done = w.write(ctx, "status", func() error { return w.patch(ctx, r.Stored, &status) }) && done
		}
		done = w.warn(ctx, &r) && done
	}
	w.setDelayed(ns, delayed)
	return done && !delayed
}

// meant returns the resources that were perhaps meant by those that the cluster does not serve.
func (w *Writer) meant(unserved []string) []string {
	var out []string
	for _, resource := range unserved {
		if similar := w.Served(resource).Similar; similar != "" {
			out = append(out, similar)
		}
	}
	return out
}

// count counts the policies of a namespace anew by their condition Ready.
func (w *Writer) count(ns string, reports []report.Report) {
	for _, labels := range w.counted[ns] {
		metrics.Policies.WithLabelValues(labels...).Dec()
	}
	kind := gc.KindCleanupPolicy
	if ns == "" {
		kind = gc.KindClusterCleanupPolicy
	}
	var counted [][]string
	for i := range reports {
		c := ready(&reports[i])
		labels := []string{kind, string(c.Status), c.Reason}
		metrics.Policies.WithLabelValues(labels...).Inc()
		counted = append(counted, labels)
	}
	if w.counted[ns] = counted; counted == nil {
		delete(w.counted, ns)
	}
}

// mayDelay reports whether a status may wait: the report is mixed, or the status differs from the last one only in counts, which were not
// gathered, and more than many objects are being deleted.
func (w *Writer) mayDelay(status *gc.CleanupPolicyStatus, r *report.Report) bool {
	return r.Mixed() || !w.gathered && status.Due-status.Held > many && onlyCounts(status, r.Status)
}

// setDelayed records whether changed counts of a namespace wait.
func (w *Writer) setDelayed(ns string, delayed bool) {
	switch _, before := w.delayed[ns]; {
	case !delayed:
		delete(w.delayed, ns)
	case !before:
		w.delayed[ns] = w.Clock.Now()
	}
}

// waited reports whether a namespace with a delayed status has waited for long enough.
func (w *Writer) waited(ns string) bool {
	since, ok := w.delayed[ns]
	return ok && w.Clock.Since(since) >= countsEvery
}

// warn writes the warnings about a policy that are due, and reports whether these are all.
func (w *Writer) warn(ctx context.Context, r *report.Report) bool {
	warnings, complete := w.correlator.dueWarnings(r, w.Clock.Now())
	for _, e := range warnings {
		w.write(ctx, "event", func() error { return w.createEvent(ctx, e) })
	}
	return complete
}

// write makes a request when the budget allows it, and reports whether it succeeded. A policy that is gone needs no status, and an event
// that exists already need not be written again.
func (w *Writer) write(ctx context.Context, kind string, do func() error) bool {
	if w.budget.Wait(ctx) != nil {
		return false
	}
	err := do()
	if apierrors.IsNotFound(err) || apierrors.IsAlreadyExists(err) {
		err = nil
	}
	return w.noteWritten(ctx, kind, err)
}

// noteWritten counts and logs the result of a request, and reports whether it succeeded.
func (w *Writer) noteWritten(ctx context.Context, kind string, err error) bool {
	if err == nil {
		metrics.StatusWrites.WithLabelValues(kind, "ok").Inc()
		return true
	}
	metrics.StatusWrites.WithLabelValues(kind, "failed").Inc()
	klog.FromContext(ctx).V(2).Info("Cannot write, trying again", "kind", kind, "err", err)
	return false
}

// patch replaces the whole status of a policy. It needs no resource version, because nobody else writes the status. With the UID, it fails
// for another policy of the same name.
func (w *Writer) patch(ctx context.Context, p policy.Stored, status *gc.CleanupPolicyStatus) error {
	var versioned v1alpha1.CleanupPolicyStatus
	if err := v1alpha1.Convert_gc_CleanupPolicyStatus_To_v1alpha1_CleanupPolicyStatus(status, &versioned, nil); err != nil {
		return err
	}
	body, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": p.UID},
		"status": struct {
			v1alpha1.CleanupPolicyStatus
			// Without omitempty: a patch that leaves a field out would keep the old value.
			Waiting            int64                      `json:"waiting"`
			WaitingForWindow   int64                      `json:"waitingForWindow"`
			NextDeletionTime   *metav1.Time               `json:"nextDeletionTime"`
			LastDeletionTime   *metav1.Time               `json:"lastDeletionTime"`
			Holds              []v1alpha1.PolicyHold      `json:"holds"`
			UnlistedHolds      int64                      `json:"unlistedHolds"`
			Ceilings           []v1alpha1.CeilingStatus   `json:"ceilings"`
			Namespaces         []v1alpha1.NamespaceStatus `json:"namespaces"`
			UnlistedNamespaces int64                      `json:"unlistedNamespaces"`
		}{
			versioned, versioned.Waiting, versioned.WaitingForWindow, versioned.NextDeletionTime, versioned.LastDeletionTime,
			versioned.Holds, versioned.UnlistedHolds, versioned.Ceilings, versioned.Namespaces, versioned.UnlistedNamespaces,
		},
	})
	if err != nil {
		return err
	}
	if p.Namespace == "" {
		_, err = w.Policies.ClusterCleanupPolicies().Patch(ctx, p.Name, types.MergePatchType, body, metav1.PatchOptions{}, "status")
		return err
	}
	_, err = w.Policies.CleanupPolicies(p.Namespace).Patch(ctx, p.Name, types.MergePatchType, body, metav1.PatchOptions{}, "status")
	return err
}
