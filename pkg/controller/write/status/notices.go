// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	utilrand "k8s.io/apimachinery/pkg/util/rand"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/engine/view"
	"github.com/winnow-dev/winnow/pkg/controller/rules/report"
	"github.com/winnow-dev/winnow/pkg/controller/rules/turns"
)

const (
	// reasonNotice is the reason of events that announce deletions.
	reasonNotice = "DeletionNotice"
	// fewNotices is how many notices of a policy in a namespace are events on their objects in gatherFor. More are gathered: there is one
	// event about many objects in gatherFor.
	fewNotices = 5
	gatherFor  = time.Minute
	// noticeEventsMost is how many events about notices one flush writes at most, and noticesMostAtOnce how many objects one of them is about.
	noticeEventsMost  = 5
	noticesMostAtOnce = 5000
	// retryNotices is how long a policy pauses in a namespace where an event could not be written, and noticeTimeout how long one may take:
	// the status of policies waits meanwhile.
	retryNotices  = 10 * time.Second
	noticeTimeout = 2 * time.Second
	// noticeNamesMost is how many objects an event about many names.
	noticeNamesMost = 3
)

// noticeKey identifies notices that are gathered.
type noticeKey struct {
	policy    types.UID
	namespace string
}

// noticeWindow is what was written about notices since a time.
type noticeWindow struct {
	since    time.Time
	single   int
	gathered bool
}

// noticeWriter gathers notices of deletions. last is the namespace whose turn was last, and pauses says until when nothing of a key is
// written.
type noticeWriter struct {
	windows map[noticeKey]*noticeWindow
	pauses  map[noticeKey]time.Time
	last    string
}

// noticeBatch is one event about notices.
type noticeBatch struct {
	event
	of  []view.DeletionNotice
	key noticeKey
}

// giveNotices writes the events that announce deletions. A notice that cannot be written stays to be given, and its object is kept.
func (w *Writer) giveNotices(ctx context.Context) {
	if w.Deliver != nil {
		w.Deliver()
	}
	n := &w.notices
	maps.DeleteFunc(n.windows, func(_ noticeKey, of *noticeWindow) bool { return w.Clock.Since(of.since) >= gatherFor })
	maps.DeleteFunc(n.pauses, func(_ noticeKey, until time.Time) bool { return !w.Clock.Now().Before(until) })
	left := noticeEventsMost
	for _, namespace := range turns.After(n.last, w.Tracker.NoticeNamespaces()) {
		if left == 0 {
			return // This namespace is the first of the next flush.
		}
		batches := w.noticeBatches(namespace)
		n.last = namespace
		for i := range batches {
			if ctx.Err() != nil || left == 0 {
				return
			}
			if left--; !w.giveNotice(ctx, &batches[i]) {
				break // What refuses one event in a namespace refuses the others too.
			}
		}
	}
}

// giveNotice writes an event about notices, and reports whether it did. From then on they are given. Only an event that the API has just
// accepted counts, and only if the clock has not been in doubt meanwhile.
func (w *Writer) giveNotice(ctx context.Context, b *noticeBatch) bool {
	if w.budget.Wait(ctx) != nil {
		return false
	}
	writing, cancel := context.WithTimeout(ctx, noticeTimeout)
	defer cancel()
	err := w.createEvent(writing, b.event)
	at := w.Clock.Now()
	if !w.noteWritten(ctx, "event", err) {
		w.notices.pauses[b.key] = at.Add(retryNotices)
		return false
	}
	w.notices.wrote(b, at)
	if setBack := at.Round(0).Before(b.of[0].Given.Round(0)); setBack || !w.Tracker.NoticesGiven(view.GivenAt(b.of, at), at) {
		w.notices.pauses[b.key] = at.Add(retryNotices)
		return false
	}
	if w.Announced != nil {
		w.Announced(b.of, at)
	}
	return true
}

// wrote notes that an event was written.
func (n *noticeWriter) wrote(b *noticeBatch, now time.Time) {
	of := n.windows[b.key]
	if of == nil {
		of = &noticeWindow{since: now}
		n.windows[b.key] = of
	}
	if len(b.of) == 1 && b.object != nil && b.object.Name == b.of[0].Fact.Name {
		of.single++
	} else {
		of.gathered = true
	}
}

// noticeBatches returns the events that can be written now about the notices that must be given in a namespace.
func (w *Writer) noticeBatches(namespace string) []noticeBatch {
	byPolicy := map[noticeKey][]view.DeletionNotice{}
	pauses := func(of types.UID) bool { return !w.notices.pauses[noticeKey{of, namespace}].IsZero() }
	for _, d := range w.Tracker.NoticesToGive(namespace, pauses, noticesMostAtOnce, w.Clock.Now()) {
		key := noticeKey{d.PolicyUID, namespace}
		byPolicy[key] = append(byPolicy[key], d)
	}
	var out []noticeBatch
	for _, key := range slices.SortedFunc(maps.Keys(byPolicy), func(a, b noticeKey) int { return cmp.Compare(a.policy, b.policy) }) {
		out = append(out, w.batchesOf(key, byPolicy[key])...)
	}
	return out
}

