// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"

	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/pkg/generated/clientset/versioned/scheme"
	"github.com/winnow-dev/winnow/test/cluster"
	"github.com/winnow-dev/winnow/test/poll"
)

const (
	watchLists   = 5
	watchOpeners = 50
	// watchClients is how many connections the watches share.
	watchClients = 10
	// changedAnnotation is set on a policy whose change every watch is to report.
	changedAnnotation = "bench.winnow.dev/changed"
)

// watchers open watches of all policies through the aggregator, and count what comes.
type watchers struct {
	*crowd
	clients  []rest.Interface
	newest   string // resourceVersion of a list
	failures atomic.Int64
	opened   atomic.Int64
	told     atomic.Int64 // watches that have reported the change
}

// measureWatches measures lists of many policies, and many watches of them: first from a list on, as informers watch, then some that begin
// with all policies.
func measureWatches(ctx context.Context, o options, r *report) (err error) {
	c, err := newCrowd(ctx, o, o.policies, o.namespaces)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.stop()) }()
	w := &watchers{crowd: c}
	r.progress("watches: creating %s ...", c)
	if err := w.create(ctx); err != nil {
		return err
	}
	if err := w.lists(ctx, r); err != nil {
		return err
	}
	for _, phase := range []struct {
		name    string
		watches int
		initial bool
	}{{"watches", o.watches, false}, {"watches that begin with all policies", o.initialWatches, true}} {
		r.progress("watches: %d %s ...", phase.watches, phase.name)
		if err := w.measure(ctx, o, r, fmt.Sprintf("%d %s", phase.watches, phase.name), phase.watches, phase.initial); err != nil {
			return err
		}
	}
	return nil
}

// create creates the policies, and starts the replica anew, so that its memory does not include what the creation took.
func (w *watchers) create(ctx context.Context) error {
	err := parallel(ctx, w.namespaces, func(i int) error {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace(i)}}
		_, err := w.kube.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{})
		return err
	})
	if err != nil {
		return err
	}
	if _, err := w.createPolicies(ctx); err != nil {
		return err
	}
	if err := errors.Join(w.replica().Stop(), w.replica().Start(ctx)); err != nil {
		return err
	}
	err = eventually(ctx, 100*time.Millisecond, func(ctx context.Context) error { // kube-apiserver takes a moment to see that Winnow is back
		_, err := w.gc.CleanupPolicies("").List(ctx, metav1.ListOptions{Limit: 1})
		return err
	})
	if err != nil {
		return err
	}
	for range watchClients {
		client, err := policyClient(w.cluster.RESTConfig())
		if err != nil {
			return err
		}
		w.clients = append(w.clients, client)
	}
	return nil
}

// policyClient has separate connections, which client-go would share among equal configurations.
func policyClient(config *rest.Config) (rest.Interface, error) {
	config.GroupVersion, config.APIPath = &v1alpha1.SchemeGroupVersion, "/apis"
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	config.QPS, config.DisableCompression = -1, true
	config.WarningHandlerWithContext = rest.NoWarnings{}
	tls, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, err
	}
	config.TLSClientConfig = rest.TLSClientConfig{}
	config.Transport = &http.Transport{TLSClientConfig: tls, ForceAttemptHTTP2: true}
	return rest.RESTClientFor(config)
}

// lists measures lists of all policies, beside lists of the objects of kube-apiserver that they are stored in.
func (w *watchers) lists(ctx context.Context, r *report) error {
	ours, theirs := v1alpha1.SchemeGroupVersion, schema.GroupVersion{Group: "internal.gc.winnow.dev", Version: "v1alpha1"}
	for _, list := range []struct {
		name            string
		resourceVersion string
	}{{"newest", ""}, {"any", "0"}} {
		figures := map[schema.GroupVersion]sample{}
		for range watchLists {
			for gv, resource := range map[schema.GroupVersion]string{ours: "cleanuppolicies", theirs: "storedcleanuppolicies"} {
				begin := time.Now()
				request := w.clients[0].Get().AbsPath("/apis", gv.Group, gv.Version, resource)
				if list.resourceVersion != "" {
					request.Param("resourceVersion", list.resourceVersion)
				}
				body, err := request.Do(ctx).Raw()
				if err != nil {
					return fmt.Errorf("listing %s: %w", resource, err)
				}
				figures[gv] = append(figures[gv], time.Since(begin).Seconds())
				if n := bytes.Count(body, []byte(`"uid":`)); n < w.policies {
					return fmt.Errorf("the list of %s has %d of %d objects", resource, n, w.policies)
				}
			}
		}
		r.add(row{fmt.Sprintf("list of %d policies, %s state", w.policies, list.name), "s", figures[ours], "stored objects", figures[theirs]})
	}
	list, err := w.gc.CleanupPolicies("").List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return err
	}
	w.newest = list.ResourceVersion
	return nil
}

