// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/test/jobs"
	"github.com/winnow-dev/winnow/test/poll"
)

const (
	// crowdLabel is on namespaces in which a change holds that makes more than crowdMost Jobs due, crowdName what each is called.
	crowdLabel = "crowd"
	crowdName  = "soak.winnow.dev/name"
	crowdMost  = 10
	// crowdPause is the time from one crowd to the next.
	crowdPause = 3 * time.Second
	// crowdsMost is how many crowds there are at a time. While faults are on, they take long.
	crowdsMost = 12
)

// crowdSpec are the guardrails of these namespaces.
func crowdSpec() v1alpha1.ClusterCleanupPolicySpec {
	return v1alpha1.ClusterCleanupPolicySpec{
		Mode: v1alpha1.ModeEnforce, NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{crowdLabel: "yes"}},
		Guardrails: &v1alpha1.Guardrails{HoldAbove: &v1alpha1.HoldAbove{Objects: ptr(int64(crowdMost))}},
	}
}

// crowds are Jobs that one change makes due together, each crowd in a separate namespace. If they are many, none may go before that is
// approved; if it is taken back, none at all.
type crowds struct {
	driver   *driver
	governor *governor

	// keepEvidence is called when a crowd fails.
	keepEvidence func(context.Context) error
	faults       *faults // nil without them

	seen, held, approved, undone atomic.Int64
}

// run has one crowd after the other until the context ends. A crowd takes longer than the pause, so that there are several at a time.
func (c *crowds) run(whole context.Context, r *rand.Rand, prefix string) error {
	ctx, stop := context.WithCancelCause(whole)
	defer stop(nil)
	var group sync.WaitGroup
	running := make(chan struct{}, crowdsMost)
	for n := 0; poll.Pause(ctx, crowdPause) == nil; n++ {
		select {
		case running <- struct{}{}:
		case <-ctx.Done():
			continue
		}
		life, namespace := rand.New(rand.NewPCG(r.Uint64(), 0)), fmt.Sprintf("%s-crowd-%d", prefix, n)
		group.Go(func() {
			if err := c.crowd(ctx, life, namespace); err != nil && ctx.Err() == nil {
				stop(errors.Join(fmt.Errorf("%s: %w", namespace, err), c.keepEvidence(ctx)))
			}
			<-running
		})
	}
	group.Wait()
	if err := context.Cause(ctx); !errors.Is(err, whole.Err()) {
		return err
	}
	return nil
}

// cause is a change that makes the Jobs of a crowd due.
type cause struct {
	name                 string
	before, after, clean []edit
	undo                 edit // nil where a change back would not end the hold
}

func (c *crowds) causes(namespace string) []cause {
	g := c.governor
	policy := func(name string, mode v1alpha1.PolicyMode, ttl v1alpha1.TTL) edit {
		return g.policy(namespace, name, v1alpha1.CleanupPolicySpec{Mode: mode, TTLAfterFinished: &ttl})
	}
	labels := map[string]string{crowdLabel: "yes", crowdName: namespace}
	protected := maps.Clone(labels)
	protected[gc.LabelProtected] = "true"
	stop := func(suspend bool) edit {
		return g.cluster(stopName+"-"+namespace, v1alpha1.ClusterCleanupPolicySpec{
			Mode: v1alpha1.ModeEnforce, NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{crowdName: namespace}},
			Guardrails: &v1alpha1.Guardrails{SuspendAll: suspend},
		})
	}
	half := g.policy(namespace, policyName, v1alpha1.CleanupPolicySpec{Capacity: &v1alpha1.Capacity{PercentOfQuota: ptr(int64(50))}})
	enforce, preview := v1alpha1.ModeEnforce, v1alpha1.ModePreview
	keep, one := policy(policyName, enforce, "1h"), policy(policyName, enforce, "1s")
	all := []cause{
		{name: "a shorter TTL", before: []edit{keep}, after: []edit{one}, undo: keep},
		{
			name:   "mode Enforce",
			before: []edit{policy(policyName, preview, "1s")},
			after:  []edit{one},
			undo:   policy(policyName, preview, "1s"),
		},
		{name: "a policy less", before: []edit{one, policy("keep", enforce, "1h")}, after: []edit{g.noPolicy(namespace, "keep")},
			undo: policy("keep", enforce, "1h")},
		{name: "a label less", before: []edit{g.labels(namespace, protected), one}, after: []edit{g.labels(namespace, labels)},
			undo: g.labels(namespace, protected)},
		{
			name:   "no suspension",
			before: []edit{stop(true), one},
			after:  []edit{stop(false)},
			clean:  []edit{g.noCluster(stopName + "-" + namespace)},
		},
		{
			name:   "a smaller quota",
			before: []edit{g.quota(namespace, 1000), half},
			after:  []edit{g.quota(namespace, 0)},
			undo:   g.quota(namespace, 1000),
		},
	}
	forget := func(next *change) func(context.Context) error { // Nothing is there any more.
		delete(next.namespaces, namespace)
		return func(context.Context) error { return nil }
	}
	for i := range all {
		all[i].before = append([]edit{g.labels(namespace, labels)}, all[i].before...)
		all[i].clean = append(all[i].clean, g.noPolicy(namespace, "keep"), g.noPolicy(namespace, policyName), forget)
	}
	return all
}

