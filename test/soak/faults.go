// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/winnow-dev/winnow/test/cluster"
	"github.com/winnow-dev/winnow/test/poll"
	"github.com/winnow-dev/winnow/test/soak/faultproxy"
	"github.com/winnow-dev/winnow/test/winnow"
)

const (
	// processEvery is how many faults of requests and watches there are for each fault of a process.
	processEvery = 15
	// lateMostByFaults is how long something may take while faults are on. It only finds what never ends.
	lateMostByFaults = 15 * time.Minute
	// catchUpAfterFaults is how long something may still be due after the last fault. Winnow waits for up to five minutes before it tries
	// again what the API server refused.
	catchUpAfterFaults = 7 * time.Minute
	// rememberFor is how far back views may go that faults explain.
	rememberFor = 5 * time.Minute
)

// counted are the resources by which Winnow decides about Jobs and Pods.
var counted = []string{"jobs", "pods", "cronjobs", "resourcequotas"}

// referring are the resources by which Winnow decides about ConfigMaps and Secrets.
var referring = []string{
	"pods", "podtemplates", "replicationcontrollers", "serviceaccounts", "deployments", "replicasets", "statefulsets", "daemonsets", "jobs",
	"cronjobs", "ingresses", "persistentvolumes", "nodes", "validatingwebhookconfigurations", "mutatingwebhookconfigurations",
	"configmaps", "secrets", holders.Plural,
}

// faults lets requests, watches, connections and processes go wrong. Its judgements may be asked of nil, which has no faults.
type faults struct {
	world       *world
	every       time.Duration
	seed        uint64
	proxies     []*faultproxy.Proxy // one for each replica
	kubeconfigs []string

	running   sync.Mutex // is held while a process does not run
	processes map[string]int
}

// newFaults starts a proxy for each replica.
func newFaults(w *world, o options) (*faults, error) {
	f := &faults{world: w, every: o.every, seed: o.seed, processes: map[string]int{}}
	config, err := w.cluster.UserConfig(winnow.User, winnow.Groups...)
	if err != nil {
		return nil, err
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, err
	}
	target, err := url.Parse(config.Host)
	if err != nil {
		return nil, err
	}
	certFile, keyFile, caPEM, err := w.cluster.ServingCert("faultproxy")
	if err != nil {
		return nil, err
	}
	certificate, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return nil, err
	}
	for i := range replicas {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		p := faultproxy.New(fmt.Sprintf("faultproxy-%d", i), target, transport, o.seed+uint64(i))
		p.Serve(listener, certificate)
		kubeconfig := filepath.Join(w.cluster.Dir, fmt.Sprintf("kubeconfig-faultproxy-%d", i))
		f.proxies, f.kubeconfigs = append(f.proxies, p), append(f.kubeconfigs, kubeconfig)
		if err := writeKubeconfig(kubeconfig, "https://"+listener.Addr().String(), caPEM); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// writeKubeconfig writes one without a user: the proxy has the rights of Winnow.
func writeKubeconfig(path, server string, caPEM []byte) error {
	config := clientcmdapi.NewConfig()
	config.Clusters["proxy"] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: caPEM}
	config.Contexts["proxy"] = &clientcmdapi.Context{Cluster: "proxy"}
	config.CurrentContext = "proxy"
	return clientcmd.WriteToFile(*config, path)
}

func (f *faults) close() (err error) {
	if f == nil {
		return nil
	}
	for _, p := range f.proxies {
		err = errors.Join(err, p.Close())
	}
	return err
}

// run lets things go wrong for some time. Then all processes run, and nothing goes wrong any more.
func (f *faults) run(ctx context.Context, d time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	failed := make(chan error, 1)
	go func() { failed <- f.stopProcesses(ctx, rand.New(rand.NewPCG(f.seed, 2))) }()
	telling := time.NewTicker(d / 12)
	defer telling.Stop()
	r := rand.New(rand.NewPCG(f.seed, 3))
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-telling.C:
			f.tell(ctx)
		case <-time.After(f.every):
			f.proxies[r.IntN(len(f.proxies))].Inject(faultproxy.Draw(r))
		case err := <-failed:
			if err != nil {
				return err
			}
			failed <- nil
		}
	}
	err := <-failed
	for _, p := range f.proxies {
		p.Stop()
	}
	f.world.printf("no more faults")
	f.world.restarted = time.Now()
	return errors.Join(err, f.revive(context.WithoutCancel(ctx)))
}

