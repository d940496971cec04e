// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package tracker

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/controller/engine"
	"github.com/winnow-dev/winnow/pkg/controller/engine/view"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

// These methods are for notices of deletions.

// NoticeNamespaces returns the namespaces that may have notices to be given, sorted.
func (t *Tracker) NoticeNamespaces() []string { return call(t, (*engine.Engine).NoticeNamespaces) }

// NoticesToGive returns up to most notices that must be given in a namespace now, except those of policies that pause.
func (t *Tracker) NoticesToGive(namespace string, pauses func(of types.UID) bool, most int, now time.Time) []view.DeletionNotice {
	var out []view.DeletionNotice
	_ = t.read(context.Background(), t.engine.NoticesToGive(namespace, pauses, most, now, &out)) // It has no error unless the context ends.
	return out
}

// NoticesGiven notes which notices this replica has given, by the UIDs of their objects, so that they are stored. It reports false if
// clocks are in doubt, so that they must be given again.
func (t *Tracker) NoticesGiven(given map[types.UID]policy.Announcement, now time.Time) (known bool) {
	t.event(now, func(e *engine.Engine) { known = e.Announced(given) })
	return known
}

// NamespacesToDeliver returns the namespaces that may have notices that the receiver of notifications must acknowledge, sorted.
func (t *Tracker) NamespacesToDeliver() []string {
	return call(t, (*engine.Engine).NamespacesToDeliver)
}

// NoticesToDeliver returns up to most notices of a namespace that the receiver of notifications must acknowledge, except those of some
// objects.
func (t *Tracker) NoticesToDeliver(namespace string, except func(of types.UID) bool, most int, now time.Time) []view.DeletionNotice {
	var out []view.DeletionNotice
	_ = t.read(context.Background(), t.engine.NoticesToDeliver(namespace, except, most, now, &out)) // It has no error unless the context ends.
	return out
}

// NoticeDelivered notes that the receiver of notifications acknowledged now the notice of an object that was given at a time. named is
// when the object is deleted at the earliest, as the receiver read it.
func (t *Tracker) NoticeDelivered(of types.UID, given, named, now time.Time) {
	t.event(now, func(e *engine.Engine) { e.NoticeDelivered(of, given, named, now) })
}

// DoubtMarks puts stored notices in doubt until ConfirmMarks finds that memory has what is stored.
func (t *Tracker) DoubtMarks(now time.Time) { t.event(now, (*engine.Engine).DoubtMarks) }

// ConfirmMarks compares the resource versions of the stored marks, which were read at a version, with memory. It reports whether memory is
// at least as new.
func (t *Tracker) ConfirmMarks(versions map[types.NamespacedName]string, read string, now time.Time) (confirmed bool) {
	t.event(now, func(e *engine.Engine) { confirmed = e.ConfirmMarks(versions, read) })
	return confirmed
}