// measure opens watches, changes a policy until all of them have told of a change, and measures the processes meanwhile.
func (w *watchers) measure(ctx context.Context, o options, r *report, name string, watches int, initial bool) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	w.opened.Store(0)
	w.told.Store(0)
	w.failures.Store(0)
	pids := []int{w.replica().Process.Pid(), w.cluster.Process(cluster.APIServer).Pid()}
	before, err := readAll(pids, cpuTime)
	if err != nil {
		return err
	}
	begin, change := time.Now(), strconv.FormatInt(time.Now().UnixNano(), 10)
	workqueue.ParallelizeUntil(ctx, watchOpeners, watches, func(i int) { w.open(ctx, i, initial, change) })
	opened := time.Since(begin).Seconds()
	changed := time.Now()
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, changedAnnotation, change)
	if _, err := w.gc.CleanupPolicies(w.namespace(0)).Patch(ctx, w.policy(0), types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		return err
	}
	wait := poll.Until(ctx, o.settle, 20*time.Millisecond, func(context.Context) error {
		if told := w.told.Load() + w.failures.Load(); told < int64(watches) {
			return fmt.Errorf("%d of %d watches have told of the change or failed", told, watches)
		}
		return nil
	})
	told := time.Since(changed).Seconds()
	after, err := readAll(pids, cpuTime)
	if err != nil {
		return errors.Join(wait, err)
	}
	used, err := watchProcesses(ctx, o.window, pids...)
	if err != nil {
		return errors.Join(wait, err)
	}
	peak, err := readAll(pids, func(pid int) (float64, error) { return memoryBytes(pid, "VmHWM:") })
	const server = "kube-apiserver"
	r.add(
		row{name + ": opened", "", sample{float64(w.opened.Load())}, "", nil},
		row{name + ": failed", "", sample{float64(w.failures.Load())}, "", nil},
		row{name + ": told of a change", "", sample{float64(w.told.Load())}, "", nil},
		row{name + ": until all are open", "s", sample{opened}, "", nil},
		row{name + ": a change until all have told of it", "s", sample{told}, "", nil},
		row{name + ": CPU until then", "s", sample{after[0] - before[0]}, server, sample{after[1] - before[1]}},
		row{name + ": open, resident", "MB", used[0].resident, server, used[1].resident},
		row{name + ": open, CPU", "% of a core", used[0].cpu, server, used[1].cpu},
		row{name + ": the most that was resident so far", "MB", sample{peak[0] / mega}, server, sample{peak[1] / mega}},
	)
	return errors.Join(wait, err)
}

// open opens a watch, and returns when it is open or has failed. As client-go does, it tries again if the server asks for it.
func (w *watchers) open(ctx context.Context, i int, initial bool, change string) {
	request := w.clients[i%len(w.clients)].Get().AbsPath("/apis/gc.winnow.dev/v1alpha1/cleanuppolicies").
		Param("watch", "true").Param("allowWatchBookmarks", "true").Param("timeoutSeconds", "3600")
	if initial {
		request.Param("sendInitialEvents", "true").Param("resourceVersionMatch", string(metav1.ResourceVersionMatchNotOlderThan))
	} else {
		request.Param("resourceVersion", w.newest)
	}
	body, err := request.Stream(ctx)
	if err != nil {
		w.failures.Add(1)
		return
	}
	w.opened.Add(1)
	go w.read(body, change)
}

// read counts a watch as one that has told of the change once it has, and as failed if it ends before.
func (w *watchers) read(body io.ReadCloser, change string) {
	defer func() { _ = body.Close() }()
	lines := bufio.NewReader(body)
	told := false
	for {
		line, err := lines.ReadSlice('\n')
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			break
		}
		if !told && bytes.Contains(line, []byte(change)) {
			told = true
			w.told.Add(1)
		}
	}
	if !told {
		w.failures.Add(1)
	}
}
