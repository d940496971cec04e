// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	winnowfake "github.com/winnow-dev/winnow/pkg/generated/clientset/versioned/fake"
)

// stage is a story whose objects are in memory, with what Winnow says about them.
type stage struct {
	*testing.T
	*story
	model *model
	now   time.Time
	waits int64 // how many objects of a hold wait
}

func newStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{t, &story{clients: &clients{fake.NewClientset(), winnowfake.NewSimpleClientset().GcV1alpha1()}}, newModel(now), now, failingOf}
	if err := s.begin(t.Context(), s.model, now); err != nil {
		t.Fatal(err)
	}
	return s
}

// goOnAfter lets Winnow say of the Jobs that fail that they are in a state, and the policy what it holds.
func (s *stage) goOnAfter(d time.Duration, state v1alpha1.CandidateState, ids ...string) {
	s.Helper()
	s.now = s.now.Add(d)
	jobs := observed{}
	if state != "" {
		for _, name := range s.failing {
			jobs[name] = failed(state, 0, "1h")
		}
	}
	s.model.see(s.now, jobs)
	for _, id := range ids {
		p := s.model.policies[failures]
		p.Status.Holds = append(p.Status.Holds, v1alpha1.PolicyHold{ID: id, Objects: s.waits})
	}
	if err := s.goOn(s.Context(), s.model, s.now); err != nil {
		s.Fatal(err)
	}
}

// is checks the round, the TTL of the policy, and which hold it approves.
func (s *stage) is(round int, ttl v1alpha1.TTL, approvedHold string) {
	s.Helper()
	p, err := s.winnow.CleanupPolicies(namespace).Get(s.Context(), failures, metav1.GetOptions{})
	if err != nil {
		s.Fatal(err)
	}
	if got := *p.Spec.Rules[0].TTL; s.rounds != round || got != ttl || p.Annotations[gc.AnnotationApprovedHold] != approvedHold {
		s.Errorf("round %d with TTL %s, approved %q, want %d with %s, %q", s.rounds, got, p.Annotations[gc.AnnotationApprovedHold],
			round, ttl, approvedHold)
	}
}

const (
	waits  = v1alpha1.CandidateWaiting
	isHeld = v1alpha1.CandidateHeld
	ripe   = shortenedTTL + overdue + time.Second
)

func TestRound(t *testing.T) {
	s := newStage(t)
	s.goOnAfter(ripe-2*time.Second, waits)
	s.is(1, "1h", "")
	s.goOnAfter(2*time.Second, waits)
	s.is(1, "10s", "")
	s.goOnAfter(time.Second, waits)
	s.goOnAfter(time.Second, isHeld, "id")
	s.goOnAfter(heldShown-time.Second, isHeld, "id")
	s.is(1, "10s", "")
	s.goOnAfter(time.Second, isHeld, "id")
	s.is(1, "10s", "id")
	if a := s.model.approval; a == nil || a.ID != "id" || fmt.Sprint(a.jobs) != "[train-1 train-2 train-3]" {
		t.Errorf("approved %+v", a)
	}
	s.goOnAfter(nextJobIn-time.Second, "")
	s.is(1, "10s", "id")
	s.goOnAfter(time.Second, "")
	s.is(2, "1h", "id")
	if want := "Somebody sets the TTL of policy failures back to 1h."; s.model.caption[0] != want {
		t.Errorf("the caption is %q, want %q", s.model.caption, want)
	}
	if fmt.Sprint(s.failing) != "[train-4 train-5 train-6]" {
		t.Errorf("the next Jobs are %s", s.failing)
	}
}

func TestSomebodyInterferes(t *testing.T) {
	t.Run("keeps a Job that waits", func(t *testing.T) {
		s := newStage(t)
		s.goOnAfter(ripe, waits)
		s.goOnAfter(time.Second, isHeld, "id")
		s.goOnAfter(time.Second, isHeld, "id")
		if want := "Somebody's change of policy failures to 10s would delete 3 Jobs at once."; s.model.caption[0] != want {
			t.Errorf("the caption is %q, want %q", s.model.caption, want)
		}
		s.waits = failingOf - 1
		s.goOnAfter(time.Second, isHeld, "id")
		if want := "Not all Jobs are still there and due: the change would now delete 2."; s.model.caption[0] != want {
			t.Errorf("the caption is %q, want %q", s.model.caption, want)
		}
	})
	t.Run("approves, or undoes the change", func(t *testing.T) {
		s := newStage(t)
		s.goOnAfter(ripe, waits)
		s.goOnAfter(time.Second, isHeld, "id")
		s.goOnAfter(time.Second, isHeld)
		s.is(1, "10s", "")
		s.goOnAfter(nextJobIn, "")
		s.is(2, "1h", "")
		if s.model.approval != nil {
			t.Errorf("approved %+v", s.model.approval)
		}
	})
	t.Run("deletes the Jobs and the policy", func(t *testing.T) {
		s := newStage(t)
		s.goOnAfter(time.Second, waits)
		if err := s.winnow.CleanupPolicies(namespace).Delete(t.Context(), failures, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		s.goOnAfter(nextJobIn, "")
		s.is(2, "1h", "")
	})
	t.Run("keeps the change from being held", func(t *testing.T) {
		s := newStage(t)
		s.goOnAfter(ripe, waits)
		s.goOnAfter(stepAtMost, waits)
		s.is(2, "1h", "")
	})
}