// tell samples while all processes run.
func (f *faults) tell(ctx context.Context) {
	if !f.running.TryLock() {
		return
	}
	defer f.running.Unlock()
	if _, err := f.world.tell(ctx, "meanwhile"); err != nil {
		f.world.printf("%v", err)
	}
}

// stopProcesses kills and pauses one process after the other until the context ends, and ends with all of them running.
func (f *faults) stopProcesses(whole context.Context, r *rand.Rand) error {
	ctx := context.WithoutCancel(whole)
	for poll.Pause(whole, time.Duration(r.Int64N(2*processEvery*int64(f.every)))) == nil {
		p := f.draw(r)
		began := time.Now()
		if err := f.stop(ctx, p); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		f.processes[p.name]++
		f.world.printf("%s: %v", p.name, time.Since(began).Round(100*time.Millisecond))
	}
	return nil
}

// processFault is what happens to a process, or to its certificate.
type processFault struct {
	name string
	// blind are the proxies of the replicas that see nothing meanwhile.
	blind []*faultproxy.Proxy
	stop  func(context.Context) error
}

func (f *faults) stop(ctx context.Context, what processFault) error {
	f.running.Lock()
	defer f.running.Unlock()
	if err := f.revive(ctx); err != nil {
		return err
	}
	for _, p := range what.blind {
		end := p.Spans.Begin(faultproxy.Everything, time.Now())
		defer func() { end(time.Now()) }()
	}
	return what.stop(ctx)
}

// draw draws what happens to a process.
func (f *faults) draw(r *rand.Rand) processFault {
	i, component := r.IntN(replicas), pick(r, cluster.APIServer, cluster.Etcd)
	replica, of := f.world.server.Replicas[i], f.proxies[i:i+1]
	seconds := func(most int) time.Duration { return time.Duration(1+r.IntN(most)) * time.Second }
	switch r.IntN(9) {
	case 0, 1:
		after := seconds(20)
		return processFault{"replica killed", of, func(ctx context.Context) error { return f.killReplica(ctx, replica, after) }}
	case 2, 3:
		d := seconds(60)
		return processFault{"replica paused", of, func(ctx context.Context) error { return pauseFor(ctx, d, replica.Pause, replica.Continue) }}
	case 4, 5:
		after := seconds(5)
		kill := func(ctx context.Context) error { return f.world.kill(ctx, component, after) }
		return processFault{component + " killed", f.proxies, f.outage(component, kill)}
	case 6, 7:
		d := seconds(20)
		pause := func(ctx context.Context) error { return f.world.pause(ctx, component, d) }
		return processFault{component + " paused", f.proxies, f.outage(component, pause)}
	}
	return processFault{"serving certificate renewed", nil, f.renew}
}

func (f *faults) killReplica(ctx context.Context, r *winnow.Replica, after time.Duration) error {
	if err := r.Kill(); err != nil {
		return err
	}
	if err := poll.Pause(ctx, after); err != nil {
		return err
	}
	return f.start(ctx, r)
}

// start starts a replica, which may fail while faults are on, as a Pod would be started again.
func (f *faults) start(ctx context.Context, r *winnow.Replica) error {
	return poll.Until(ctx, lateMostByFaults, time.Second, func(context.Context) error {
		if err := r.Start(ctx); err != nil { // It is killed when this context ends.
			return errors.Join(err, r.Kill())
		}
		return nil
	})
}

// revive starts replicas that have ended.
func (f *faults) revive(ctx context.Context) error {
	for _, r := range f.world.server.Replicas {
		select {
		case <-r.Process.Done():
			f.processes["replica ended by itself"]++
			f.world.printf("%s has ended by itself", r.Name)
			if err := f.start(ctx, r); err != nil {
				return err
			}
		default:
		}
	}
	return nil
}

