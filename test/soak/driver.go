// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/winnow-dev/winnow/pkg/controller/lifecycle"
	"github.com/winnow-dev/winnow/test/jobs"
	"github.com/winnow-dev/winnow/test/poll"
)

const (
	// pace is how often a Job is created, and burstOdds how seldom a burst of burstSize at once.
	pace      = 60 * time.Millisecond
	burstOdds = 250
	burstSize = 60
)

// driver does what teams do with their Jobs, and remembers each answer.
type driver struct {
	kube    kubernetes.Interface
	history *history
	// gate is closed while the API server is down: whatever it answered to before is known.
	gate sync.RWMutex

	created, finished, extended, tooLate, deleted atomic.Int64
}

// run starts Jobs until the context ends, and returns when nobody does anything any more.
func (d *driver) run(whole context.Context, r *rand.Rand, prefix string) error {
	ctx, stop := context.WithCancelCause(whole)
	defer stop(nil)
	var group sync.WaitGroup
	for i := 0; poll.Pause(ctx, pace) == nil; i++ {
		namespace, n := churnNamespaces[r.IntN(len(churnNamespaces))], 1
		if r.IntN(burstOdds) == 0 {
			n = burstSize
		}
		for k := range n {
			life := rand.New(rand.NewPCG(r.Uint64(), 0))
			group.Go(func() {
				if err := d.live(ctx, life, namespace, fmt.Sprintf("%s-%d-%d", prefix, i, k)); err != nil && ctx.Err() == nil {
					stop(err)
				}
			})
		}
	}
	group.Wait()
	if err := context.Cause(ctx); !errors.Is(err, whole.Err()) {
		return err
	}
	return nil
}

// live is the life of one Job. It ends early when the Job is gone.
func (d *driver) live(ctx context.Context, r *rand.Rand, namespace, name string) error {
	client := d.kube.BatchV1().Jobs(namespace)
	job := jobs.New(name)
	err := d.write(ctx, func(ctx context.Context) (created *batchv1.Job, err error) {
		job, err = client.Create(ctx, job, metav1.CreateOptions{})
		return job, err
	})
	if err != nil {
		return err
	}
	d.created.Add(1)
	if err := poll.Pause(ctx, time.Duration(r.IntN(500))*time.Millisecond); err != nil {
		return err
	}
	finish := time.Now()
	job.Status = jobs.Complete(finish)
	err = d.write(ctx, func(ctx context.Context) (*batchv1.Job, error) {
		return client.UpdateStatus(ctx, job, metav1.UpdateOptions{})
	})
	if err != nil {
		return err
	}
	d.finished.Add(1)
	for range r.IntN(4) {
		if err := poll.Pause(ctx, d.moment(r, namespace, finish)); err != nil {
			return err
		}
		if gone, err := d.meddle(ctx, r, job); gone || err != nil {
			return err
		}
	}
	return nil
}

// moment is how long somebody waits before the next thing is done: often until just before or after the Job is due.
func (d *driver) moment(r *rand.Rand, namespace string, finish time.Time) time.Duration {
	if ttl := d.history.ttl(namespace); ttl > 0 && r.IntN(2) == 0 {
		due := finish.Truncate(time.Second).Add(ttl)
		return time.Until(due) + time.Duration(r.IntN(500)-200)*time.Millisecond
	}
	return time.Duration(r.IntN(8000)) * time.Millisecond
}

// meddle changes a Job, or deletes it, and tells when it is gone.
func (d *driver) meddle(ctx context.Context, r *rand.Rand, job *batchv1.Job) (gone bool, err error) {
	if r.IntN(6) == 0 {
		return true, d.delete(ctx, job)
	}
	client := d.kube.BatchV1().Jobs(job.Namespace)
	annotation := map[int]string{
		0: `"gc.winnow.dev/ttl":"8s"`, 1: `"gc.winnow.dev/ttl":"20s"`, 2: `"gc.winnow.dev/ttl":"never"`, 3: `"gc.winnow.dev/ttl":"1s"`,
		4: `"gc.winnow.dev/ttl":null,"gc.winnow.dev/keep-until":null`, 5: `"gc.winnow.dev/ttl":"soon"`, 6: `"example.com/seen":"` + fmt.Sprint(r.Uint32()) + `"`,
		7: `"gc.winnow.dev/keep-until":"` + time.Now().Add(time.Duration(r.IntN(10))*time.Second).UTC().Format(time.RFC3339) + `"`,
	}[r.IntN(8)]
	err = d.write(ctx, func(ctx context.Context) (*batchv1.Job, error) {
		return client.Patch(ctx, job.Name, types.MergePatchType, []byte(`{"metadata":{"annotations":{`+annotation+`}}}`), metav1.PatchOptions{})
	})
	if apierrors.IsNotFound(err) {
		d.tooLate.Add(1)
		return true, nil
	}
	d.extended.Add(1)
	return false, err
}

// write sends one request and remembers the state that it made. Once sent, its answer is waited for.
func (d *driver) write(ctx context.Context, send func(context.Context) (*batchv1.Job, error)) error {
	d.gate.RLock()
	defer d.gate.RUnlock()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	sent := time.Now()
	job, err := send(context.WithoutCancel(ctx))
	if err != nil {
		return err
	}
	return d.wrote(job, sent, time.Now())
}

func (d *driver) wrote(job *batchv1.Job, sent, acked time.Time) error {
	fact, err := lifecycle.FromJob(job)
	if err == nil {
		d.history.wrote(fact, sent, acked)
	}
	return err
}

// delete deletes a Job that may be gone already.
func (d *driver) delete(ctx context.Context, job *batchv1.Job) error {
	d.gate.RLock()
	defer d.gate.RUnlock()
	sent := time.Now()
	// The default of Jobs would orphan their Pods, and wait for a garbage collector that does not run here.
	options := metav1.DeleteOptions{PropagationPolicy: ptr(metav1.DeletePropagationBackground)}
	err := d.kube.BatchV1().Jobs(job.Namespace).Delete(context.WithoutCancel(ctx), job.Name, options)
	if apierrors.IsNotFound(err) {
		d.tooLate.Add(1)
		return nil
	}
	if err == nil {
		d.deleted.Add(1)
		d.history.gone(job.UID, sent, time.Now())
	}
	return err
}

// deleteAll deletes what is left in the namespaces that change.
func (d *driver) deleteAll(ctx context.Context) error {
	for _, namespace := range churnNamespaces {
		list, err := d.kube.BatchV1().Jobs(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for i := range list.Items {
			if err := d.delete(ctx, &list.Items[i]); err != nil {
				return err
			}
		}
	}
	return nil
}
