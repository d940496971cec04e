// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/test/cluster"
	"github.com/winnow-dev/winnow/test/jobs"
	"github.com/winnow-dev/winnow/test/poll"
)

// lead is the time for setting the finish of all Jobs before the first one is due.
const lead = 20 * time.Second

// ttl is what all Jobs have. They finish in the same intervals as they expire, and all before the first of them is due.
func (o options) ttl() time.Duration { return o.spread + lead }

// contestant deletes what has expired.
type contestant struct {
	name   string
	policy v1alpha1.TTL // of the namespace
	native *int32       // TTL of the Jobs themselves
	sent   cluster.AuditFilter
}

func contestants(o options) (ours, theirs contestant) {
	seconds := int32(o.ttl().Seconds())
	ours = contestant{name: "winnow", policy: v1alpha1.TTL(fmt.Sprintf("%ds", seconds)), sent: byWinnow}
	theirs = contestant{name: "native", native: &seconds, sent: byNative}
	return ours, theirs
}

// expired is what happened to one Job.
type expired struct{ due, received, gone time.Time }

// outcome is one round of one contestant.
type outcome struct {
	jobs     map[string]*expired
	requests requestCounts
}

// measureExpiry lets Jobs expire under Winnow and under the native TTL controller in turn, and measures how late each goes and
// how many requests it takes.
func measureExpiry(ctx context.Context, o options, r *report) (err error) {
	w, err := newWorldWithWinnow(ctx, o, cluster.ControllerManager)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.stop()) }()
	ours, theirs := contestants(o)
	ourRounds, theirRounds, err := w.expireInTurn(ctx, o, r, "expiry", "", ours, theirs)
	if err != nil {
		return err
	}
	r.add(latenessRows(ourRounds, theirRounds)...)
	r.add(requestRows(ourRounds, theirRounds)...)
	return errors.Join(
		r.writeCSV("lateness", append(latenessLines(ours.name, ourRounds), latenessLines(theirs.name, theirRounds)[1:]...)),
		r.writeCSV("requests", append(requestLines(ours.name, ourRounds), requestLines(theirs.name, theirRounds)[1:]...)),
	)
}

// expireInTurn has both delete in each round; who begins changes.
func (w *world) expireInTurn(
	ctx context.Context, o options, r *report, what, suffix string, ours, theirs contestant,
) (ourRounds, theirRounds []outcome, err error) {
	both, rounds := []contestant{ours, theirs}, [2][]outcome{}
	for round := range o.rounds {
		for _, i := range inTurn(len(both), round) {
			r.progress("%s: round %d of %d, %s ...", what, round+1, o.rounds, both[i].name)
			out, err := w.expire(ctx, o, both[i], fmt.Sprintf("%s%s-%d", both[i].name, suffix, round+1))
			if err != nil {
				return nil, nil, fmt.Errorf("round %d, %s: %w", round+1, both[i].name, err)
			}
			rounds[i] = append(rounds[i], out)
		}
	}
	return rounds[0], rounds[1], nil
}

// expire creates Jobs in a new namespace, whose finish times make them expire one after the other, and waits until all are gone.
func (w *world) expire(ctx context.Context, o options, c contestant, ns string) (outcome, error) {
	if err := w.newNamespace(ctx, ns, c.policy); err != nil {
		return outcome{}, err
	}
	created, err := jobs.Create(ctx, w.kube, ns, o.expiries, func(j *batchv1.Job) { j.Spec.TTLSecondsAfterFinished = c.native })
	if err != nil {
		return outcome{}, err
	}
	// A finish before the creation is not believed, so the Jobs finish during this wait.
	if err := poll.Pause(ctx, o.spread+time.Second); err != nil {
		return outcome{}, err
	}
	// Finish times have whole seconds, so a few Jobs share each second of the minute.
	first := time.Now().Add(lead).Truncate(time.Second)
	due := func(i int) time.Time {
		return first.Add(o.spread * time.Duration(i) / time.Duration(o.expiries)).Truncate(time.Second)
	}
	if err := jobs.Finish(ctx, w.kube, created, func(i int) time.Time { return due(i).Add(-o.ttl()) }); err != nil {
		return outcome{}, err
	}
	if !time.Now().Before(first) {
		return outcome{}, fmt.Errorf(
			"the first of %d Jobs was due before all were finished, %s later: ask for fewer with -expiries",
			o.expiries,
			lead,
		)
	}
	all := map[string]*expired{}
	for i, j := range created {
		all[j.Name] = &expired{due: due(i)}
	}
	audit := w.cluster.AuditTail(nil)
	if _, err := audit.Next(); err != nil {
		return outcome{}, err
	}
	last, err := w.watchGone(ctx, ns, all, lead+o.spread+waitMost)
	if err != nil {
		return outcome{}, err
	}
	out := outcome{jobs: all, requests: requestCounts{deletions: len(all), seconds: last.Sub(first).Seconds()}}
	return out, out.readAudit(ctx, audit, c, ns, first)
}

// watchGone notes when its watch tells that each Job is gone, and returns when the last one was.
func (w *world) watchGone(ctx context.Context, ns string, all map[string]*expired, most time.Duration) (last time.Time, err error) {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	watched, err := w.kube.BatchV1().Jobs(ns).Watch(ctx, metav1.ListOptions{})
	if err != nil {
		return last, err
	}
	defer watched.Stop()
	gone := 0
	for event := range watched.ResultChan() {
		if event.Type != watch.Deleted {
			continue
		}
		last = time.Now()
		all[event.Object.(*batchv1.Job).Name].gone = last
		if gone++; gone == len(all) {
			return last, nil
		}
	}
	return last, errors.Join(fmt.Errorf("the watch ended when %d of %d Jobs were gone", gone, len(all)), ctx.Err())
}
