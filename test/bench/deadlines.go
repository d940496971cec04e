// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/test/cluster"
	"github.com/winnow-dev/winnow/test/jobs"
	"github.com/winnow-dev/winnow/test/poll"
)

const (
	deadlinesManifest = "artifacts/optional/deadlines.yaml"
	// benchDeadline leaves Winnow time to set it.
	benchDeadline = 30 * time.Second
	// enforcedWithin is the objective of KEP-2899.
	enforcedWithin = 5 * time.Second
)

// limited is what happened to one Job. The API has whole seconds, so that due may be a second too early.
type limited struct{ due, target, failed, seen time.Time }

// measureDeadlines has Kubernetes end Jobs by deadlines that Winnow sets while they run, and by deadlines that they have from the start,
// in turn, and measures how far from the deadline it ends each.
func measureDeadlines(ctx context.Context, o options, r *report) (err error) {
	w, err := newWorldWithWinnow(ctx, o, cluster.ControllerManager)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.stop()) }()
	if _, stderr, err := w.cluster.Kubectl(ctx, "apply", "-f", deadlinesManifest); err != nil {
		return fmt.Errorf("%w: %s", err, stderr)
	}
	names, rounds := []string{"winnow", "native"}, [2][][]limited{}
	for round := range o.rounds {
		for _, i := range inTurn(len(names), round) {
			r.progress("deadlines: round %d of %d, %s ...", round+1, o.rounds, names[i])
			out, err := w.exceed(ctx, o, fmt.Sprintf("limited-%s-%d", names[i], round+1), i == 0)
			if err != nil {
				return fmt.Errorf("round %d, %s: %w", round+1, names[i], err)
			}
			rounds[i] = append(rounds[i], out)
		}
	}
	r.add(deadlineRows(rounds[0], rounds[1])...)
	return r.writeCSV("deadlines", append(deadlineLines(names[0], rounds[0]), deadlineLines(names[1], rounds[1])[1:]...))
}

