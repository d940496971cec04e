// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"time"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
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
			out.malformed = malformedTTL(*f.TTL, err)
		} else {
			out.ttl = &own
		}
	}
	if f.KeepUntil != nil {
		until, err := time.Parse(time.RFC3339, *f.KeepUntil)
		if err != nil {
			out.malformed = malformedKeepUntil(*f.KeepUntil)
		} else {
			out.keepUntil = until
		}
	}
	return out
}

func malformedTTL(text string, err error) string {
	at := "annotation " + gc.AnnotationTTL
	if until := gc.MeantTime(text); until != "" {
		return fmt.Sprintf("%s: %q is a date, not a duration; did you mean %s=%s?", at, text, gc.AnnotationKeepUntil, until)
	}
	if meant := gc.TTL(text).Meant(); meant != "" {
		return fmt.Sprintf("%s: %q %v; did you mean %q?", at, text, err, meant)
	}
	return fmt.Sprintf("%s: %q %v; %s", at, text, err, gc.TTLExample)
}

func malformedKeepUntil(text string) string {
	malformed := fmt.Sprintf("annotation %s: %q is not a time like \"2026-01-02T15:04:05Z\"", gc.AnnotationKeepUntil, text)
	if meant := gc.MeantTime(text); meant != "" {
		return fmt.Sprintf("%s; did you mean %q?", malformed, meant)
	}
	for _, ttl := range []gc.TTL{gc.TTL(text), gc.TTL(text).Meant()} {
		if _, _, err := ttl.Parse(); err == nil {
			return fmt.Sprintf("%s; did you mean %s=%s?", malformed, gc.AnnotationTTL, ttl)
		}
	}
	return malformed
}

// annotate applies the object's annotations as annotationTTL allows; keep-until can only extend the time. The reason does not change.
func (e *Effective) annotate(a answer) answer {
	if e.annotations.ttl != nil {
		own := answer{at: e.since().Add(e.annotations.ttl.duration), never: e.annotations.ttl.never, reason: a.reason}
		if e.annotationTTL == gc.AnnotationAny || own.laterThan(a) {
			a = own
		}
	}
	if until := (answer{at: e.annotations.keepUntil, reason: a.reason}); !e.annotations.keepUntil.IsZero() && until.laterThan(a) {
		a = until
	}
	return a
}
