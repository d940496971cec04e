// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/dynamic"

	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/test/platforms"
	"github.com/winnow-dev/winnow/test/poll"
	"github.com/winnow-dev/winnow/test/winnow"
)

// machines is a custom resource whose definition and lifecycle come and go.
var machines = platforms.Resource{Group: "soak.example.com", Kind: "Machine", Plural: "machines", Versions: []string{"v1"}}

const machinesNamespace = "machines"

// definitions installs a custom resource, lets Winnow delete what has finished and meets a match condition, and removes the resource, again
// and again. No other object of the resource may go.
type definitions struct {
	driver   *driver
	governor *governor
	client   dynamic.Interface

	rounds atomic.Int64
}

// begin writes the policy, and what it needs. The resource need not be there yet.
func (d *definitions) begin(ctx context.Context) error {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: machinesNamespace}}
	p := &v1alpha1.CleanupPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: policyName},
		Spec: v1alpha1.CleanupPolicySpec{Rules: []v1alpha1.CleanupRule{{
			Name: "done", Resources: []string{machines.Name()}, TTL: ptr(v1alpha1.TTL("1s")),
			MatchConditions: []v1alpha1.MatchCondition{{Name: "not-kept", Expression: "!has(object.spec.keep)"}},
		}}},
	}
	grantErr := platforms.Grant(ctx, d.driver.kube, winnow.Namespace, "winnow", machines.Group, machines.Plural)
	_, nsErr := d.driver.kube.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{})
	if err := errors.Join(grantErr, nsErr); err != nil {
		return err
	}
	_, err := d.governor.gc.CleanupPolicies(machinesNamespace).Create(ctx, p, metav1.CreateOptions{})
	return err
}

// run has one round after the other until the context ends, and leaves no definition.
func (d *definitions) run(ctx context.Context, r *rand.Rand) error {
	for poll.Pause(ctx, time.Duration(r.IntN(3000))*time.Millisecond) == nil {
		if err := d.round(context.WithoutCancel(ctx), r); err != nil {
			return fmt.Errorf("round %d of %s: %w", d.rounds.Load(), machines.Name(), err)
		}
		d.rounds.Add(1)
	}
	return nil
}

func (d *definitions) round(ctx context.Context, r *rand.Rand) error {
	lifecycleFirst := r.IntN(2) == 0
	steps := []func(context.Context) error{d.installDefinition, d.createLifecycle}
	if lifecycleFirst {
		steps = []func(context.Context) error{d.createLifecycle, d.installDefinition}
	}
	steps = append(steps, d.createObjects, d.finishedGo)
	if r.IntN(2) == 0 { // Without a lifecycle nothing finishes.
		steps = append(steps, d.deleteLifecycle)
	}
	steps = append(steps, d.othersStay, d.deleteDefinition, d.deleteLifecycle)
	for _, step := range steps {
		if err := eventually(ctx, step); err != nil {
			return err
		}
	}
	return nil
}

func (d *definitions) installDefinition(ctx context.Context) error {
	return platforms.Install(ctx, d.client, machines)
}

func (d *definitions) createLifecycle(ctx context.Context) error {
	_, err := d.governor.gc.ResourceLifecycles().Create(ctx, &v1alpha1.ResourceLifecycle{
		ObjectMeta: metav1.ObjectMeta{Name: machines.Name()},
		Spec: v1alpha1.ResourceLifecycleSpec{Finished: &v1alpha1.FinishedExpressions{
			When: "object.?status.done.orValue(false) == true", Succeeded: "true", At: "object.status.at",
		}},
	}, metav1.CreateOptions{})
	return ignoreExists(err)
}

// names are the objects of this round, with whether each must go. What comes back under the same name too often is held.
func (d *definitions) names() map[string]bool {
	round := d.rounds.Load()
	return map[string]bool{
		fmt.Sprintf("done-%d-a", round): true, fmt.Sprintf("done-%d-b", round): true, machineRuns: false, machineKept: false,
	}
}

const machineRuns, machineKept = "runs", "kept"

func (d *definitions) objects() dynamic.ResourceInterface {
	return d.client.Resource(machines.GroupVersionResource()).Namespace(machinesNamespace)
}

// createObjects creates what is not there, and finishes what must finish. It may be called again after an error, when some are gone.
func (d *definitions) createObjects(ctx context.Context) error {
	for name := range d.names() {
		object := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": machines.Group + "/v1", "kind": machines.Kind, "metadata": map[string]any{"name": name}, "spec": map[string]any{},
		}}
		if name == machineKept {
			object.Object["spec"] = map[string]any{"keep": true}
		}
		created, err := d.objects().Create(ctx, object, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			created, err = d.objects().Get(ctx, name, metav1.GetOptions{})
		}
		if err != nil {
			return ignoreNotFound(err)
		}
		if name == machineRuns {
			continue
		}
		created.Object["status"] = map[string]any{"done": true, "at": time.Now().UTC().Format(time.RFC3339)}
		if _, err := d.objects().UpdateStatus(ctx, created, metav1.UpdateOptions{}); ignoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}

func (d *definitions) finishedGo(ctx context.Context) error { return d.check(ctx, true) }

// othersStay looks for a second whether anything goes that must stay.
func (d *definitions) othersStay(ctx context.Context) error {
	if err := poll.Pause(ctx, time.Second); err != nil {
		return err
	}
	return d.check(ctx, false)
}

// check fails if an object that must go is there, or if one that must stay is gone.
func (d *definitions) check(ctx context.Context, goes bool) error {
	all, err := d.objects().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	there := sets.New[string]()
	for i := range all.Items {
		there.Insert(all.Items[i].GetName())
	}
	for name, must := range d.names() {
		if must == goes && there.Has(name) == goes {
			return fmt.Errorf("there are %v, among them %s: %t, want %t", sets.List(there), name, goes, !goes)
		}
	}
	return nil
}

func (d *definitions) deleteLifecycle(ctx context.Context) error {
	return ignoreNotFound(d.governor.gc.ResourceLifecycles().Delete(ctx, machines.Name(), metav1.DeleteOptions{}))
}

// deleteDefinition deletes the definition with all objects, and waits until both are gone.
func (d *definitions) deleteDefinition(ctx context.Context) error {
	all := d.client.Resource(platforms.Definitions)
	if err := all.Delete(ctx, machines.Name(), metav1.DeleteOptions{}); err != nil {
		return ignoreNotFound(err)
	}
	return errors.New("the definition is still there")
}

func ignoreExists(err error) error {
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}
