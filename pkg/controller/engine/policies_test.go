// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"testing"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/engine/scope"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

// TestCompiled: a compiled policy is used again only for a state of the same policy with the same spec, and only if both can be read.
func TestCompiled(t *testing.T) {
	unreadable := func(p *gc.CleanupPolicy) {
		p.Annotations = map[string]string{gc.AnnotationUnreadable: "a newer version wrote it"}
	}
	for name, tc := range map[string]struct {
		known, next func(*gc.CleanupPolicy)
		again       bool
	}{
		"another status":     {next: func(p *gc.CleanupPolicy) { p.Status.Candidates, p.ResourceVersion = 1, "2" }, again: true},
		"another annotation": {next: func(p *gc.CleanupPolicy) { p.Annotations = map[string]string{"a": "b"} }, again: true},
		"another generation": {next: func(p *gc.CleanupPolicy) { p.Generation++ }},
		"created again":      {next: func(p *gc.CleanupPolicy) { p.UID = "other" }},
		"past the API":       {next: func(p *gc.CleanupPolicy) { p.Spec.Suspend = true }},
		"another name":       {next: func(p *gc.CleanupPolicy) { p.Name = "other" }},
		"unreadable":         {next: unreadable},
		"readable again":     {known: unreadable, next: func(*gc.CleanupPolicy) {}},
	} {
		t.Run(name, func(t *testing.T) {
			known, next := testbuilders.Policy("p").Default("1h").Obj(), testbuilders.Policy("p").Default("1h").Obj()
			if tc.known != nil {
				tc.known(known)
			}
			w := newWorld(t)
			w.SetPolicy(known, w.now)
			tc.next(next)
			var before *policy.Policy
			o := scope.ObserveAgain(next, func(o scope.ObservedPolicy) *policy.Policy {
				before = w.Compiled(o)
				return before
			})
			if (before != nil) != tc.again || tc.again && o.Compiled != before {
				t.Errorf("used again: %t, want %t", before != nil, tc.again)
			}
			w.Turn(func() { w.Engine.SetPolicy(o, w.now) }, w.now)
			if got, want := w.Compiled(scope.Observe(next)), o.Compiled; got != want {
				t.Errorf("the engine has %p, want %p", got, want)
			}
		})
	}
}
