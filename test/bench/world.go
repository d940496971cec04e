// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/pkg/generated/clientset/versioned"
	"github.com/winnow-dev/winnow/test/cluster"
	"github.com/winnow-dev/winnow/test/poll"
	"github.com/winnow-dev/winnow/test/winnow"
)

// waitMost is how long something may take that is not measured.
const waitMost = 3 * time.Minute

// knownMost is how long it may take until all Jobs are known, a millisecond for each on a busy machine.
func knownMost(jobs int) time.Duration { return waitMost + time.Duration(jobs)*time.Millisecond }

// world is a cluster without Nodes, since nothing runs in it, and Winnow with one replica once it is started.
type world struct {
	cluster *cluster.Cluster
	server  *winnow.Server
	kube    kubernetes.Interface
}

// newWorld gives the controller manager the same limits wherever there is one.
func newWorld(ctx context.Context, o options, components ...string) (*world, error) {
	c, err := cluster.Start(ctx, cluster.Options{
		Components: append([]string{cluster.Etcd, cluster.APIServer}, components...),
		Flags: map[string][]string{
			cluster.Etcd: {fmt.Sprintf("--unsafe-no-fsync=%t", !o.fsync)}, cluster.ControllerManager: unlimited,
		},
	})
	if err != nil {
		return nil, err
	}
	w := &world{cluster: c}
	if err := w.connect(); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return w, nil
}

// connect makes the client of the cluster.
func (w *world) connect() (err error) {
	w.kube, err = kubernetes.NewForConfig(w.cluster.RESTConfig())
	return err
}

// newWorldWithWinnow has one replica, and is stopped by stop.
func newWorldWithWinnow(ctx context.Context, o options, components ...string) (*world, error) {
	w, err := newWorld(ctx, o, components...)
	if err != nil {
		return nil, err
	}
	if err := w.startWinnow(ctx, o); err != nil {
		return nil, errors.Join(err, w.stop())
	}
	return w, nil
}

func (w *world) startWinnow(ctx context.Context, o options) (err error) {
	// What a tenant with very many policies does to others is measured too.
	w.server, err = winnow.Start(ctx, w.cluster, winnow.Options{Binary: o.winnow, Flags: []string{"--max-policies-per-namespace=-1"}})
	return err
}

func (w *world) stop() error {
	var err error
	if w.server != nil {
		err = w.server.Stop()
	}
	return errors.Join(err, w.cluster.Stop())
}

func (w *world) replica() *winnow.Replica { return w.server.Replicas[0] }

// newNamespace creates a namespace, with a policy for what is finished in it unless ttl is empty.
func (w *world) newNamespace(ctx context.Context, name string, ttl v1alpha1.TTL) error {
	_, err := w.kube.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil || ttl == "" {
		return err
	}
	return w.newPolicy(ctx, name, v1alpha1.CleanupPolicySpec{TTLAfterFinished: &ttl})
}

// newPolicy creates a policy in a namespace.
func (w *world) newPolicy(ctx context.Context, ns string, spec v1alpha1.CleanupPolicySpec) error {
	client, err := versioned.NewForConfig(w.cluster.RESTConfig())
	if err != nil {
		return err
	}
	policy := &v1alpha1.CleanupPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "bench"},
		Spec:       spec,
	}
	_, err = client.GcV1alpha1().CleanupPolicies(ns).Create(ctx, policy, metav1.CreateOptions{})
	return err
}

// waitMetric waits until Winnow tells this value of a metric without labels.
func (w *world) waitMetric(ctx context.Context, name string, want float64) error {
	return eventually(ctx, 100*time.Millisecond, func(ctx context.Context) error {
		text, err := w.replica().Get(ctx, "/metrics")
		if err != nil {
			return err
		}
		got, err := metric(text, name)
		if err == nil && got != want {
			err = fmt.Errorf("%s is %v, not %v", name, got, want)
		}
		return err
	})
}

// armed is nil if Winnow leads and has this many timers.
func (w *world) armed(ctx context.Context, want int) error {
	m, err := w.winnowMetrics(ctx)
	if err != nil {
		return err
	}
	leading, timers := m.total("winnow_leading"), m.total("winnow_tracker_timers")
	if leading != 1 || timers != float64(want) {
		return fmt.Errorf("winnow_leading is %v, winnow_tracker_timers %v of %d", leading, timers, want)
	}
	return nil
}

// metric finds a metric without labels in the text format of Prometheus.
func metric(text, name string) (float64, error) {
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			return strconv.ParseFloat(strings.TrimSpace(value), 64)
		}
	}
	return 0, fmt.Errorf("no metric %s", name)
}

// eventually asks until the answer is nil.
func eventually(ctx context.Context, interval time.Duration, ask func(context.Context) error) error {
	return poll.Until(ctx, waitMost, interval, ask)
}

// loadAverage is how many processes wanted to run in the last minute: how busy the machine was with this and everything else.
func loadAverage() (string, error) {
	text, err := os.ReadFile("/proc/loadavg")
	first, _, _ := strings.Cut(string(text), " ")
	return first, err
}
