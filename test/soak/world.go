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
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/winnow-dev/winnow/pkg/generated/clientset/versioned"
	"github.com/winnow-dev/winnow/test/cluster"
	"github.com/winnow-dev/winnow/test/jobs"
	"github.com/winnow-dev/winnow/test/poll"
	"github.com/winnow-dev/winnow/test/winnow"
)

const (
	// residents are Jobs that stay, so that figures at the start and at the end are of as many objects.
	residents = 2000
	replicas  = 2
	// dueMost is how long something may be due and still there when nothing else happens.
	dueMost = 5 * time.Second
)

var (
	// catchUp is how long Winnow may need until it sees all again after a restart of the API server.
	catchUp = 30 * time.Second
	// waitMost is how long something may take that is not measured.
	waitMost = time.Minute
)

// world is a cluster without Nodes, since nothing runs in it, and Winnow.
type world struct {
	begun     time.Time
	cluster   *cluster.Cluster
	server    *winnow.Server
	history   *history
	driver    *driver
	governor  *governor
	crowds    *crowds
	machines  *definitions
	contents  *contents
	uses      *uses
	faults    *faults // nil without them
	checker   *checker
	restarts  int               // of the API server and of etcd
	restarted time.Time         // the last time
	heaps     map[string][]byte // at the start, by replica
}

func newWorld(ctx context.Context, o options) (w *world, err error) {
	w = &world{begun: time.Now(), history: newHistory(), uses: newUses()}
	if w.cluster, err = cluster.Start(ctx, cluster.Options{Components: []string{cluster.Etcd, cluster.APIServer}}); err != nil {
		return nil, err
	}
	if err := w.start(ctx, o); err != nil {
		return nil, errors.Join(err, w.stop())
	}
	return w, nil
}

func (w *world) start(ctx context.Context, o options) (err error) {
	flags := []string{"--default-hold-above=-1", "--default-hold-above-total=-1"}
	options := winnow.Options{Binary: o.winnow, Replicas: replicas, Flags: flags}
	if o.faults {
		if w.faults, err = newFaults(w, o); err != nil {
			return err
		}
		options.Kubeconfig, options.Replicas = w.faults.kubeconfigs[0], 1
	}
	if w.server, err = winnow.Start(ctx, w.cluster, options); err != nil {
		return err
	}
	for i := 1; i < replicas && o.faults; i++ {
		if _, err := w.server.AddReplica(ctx, "--kubeconfig="+w.faults.kubeconfigs[i]); err != nil {
			return err
		}
	}
	config := w.cluster.RESTConfig()
	config.QPS = -1
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	clients, err := versioned.NewForConfig(config)
	if err != nil {
		return err
	}
	w.driver = &driver{kube: kube, history: w.history}
	w.governor = newGovernor(kube, clients.GcV1alpha1(), w.history)
	w.crowds = &crowds{driver: w.driver, governor: w.governor, keepEvidence: w.keepEvidence, faults: w.faults}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	w.machines = &definitions{driver: w.driver, governor: w.governor, client: client}
	w.contents = &contents{driver: w.driver, governor: w.governor, client: client, uses: w.uses}
	w.checker = newChecker(w.cluster, w.history, w.uses)
	w.checker.trouble, w.uses.faults = w.faults, w.faults
	w.driver.checkedLate = w.checker.behind.Load
	return errors.Join(w.populate(ctx), w.machines.begin(ctx), w.contents.begin(ctx))
}

// populate makes namespaces, Jobs that stay, and policies.
func (w *world) populate(ctx context.Context) error {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: residentNamespace}}
	if _, err := w.driver.kube.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{}); err != nil {
		return err
	}
	all, err := jobs.Create(ctx, w.driver.kube, residentNamespace, residents)
	if err != nil {
		return err
	}
	now := time.Now()
	if err := jobs.Finish(ctx, w.driver.kube, all, func(int) time.Time { return now }); err != nil {
		return err
	}
	for _, j := range all {
		if err := w.driver.wrote(j, now, now); err != nil {
			return err
		}
	}
	return w.governor.begin(ctx)
}

func (w *world) stop() error {
	var err error
	if w.server != nil {
		err = w.server.Stop()
	}
	return errors.Join(err, w.cluster.Stop(), w.faults.close())
}

// churn lets everything happen until what goes on beside it ends.
func (w *world) churn(ctx context.Context, r *rand.Rand, name string, beside func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	all := []func(context.Context, *rand.Rand) error{
		func(ctx context.Context, r *rand.Rand) error { return w.driver.run(ctx, r, name) },
		w.governor.run,
		func(ctx context.Context, r *rand.Rand) error { return w.crowds.run(ctx, r, name) },
		w.machines.run,
		func(ctx context.Context, r *rand.Rand) error { return w.contents.run(ctx, r, name) },
	}
	ended := make(chan error, len(all))
	for i, run := range all {
		of := rand.New(rand.NewPCG(r.Uint64(), uint64(i+1)))
		go func() { ended <- run(ctx, of) }()
	}
	err := beside(ctx)
	cancel()
	for range all {
		err = errors.Join(err, <-ended)
	}
	return err
}

