// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
	"github.com/winnow-dev/winnow/test/jobs"
	"github.com/winnow-dev/winnow/test/poll"
)

const (
	// pace is how often something is created, and burstOdds how seldom a burst of burstSize at once.
	pace      = 60 * time.Millisecond
	burstOdds = 250
	burstSize = 60
	// cronOdds is how seldom a CronJob begins.
	cronOdds = 40
	// hubOdds is how seldom another control plane placed the Job here, so that Winnow must keep it.
	hubOdds = 15
	// collects is how often the garbage collector looks.
	collects = 2 * time.Second
)

// driver does what teams and the controllers of Kubernetes do with Jobs, Pods and CronJobs, and remembers each answer.
type driver struct {
	kube    kubernetes.Interface
	history *history
	// gate is closed while the API server is down: whatever it answered to before is known.
	gate sync.RWMutex
	// checkedLate reports whether the checker is so far behind that nothing may be created meanwhile.
	checkedLate func() bool

	created, finished, extended, tooLate, deleted, pods, scheduled, collected atomic.Int64
}

// run starts Jobs, Pods and CronJobs until the context ends, and returns when nobody does anything any more.
func (d *driver) run(whole context.Context, r *rand.Rand, prefix string) error {
	ctx, stop := context.WithCancelCause(whole)
	defer stop(nil)
	var group sync.WaitGroup
	begin := func(what func(context.Context) error) {
		group.Go(func() {
			if err := what(ctx); err != nil && ctx.Err() == nil {
				stop(err)
			}
		})
	}
	begin(d.collect)
	for i := 0; poll.Pause(ctx, pace) == nil; i++ {
		if d.checkedLate() {
			continue
		}
		namespace, n := churnNamespaces[r.IntN(len(churnNamespaces))], 1
		if r.IntN(burstOdds) == 0 {
			n = burstSize
		}
		for k := range n {
			life, name := rand.New(rand.NewPCG(r.Uint64(), 0)), fmt.Sprintf("%s-%d-%d", prefix, i, k)
			of := d.job
			switch {
			case n == 1 && life.IntN(cronOdds) == 0:
				of = d.cron
			case life.IntN(6) == 0:
				of = d.pod
			}
			begin(func(ctx context.Context) error { return of(ctx, life, namespace, name) })
		}
	}
	group.Wait()
	if err := context.Cause(ctx); !errors.Is(err, whole.Err()) {
		return err
	}
	return nil
}

// job is the life of one Job, now and then with a Pod. It ends early when the Job is gone. If another control plane placed it here, that
// control plane deletes it in the end.
func (d *driver) job(ctx context.Context, r *rand.Rand, namespace, name string) error {
	job, placed := jobs.New(name), r.IntN(hubOdds) == 0
	if placed {
		job.Labels = map[string]string{"karmada.io/managed": "true"}
	}
	job, err := d.createJob(ctx, namespace, job)
	if err != nil {
		return err
	}
	if r.IntN(5) == 0 {
		pod, err := d.createPod(ctx, namespace, name, *metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job")))
		if err != nil {
			return err
		}
		if err := d.finishPod(ctx, pod, time.Now()); err != nil {
			return err
		}
	}
	if err := poll.Pause(ctx, time.Duration(r.IntN(500))*time.Millisecond); err != nil {
		return err
	}
	finish := time.Now()
	if err := d.finishJob(ctx, job, finish); err != nil {
		return err
	}
	if err := d.afterwards(ctx, r, job, finish); err != nil || !placed {
		return err
	}
	return d.delete(ctx, false, namespace, name, job.UID)
}

// pod is the life of a Pod that nobody owns.
func (d *driver) pod(ctx context.Context, r *rand.Rand, namespace, name string) error {
	pod, err := d.createPod(ctx, namespace, name)
	if err != nil {
		return err
	}
	if err := poll.Pause(ctx, time.Duration(r.IntN(500))*time.Millisecond); err != nil {
		return err
	}
	finish := time.Now()
	if err := d.finishPod(ctx, pod, finish); err != nil {
		return err
	}
	return d.afterwards(ctx, r, pod, finish)
}

func (d *driver) createJob(ctx context.Context, namespace string, job *batchv1.Job) (*batchv1.Job, error) {
	return job, d.write(ctx, func(ctx context.Context) (_ metav1.Object, err error) {
		d.created.Add(1)
		created, err := d.kube.BatchV1().Jobs(namespace).Create(ctx, job, metav1.CreateOptions{})
		if err == nil {
			*job = *created
		}
		return created, err
	})
}

func (d *driver) finishJob(ctx context.Context, job *batchv1.Job, at time.Time) error {
	d.finished.Add(1)
	job.Status = jobs.Complete(at)
	return d.write(ctx, func(ctx context.Context) (metav1.Object, error) {
		return d.kube.BatchV1().Jobs(job.Namespace).UpdateStatus(ctx, job, metav1.UpdateOptions{})
	})
}

func (d *driver) createPod(ctx context.Context, namespace, name string, owner ...metav1.OwnerReference) (*corev1.Pod, error) {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, OwnerReferences: owner},
		Spec:       corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "main", Image: "none"}}},
	}
	return pod, d.write(ctx, func(ctx context.Context) (metav1.Object, error) {
		d.pods.Add(1)
		created, err := d.kube.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{})
		if err == nil {
			*pod = *created
		}
		return created, err
	})
}

