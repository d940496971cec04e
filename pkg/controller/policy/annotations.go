// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"time"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/lifecycle"
)

// annotated is what the annotations of an object ask for.
type annotated struct {
	ttl   *ttl
	until time.Time // zero for none
	// malformed says which annotation cannot be read, and why.
	malformed string
}

// readAnnotations keeps one that can be read, whatever the other is.
func readAnnotations(f *lifecycle.Fact) annotated {
	var out annotated
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
			out.until = until
		}
	}
	return out
}

// annotate applies the object's annotations as the votes allow; keep-until only lengthens. The reason stays that of the votes.
func (s *Standing) annotate(a answer) answer {
	if s.own.ttl != nil {
		own := answer{at: s.FinishedAt.Add(s.own.ttl.duration), never: s.own.ttl.never, reason: a.reason}
		if s.annotationTTL == gc.AnnotationAny || own.laterThan(a) {
			a = own
		}
	}
	if until := (answer{at: s.own.until, reason: a.reason}); !s.own.until.IsZero() && until.laterThan(a) {
		a = until
	}
	return a
}