// restart kills the API server and starts it again. The driver waits meanwhile; Winnow does not know.
func (w *world) restart(ctx context.Context) error {
	w.driver.gate.Lock()
	defer w.driver.gate.Unlock()
	killed := time.Now()
	if err := w.kill(ctx, cluster.APIServer, 0); err != nil {
		return err
	}
	w.restarts, w.restarted = w.restarts+1, time.Now()
	w.uses.serverRestarted(w.restarted)
	w.printf("the API server was killed and is back after %v", time.Since(killed).Round(100*time.Millisecond))
	return w.ghosts(ctx, killed, time.Second)
}

// kill kills a component, and starts it again after some time.
func (w *world) kill(ctx context.Context, component string, after time.Duration) error {
	if err := w.cluster.StopComponent(component); err != nil {
		return err
	}
	if err := poll.Pause(ctx, after); err != nil {
		return err
	}
	return w.cluster.StartComponent(ctx, component)
}

// ghosts finds what is gone without an event in the audit log, which is written some time after an object is gone from the list.
func (w *world) ghosts(ctx context.Context, at time.Time, written time.Duration) error {
	there, err := w.there(ctx)
	if err != nil {
		return err
	}
	if err := poll.Pause(ctx, written); err != nil {
		return err
	}
	w.checker.ghosts(at, there)
	return nil
}

// killLeader kills the replica that leads, and starts it again once another one leads.
func (w *world) killLeader(ctx context.Context) error {
	var killed *winnow.Replica
	leads := func(ctx context.Context) error {
		for _, r := range w.server.Replicas {
			if r == killed {
				continue
			}
			if n, err := metric("winnow_leading")(ctx, r); err == nil && n == 1 {
				killed = r
				return nil
			}
		}
		return errors.New("no replica leads")
	}
	if err := eventually(ctx, leads); err != nil {
		return err
	}
	last, at := killed, time.Now()
	if err := last.Kill(); err != nil {
		return err
	}
	if err := eventually(ctx, leads); err != nil {
		return err
	}
	w.restarted = time.Now()
	w.printf("the leader was killed, and another replica leads after %v", time.Since(at).Round(100*time.Millisecond))
	return last.Start(context.WithoutCancel(ctx)) // It goes on when the churn ends.
}

// there are the UIDs of all Jobs and Pods.
func (w *world) there(ctx context.Context) (map[types.UID]bool, error) {
	all, err := w.driver.there(ctx)
	out := map[types.UID]bool{}
	for _, o := range all {
		out[o.GetUID()] = true
	}
	return out, err
}

// exceptHeld removes objects of crowds that wait for approval, since a replica that starts may hold more than another one would.
func (w *world) exceptHeld(ctx context.Context, overdue map[types.UID]string) error {
	if w.faults == nil || len(overdue) == 0 {
		return nil
	}
	policies, err := w.governor.gc.CleanupPolicies(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, p := range policies.Items {
		maps.DeleteFunc(overdue, func(_ types.UID, name string) bool {
			return len(p.Status.Holds) > 0 && strings.Contains(name, " "+p.Namespace+"/")
		})
	}
	return nil
}

// quiet stops what changes Jobs and policies, and looks whether something was missed.
func (w *world) quiet(ctx context.Context) error {
	w.governor.writing.Lock()
	defer w.governor.writing.Unlock()
	w.driver.gate.Lock()
	defer w.driver.gate.Unlock()
	err := w.missed(ctx)
	if err != nil {
		err = errors.Join(err, w.keepEvidence(ctx)) // Now, while it is still so.
	}
	return err
}

// missed looks twice for what is due and still there, while nothing happens but time. Right after a restart it looks again.
func (w *world) missed(ctx context.Context) error {
	before, err := w.due(ctx)
	for err == nil {
		if err := poll.Pause(ctx, dueMost); err != nil {
			return err
		}
		now, err := w.due(ctx)
		if err != nil {
			return err
		}
		both := inBoth(before, now)
		switch {
		case len(both) == 0:
			return nil
		case time.Since(w.restarted) > catchUp:
			return fmt.Errorf("%d objects were due for more than %v and are still there: %s",
				len(both), dueMost, strings.Join(both[:min(len(both), faultsMost)], ", "))
		}
		before = now
	}
	return err
}

// due are the Jobs and Pods that are there and that the model would delete now.
func (w *world) due(ctx context.Context) (map[types.UID]string, error) {
	there, err := w.there(ctx)
	if err != nil {
		return nil, err
	}
	w.checker.read() // An object whose owner is gone is not due.
	overdue := w.history.overdue(time.Now(), w.governor.now, there)
	return overdue, w.exceptHeld(ctx, overdue)
}

// rest deletes everything except the residents and waits until Winnow knows.
func (w *world) rest(ctx context.Context) error {
	if err := w.driver.deleteAll(ctx); err != nil {
		return err
	}
	return eventually(ctx, func(ctx context.Context) error {
		for _, r := range w.server.Replicas {
			n, err := metric("winnow_tracker_objects")(ctx, r)
			if err == nil && n != residents {
				err = fmt.Errorf("%s tracks %v objects, want %d", r.Name, n, residents)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// eventually asks until the answer is nil.
func eventually(ctx context.Context, ask func(context.Context) error) error {
	return poll.Until(ctx, waitMost, 100*time.Millisecond, ask)
}
