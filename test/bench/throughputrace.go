// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/winnow-dev/winnow/pkg/generated/clientset/versioned"
	"github.com/winnow-dev/winnow/test/cluster"
	"github.com/winnow-dev/winnow/test/poll"
	"github.com/winnow-dev/winnow/test/programs"
)

// priorityManifest is installed with Winnow, and has its deletes wait behind the deletes of workloads.
const priorityManifest = "artifacts/optional/priority.yaml"

// race is how one racer did with one burst.
type race struct {
	perSecond         float64 // from the first DELETE received to the last DELETED event seen
	late, pods        sample  // milliseconds from when all were due until the DELETED event of each was seen
	deletes, requests float64 // DELETEs of Jobs, and all requests on them but watches, for each Job
	queued            float64 // milliseconds that a request waited in the API server for its turn, on average
	serverCPU, ownCPU float64 // milliseconds for each Job, of the API server with etcd and of the process that deletes
}

// track is a world in which racers follow each other. Each runs alone: the others are stopped meanwhile.
type track struct {
	*world
	binary  string // of kube-controller-manager
	kyverno string // the executable of Kyverno's cleanup controller, if that is measured
	started int
	apart   bool // see leaveFirst
	lines   [][]string

	bareKubeconfig string
}

func newTrack(ctx context.Context, o options) (_ *track, err error) {
	paths, err := programs.Provide(ctx, os.Stderr, programs.ControllerManager)
	if err != nil {
		return nil, err
	}
	if o.apart {
		if err := leaveFirst(ctx); err != nil {
			return nil, err
		}
	}
	w, err := newWorld(ctx, o)
	if err != nil {
		return nil, err
	}
	t := &track{world: w, binary: paths[programs.ControllerManager], apart: o.apart, lines: [][]string{raceHeader()}}
	if err := t.prepare(ctx, o); err != nil {
		return nil, errors.Join(err, t.stop())
	}
	return t, nil
}

func (t *track) stop() error {
	err := t.world.stop()
	if t.apart {
		err = errors.Join(err, shareAll(context.Background()))
	}
	return err
}

// prepare installs Winnow; a replica starts with each race.
func (t *track) prepare(ctx context.Context, o options) (err error) {
	if t.apart {
		if err := takeFirst(ctx, t.cluster); err != nil {
			return err
		}
	}
	if err := t.startWinnow(ctx, o); err != nil {
		return err
	}
	if err := t.replica().Retire(); err != nil {
		return err
	}
	if _, _, err := t.cluster.Kubectl(ctx, "apply", "-f", priorityManifest); err != nil {
		return err
	}
	if t.kube, err = kubernetes.NewForConfig(protobuf(t.cluster.RESTConfig())); err != nil {
		return err
	}
	return t.prepareBare(ctx)
}

// prepareBare gives the bare loop the rights of Winnow, but the priority of any workload.
func (t *track) prepareBare(ctx context.Context) (err error) {
	const user = "system:serviceaccount:default:bare"
	_, _, err = t.cluster.Kubectl(ctx, "create", "clusterrolebinding", "bare", "--clusterrole=winnow:controller", "--user="+user)
	if err != nil {
		return err
	}
	t.bareKubeconfig, err = t.cluster.KubeconfigFor(user, "system:serviceaccounts", "system:serviceaccounts:default")
	return err
}

func protobuf(c *rest.Config) *rest.Config {
	c = rest.CopyConfig(c)
	c.ContentType, c.QPS, c.DisableCompression = runtime.ContentTypeProtobuf, -1, true
	return c
}

