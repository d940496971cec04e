// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/pkg/generated/clientset/versioned"
	"github.com/winnow-dev/winnow/test/platforms"
	"github.com/winnow-dev/winnow/test/poll"
)

const (
	// customBurst is how many custom objects expire together.
	customBurst = 4000
	// customAhead is how long before they expire the first of them is created.
	customAhead = 40 * time.Second
	// customWorkers is how many workers the bare loop has, as beside Jobs.
	customWorkers = 64
	customRounds  = 3
)

// raceCustom measures how fast objects of a custom resource are deleted that expire together, beside a bare loop in this process, which
// knows the objects in advance and deletes them with the same preconditions.
func (w *world) raceCustom(ctx context.Context, client dynamic.Interface, of platforms.Resource, r *report) error {
	const own, bare = "custom-race", "custom-bare"
	if err := errors.Join(w.newNamespace(ctx, own, ""), w.newNamespace(ctx, bare, "")); err != nil {
		return err
	}
	gc, err := versioned.NewForConfig(w.cluster.RESTConfig())
	if err != nil {
		return err
	}
	ttl := v1alpha1.TTL("0s")
	_, err = gc.GcV1alpha1().CleanupPolicies(own).Create(ctx, &v1alpha1.CleanupPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "race"},
		Spec:       v1alpha1.CleanupPolicySpec{Rules: []v1alpha1.CleanupRule{{Name: "race", Resources: []string{of.Name()}, TTL: &ttl}}},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	var winnow, loop [2]sample // objects a second, and p99 of the milliseconds until DELETED is seen
	for round := range customRounds {
		for _, c := range []struct {
			namespace string
			to        *[2]sample
			delete    func(context.Context, dynamic.ResourceInterface, []unstructured.Unstructured) error
		}{{own, &winnow, nil}, {bare, &loop, deleteAll}} {
			objects := client.Resource(of.GroupVersionResource()).Namespace(c.namespace)
			late, err := expire(ctx, objects, of, fmt.Sprintf("%s-%d", c.namespace, round), c.delete)
			if err != nil {
				return err
			}
			c.to[0] = append(c.to[0], 1000*customBurst/late.max())
			c.to[1] = append(c.to[1], late.quantile(0.99))
		}
	}
	r.add(
		row{fmt.Sprintf("%d custom objects expire: deletions", customBurst), "a second", winnow[0], "bare loop", loop[0]},
		row{fmt.Sprintf("%d custom objects expire: until DELETED seen, p99", customBurst), "ms", winnow[1], "bare loop", loop[1]},
	)
	return nil
}

// expire creates objects that finish together, deletes them then unless delete is nil, and returns how late DELETED was seen of each, in
// milliseconds.
func expire(ctx context.Context, objects dynamic.ResourceInterface, r platforms.Resource, name string,
	deletes func(context.Context, dynamic.ResourceInterface, []unstructured.Unstructured) error,
) (late sample, err error) {
	b := burst{name: name}
	gone, err := watchDeleted(ctx, b, listWatcher{
		func(ctx context.Context, o metav1.ListOptions) (metav1.ListInterface, error) {
			return objects.List(ctx, o)
		}, objects.Watch,
	}, customBurst)
	if err != nil {
		return nil, err
	}
	due := time.Now().Add(customAhead).Truncate(time.Second)
	labels := map[string]any{burstLabel: name}
	if err := createFinished(ctx, objects, r, name, customBurst, due, labels); err != nil {
		return nil, err
	}
	all, err := objects.List(ctx, metav1.ListOptions{LabelSelector: burstLabel + "=" + name})
	if err != nil {
		return nil, err
	}
	if left := time.Until(due); left < settle {
		return nil, fmt.Errorf("%d objects were created only %s before they expire", customBurst, left)
	}
	if err := poll.Pause(ctx, time.Until(due)); err != nil {
		return nil, err
	}
	if deletes != nil {
		if err := deletes(ctx, objects, all.Items); err != nil {
			return nil, err
		}
	}
	select {
	case times := <-gone:
		for _, at := range times {
			late = append(late, milliseconds(at.Sub(due)))
		}
	case <-time.After(waitMost):
	}
	if len(late) < customBurst {
		return nil, fmt.Errorf("only %d of %d custom objects are gone", len(late), customBurst)
	}
	return late, nil
}

// deleteAll is the bare loop.
func deleteAll(ctx context.Context, objects dynamic.ResourceInterface, all []unstructured.Unstructured) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(customWorkers)
	for i := range all {
		group.Go(func() error {
			uid, version := all[i].GetUID(), all[i].GetResourceVersion()
			return objects.Delete(ctx, all[i].GetName(), metav1.DeleteOptions{
				Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version}, PropagationPolicy: new(metav1.DeletePropagationBackground),
			})
		})
	}
	return group.Wait()
}
