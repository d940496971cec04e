// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"k8s.io/utils/ptr"

	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/test/cluster"
	"github.com/winnow-dev/winnow/test/jobs"
	"github.com/winnow-dev/winnow/test/poll"
)

const (
	// burstLabel names the burst of a Job or Pod.
	burstLabel = "bench.winnow.dev/burst"
	// finishEach is the time for each Job of a burst from its creation until it is finished.
	finishEach = 5 * time.Millisecond
	// nativeEach is the longest that the slowest racer takes for a Job.
	nativeEach = 200 * time.Millisecond
)

// burst is many Jobs, each with a Pod that has succeeded if pods is set, which are due at the same time.
type burst struct {
	name             string
	jobs, namespaces int
	pods             bool
}

func (b burst) String() string {
	what := "Jobs"
	if b.pods {
		what = "Jobs with Pods"
	}
	return fmt.Sprintf("%d %s in %d", b.jobs, what, b.namespaces)
}

func (b burst) podCount() int {
	if b.pods {
		return b.jobs
	}
	return 0
}

// ttl is so long that all are finished before the first is due.
func (b burst) ttl() time.Duration {
	return lead + (time.Duration(b.jobs) * finishEach).Round(time.Second)
}

// litBurst is a burst whose Jobs are finished.
type litBurst struct {
	burst
	all   []*batchv1.Job
	due   time.Time
	audit *cluster.AuditTail // of the DELETEs of Jobs from now on
}

// light creates the Jobs of a burst and finishes them.
func (t *track) light(ctx context.Context, b burst, r racer) (*litBurst, error) {
	lit, err := t.create(ctx, b, r)
	if err != nil {
		return nil, err
	}
	now := time.Now().Truncate(time.Second).Add(time.Second) // A finish before the creation is not believed.
	if err := poll.Pause(ctx, time.Until(now)); err != nil {
		return nil, err
	}
	lit.due = now.Add(b.ttl())
	if err := jobs.Finish(ctx, t.kube, lit.all, func(int) time.Time { return now }); err != nil {
		return nil, err
	}
	if r.peer != nil && r.peer.mark != nil {
		if err := r.peer.mark(ctx, t, lit); err != nil {
			return nil, err
		}
	}
	if !time.Now().Before(lit.due) {
		return nil, fmt.Errorf("%s were due before all were finished: ask for fewer with -throughput", b)
	}
	lit.audit = t.cluster.AuditTail(func(e *cluster.AuditEvent) bool {
		return e.Verb == "delete" && e.ObjectRef != nil && e.ObjectRef.Resource == "jobs"
	})
	_, err = lit.audit.Next()
	return lit, err
}

// create creates the namespaces of a burst with their policies, Jobs and Pods.
func (t *track) create(ctx context.Context, b burst, r racer) (*litBurst, error) {
	seconds := int32(b.ttl().Seconds())
	ttl := v1alpha1.TTL(fmt.Sprintf("%ds", seconds))
	if !r.winnow() {
		ttl = ""
	}
	lit := &litBurst{burst: b}
	for i := range b.namespaces {
		ns := fmt.Sprintf("%s-%d", b.name, i)
		if err := t.newRacingNamespace(ctx, ns, r.account, ttl); err != nil {
			return nil, err
		}
		created, err := jobs.Create(ctx, t.kube, ns, b.jobs/b.namespaces, func(j *batchv1.Job) {
			j.Labels = map[string]string{burstLabel: b.name}
			if r.native {
				j.Spec.TTLSecondsAfterFinished = &seconds
			}
		})
		if err != nil {
			return nil, err
		}
		lit.all = append(lit.all, created...)
	}
	lit.jobs = len(lit.all)
	return lit, t.createPods(ctx, lit)
}

// newRacingNamespace creates a namespace with a policy, which may name an account.
func (t *track) newRacingNamespace(ctx context.Context, ns, account string, ttl v1alpha1.TTL) error {
	if account == "" {
		return t.newNamespace(ctx, ns, ttl)
	}
	return errors.Join(t.newNamespace(ctx, ns, ""), t.newAccount(ctx, ns, account, ttl))
}

// createPods creates a Pod for each Job, as the Job controller would, and has it succeed.
func (t *track) createPods(ctx context.Context, b *litBurst) error {
	if !b.pods {
		return nil
	}
	return parallel(ctx, len(b.all), func(i int) error {
		j := b.all[i]
		owner := metav1.OwnerReference{
			APIVersion: "batch/v1", Kind: "Job", Name: j.Name, UID: j.UID, Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true),
		}
		pod, err := t.kube.CoreV1().Pods(j.Namespace).Create(ctx, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: j.Name, Labels: j.Labels, OwnerReferences: []metav1.OwnerReference{owner}},
			Spec:       j.Spec.Template.Spec,
		}, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		pod.Status.Phase = corev1.PodSucceeded
		_, err = t.kube.CoreV1().Pods(j.Namespace).UpdateStatus(ctx, pod, metav1.UpdateOptions{})
		return err
	})
}

// watchDeleted sends when each of n objects of a burst was seen to be gone, once all are or ctx ends.
func watchDeleted(ctx context.Context, b burst, objects listWatcher, n int) (<-chan []time.Time, error) {
	out := make(chan []time.Time, 1)
	if n == 0 {
		close(out)
		return out, nil
	}
	now, err := objects.list(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return nil, err
	}
	// From now on: what there is already would come first, and a watch that is behind is closed.
	watched, err := watchtools.NewRetryWatcherWithContext(ctx, now.GetResourceVersion(), &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.LabelSelector = burstLabel + "=" + b.name
			return objects.watch(ctx, o)
		},
	})
	if err != nil {
		return nil, err
	}
	go func() {
		defer watched.Stop()
		var gone []time.Time
		for event := range watched.ResultChan() {
			if event.Type != watch.Deleted {
				continue
			}
			if gone = append(gone, time.Now()); len(gone) == n {
				break
			}
		}
		out <- gone
	}()
	return out, nil
}

// listWatcher is of one resource.
type listWatcher struct {
	list  func(context.Context, metav1.ListOptions) (metav1.ListInterface, error)
	watch func(context.Context, metav1.ListOptions) (watch.Interface, error)
}

func (t *track) allJobs() listWatcher {
	all := t.kube.BatchV1().Jobs("")
	return listWatcher{func(ctx context.Context, o metav1.ListOptions) (metav1.ListInterface, error) { return all.List(ctx, o) }, all.Watch}
}

func (t *track) allPods() listWatcher {
	all := t.kube.CoreV1().Pods("")
	return listWatcher{func(ctx context.Context, o metav1.ListOptions) (metav1.ListInterface, error) { return all.List(ctx, o) }, all.Watch}
}

// numbers is a flag of positive numbers with commas between.
type numbers []int

func (n *numbers) String() string {
	var out []string
	for _, one := range *n {
		out = append(out, strconv.Itoa(one))
	}
	return strings.Join(out, ",")
}

// Set implements flag.Value.
func (n *numbers) Set(text string) error {
	*n = nil
	for one := range strings.SplitSeq(text, ",") {
		number, err := strconv.Atoi(one)
		if err != nil || number < 1 {
			return fmt.Errorf("%q is no positive number: write such as 4000,20000", one)
		}
		*n = append(*n, number)
	}
	return nil
}
