// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package platforms

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
)

// Controller plays the controller of a resource in one namespace. Until an object has finished, the controller creates each of its children
// that does not exist, so a child that is deleted too early runs again. The object finishes once all its children have succeeded.
type Controller struct {
	Client    dynamic.Interface
	Namespace string
	Parent    Resource
	// Child is the resource of the children. Children returns the children of an object, complete except for the owner.
	Child    schema.GroupVersionResource
	Children func(parent *unstructured.Unstructured) []*unstructured.Unstructured
	// Finished is the type of the condition that says that an object has finished.
	Finished string

	lock     sync.Mutex
	created  map[string]int // by name of the child
	finished map[string]int // by name of the parent
}

// period is the time between two rounds of a controller. It is long enough for a wrong DELETE to come before the controller has read the
// status of a child.
const period = 300 * time.Millisecond

// Run reconciles all objects again and again until ctx ends.
func (c *Controller) Run(ctx context.Context) error {
	c.created, c.finished = map[string]int{}, map[string]int{}
	err := wait.PollUntilContextCancel(ctx, period, true, func(ctx context.Context) (bool, error) {
		parents, err := c.parents().List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		for i := range parents.Items {
			if err := c.reconcile(ctx, &parents.Items[i]); err != nil {
				return false, err
			}
		}
		return false, nil
	})
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// Created returns how often each child was created, and Ended how often each object finished.
func (c *Controller) Created() map[string]int { return c.copyOf(&c.created) }

// Ended returns how often each object was seen to finish.
func (c *Controller) Ended() map[string]int { return c.copyOf(&c.finished) }

func (c *Controller) copyOf(counts *map[string]int) map[string]int {
	c.lock.Lock()
	defer c.lock.Unlock()
	return maps.Clone(*counts)
}

func (c *Controller) count(counts map[string]int, name string) {
	c.lock.Lock()
	defer c.lock.Unlock()
	counts[name]++
}

func (c *Controller) parents() dynamic.ResourceInterface {
	return c.Client.Resource(c.Parent.GroupVersionResource()).Namespace(c.Namespace)
}

func (c *Controller) reconcile(ctx context.Context, parent *unstructured.Unstructured) error {
	if parent.GetDeletionTimestamp() != nil || Succeeded(parent) {
		return nil
	}
	var names []any
	children := c.Client.Resource(c.Child).Namespace(c.Namespace)
	for _, child := range c.Children(parent) {
		found, err := children.Get(ctx, child.GetName(), metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			child.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(parent, parent.GroupVersionKind())})
			if found, err = children.Create(ctx, child, metav1.CreateOptions{}); err == nil {
				c.count(c.created, child.GetName())
			}
		}
		if err != nil {
			return fmt.Errorf("%s of %s: %w", child.GetName(), parent.GetName(), err)
		}
		if Succeeded(found) {
			names = append(names, found.GetName())
		}
	}
	if len(names) < len(c.Children(parent)) {
		return nil
	}
	now := metav1.Now().UTC().Format(time.RFC3339)
	condition := map[string]any{"type": c.Finished, "status": "True", "reason": "Finished", "message": "", "lastTransitionTime": now}
	parent.Object["status"] = map[string]any{"conditions": []any{condition}, "completionTime": now, "children": names}
	_, err := c.parents().UpdateStatus(ctx, parent, metav1.UpdateOptions{})
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil // The next round reads it again.
	}
	if err == nil {
		c.count(c.finished, parent.GetName())
	}
	return err
}

// Succeeded reports whether an object of any kind that the tests have has succeeded.
func Succeeded(object *unstructured.Unstructured) bool {
	if phase, _, _ := unstructured.NestedString(object.Object, "status", "phase"); phase == "Succeeded" {
		return true
	}
	conditions, _, err := unstructured.NestedSlice(object.Object, "status", "conditions")
	return err == nil && slices.ContainsFunc(conditions, func(condition any) bool {
		fields, _ := condition.(map[string]any)
		return fields["status"] == "True" && slices.Contains([]any{"Complete", "Completed", "Succeeded"}, fields["type"])
	})
}

// RunAll runs controllers until ctx ends, and returns their errors.
func RunAll(ctx context.Context, controllers ...*Controller) error {
	errs := make([]error, len(controllers))
	var group sync.WaitGroup
	for i, c := range controllers {
		group.Go(func() { errs[i] = c.Run(ctx) })
	}
	group.Wait()
	return errors.Join(errs...)
}
