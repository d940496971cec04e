// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/pkg/plugin/holds"
)

const (
	title = "Winnow deletes finished Jobs: see which ones, when, and why. Ctrl-C ends this."

	namespace = "demo"
	// defaults deletes the Jobs that succeeded, and failures those that failed. They are two policies, because a policy that waits for
	// approval deletes nothing.
	defaults, failures, guardrails = "defaults", "failures", "guardrails"
	succeededTTL                   = 10 * time.Second
	failedTTL, shortenedTTL        = time.Hour, 10 * time.Second

	// report is a Job that its annotation keeps.
	report = "report"
	why    = "kubectl winnow why job/" + report
	// firstJobs is how many Jobs there are at the start that succeed.
	firstJobs = 3
	nextJobIn = 5 * time.Second
	failingOf = 3 // Jobs of each round, more than holdAbove
	holdAbove = 2
	heldShown = 30 * time.Second // long enough for somebody to look, and to approve it
	// overdue is how long the failed Jobs must have been past the shortened TTL: then all of them are due by the change, and none because
	// time passes.
	overdue    = 5 * time.Second
	stepAtMost = time.Minute
)

const roundText = "Jobs run and finish. Winnow deletes each one when its policy says so."

var jobNames = []string{"lint", "backup", "convert", "index", "migrate", "import"}

// step is a step of a round.
type step int

const (
	kept     step = iota // Jobs fail, and are kept
	changed              // the policy that keeps them is changed, and Winnow has not held the change yet
	held                 // the change waits for approval
	approved             // the Jobs are going
)

// story creates and changes the objects of the demonstration, in rounds: some Jobs fail, a change of their policy makes all of them due at
// once, and it is approved.
type story struct {
	*clients
	jobs    int // that succeed
	nextJob time.Time
	rounds  int
	failing []string // of this round
	step    step
	since   time.Time // since when there has been this step
	waiting int64     // how many objects wait for approval, as was said last
}

// begin creates the namespace with its guardrails and the first Jobs, and begins the first round.
func (s *story) begin(ctx context.Context, m *model, now time.Time) error {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	if _, err := s.kubernetes.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{}); err != nil {
		return err
	}
	guard := &v1alpha1.ClusterCleanupPolicy{ObjectMeta: metav1.ObjectMeta{Name: guardrails}, Spec: v1alpha1.ClusterCleanupPolicySpec{
		Mode:              v1alpha1.ModeEnforce,
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}},
		Guardrails:        &v1alpha1.Guardrails{HoldAbove: &v1alpha1.HoldAbove{Objects: new(int64(holdAbove))}},
	}}
	if _, err := s.winnow.ClusterCleanupPolicies().Create(ctx, guard, metav1.CreateOptions{}); err != nil {
		return err
	}
	for range firstJobs {
		if err := s.createNext(ctx, now); err != nil {
			return err
		}
	}
	return s.beginRound(ctx, m, now)
}

func jobName(i int) string { return fmt.Sprintf("%s-%d", jobNames[i%len(jobNames)], i+1) }

// createNext creates another Job that succeeds.
func (s *story) createNext(ctx context.Context, now time.Time) error {
	if err := s.create(ctx, newJob(jobName(s.jobs), time.Duration(2+s.jobs%3)*time.Second)); err != nil {
		return err
	}
	s.jobs++
	s.nextJob = now.Add(nextJobIn)
	return nil
}

// createDue creates another Job that succeeds, if it is time for it.
func (s *story) createDue(ctx context.Context, now time.Time) error {
	if now.Before(s.nextJob) {
		return nil
	}
	return s.createNext(ctx, now)
}

