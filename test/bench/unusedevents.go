// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/time/rate"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

const (
	// podEventsASecond is how fast Pods are changed.
	podEventsASecond = 200
	// podEventRounds is how often each kind of change is measured.
	podEventRounds = 3
)

// podEvents are the ways in which Pods change. None changes what is used, as most events do not: the Pods of an application come and go.
var podEvents = []struct {
	name string
	make func(ctx context.Context, w *world, ns string, i int) error
}{
	{"updated", func(ctx context.Context, w *world, ns string, i int) error {
		patch := fmt.Appendf(nil, `{"status":{"message":"%d"}}`, time.Now().UnixNano())
		_, err := w.kube.CoreV1().Pods(ns).Patch(ctx, webPodName(ns, i%podsEach), types.MergePatchType, patch, metav1.PatchOptions{}, "status")
		return err
	}},
	{"created", func(ctx context.Context, w *world, ns string, i int) error {
		_, err := w.kube.CoreV1().Pods(ns).Create(ctx, webPod(ns, podsEach+i), metav1.CreateOptions{})
		return err
	}},
	{"deleted", func(ctx context.Context, w *world, ns string, i int) error {
		return w.kube.CoreV1().Pods(ns).Delete(ctx, webPodName(ns, podsEach+i), metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)})
	}},
}

// measureUnusedEvents measures the CPU of Winnow, of informers and of kube-apiserver while Pods change, and takes off what they use at
// rest. A first round only warms up, and gives a profile.
func (w *world) measureUnusedEvents(
	ctx context.Context, o options, r *report, informers int, winnow, beside unusedFigures,
) error {
	pids := []int{w.replica().Process.Pid(), informers, w.cluster.Process("kube-apiserver").Pid()}
	rest := []float64{winnow.rest.cpu.median(), beside.rest.cpu.median(), winnow.server.median()}
	used := make([][3]sample, len(podEvents))
	for round := range podEventRounds + 1 {
		r.progress("unused: events, round %d of %d ...", round, podEventRounds)
		profiled := make(chan error, 1)
		if round == 0 {
			seconds := max(1, len(podEvents)*o.podEvents/podEventsASecond)
			go func() {
				profiled <- w.profile(ctx, "profile?seconds="+strconv.Itoa(seconds), filepath.Join(o.out, "unused-events.pprof"))
			}()
		} else {
			profiled <- nil
		}
		for kind := range podEvents {
			spent, err := w.changePods(ctx, o, kind, pids)
			if err != nil {
				return fmt.Errorf("while Pods are %s: %w", podEvents[kind].name, err)
			}
			for i := range pids {
				if round > 0 {
					milliseconds := 1000 * (spent.cpu[i] - rest[i]/100*spent.seconds)
					used[kind][i] = append(used[kind][i], milliseconds*1000/float64(o.podEvents))
				}
			}
		}
		if err := <-profiled; err != nil {
			return err
		}
	}
	for kind, of := range used {
		what := fmt.Sprintf("1,000 Pods %s, %d a second: ", podEvents[kind].name, podEventsASecond)
		r.add(row{what + "CPU", "ms", of[0], metadataInformer + "s", of[1]}, row{what + "CPU of kube-apiserver", "ms", of[2], "", nil})
	}
	return nil
}

// spent is the CPU time of processes, in seconds.
type spent struct {
	cpu     []float64
	seconds float64
}

// changePods changes Pods of all namespaces in turn, and waits until all processes have nothing more to do.
func (w *world) changePods(ctx context.Context, o options, kind int, pids []int) (s spent, err error) {
	before, err := readAll(pids, cpuTime)
	if err != nil {
		return s, err
	}
	begin, limit := time.Now(), rate.NewLimiter(podEventsASecond, 1)
	err = parallel(ctx, o.podEvents, func(i int) error {
		if err := limit.Wait(ctx); err != nil {
			return err
		}
		return podEvents[kind].make(ctx, w, unusedNamespace(i%o.unusedNamespaces), i/o.unusedNamespaces)
	})
	if err != nil {
		return s, err
	}
	for _, pid := range pids[:2] {
		if err := quiet(ctx, pid); err != nil {
			return s, err
		}
	}
	after, err := readAll(pids, cpuTime)
	for i := range after {
		s.cpu = append(s.cpu, after[i]-before[i])
	}
	s.seconds = time.Since(begin).Seconds()
	return s, err
}