// crowd is the life of one.
func (c *crowds) crowd(ctx context.Context, r *rand.Rand, namespace string) error {
	causes := c.causes(namespace)
	by := causes[r.IntN(len(causes))]
	if err := c.write(ctx, by.before...); err != nil {
		return err
	}
	n := pick(r, 3, crowdMost, crowdMost+1, 60)
	uids, err := c.finish(ctx, namespace, n)
	if err != nil {
		return err
	}
	if err := poll.Pause(ctx, 3*time.Second); err != nil { // They are older than a second then, whatever second that was.
		return err
	}
	c.seen.Add(1)
	if n <= crowdMost {
		err = c.write(ctx, by.after...)
	} else {
		err = c.wait(ctx, r, namespace, by, uids)
	}
	if err != nil {
		return fmt.Errorf("%d Jobs due by %s: %w", n, by.name, err)
	}
	if err := c.until(ctx, func(ctx context.Context) error { return c.goes(ctx, namespace) }); err != nil {
		return fmt.Errorf("%d Jobs due by %s: %w", n, by.name, err)
	}
	return c.write(ctx, by.clean...)
}

// wait makes more due than may go at once, sees them held, takes it back perhaps and does it again, and approves.
func (c *crowds) wait(ctx context.Context, r *rand.Rand, namespace string, by cause, uids []types.UID) error {
	for again := by.undo != nil && r.IntN(2) == 0; ; again = false {
		c.governor.history.hold(time.Now(), uids...)
		if err := c.write(ctx, by.after...); err != nil {
			return err
		}
		c.governor.history.heldBy(time.Now(), uids...)
		ids, err := c.holds(ctx, namespace, len(uids), uids...)
		if err != nil {
			return err
		}
		if c.faults != nil && c.gone(namespace) == nil {
			return nil
		}
		c.held.Add(1)
		if err := poll.Pause(ctx, time.Duration(r.IntN(5000))*time.Millisecond); err != nil {
			return err
		}
		if !again {
			return c.approve(ctx, namespace, ids, uids)
		}
		if err := c.write(ctx, by.undo); err != nil {
			return err
		}
		c.undone.Add(1)
		if _, err := c.holds(ctx, namespace, 0); err != nil {
			return err
		}
	}
}

func (c *crowds) approve(ctx context.Context, namespace string, ids []string, uids []types.UID) error {
	c.governor.writing.Lock()
	defer c.governor.writing.Unlock()
	c.governor.history.release(time.Now(), uids...)
	c.approved.Add(1)
	if c.faults != nil { // After a fault the IDs may be others, so what waits is approved until all are gone.
		return nil
	}
	return c.until(context.WithoutCancel(ctx), func(ctx context.Context) error { return c.annotate(ctx, namespace, ids) })
}

func (c *crowds) annotate(ctx context.Context, namespace string, ids []string) error {
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, gc.AnnotationApprovedHold, strings.Join(ids, ","))
	_, err := c.governor.gc.CleanupPolicies(namespace).Patch(ctx, policyName, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}

// holds waits until the policy is held for so many Jobs, and returns the ids. If a fault kept Winnow from knowing them all when the policy
// changed, fewer may be held.
func (c *crowds) holds(ctx context.Context, namespace string, n int, of ...types.UID) (ids []string, err error) {
	err = c.until(ctx, func(ctx context.Context) error {
		var sum int64
		var status string
		if ids, sum, status, err = c.status(ctx, namespace); err != nil {
			return err
		}
		if len(of) > 0 && c.faults.lagged(c.governor.history.holdOf(of[0]), time.Now()) && (sum > 0 || c.gone(namespace) == nil) {
			return nil
		}
		if sum != int64(n) || n == 0 && len(ids) > 0 {
			return fmt.Errorf("%d Jobs are held, want %d: %s", sum, n, status)
		}
		return nil
	})
	return ids, err
}

// status returns which holds a policy has, for how many Jobs, and its status.
func (c *crowds) status(ctx context.Context, namespace string) (ids []string, sum int64, status string, err error) {
	p, err := c.governor.gc.CleanupPolicies(namespace).Get(ctx, policyName, metav1.GetOptions{})
	if err != nil {
		return nil, 0, "", err
	}
	for _, h := range p.Status.Holds {
		ids, sum = append(ids, h.ID), sum+h.Objects
	}
	return ids, sum, inJSON(p.Status), nil
}

// goes looks whether all Jobs are gone that may go. A replica that was not there when a policy changed may hold them, so with faults it
// approves what waits.
func (c *crowds) goes(ctx context.Context, namespace string) error {
	err := c.gone(namespace)
	if err == nil || c.faults == nil {
		return err
	}
	ids, _, status, errHeld := c.status(ctx, namespace)
	if len(ids) > 0 {
		errHeld = c.annotate(ctx, namespace, ids)
	}
	return errors.Join(err, errHeld, errors.New(status))
}

// finish creates Jobs and finishes them.
func (c *crowds) finish(ctx context.Context, namespace string, n int) ([]types.UID, error) {
	var all []*batchv1.Job
	for i := range n {
		job, err := c.driver.createJob(ctx, namespace, jobs.New(fmt.Sprintf("job-%d", i)))
		if err != nil {
			return nil, err
		}
		all = append(all, job)
	}
	var uids []types.UID
	for _, job := range all {
		if err := c.driver.finishJob(ctx, job, time.Now()); err != nil {
			return nil, err
		}
		uids = append(uids, job.UID)
	}
	return uids, nil
}

// gone says what is left in a namespace.
func (c *crowds) gone(namespace string) error {
	n := 0
	for _, name := range c.governor.history.left() {
		if strings.HasPrefix(name, namespace+"/") {
			n++
		}
	}
	if n > 0 {
		return fmt.Errorf("%d of them may go and are still there", n)
	}
	return nil
}

func (c *crowds) write(ctx context.Context, edits ...edit) error {
	for _, e := range edits {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err := c.governor.write(ctx, e); err != nil {
			return err
		}
	}
	return nil
}

// until asks until the answer is nil, a little less often than the rest.
func (c *crowds) until(ctx context.Context, ask func(context.Context) error) error {
	return poll.Until(ctx, waitMost, 500*time.Millisecond, ask)
}