// batchesOf returns the events that can be written now about notices of a policy in a namespace.
func (w *Writer) batchesOf(key noticeKey, all []view.DeletionNotice) []noticeBatch {
	of := w.notices.windows[key]
	if of == nil {
		of = &noticeWindow{}
	}
	unnamed := slices.ContainsFunc(all, func(d view.DeletionNotice) bool { return !report.MayName(d.Fact.Resource) })
	switch {
	case of.single+len(all) <= fewNotices && !of.gathered && !unnamed:
		var out []noticeBatch
		for i := range all {
			out = append(out, noticeBatch{w.correlator.deletionNotice(&all[i]), all[i : i+1], key})
		}
		return out
	case of.gathered:
		w.notices.pauses[key] = of.since.Add(gatherFor) // They wait until the minute is over.
		return nil
	}
	return []noticeBatch{{w.correlator.deletionNotices(all), all, key}}
}

// deletionNotice returns the event that announces the deletion of one object.
func (c *correlator) deletionNotice(d *view.DeletionNotice) event {
	f := d.Fact
	return event{
		subject: subject{d.Policy, d.PolicyUID}, object: c.reference(f.Resource, f.Namespace, f.Name, f.UID),
		kind: corev1.EventTypeNormal, reason: reasonNotice, id: randomID(),
		// How to keep it comes before what may be cut off, because names can be long.
		note: fmt.Sprintf("Winnow deletes this object at %s at the earliest. %s (%s by %s; %s)",
			stamp(d.At), d.Keep, d.Reason, deleter(d), d.Demanded),
	}
}

// deletionNotices returns the event that announces the deletions of many objects. It is on the policy; for a cluster policy, it is on the
// namespace of the objects.
func (c *correlator) deletionNotices(all []view.DeletionNotice) event {
	first := &all[0]
	namespace := first.Fact.Namespace
	e := event{subject: subject{first.Policy, first.PolicyUID}, kind: corev1.EventTypeNormal, reason: reasonNotice, id: randomID()}
	by := gc.KindCleanupPolicy
	if first.Policy.Namespace == "" {
		by = gc.KindClusterCleanupPolicy
		e.object = &corev1.ObjectReference{APIVersion: "v1", Kind: "Namespace", Namespace: namespace, Name: namespace}
	}
	from, to := first.At, first.At
	for i := range all {
		if at := all[i].At; at.Before(from) {
			from = at
		} else if at.After(to) {
			to = at
		}
	}
	when := "at " + stamp(from)
	if to.After(from) {
		when = fmt.Sprintf("between %s and %s", stamp(from), stamp(to))
	}
	keep := fmt.Sprintf("kubectl get cand -n %s -o yaml says how to keep each", namespace)
	if !slices.ContainsFunc(all, func(d view.DeletionNotice) bool { return !d.Annotation }) {
		keep = fmt.Sprintf("To keep one: kubectl annotate --overwrite RESOURCE NAME -n %s %s=TIME", namespace, gc.AnnotationKeepUntil)
	}
	e.note = fmt.Sprintf(
		"Winnow deletes %s %s at the earliest. To list them: kubectl get cand -n %s --field-selector state=%s. %s (%s by %s %q)",
		report.Objects(int64(len(all))), when, namespace, gc.CandidateNotified, keep, namesOf(all), by, first.Policy.Name)
	return e
}

// namesOf names the first objects, and counts the others.
func namesOf(all []view.DeletionNotice) string {
	var names []string
	for i := range all {
		f := all[i].Fact
		if len(names) == noticeNamesMost {
			break
		}
		if name := f.Resource + "/" + f.Name; report.MayName(f.Resource) {
			names = append(names, name)
		} else if !slices.Contains(names, f.Resource) {
			names = append(names, f.Resource)
		}
	}
	if len(all) > len(names) {
		names = append(names, "...")
	}
	return strings.Join(names, ", ")
}

// deleter says which rule or ceiling wants an object deleted.
func deleter(d *view.DeletionNotice) string {
	kind := gc.KindCleanupPolicy
	if d.Policy.Namespace == "" {
		kind = gc.KindClusterCleanupPolicy
	}
	switch d.Rule {
	case "":
		return fmt.Sprintf("the ceiling of %s %q", kind, d.Policy.Name)
	case gc.DefaultRuleName:
		return fmt.Sprintf("%s %q", kind, d.Policy.Name)
	}
	return fmt.Sprintf("rule %q of %s %q", d.Rule, kind, d.Policy.Name)
}

// randomID returns an id that nobody can guess. Otherwise, somebody could create an Event of that name first, and Winnow could not write
// its own.
func randomID() string { return utilrand.String(16) }

func stamp(t time.Time) string { return gc.WholeSecond(t).UTC().Format(time.RFC3339) }
