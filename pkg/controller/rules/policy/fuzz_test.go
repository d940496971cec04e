// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"testing"
	"time"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
)

// FuzzAnnotations: whatever the annotations say, they only extend the time unless the policy says Any, and malformed annotations are
// reported.
func FuzzAnnotations(f *testing.F) {
	f.Add("2h", "2026-03-02T12:00:00Z")
	f.Add("never", "tomorrow")
	f.Add("-1s", "9999-12-31T23:59:59+14:00")
	f.Fuzz(func(t *testing.T, ttl, until string) {
		finished := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
		fact := &lifecycle.Fact{Finished: true, FinishedAt: finished, TTL: &ttl, KeepUntil: &until}
		read := readAnnotations(fact)
		if read.malformed == "" && (read.ttl == nil || read.keepUntil.IsZero()) {
			t.Fatalf("%q and %q are neither read nor malformed", ttl, until)
		}
		s := Effective{Object: Object{Fact: fact}, options: defaultOptions, annotations: read, annotationTTL: gc.AnnotationExtendOnly}
		own := answer{at: finished.Add(time.Hour), reason: ReasonExpired}
		if got := s.annotate(own); own.laterThan(got) {
			t.Errorf("%q and %q shorten %v to %v", ttl, until, own, got)
		}
	})
}
