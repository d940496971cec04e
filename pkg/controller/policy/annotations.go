// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"time"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/lifecycle"
)

// annotations are the parsed annotations of an object.
type annotations struct {
	ttl       *ttl
	keepUntil time.Time // zero if there is none
	// malformed says which annotation cannot be read, and why.
	malformed string
}

// readAnnotations parses both annotations. If one is malformed, the other still applies.
func readAnnotations(f *lifecycle.Fact) annotations {
	var out annotations
	if f.TTL != nil {
		own, err := parseTTL(gc.TTL(*f.TTL))
		if err != nil {
			out.malformed = fmt.Sprintf("annotation %s: %q %v; %s", gc.AnnotationTTL, *f.TTL, err, gc.TTLExample)
			if meant := gc.TTL(*f.TTL).Meant(); meant != "" {
				out.malformed = fmt.Sprintf("annotation %s: %q %v; did you mean %q?", gc.AnnotationTTL, *f.TTL, err, meant)
			}
		} else {
			out.ttl = &own
		}
	}
	if f.KeepUntil != nil {
		until, err := time.Parse(time.RFC3339, *f.KeepUntil)
		if err != nil {
			out.malformed = fmt.Sprintf("annotation %s: %q is not a time like \"2026-01-02T15:04:05Z\"", gc.AnnotationKeepUntil, *f.KeepUntil)
		} else {
			out.keepUntil = until
		}
	}
	return out
}

// annotate applies the object's annotations as annotationTTL allows; keep-until only lengthens. The reason does not change.
func (s *Standing) annotate(a answer) answer {
	if s.annotations.ttl != nil {
		own := answer{at: s.since().Add(s.annotations.ttl.duration), never: s.annotations.ttl.never, reason: a.reason}
		if s.annotationTTL == gc.AnnotationAny || own.laterThan(a) {
			a = own
		}
	}
	if until := (answer{at: s.annotations.keepUntil, reason: a.reason}); !s.annotations.keepUntil.IsZero() && until.laterThan(a) {
		a = until
	}
	return a
}