func (d *driver) finishPod(ctx context.Context, pod *corev1.Pod, at time.Time) error {
	ended := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: metav1.NewTime(at)}}
	pod.Status.Phase, pod.Status.ContainerStatuses = corev1.PodSucceeded, []corev1.ContainerStatus{{Name: "main", State: ended}}
	return d.write(ctx, func(ctx context.Context) (metav1.Object, error) {
		return d.kube.CoreV1().Pods(pod.Namespace).UpdateStatus(ctx, pod, metav1.UpdateOptions{})
	})
}

// afterwards is what others do with what has finished.
func (d *driver) afterwards(ctx context.Context, r *rand.Rand, o metav1.Object, finish time.Time) error {
	for range r.IntN(4) {
		if err := poll.Pause(ctx, d.moment(r, o.GetNamespace(), finish)); err != nil {
			return err
		}
		if gone, err := d.meddle(ctx, r, o); gone || err != nil {
			return err
		}
	}
	return nil
}

// moment is how long somebody waits before the next thing is done: often until just before or after the object is due.
func (d *driver) moment(r *rand.Rand, namespace string, finish time.Time) time.Duration {
	if ttl := d.history.ttl(namespace); ttl > 0 && r.IntN(2) == 0 {
		due := finish.Truncate(time.Second).Add(ttl)
		return time.Until(due) + time.Duration(r.IntN(500)-200)*time.Millisecond
	}
	return time.Duration(r.IntN(8000)) * time.Millisecond
}

// meddle changes an object, or deletes it, and reports when it is gone.
func (d *driver) meddle(ctx context.Context, r *rand.Rand, o metav1.Object) (gone bool, err error) {
	_, isPod := o.(*corev1.Pod)
	if r.IntN(6) == 0 {
		return true, d.delete(ctx, isPod, o.GetNamespace(), o.GetName(), o.GetUID())
	}
	annotation := map[int]string{
		0: `"gc.winnow.dev/ttl":"8s"`, 1: `"gc.winnow.dev/ttl":"20s"`, 2: `"gc.winnow.dev/ttl":"never"`, 3: `"gc.winnow.dev/ttl":"1s"`,
		4: `"gc.winnow.dev/ttl":null,"gc.winnow.dev/keep-until":null`, 5: `"gc.winnow.dev/ttl":"soon"`,
		6: `"example.com/seen":"` + fmt.Sprint(r.Uint32()) + `"`,
		7: `"gc.winnow.dev/keep-until":"` + time.Now().Add(time.Duration(r.IntN(10))*time.Second).UTC().Format(time.RFC3339) + `"`,
	}[r.IntN(8)]
	metadata := `"annotations":{` + annotation + `}`
	if r.IntN(5) == 0 {
		metadata = `"labels":{"archived":"true"}`
	}
	patch := []byte(`{"metadata":{` + metadata + `}}`)
	err = d.write(ctx, func(ctx context.Context) (metav1.Object, error) {
		if isPod {
			return d.kube.CoreV1().Pods(o.GetNamespace()).Patch(ctx, o.GetName(), types.MergePatchType, patch, metav1.PatchOptions{})
		}
		return d.kube.BatchV1().Jobs(o.GetNamespace()).Patch(ctx, o.GetName(), types.MergePatchType, patch, metav1.PatchOptions{})
	})
	if apierrors.IsNotFound(err) {
		d.tooLate.Add(1)
		return true, nil
	}
	d.extended.Add(1)
	return false, err
}