// outage stops a component. The driver waits meanwhile; Winnow does not know.
func (f *faults) outage(component string, stop func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		w := f.world
		w.driver.gate.Lock()
		defer w.driver.gate.Unlock()
		at := time.Now()
		if err := stop(ctx); err != nil {
			return err
		}
		if component == cluster.Etcd {
			at = time.Now() // The API server may have written events until now.
		}
		w.restarts++
		w.uses.serverRestarted(time.Now())
		return w.ghosts(ctx, at, checkLag)
	}
}

// pause stops a component for some time, and waits until the API server is ready again.
func (w *world) pause(ctx context.Context, component string, d time.Duration) error {
	p := w.cluster.Process(component)
	if p == nil {
		return fmt.Errorf("%s does not run", component)
	}
	send := func(signal syscall.Signal) func() error { return func() error { return p.Signal(signal) } }
	if err := pauseFor(ctx, d, send(syscall.SIGSTOP), send(syscall.SIGCONT)); err != nil {
		return err
	}
	return eventually(ctx, func(ctx context.Context) error {
		return w.driver.kube.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
	})
}

func pauseFor(ctx context.Context, d time.Duration, pause, goOn func() error) error {
	if err := pause(); err != nil {
		return err
	}
	return errors.Join(poll.Pause(ctx, d), goOn())
}

// renew renews the certificate that all replicas serve with, and waits until they do.
func (f *faults) renew(ctx context.Context) error {
	certFile, _, _, err := f.world.cluster.ServingCert(winnow.ServerName, "localhost")
	if err != nil {
		return err
	}
	for _, r := range f.world.server.Replicas {
		if err := eventually(ctx, func(context.Context) error { return servesWith(r, certFile) }); err != nil {
			return fmt.Errorf("%s: %w", r.Name, err)
		}
	}
	return nil
}

// conclude tells what went wrong.
func (f *faults) conclude() {
	operations, all := int64(0), map[faultproxy.Kind]int{}
	for _, p := range f.proxies {
		n, faults := p.Counts()
		operations += n
		for kind, n := range faults {
			all[kind] += n
		}
	}
	sum := 0
	var out []string
	for _, kind := range faultproxy.Kinds {
		sum += all[kind]
		out = append(out, fmt.Sprintf("%s %d", kind, all[kind]))
	}
	for _, name := range slices.Sorted(maps.Keys(f.processes)) {
		sum += f.processes[name]
		out = append(out, fmt.Sprintf("%s %d", name, f.processes[name]))
	}
	f.world.printf("%d requests of Winnow, %d faults: %s", operations, sum, strings.Join(out, ", "))
}

// sent returns what is known of a DELETE.
func (f *faults) sent(e *cluster.AuditEvent) faultproxy.Sent {
	if f != nil {
		for _, p := range f.proxies {
			if sent, ok := p.Sent(string(e.AuditID)); ok {
				return sent
			}
		}
	}
	return faultproxy.Sent{At: e.RequestReceivedTimestamp.Time}
}

// behind returns how old the knowledge of a replica may have been at a time.
func (f *faults) behind(at time.Time, resources ...string) (most time.Duration) {
	if f != nil {
		for _, p := range f.proxies {
			most = max(most, p.Spans.Behind(at, resources...))
		}
	}
	return min(most, rememberFor)
}

// within reports whether a replica may have known too little of a resource between two times.
func (f *faults) within(from, until time.Time, resources ...string) bool {
	return f != nil && slices.ContainsFunc(f.proxies, func(p *faultproxy.Proxy) bool { return p.Spans.Within(from, until, resources...) })
}

// lagged reports whether a replica may have known too little when a change was made, so that it held fewer objects.
func (f *faults) lagged(h hold, now time.Time) bool {
	until := h.changed
	if until.IsZero() {
		until = now
	}
	return f.within(h.from, until, "jobs", "resourcequotas")
}

// lagsAt are the lags that views may have at a time.
func (f *faults) lagsAt(at time.Time) []time.Duration {
	if behind := f.behind(at, counted...); behind > 0 {
		return append(slices.Clone(lags), max(behind, lags[len(lags)-1])+time.Second)
	}
	return lags
}

// lagMost is the greatest lag of all views.
func (f *faults) lagMost() time.Duration {
	if f != nil {
		return rememberFor
	}
	return lags[len(lags)-1]
}
