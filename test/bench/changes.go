// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/test/cluster"
	"github.com/winnow-dev/winnow/test/jobs"
	"github.com/winnow-dev/winnow/test/poll"
)

const (
	// changesEach is how many changes of each kind are made.
	changesEach = 20
	// oldEnough is when a Job that has just finished is past the TTL of a second, whatever its finish time was rounded to.
	oldEnough = 2500 * time.Millisecond
)

// changed is what followed a change that makes one Job due: how long the request took, then from its answer until the API
// server received the DELETE of the Job, and until a watch told a status of the policy that knows of the change.
type changed struct{ answer, deleted, told time.Duration }

// changeFigures are the changes of one kind.
type changeFigures struct {
	kind string
	all  []changed
}

// change makes a Job of a share due in a namespace.
type change struct {
	ns, share  string
	policy     string // whose status is watched
	isCluster  bool
	make, undo func(ctx context.Context, job string) error
	known      func(v1alpha1.CleanupPolicyStatus) bool // whether a status knows of the change, once it was made
}

// changes makes changes in random namespaces, one after the other.
func (c *crowd) changes(ctx context.Context, _ options, f *crowdFigures) (any, error) {
	for _, kind := range []struct {
		name string
		next func() change
	}{{"policy", c.changePolicy}, {"label", c.changeLabel}, {"everywhere", c.changeEverywhere}} {
		figures := changeFigures{kind: kind.name}
		for i := range changesEach {
			one, err := c.follow(ctx, kind.next(), fmt.Sprintf("%s-%02d", kind.name, i))
			if err != nil {
				return nil, fmt.Errorf("%s, change %d: %w", kind.name, i, err)
			}
			figures.all = append(figures.all, one)
		}
		f.changes = append(f.changes, figures)
	}
	return f.changes, nil
}

// changePolicy is an update of one policy of a namespace.
func (c *crowd) changePolicy() change {
	i := rand.IntN(c.policies)
	out := change{ns: c.namespace(i), share: share(i / c.namespaces), policy: c.policy(i)}
	return out.byRule(func(ctx context.Context, job string) (int64, error) {
		return c.single(ctx, out.ns, out.policy, job, out.share)
	})
}

// changeEverywhere is an update of a cluster policy that selects all namespaces.
func (c *crowd) changeEverywhere() change {
	out := change{ns: c.namespace(rand.IntN(c.namespaces)), share: "everywhere", policy: "everywhere", isCluster: true}
	return out.byRule(func(ctx context.Context, job string) (int64, error) {
		return c.single(ctx, "", out.policy, job, out.share)
	})
}

// byRule completes a change that an update of the policy makes; it returns the new generation.
func (c change) byRule(update func(ctx context.Context, job string) (int64, error)) change {
	var generation int64
	c.make = func(ctx context.Context, job string) (err error) {
		generation, err = update(ctx, job)
		return err
	}
	c.known = func(s v1alpha1.CleanupPolicyStatus) bool { return s.ObservedGeneration >= generation }
	return c
}

