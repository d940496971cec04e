// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"

	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/test/cluster"
	"github.com/winnow-dev/winnow/test/poll"
)

const (
	// In the second namespace, no policy deletes Pods.
	countedNamespace, uncountedNamespace = "counted", "uncounted"
	// mostUncounted is how many completions the Job without a policy has at most, because all its Pods stay stored.
	mostUncounted = 10_000
	// mostStored is how many Pods may be stored at the same time, and countedPerMinute how many must finish: the bar of KEP-2307.
	mostStored, countedPerMinute = 5000, 5000
)

// storedPods counts the Pods of a namespace, as a watch tells of them.
type storedPods struct {
	lock      sync.Mutex
	now       map[types.UID]bool
	most, all int
}

func (s *storedPods) add(obj any) {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.now[obj.(metav1.Object).GetUID()] = true
	s.all++
	s.most = max(s.most, len(s.now))
}

func (s *storedPods) remove(obj any) {
	if unknown, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = unknown.Obj
	}
	s.lock.Lock()
	defer s.lock.Unlock()
	delete(s.now, obj.(metav1.Object).GetUID())
}

// figures are how many are stored, how many were at most, and how many there have been.
func (s *storedPods) figures() (now, most, all int) {
	s.lock.Lock()
	defer s.lock.Unlock()
	return len(s.now), s.most, s.all
}

// measureCounted runs one Job of very many completions, while Winnow deletes its Pods once they are counted (KEP-2307).
func measureCounted(ctx context.Context, o options, r *report) error {
	c, err := cluster.Start(ctx, cluster.Options{Nodes: 1, Flags: map[string][]string{
		cluster.Etcd:              {fmt.Sprintf("--unsafe-no-fsync=%t", !o.fsync), "--quota-backend-bytes=8589934592"},
		cluster.ControllerManager: unlimited,
		cluster.Scheduler:         {"--kube-api-qps=10000", "--kube-api-burst=10000"},
	}})
	if err != nil {
		return err
	}
	w := &world{cluster: c}
	if err := w.connect(); err != nil {
		return errors.Join(err, w.stop())
	}
	if err := w.startWinnow(ctx, o); err != nil {
		return errors.Join(err, w.stop())
	}
	return errors.Join(w.runCounted(ctx, o, r), w.stop())
}

func (w *world) runCounted(ctx context.Context, o options, r *report) error {
	if err := errors.Join(w.newNamespace(ctx, uncountedNamespace, ""), w.newNamespace(ctx, countedNamespace, "")); err != nil {
		return err
	}
	none := v1alpha1.TTL("0s")
	if err := w.newPolicy(ctx, countedNamespace, v1alpha1.CleanupPolicySpec{Rules: []v1alpha1.CleanupRule{{
		Name: "pods", Resources: []string{"pods"}, TTL: &none, Dependents: v1alpha1.DependentsOnceCounted,
	}}}); err != nil {
		return err
	}
	perMinute, most, err := w.runMany(ctx, r, countedNamespace, o.completions, o.parallelism)
	if err != nil {
		return err
	}
	alone, mostAlone, err := w.runMany(ctx, r, uncountedNamespace, min(o.completions, mostUncounted), o.parallelism)
	if err != nil {
		return err
	}
	const beside = "without a policy"
	r.add(
		row{fmt.Sprintf("one Job of %d completions: Pods a minute", o.completions), "Pods", sample{perMinute}, beside, sample{alone}},
		row{"Pods stored at most", "Pods", sample{float64(most)}, beside, sample{float64(mostAlone)}},
	)
	if most > mostStored || perMinute < countedPerMinute {
		return fmt.Errorf("the bar of KEP-2307 is %d Pods a minute and %d stored", countedPerMinute, mostStored)
	}
	return nil
}

// runMany runs a Job of many completions, and returns how many Pods a minute succeeded until the Job was complete, and how many were stored
// at most.
func (w *world) runMany(
	ctx context.Context, r *report, namespace string, completions, parallelism int,
) (perMinute float64, most int, err error) {
	stored, err := w.watchPods(ctx, namespace)
	if err != nil {
		return 0, 0, err
	}
	begin := time.Now()
	job, err := w.kube.BatchV1().Jobs(namespace).Create(ctx, manyCompletions(completions, parallelism), metav1.CreateOptions{})
	if err != nil {
		return 0, 0, err
	}
	if job, err = w.waitComplete(ctx, r, job, stored); err != nil {
		return 0, 0, err
	}
	perMinute = float64(completions) / time.Since(begin).Minutes()
	_, most, all := stored.figures()
	if s := job.Status; int(s.Succeeded) != completions || s.Failed != 0 || all != completions {
		err = fmt.Errorf("%d Pods succeeded, %d failed, %d were created, of %d", s.Succeeded, s.Failed, all, completions)
	}
	return perMinute, most, err
}

// manyCompletions is an Indexed Job, whose status says of each completion that it is counted. Its Pods name their Node, because it is not
// measured how fast they are scheduled.
func manyCompletions(completions, parallelism int) *batchv1.Job {
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: "many"},
		Spec: batchv1.JobSpec{
			Completions: new(int32(completions)), Parallelism: new(int32(parallelism)), CompletionMode: new(batchv1.IndexedCompletion),
			BackoffLimit: new(int32),
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"test.winnow.dev/run-for": "100ms"}},
				Spec: corev1.PodSpec{
					RestartPolicy: corev1.RestartPolicyNever, NodeName: "node-0",
					Containers: []corev1.Container{{Name: "main", Image: "none"}},
				},
			},
		},
	}
}

// waitComplete waits until a Job is complete, and says every ten seconds how far it is.
func (w *world) waitComplete(ctx context.Context, r *report, created *batchv1.Job, stored *storedPods) (job *batchv1.Job, err error) {
	var told time.Time
	most := waitMost + 2*time.Duration(*created.Spec.Completions)*time.Minute/countedPerMinute
	err = poll.Until(ctx, most, 200*time.Millisecond, func(ctx context.Context) (err error) {
		if job, err = w.kube.BatchV1().Jobs(created.Namespace).Get(ctx, created.Name, metav1.GetOptions{}); err != nil {
			return err
		}
		now, mostSoFar, _ := stored.figures()
		status := fmt.Errorf("%d succeeded, %d failed, %d active, %d Pods stored, %d at most", job.Status.Succeeded, job.Status.Failed,
			job.Status.Active, now, mostSoFar)
		if time.Since(told) > 10*time.Second {
			r.progress("%s: %v", job.Namespace, status)
			told = time.Now()
		}
		if job.Status.CompletionTime == nil {
			return status
		}
		return nil
	})
	return job, err
}

// watchPods counts the Pods of a namespace from now on.
func (w *world) watchPods(ctx context.Context, namespace string) (*storedPods, error) {
	client, err := metadata.NewForConfig(w.cluster.RESTConfig())
	if err != nil {
		return nil, err
	}
	stored := &storedPods{now: map[types.UID]bool{}}
	informer := metadatainformer.NewFilteredMetadataInformer(client, corev1.SchemeGroupVersion.WithResource("pods"), namespace, 0,
		cache.Indexers{}, nil).Informer()
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: stored.add, DeleteFunc: stored.remove}); err != nil {
		return nil, err
	}
	go informer.RunWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return nil, ctx.Err()
	}
	return stored, nil
}