// exceed creates Jobs one after the other, whose Pods never run, and waits until all have failed.
func (w *world) exceed(ctx context.Context, o options, ns string, byWinnow bool) ([]limited, error) {
	if err := w.newNamespace(ctx, ns, ""); err != nil {
		return nil, err
	}
	seconds := int64(benchDeadline / time.Second)
	if byWinnow {
		deadline := v1alpha1.TTL(benchDeadline.String())
		if err := w.newPolicy(ctx, ns, v1alpha1.CleanupPolicySpec{ActiveDeadline: &deadline}); err != nil {
			return nil, err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, o.spread+benchDeadline+waitMost)
	defer cancel()
	watched, err := w.kube.BatchV1().Jobs(ns).Watch(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	defer watched.Stop()
	created := make(chan error, 1)
	go func() { created <- w.createLimited(ctx, o, ns, seconds, byWinnow) }()
	return failures(watched.ResultChan(), created, o.expiries, byWinnow)
}

// failures waits until n Jobs have failed, or until they cannot be created.
func failures(events <-chan watch.Event, created <-chan error, n int, byWinnow bool) ([]limited, error) {
	var out []limited
	seen := map[string]bool{}
	for len(out) < n {
		select {
		case err := <-created:
			if err != nil {
				return nil, err
			}
			created = nil
		case event, open := <-events:
			if !open {
				return nil, fmt.Errorf("the watch ended when %d of %d Jobs had failed", len(out), n)
			}
			job, ok := event.Object.(*batchv1.Job)
			if !ok || event.Type == watch.Deleted || seen[job.Name] {
				continue
			}
			one, failed, err := limitedOf(job, byWinnow)
			if err != nil {
				return nil, err
			}
			if seen[job.Name] = failed; failed {
				out = append(out, one)
			}
		}
	}
	return out, nil
}

// createLimited spreads the creations evenly.
func (w *world) createLimited(ctx context.Context, o options, ns string, seconds int64, byWinnow bool) error {
	for i := range o.expiries {
		j := jobs.New(fmt.Sprintf("job-%05d", i))
		if j.Spec.ManagedBy = nil; !byWinnow {
			j.Spec.ActiveDeadlineSeconds = &seconds
		}
		if _, err := w.kube.BatchV1().Jobs(ns).Create(ctx, j, metav1.CreateOptions{}); err != nil {
			return err
		}
		if err := poll.Pause(ctx, o.spread/time.Duration(o.expiries)); err != nil {
			return err
		}
	}
	return nil
}

// limitedOf reports when a Job failed; false if it has not.
func limitedOf(job *batchv1.Job, byWinnow bool) (out limited, failed bool, err error) {
	for _, c := range job.Status.Conditions {
		if c.Status != corev1.ConditionTrue {
			continue
		}
		switch c.Type {
		case batchv1.JobFailureTarget:
			out.target = c.LastTransitionTime.Time
		case batchv1.JobFailed:
			out.failed = c.LastTransitionTime.Time
		case batchv1.JobComplete:
			return out, false, fmt.Errorf("job %s has completed", job.Name)
		}
	}
	if out.failed.IsZero() {
		return out, false, nil
	}
	seconds, start := job.Spec.ActiveDeadlineSeconds, job.Status.StartTime
	if seconds == nil || start == nil || (job.Annotations[gc.AnnotationActiveDeadline] != "") != byWinnow {
		return out, false, fmt.Errorf("job %s failed with the deadline %v, and annotations %v", job.Name, seconds, job.Annotations)
	}
	if out.target.IsZero() {
		out.target = out.failed
	}
	out.due, out.seen = start.Add(time.Duration(*seconds)*time.Second), time.Now()
	return out, true, nil
}

// deadlineRows are quantiles of how late each Job was ended, negative if before its deadline, and how many were within the objective.
func deadlineRows(ours, theirs [][]limited) []row {
	const beside = "deadline from creation"
	var rows []row
	for _, event := range []struct {
		name string
		late func(*limited) time.Duration
	}{
		{"FailureTarget", func(l *limited) time.Duration { return l.target.Sub(l.due) }},
		{"Failed", func(l *limited) time.Duration { return l.failed.Sub(l.due) }},
		{"Failed seen", func(l *limited) time.Duration { return l.seen.Sub(l.due) }},
	} {
		each := func(rounds [][]limited, figure func(sample) float64) (out sample) {
			for _, round := range rounds {
				var all sample
				for i := range round {
					all = append(all, event.late(&round[i]).Seconds())
				}
				out = append(out, figure(all))
			}
			return out
		}
		for _, quantile := range []struct {
			name string
			q    float64
		}{{"min", 0}, {"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"max", 1}} {
			figure := func(s sample) float64 { return s.quantile(quantile.q) }
			rows = append(rows, row{
				fmt.Sprintf("deadline until %s, %s", event.name, quantile.name), "s", each(ours, figure), beside, each(theirs, figure),
			})
		}
		rows = append(rows, row{
			fmt.Sprintf("%s within %s of the deadline", event.name, enforcedWithin), "%", each(ours, within), beside, each(theirs, within),
		})
	}
	return rows
}

// within is how many percent are at most enforcedWithin from the deadline.
func within(all sample) float64 {
	n := 0
	for _, late := range all {
		if late >= -enforcedWithin.Seconds() && late <= enforcedWithin.Seconds() {
			n++
		}
	}
	return 100 * float64(n) / float64(len(all))
}

// deadlineLines are the times of all Jobs, with a header.
func deadlineLines(name string, rounds [][]limited) [][]string {
	lines := [][]string{{"round of", "round", "deadline", "FailureTarget late s", "Failed late s", "Failed seen late s"}}
	for i, round := range rounds {
		for _, l := range round {
			lines = append(lines, []string{
				name, strconv.Itoa(i + 1), l.due.UTC().Format(time.RFC3339),
				number(l.target.Sub(l.due).Seconds()), number(l.failed.Sub(l.due).Seconds()), number(l.seen.Sub(l.due).Seconds()),
			})
		}
	}
	return lines
}
