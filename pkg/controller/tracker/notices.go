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

// NoticesToGive returns up to most notices that must be given in a namespace now, by when their objects are due.
func (t *Tracker) NoticesToGive(namespace string, most int, now time.Time) []view.DeletionNotice {
	var out []view.DeletionNotice
	_ = t.read(context.Background(), t.engine.NoticesToGive(namespace, most, now, &out)) // It has no error unless the context ends.
	return out
}

// NoticesGiven notes which notices this replica has given, by the UIDs of their objects, so that they are stored.
func (t *Tracker) NoticesGiven(given map[types.UID]policy.Announcement) {
	t.do(func(e *engine.Engine) { e.Announced(given) })
}
