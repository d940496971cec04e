// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
)

// readyTimeout bounds the start of a cluster on a machine that is busy with other things.
const readyTimeout = 3 * time.Minute

// readiness is an error as long as something is not ready.
type readiness func(context.Context, kubernetes.Interface) error

// waitReady waits for one thing after the other. When a component ends meanwhile, the error has the end of its log.
func (c *Cluster) waitReady(ctx context.Context, things ...readiness) error {
	client, err := kubernetes.NewForConfig(c.config)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	watched := c.running()
	for _, thing := range things {
		if err := waitFor(ctx, watched, client, thing); err != nil {
			return err
		}
	}
	return nil
}

func waitFor(ctx context.Context, watched []*Process, client kubernetes.Interface, thing readiness) error {
	var last error
	err := wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		for _, p := range watched {
			if p.ended() && (p.Name == OwnEtcd || slices.Contains(AllComponents, p.Name)) {
				return false, p.describeEnd()
			}
		}
		last = thing(ctx, client)
		return last == nil, nil
	})
	if wait.Interrupted(err) {
		return fmt.Errorf("not ready: %w", errors.Join(context.Cause(ctx), last))
	}
	return err
}

func apiServerReady(ctx context.Context, client kubernetes.Interface) error {
	return client.Discovery().RESTClient().Get().AbsPath("/readyz").MaxRetries(0).Do(ctx).Error()
}

func namespacesReady(ctx context.Context, client kubernetes.Interface) error {
	for _, name := range []string{metav1.NamespaceDefault, metav1.NamespaceSystem, metav1.NamespacePublic, corev1.NamespaceNodeLease} {
		if _, err := client.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{}); err != nil {
			return err
		}
	}
	return nil
}

// nodesReady creates the Nodes that are missing and checks that all of them take Pods. Without a controller manager
// nobody takes the taint off that admission puts on a new Node.
func (c *Cluster) nodesReady(ctx context.Context, client kubernetes.Interface) error {
	if !slices.Contains(c.options.Components, Kwok) {
		return nil
	}
	for i := range c.options.Nodes {
		name := fmt.Sprintf("node-%d", i)
		node, err := client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			node, err = client.CoreV1().Nodes().Create(ctx, newNode(name), metav1.CreateOptions{})
		}
		if err != nil {
			return err
		}
		isReady := slices.ContainsFunc(node.Status.Conditions, func(condition corev1.NodeCondition) bool {
			return condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue
		})
		if !isReady || len(node.Spec.Taints) > 0 && slices.Contains(c.options.Components, ControllerManager) {
			return fmt.Errorf("node %s: ready %t, taints %v", name, isReady, node.Spec.Taints)
		}
	}
	return nil
}

func newNode(name string) *corev1.Node {
	capacity := corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse("1k"),
		corev1.ResourceMemory: resource.MustParse("1Ti"),
		corev1.ResourcePods:   resource.MustParse("10k"),
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name, corev1.LabelOSStable: "linux"}},
		Status:     corev1.NodeStatus{Capacity: capacity, Allocatable: capacity},
	}
}