// run lets one racer delete one burst.
func (t *track) run(ctx context.Context, b burst, r racer) (out race, err error) {
	t.started++
	b.name = fmt.Sprintf("burst-%d", t.started)
	manager, err := t.startManager(ctx, r)
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, manager.Kill()) }()
	own := manager.Pid()
	if r.peer != nil {
		process, err := r.peer.start(ctx, t)
		if err != nil {
			return out, err
		}
		defer func() { err = errors.Join(err, process.Kill()) }()
		own = process.Pid()
	}
	if r.winnow() {
		replica, err := t.server.AddReplica(ctx, r.flags...)
		if err != nil {
			return out, err
		}
		defer func() { err = errors.Join(err, replica.Retire()) }()
		own = replica.Process.Pid()
		if err := t.waitServing(ctx); err != nil {
			return out, err
		}
	}
	lit, err := t.light(ctx, b, r)
	if err != nil {
		return out, err
	}
	if r.workers > 0 {
		pid, stop, failed := t.startLoop(ctx, lit, r)
		if failed != nil {
			return out, failed
		}
		defer func() { err = errors.Join(err, stop()) }()
		own = pid
	}
	if out, err = t.watch(ctx, lit, r, own); err == nil {
		t.lines = append(t.lines, out.line(b, r.name))
	}
	return out, err
}

// startLoop starts the bare loop of a racer, and the informer beside it.
func (t *track) startLoop(ctx context.Context, b *litBurst, r racer) (pid int, stop func() error, err error) {
	loop, err := t.startBare(ctx, b, r.workers)
	switch {
	case err != nil:
		return 0, nil, err
	case !r.informed:
		return loop.Pid(), loop.Kill, nil
	}
	beside, err := t.startInformer(ctx, typedInformer, t.bareKubeconfig, b.jobs)
	if err != nil {
		return 0, nil, errors.Join(err, loop.Kill())
	}
	return loop.Pid(), func() error { return errors.Join(beside.Kill(), loop.Kill()) }, nil
}

// waitServing waits until Winnow leads and the aggregator has noticed that it is there.
func (t *track) waitServing(ctx context.Context) error {
	client, err := versioned.NewForConfig(t.cluster.RESTConfig())
	if err != nil {
		return err
	}
	return errors.Join(t.waitMetric(ctx, "winnow_leading", 1), eventually(ctx, 100*time.Millisecond, func(ctx context.Context) error {
		_, err := client.GcV1alpha1().CleanupPolicies("default").List(ctx, metav1.ListOptions{})
		return err
	}))
}

// startManager starts a controller manager that collects garbage and, if it is native, deletes what has finished.
func (t *track) startManager(ctx context.Context, r racer) (*cluster.Process, error) {
	controllers := collector
	if r.native && r.peer == nil {
		controllers += "," + ttlController
	}
	return t.runControllers(ctx, "manager", controllers, r.manager)
}

// The names of controllers of Kubernetes.
const collector, ttlController = "garbage-collector-controller", "ttl-after-finished-controller"

// runControllers starts a controller manager that runs only these controllers.
func (t *track) runControllers(ctx context.Context, name, controllers string, flags []string) (*cluster.Process, error) {
	all := append([]string{
		"--kubeconfig=" + t.cluster.Kubeconfig(), "--secure-port=0", "--leader-elect=false", "--controllers=" + controllers,
	}, flags...)
	return t.cluster.Run(ctx, fmt.Sprintf("%s-%d", name, t.started), t.binary, all, nil)
}