// beginRound creates the Jobs that fail, and what else the round needs. Somebody may have deleted or changed it.
func (s *story) beginRound(ctx context.Context, m *model, now time.Time) error {
	for _, p := range []*v1alpha1.CleanupPolicy{
		newPolicy(defaults, v1alpha1.OutcomeSucceeded, succeededTTL), newPolicy(failures, v1alpha1.OutcomeFailed, failedTTL),
	} {
		_, err := s.winnow.CleanupPolicies(namespace).Create(ctx, p, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	if err := s.setTTL(ctx, failedTTL); err != nil {
		return err
	}
	annotated := newJob(report, time.Second)
	annotated.Annotations = map[string]string{gc.AnnotationTTL: "never"}
	if err := s.create(ctx, annotated); err != nil {
		return err
	}
	var failing []string
	for i := range failingOf {
		name := fmt.Sprintf("train-%d", s.rounds*failingOf+i+1)
		job := newJob(name, time.Duration(i+1)*time.Second)
		job.Spec.Template.Labels = map[string]string{"test.winnow.dev/outcome": string(v1alpha1.OutcomeFailed)}
		if err := s.create(ctx, job); err != nil {
			return err
		}
		failing = append(failing, name)
	}
	s.failing = failing
	s.rounds++
	s.enter(kept, now)
	if first := s.rounds == 1; first {
		m.say(now, roundText, "The Job "+report+" stays, because of its annotation.")
	} else {
		m.say(now, fmt.Sprintf("Somebody sets the TTL of policy %s back to %s.", failures, gc.FormatDuration(failedTTL)), roundText)
	}
	return nil
}

// goOn creates Jobs from time to time, and takes the next step of the round when what the last one did was seen. Somebody may have
// interfered: the Jobs may be gone, or the change approved or undone. Then the round ends.
func (s *story) goOn(ctx context.Context, m *model, now time.Time) error {
	if err := s.createDue(ctx, now); err != nil {
		return err
	}
	shown := now.Sub(s.since)
	waiting := m.holds(failures)
	switch {
	case s.step == kept && m.waitSince(now.Add(-shortenedTTL-overdue), s.failing...):
		return s.shorten(ctx, m, now)
	case s.step == changed && len(waiting) > 0 && m.all(v1alpha1.CandidateHeld, s.failing...):
		s.enter(held, now)
		s.sayHeld(m, waiting[0].Objects, fmt.Sprintf("Somebody's change of policy %s to %s would delete %d Jobs at once.",
			failures, gc.FormatDuration(shortenedTTL), waiting[0].Objects), now)
	case s.step == held:
		return s.goOnHeld(ctx, m, waiting, now)
	case m.gone(s.failing...) && shown >= nextJobIn, shown >= stepAtMost:
		return s.beginRound(ctx, m, now)
	}
	return nil
}

// goOnHeld approves the change after a while. Until then it says how many Jobs wait: somebody may keep one, or delete it.
func (s *story) goOnHeld(ctx context.Context, m *model, waiting []v1alpha1.PolicyHold, now time.Time) error {
	switch {
	case len(waiting) == 0, now.Sub(s.since) >= heldShown:
		return s.approve(ctx, m, waiting, now)
	case waiting[0].Objects != s.waiting:
		s.sayHeld(m, waiting[0].Objects, fmt.Sprintf("Not all Jobs are still there and due: the change would now delete %d.",
			waiting[0].Objects), now)
	}
	return nil
}

// sayHeld says that a change waits, and how many objects under it.
func (s *story) sayHeld(m *model, objects int64, what string, now time.Time) {
	s.waiting = objects
	m.say(now, what, "It waits until you or this demo approve it: kubectl winnow approve "+failures)
}

// shorten changes the policy so that all failed Jobs are due at once.
func (s *story) shorten(ctx context.Context, m *model, now time.Time) error {
	if err := s.setTTL(ctx, shortenedTTL); err != nil {
		return err
	}
	s.enter(changed, now)
	m.say(now, fmt.Sprintf("Somebody sets the TTL of policy %s to %s.", failures, gc.FormatDuration(shortenedTTL)))
	return nil
}

// approve approves what waits. If nothing does, somebody else has approved it, or has undone the change.
func (s *story) approve(ctx context.Context, m *model, waiting []v1alpha1.PolicyHold, now time.Time) error {
	caption := "Nothing waits for approval any more."
	if len(waiting) > 0 {
		caption = "The change is approved, so Winnow deletes the Jobs."
		given := &approval{PolicyHold: waiting[0], jobs: s.failing, at: time.Now()}
		of := types.NamespacedName{Namespace: namespace, Name: failures}
		if err := holds.Approve(ctx, s.winnow, of, []string{waiting[0].ID}); err != nil {
			return err
		}
		if m.approval == nil {
			m.approval = given
		}
	}
	s.enter(approved, now)
	m.say(now, caption)
	return nil
}

func (s *story) enter(next step, now time.Time) { s.step, s.since = next, now }

func (s *story) setTTL(ctx context.Context, ttl time.Duration) error {
	patch := fmt.Appendf(nil, `[{"op": "replace", "path": "/spec/rules/0/ttl", "value": %q}]`, gc.FormatDuration(ttl))
	_, err := s.winnow.CleanupPolicies(namespace).Patch(ctx, failures, types.JSONPatchType, patch, metav1.PatchOptions{})
	return err
}

// create creates a Job. It may exist: an earlier attempt may have failed after it.
func (s *story) create(ctx context.Context, job *batchv1.Job) error {
	_, err := s.kubernetes.BatchV1().Jobs(namespace).Create(ctx, job, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// newPolicy returns a policy for Jobs of an outcome.
func newPolicy(name string, outcome v1alpha1.Outcome, ttl time.Duration) *v1alpha1.CleanupPolicy {
	return &v1alpha1.CleanupPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: v1alpha1.CleanupPolicySpec{Rules: []v1alpha1.CleanupRule{
			{Name: name, Resources: []string{gc.ResourceJobs}, Outcome: outcome, TTL: new(v1alpha1.TTL(gc.FormatDuration(ttl)))},
		}},
	}
}

// newJob returns a Job that runs for runFor on a node of kwok, and then finishes.
func newJob(name string, runFor time.Duration) *batchv1.Job {
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: batchv1.JobSpec{
			BackoffLimit: new(int32(0)),
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"test.winnow.dev/run-for": runFor.String()}},
				Spec: corev1.PodSpec{
					RestartPolicy: corev1.RestartPolicyNever,
					Containers:    []corev1.Container{{Name: "main", Image: "none"}},
				},
			},
		},
	}
}