// write sends one request and remembers the state that it made.
func (d *driver) write(ctx context.Context, send func(context.Context) (metav1.Object, error)) error {
	return d.request(ctx, func(ctx context.Context) error {
		sent := time.Now()
		o, err := send(ctx)
		if err != nil {
			return err
		}
		return d.wrote(o, sent, time.Now())
	})
}

// request sends a request while the API server runs. Once sent, its answer is waited for.
func (d *driver) request(ctx context.Context, send func(context.Context) error) error {
	d.gate.RLock()
	defer d.gate.RUnlock()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return send(context.WithoutCancel(ctx))
}

func (d *driver) wrote(o metav1.Object, sent, acked time.Time) (err error) {
	var fact *lifecycle.Fact
	switch o := o.(type) {
	case *batchv1.CronJob:
		d.history.cronJob(o.UID, lifecycle.FromCronJob(o), sent, acked)
		return nil
	case *batchv1.Job:
		fact, err = lifecycle.FromJob(o)
	case *corev1.Pod:
		fact, err = lifecycle.FromPod(o)
	}
	if err == nil {
		d.history.wrote(fact, sent, acked)
	}
	return err
}

// delete deletes a Job or Pod that may be gone already.
func (d *driver) delete(ctx context.Context, isPod bool, namespace, name string, uid types.UID) error {
	d.gate.RLock()
	defer d.gate.RUnlock()
	sent := time.Now()
	// The default of Jobs would orphan their Pods, and wait for a garbage collector that does not run here.
	options, err := metav1.DeleteOptions{PropagationPolicy: ptr(metav1.DeletePropagationBackground)}, error(nil)
	if isPod {
		err = d.kube.CoreV1().Pods(namespace).Delete(context.WithoutCancel(ctx), name, options)
	} else {
		err = d.kube.BatchV1().Jobs(namespace).Delete(context.WithoutCancel(ctx), name, options)
	}
	if apierrors.IsNotFound(err) {
		d.tooLate.Add(1)
		return nil
	}
	if err == nil {
		d.deleted.Add(1)
		d.history.gone(uid, sent, time.Now())
	}
	return err
}

// collect does what the garbage collector of Kubernetes would: what had an owner goes after it.
func (d *driver) collect(ctx context.Context) error {
	for poll.Pause(ctx, collects) == nil {
		for _, f := range d.history.orphans() {
			if err := d.delete(ctx, f.Resource == gc.ResourcePods, f.Namespace, f.Name, f.UID); err != nil {
				return err
			}
			d.collected.Add(1)
		}
	}
	return nil
}

// deleteAll deletes what is left, except the residents.
func (d *driver) deleteAll(ctx context.Context) error {
	crons, err := d.kube.BatchV1().CronJobs("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range crons.Items {
		if err := d.deleteCron(ctx, &crons.Items[i]); err != nil {
			return err
		}
	}
	there, err := d.there(ctx)
	if err != nil {
		return err
	}
	there = slices.DeleteFunc(there, func(o metav1.Object) bool { return o.GetNamespace() == residentNamespace })
	for _, o := range there {
		_, isPod := o.(*corev1.Pod)
		if err := d.delete(ctx, isPod, o.GetNamespace(), o.GetName(), o.GetUID()); err != nil {
			return err
		}
	}
	return nil
}

// there are all Jobs and Pods.
func (d *driver) there(ctx context.Context) (out []metav1.Object, err error) {
	all, err := d.kube.BatchV1().Jobs("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	pods, err := d.kube.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for i := range all.Items {
		out = append(out, &all.Items[i])
	}
	for i := range pods.Items {
		out = append(out, &pods.Items[i])
	}
	return out, nil
}