// watch waits until all Jobs and Pods of a burst are gone, and tells how that went.
func (t *track) watch(ctx context.Context, b *litBurst, racer racer, own int) (out race, err error) {
	ctx, cancel := context.WithDeadline(ctx, b.due.Add(waitMost+time.Duration(b.jobs)*nativeEach))
	defer cancel()
	jobs, err := watchDeleted(ctx, b.burst, t.allJobs(), b.jobs)
	if err != nil {
		return out, err
	}
	pods, err := watchDeleted(ctx, b.burst, t.allPods(), b.podCount())
	if err != nil {
		return out, err
	}
	if err := poll.Pause(ctx, time.Until(b.due.Add(-early))); err != nil {
		return out, err
	}
	before, err := t.read(ctx, own)
	if err != nil {
		return out, err
	}
	if err := t.profile(ctx, b, racer); err != nil {
		return out, err
	}
	jobsGone, podsGone := <-jobs, <-pods
	after, err := t.read(ctx, own)
	if err != nil {
		return out, err
	}
	if len(jobsGone) < b.jobs || len(podsGone) < b.podCount() {
		return out, fmt.Errorf("only %d of %d Jobs and %d of %d Pods are gone", len(jobsGone), b.jobs, len(podsGone), b.podCount())
	}
	out.count(b, racer, before, after)
	out.late, out.pods = b.lateness(jobsGone), b.lateness(podsGone)
	first, err := t.firstDelete(ctx, b)
	out.perSecond = float64(b.jobs) / jobsGone[len(jobsGone)-1].Sub(first).Seconds()
	return out, err
}

// lateness is in milliseconds since all were due.
func (b *litBurst) lateness(gone []time.Time) (out sample) {
	for _, at := range gone {
		out = append(out, milliseconds(at.Sub(b.due)))
	}
	return out
}

// early is how long before a burst is due the figures at its beginning are read, which takes the API server some time.
const early = 500 * time.Millisecond

// meter is what the API server counts, and the CPU time of processes in seconds.
type meter struct {
	server            metricText
	serverCPU, ownCPU float64
}

func (t *track) read(ctx context.Context, own int) (m meter, err error) {
	cpu, err := readAll([]int{t.cluster.Process(cluster.APIServer).Pid(), t.cluster.Process(cluster.Etcd).Pid(), own}, cpuTime)
	if err != nil {
		return m, err
	}
	m.serverCPU, m.ownCPU = cpu[0]+cpu[1], cpu[2]
	m.server, err = t.serverMetrics(ctx)
	return m, err
}

// count is what a burst took from one reading to the other.
func (r *race) count(b *litBurst, racer racer, before, after meter) {
	sent, n := difference{before.server, after.server}, float64(b.jobs)
	r.deletes = sent.total("apiserver_request_total", `resource="jobs"`, `verb="DELETE"`) / n
	r.requests = (sent.total("apiserver_request_total", `resource="jobs"`) -
		sent.total("apiserver_request_total", `resource="jobs"`, `verb="WATCH"`)) / n
	level := fmt.Sprintf("priority_level=%q", racer.priorityLevel())
	r.queued = 1000 * sent.total("apiserver_flowcontrol_request_wait_duration_seconds_sum", level) /
		sent.total("apiserver_flowcontrol_request_wait_duration_seconds_count", level)
	r.serverCPU, r.ownCPU = 1000*(after.serverCPU-before.serverCPU)/n, 1000*(after.ownCPU-before.ownCPU)/n
}

// profile writes where the CPU time of Winnow goes while it deletes a burst, from when it is due, if that is asked for.
func (t *track) profile(ctx context.Context, b *litBurst, r racer) error {
	if r.profile == "" {
		return nil
	}
	seconds := max(1, b.jobs/profileJobs)
	profile, err := t.replica().Get(ctx, "/debug/pprof/profile?seconds="+strconv.Itoa(seconds))
	if err != nil {
		return err
	}
	return os.WriteFile(r.profile, []byte(profile), 0o644)
}

// firstDelete is when the API server received the first DELETE of a Job of the burst.
func (t *track) firstDelete(ctx context.Context, b *litBurst) (first time.Time, err error) {
	err = eventually(ctx, 100*time.Millisecond, func(context.Context) error {
		events, err := b.audit.Next()
		for i := range events {
			if at := events[i].RequestReceivedTimestamp.Time; first.IsZero() || at.Before(first) {
				first = at
			}
		}
		if err == nil && first.IsZero() {
			err = errors.New("no DELETE of a Job is in the audit log")
		}
		return err
	})
	return first, err
}
