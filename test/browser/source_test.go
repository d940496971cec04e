// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/pkg/plugin/explain"
	"github.com/winnow-dev/winnow/pkg/plugin/local"
	"github.com/winnow-dev/winnow/pkg/plugin/ui"
)

// source is a cluster in which every text is the same, and that has n candidates.
type source struct {
	text  string
	n     int
	calls atomic.Int64
}

var _ ui.Source = (*source)(nil)

func (s *source) Place(context.Context) (ui.Place, error) {
	s.calls.Add(1)
	return ui.Place{Context: s.text, Namespace: "team-a", Default: "team-a", Namespaces: []string{"team-a", s.text}, Winnow: true}, nil
}

func (s *source) Read(_ context.Context, _ string, add func(*v1alpha1.CleanupCandidate, bool)) (ui.Reading, error) {
	s.calls.Add(1)
	states := []v1alpha1.CandidateState{v1alpha1.CandidateWaiting, v1alpha1.CandidateHeld, v1alpha1.CandidateState(s.text)}
	for i := range s.n {
		add(&v1alpha1.CleanupCandidate{ObjectMeta: metav1.ObjectMeta{Namespace: s.text}, Status: v1alpha1.CleanupCandidateStatus{
			Object: v1alpha1.CandidateObject{Resource: s.text, Name: name(s.text, i)}, State: states[i%len(states)], Reason: s.text,
			DecidedBy: &v1alpha1.CandidatePolicy{Name: s.text, Rule: s.text}, DueTime: new(metav1.NewTime(metav1.Now().Add(minutes(i)))),
		}}, false)
	}
	return ui.Reading{Notes: []string{s.text}, Finished: []local.Finished{{
		Namespace: s.text, Resource: s.text, Creators: []local.Creator{{Name: s.text}},
	}}}, nil
}

func (s *source) Explain(context.Context, local.Object) (ui.Explanation, error) {
	s.calls.Add(1)
	return ui.Explanation{MayKeep: true, Kept: map[string]string{s.text: s.text}, Words: explain.Words{
		Title: s.text, State: s.text, Reason: s.text, Message: s.text, Lines: []string{s.text},
		Facts: []explain.Fact{{Name: s.text, Text: s.text, Details: []string{s.text}}},
	}}, nil
}

func (s *source) Keep(context.Context, local.Object, string) error {
	s.calls.Add(1)
	return errors.New(s.text)
}

func (s *source) Release(context.Context, local.Object) error {
	s.calls.Add(1)
	return nil
}

func (s *source) Policies(context.Context, string) ([]ui.Policy, []string, error) {
	s.calls.Add(1)
	return []ui.Policy{{
		Namespace: s.text, Name: s.text, Mode: s.text, YAML: s.text,
		Conditions: []metav1.Condition{{Type: s.text, Status: metav1.ConditionFalse, Reason: s.text, Message: s.text}, {Type: "Ready", Reason: s.text}},
		Holds: []ui.Hold{{ID: s.text, Namespace: s.text, Objects: 3, Resources: []string{s.text}, Why: s.text}, {
			ID: s.text, Why: s.text, Approver: s.text,
		}},
	}}, []string{s.text}, nil
}

func (s *source) Records(context.Context, string, time.Time) (ui.History, error) {
	s.calls.Add(1)
	return ui.History{Notes: []string{s.text}, Records: []ui.Record{{
		Time: metav1.NowMicro(), Namespace: s.text, Resource: s.text, Name: s.text, UID: s.text, Policy: s.text, Rule: s.text, Reason: s.text, Late: s.text,
		Owner: s.text, Account: s.text,
	}}}, nil
}

func (s *source) Approve(context.Context, types.NamespacedName, []string) error {
	s.calls.Add(1)
	return nil
}

func (s *source) Preview(_ context.Context, _, text string) (ui.Preview, error) {
	s.calls.Add(1)
	if text == "wrong" {
		return ui.Preview{Errors: []ui.FieldError{{Field: s.text, Message: s.text, Line: 1}}}, nil
	}
	return ui.Preview{Kind: s.text, Namespace: s.text, Name: s.text, Warnings: []string{s.text}, Review: &v1alpha1.CleanupReviewStatus{
		Deletions: []v1alpha1.ReviewedRule{{Resource: s.text, Rule: s.text}}, HiddenResources: []string{s.text},
		Sample: []v1alpha1.ReviewedObject{{Resource: s.text, Name: s.text, Rule: s.text, Reason: s.text}},
	}}, nil
}
