// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package copies

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/winnow-dev/winnow/pkg/controller/rules/deletion"
)

// race is two leaders, one after the other, that want to delete an object which somebody changes. The first one may be paused at any step.
type race struct {
	*store
	random  *rand.Rand
	version uint64 // of the object; 0 once it is gone
	deleted string // the version that was deleted
	later   []func()
	story   []string
}

// leader is a replica within a try: it has read the object, stored a copy, sent the DELETE, or nothing of that.
type leader struct {
	*Writer
	name   string
	order  *deletion.Order
	stored time.Time
	result *deletion.Result
}

func (r *race) tell(format string, args ...any) {
	r.story = append(r.story, fmt.Sprintf(format, args...))
}

// delete is the DELETE of a version, as the API server carries it out.
func (r *race) delete(version uint64) deletion.Outcome {
	switch r.version {
	case 0:
		return deletion.NotFound
	case version:
		r.version, r.deleted = 0, fmt.Sprint(version)
		return deletion.Accepted
	default:
		return deletion.Conflict
	}
}

// send sends a DELETE, whose answer may be lost, or which may arrive late.
func (r *race) send(version uint64) *deletion.Result {
	switch r.random.IntN(6) {
	case 0:
		return &deletion.Result{Outcome: deletion.Refused}
	case 1:
		return &deletion.Result{Outcome: deletion.RetryLater}
	case 2:
		return &deletion.Result{Outcome: deletion.Released, NotSent: true}
	case 3:
		r.delete(version)
		return &deletion.Result{Outcome: deletion.Unknown}
	case 4:
		ends := r.clock.Now().Add(time.Minute)
		r.later = append(r.later, func() {
			if r.clock.Now().Before(ends) {
				r.tell("the DELETE of version %d arrives late: %s", version, r.delete(version))
			}
		})
		return &deletion.Result{Outcome: deletion.Unknown}
	}
	return &deletion.Result{Outcome: r.delete(version)}
}

// step does the next step of a try, and reports whether the try goes on.
func (r *race) step(l *leader) bool {
	switch {
	case l.order == nil:
		if r.version == 0 {
			return false
		}
		l.order = order("a", "m0", r.version)
		l.order.Until = r.clock.Now()
		r.tell("%s reads version %d", l.name, r.version)
	case l.stored.IsZero():
		outcome := r.keepOrder(l.Writer, l.order)
		r.tell("%s copies version %d: %s", l.name, l.order.Fact.ResourceVersion, outcome)
		if l.stored = r.clock.Now(); outcome != deletion.Accepted {
			l.order, l.stored = nil, time.Time{}
			return false
		}
	case l.result == nil:
		l.result = &deletion.Result{Outcome: deletion.Released, NotSent: true}
		if r.clock.Since(l.stored) < 30*time.Second { // Otherwise the order has lapsed.
			l.result = r.send(l.order.Fact.ResourceVersion)
		}
		r.tell("%s sends the DELETE of version %d: %s", l.name, l.order.Fact.ResourceVersion, l.result.Outcome)
	default:
		l.Ended(r.Context(), l.order, *l.result)
		l.order, l.stored, l.result = nil, time.Time{}, nil
		return false
	}
	return true
}

// TestTwoLeaders: whatever a leader that was paused does, and whatever is lost or arrives late, no object is deleted without a copy of the
// deleted version, and that copy stays.
func TestTwoLeaders(t *testing.T) {
	deleted := 0
	for seed := range uint64(500) {
		s := newStore(t)
		r := &race{store: s, random: rand.New(rand.NewPCG(seed, 0)), version: 1}
		first, second := &leader{Writer: NewWriter(s.Config), name: "first"}, &leader{Writer: NewWriter(s.Config), name: "second"}
		change := 5 + r.random.IntN(20) // when the second one begins to lead
		for i := range 50 {
			s.clock.Step(time.Duration(r.random.IntN(5)) * time.Duration(r.random.IntN(10)) * time.Second)
			if r.random.IntN(4) == 0 && r.version > 0 {
				r.version++
				r.tell("somebody writes version %d", r.version)
			}
			if len(r.later) > 0 && r.random.IntN(2) == 0 {
				r.later[0]()
				r.later = r.later[1:]
			}
			switch {
			case i < change, first.order != nil && r.random.IntN(3) == 0:
				r.step(first)
			default:
				r.step(second)
			}
			if r.deleted != "" && (len(s.objects) != 1 || describe(s.objects["a/uid-m0"]).object.ResourceVersion != r.deleted) {
				t.Fatalf("seed %d: version %s was deleted, and has no copy: %q", seed, r.deleted, r.story)
			}
		}
		if r.deleted != "" {
			deleted++
		}
	}
	if deleted < 250 {
		t.Errorf("only %d objects were deleted", deleted)
	}
}