// changeLabel is a label of a namespace that a cluster policy selects by it. What its status tells of it is that the Job is
// gone.
func (c *crowd) changeLabel() change {
	out := change{ns: c.namespace(rand.IntN(c.namespaces)), share: "chosen", policy: "chosen", isCluster: true}
	label := func(ctx context.Context, value string) error {
		patch := fmt.Sprintf(`{"metadata":{"labels":{%q:%q}}}`, chosenLabel, value)
		_, err := c.kube.CoreV1().Namespaces().Patch(ctx, out.ns, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		return err
	}
	deleted := c.labelled + 1
	c.labelled = deleted
	out.make = func(ctx context.Context, _ string) error { return label(ctx, "yes") }
	out.undo = func(ctx context.Context, _ string) error { return label(ctx, "no") }
	out.known = func(s v1alpha1.CleanupPolicyStatus) bool { return s.Deleted >= deleted }
	return out
}

// follow creates a finished Job, makes a change that makes it due, and waits for what follows.
func (c *crowd) follow(ctx context.Context, change change, job string) (out changed, err error) {
	if err := c.createJob(ctx, change, job); err != nil {
		return out, err
	}
	ctx, cancel := context.WithTimeout(ctx, waitMost)
	defer cancel()
	watched, err := c.watchPolicy(ctx, change)
	if err != nil {
		return out, err
	}
	defer watched.Stop()
	audit := c.cluster.AuditTail(cluster.DeletesBy("winnow"))
	if _, err := audit.Next(); err != nil {
		return out, err
	}
	begin := time.Now()
	if err := change.make(ctx, job); err != nil {
		return out, err
	}
	answered := time.Now()
	told := make(chan time.Time, 1)
	go func() { told <- firstKnown(watched, change.known) }()
	received, err := deletedAt(ctx, audit, change.ns, job)
	if err != nil {
		return out, err
	}
	at := <-told
	if at.IsZero() {
		return out, fmt.Errorf("the watch of policy %s ended before a status knew of the change in %s", change.policy, change.ns)
	}
	out = changed{answered.Sub(begin), received.Sub(answered), at.Sub(answered)}
	if change.undo != nil {
		err = change.undo(ctx, job)
	}
	return out, err
}

func (c *crowd) createJob(ctx context.Context, change change, job string) error {
	created, err := jobs.Create(ctx, c.kube, change.ns, 1, func(j *batchv1.Job) {
		j.Name, j.Labels = job, map[string]string{shareLabel: change.share, onlyLabel: job}
	})
	if err != nil {
		return err
	}
	now := time.Now()
	if err := jobs.Finish(ctx, c.kube, created, func(int) time.Time { return now }); err != nil {
		return err
	}
	// Status is written once a second: changes must not keep step with it.
	return poll.Pause(ctx, oldEnough+rand.N(time.Second))
}

func (c *crowd) watchPolicy(ctx context.Context, change change) (watch.Interface, error) {
	options := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", change.policy).String()}
	if change.isCluster {
		return c.gc.ClusterCleanupPolicies().Watch(ctx, options)
	}
	return c.gc.CleanupPolicies(change.ns).Watch(ctx, options)
}

// firstKnown is when a watch told a status that knows; a watch that ends tells nothing, which is zero.
func firstKnown(watched watch.Interface, known func(v1alpha1.CleanupPolicyStatus) bool) time.Time {
	for event := range watched.ResultChan() {
		if now := time.Now(); known(statusOf(event.Object)) {
			return now
		}
	}
	return time.Time{}
}

func statusOf(policy runtime.Object) v1alpha1.CleanupPolicyStatus {
	switch p := policy.(type) {
	case *v1alpha1.CleanupPolicy:
		return p.Status
	case *v1alpha1.ClusterCleanupPolicy:
		return p.Status
	}
	return v1alpha1.CleanupPolicyStatus{}
}

// deletedAt waits for the DELETE of a Job, and returns when the API server received it.
func deletedAt(ctx context.Context, audit *cluster.AuditTail, ns, job string) (at time.Time, err error) {
	err = eventually(ctx, 5*time.Millisecond, func(context.Context) error {
		events, err := audit.Next()
		for i := range events {
			if ref := events[i].ObjectRef; ref != nil && ref.Namespace == ns && ref.Name == job && ref.Resource == "jobs" {
				at = events[i].RequestReceivedTimestamp.Time
				return nil
			}
		}
		if err == nil {
			err = fmt.Errorf("no DELETE of Job %s/%s is in the audit log", ns, job)
		}
		return err
	})
	return at, err
}

// steps of what follows a change.
var steps = []struct {
	name string
	took func(changed) time.Duration
}{
	{"request to answer", func(c changed) time.Duration { return c.answer }},
	{"answer to DELETE received", func(c changed) time.Duration { return c.deleted }},
	{"answer to status", func(c changed) time.Duration { return c.told }},
}

func changeRows(many, few crowdFigures) []row {
	var rows []row
	for i, kind := range many.changes {
		for _, step := range steps {
			rows = append(rows, row{
				fmt.Sprintf("change, %s: %s", kind.kind, step.name), "ms", kind.took(step.took), few.name, few.changes[i].took(step.took),
			})
		}
	}
	return rows
}

func (f changeFigures) took(of func(changed) time.Duration) sample {
	var out sample
	for _, c := range f.all {
		out = append(out, milliseconds(of(c)))
	}
	return out
}

// changeLines are all changes, with a header.
func changeLines(f crowdFigures) [][]string {
	lines := [][]string{{"policies", "kind", "change", "answer ms", "deleted ms", "told ms"}}
	for _, kind := range f.changes {
		for i, c := range kind.all {
			line := []string{strconv.Itoa(f.policies), kind.kind, strconv.Itoa(i)}
			for _, step := range steps {
				line = append(line, number(milliseconds(step.took(c))))
			}
			lines = append(lines, line)
		}
	}
	return lines
}
