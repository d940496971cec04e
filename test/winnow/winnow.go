// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package winnow runs Winnow for tests and development as it runs in production: real processes of winnow-apiserver with
// the rights of artifacts/install, behind an APIService of a local cluster with a verified CA bundle. A TCP forwarder
// stands in for the Service: it connects the aggregator with the replicas that run.
package winnow

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/winnow-dev/winnow/test/cluster"
)

const (
	// Namespace that Winnow is installed in.
	Namespace = "winnow-system"
	// User that Winnow runs as.
	User = "system:serviceaccount:" + Namespace + ":winnow"
	// ServerName is what kube-apiserver expects in the certificate of a replica.
	ServerName = serviceName + "." + Namespace + ".svc"

	serviceName  = "winnow"
	readyTimeout = 3 * time.Minute
	pollInterval = 20 * time.Millisecond
)

// Groups are the groups of each ServiceAccount of the namespace.
var Groups = []string{"system:serviceaccounts", "system:serviceaccounts:" + Namespace}

// Options chooses how Winnow runs. The zero value is one replica with the rights of artifacts/install.
type Options struct {
	// Replicas that are started; one if zero.
	Replicas int
	// Flags on top of those that every replica needs; the last one of a name wins.
	Flags []string
	// Kubeconfig that Winnow uses; if empty, one of User.
	Kubeconfig string
	// Binary to run; if empty, it is built from this source, with the race detector if Race is set.
	Binary string
	Race   bool
	// Installed says that manifests are applied already. Winnow is then started with their rights, instead of those of artifacts/install.
	Installed bool
	// Register lets Winnow make its certificates and its APIService itself, as artifacts/install does.
	Register bool
	// CertDir has tls.crt, tls.key and ca.crt, which somebody else renews. Winnow makes its own if it is empty. Needs Register.
	CertDir string
	// Progress is told what is being built. Standard error if nil.
	Progress io.Writer
}

// Certificate is what replicas serve with, and the authorities that have signed it. Whoever renews it adds the new one.
type Certificate struct {
	CertFile, KeyFile string
	CAPEM             []byte
}

// Server is Winnow in a cluster. Stop it before the cluster.
type Server struct {
	// Replicas in the order of their start. They can be killed, paused and started again one by one.
	Replicas []*Replica

	lock        sync.Mutex // of Replicas, while some are added, and of named
	named       int        // how many replicas there have been
	cluster     *cluster.Cluster
	options     Options
	certificate *Certificate
	forwarder   *forwarder
}

// Start installs Winnow in a cluster, starts its replicas, and waits until the aggregator passes requests on to it. The
// end of ctx kills it.
func Start(ctx context.Context, c *cluster.Cluster, options Options) (*Server, error) {
	s := &Server{cluster: c, options: options}
	if err := s.start(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("starting Winnow: %w", err), s.Stop())
	}
	return s, nil
}

func (s *Server) start(ctx context.Context) error {
	if err := s.prepare(ctx); err != nil {
		return err
	}
	for range max(1, s.options.Replicas) {
		if _, err := s.AddReplica(ctx); err != nil {
			return err
		}
	}
	if !s.options.Register {
		if err := s.register(ctx); err != nil {
			return err
		}
	}
	if err := s.WaitAvailable(ctx); err != nil {
		return err
	}
	return s.WaitServed(ctx)
}

// Port is where the aggregator reaches the replicas on localhost.
func (s *Server) Port() int { return s.forwarder.port() }

// StartGuard starts the guard beside the replicas, with the rights of artifacts/install. It ends with the cluster.
func (s *Server) StartGuard(ctx context.Context, withdrawAfter time.Duration) (*cluster.Process, error) {
	root, err := moduleRoot(ctx)
	if err != nil {
		return nil, err
	}
	if _, _, err := s.cluster.Kubectl(ctx, "apply", "-f", filepath.Join(root, "artifacts", "install", "30-guard.yaml")); err != nil {
		return nil, err
	}
	kubeconfig, err := s.cluster.KubeconfigFor(User+"-guard", Groups...)
	if err != nil {
		return nil, err
	}
	guard, err := s.cluster.Run(ctx, "guard", s.options.Binary, []string{
		"guard", "--kubeconfig=" + kubeconfig, "--withdraw-after=" + withdrawAfter.String(),
	}, nil)
	if err != nil {
		return nil, err
	}
	// Before it says so, a signal may end it at once.
	return guard, poll(ctx, func(context.Context) error {
		log, err := os.ReadFile(guard.LogFile)
		if err == nil && !strings.Contains(string(log), "Guarding the APIService") {
			err = errors.New("the guard has not said that it guards the APIService")
		}
		return err
	})
}

// Cut closes the way from the aggregator to the replicas for good, as a firewall does.
func (s *Server) Cut() { _ = s.forwarder.close() }

// prepare does everything but run replicas.
func (s *Server) prepare(ctx context.Context) (err error) {
	if s.options.Progress == nil {
		s.options.Progress = os.Stderr
	}
	if s.options.Binary == "" {
		s.options.Binary = filepath.Join(s.cluster.Dir, "winnow-apiserver")
		if err := Build(ctx, s.options.Binary, s.options.Race, s.options.Progress); err != nil {
			return err
		}
	}
	if s.options.Kubeconfig == "" {
		if s.options.Kubeconfig, err = s.cluster.KubeconfigFor(User, Groups...); err != nil {
			return err
		}
	}
	if s.forwarder, err = newForwarder(); err != nil {
		return err
	}
	c := &Certificate{}
	s.certificate = c
	if s.options.Register {
		return errors.Join(s.install(ctx), s.apply(ctx, service()))
	}
	if c.CertFile, c.KeyFile, c.CAPEM, err = s.cluster.ServingCert(ServerName, "localhost"); err != nil {
		return err
	}
	return s.install(ctx)
}

// AddReplica starts one more replica, with flags in addition to the flags of all, and waits until it is ready.
func (s *Server) AddReplica(ctx context.Context, flags ...string) (*Replica, error) {
	r, err := s.NewReplica(flags...)
	if err != nil {
		return nil, err
	}
	return r, r.Start(ctx)
}

// NewReplica makes one more replica that is yet to be started.
func (s *Server) NewReplica(flags ...string) (*Replica, error) {
	port, err := cluster.FreePort()
	if err != nil {
		return nil, err
	}
	s.lock.Lock()
	defer s.lock.Unlock()
	r := &Replica{Name: fmt.Sprintf("winnow-%d", s.named), Port: port, flags: flags, server: s}
	s.named++
	s.Replicas = append(s.Replicas, r)
	return r, nil
}

// Stop unregisters Winnow and ends the replicas that run with SIGTERM; one that does not end with exit status 0 is an
// error. Unregistered first, nothing in the cluster waits for what is no longer there. Replicas that register themselves end before.
func (s *Server) Stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), readyTimeout)
	defer cancel()
	var errs []error
	if !s.options.Register {
		errs = append(errs, s.unregister(ctx))
	}
	for _, r := range s.Replicas {
		errs = append(errs, r.Stop())
	}
	if s.options.Register {
		errs = append(errs, s.unregister(ctx))
	}
	if s.forwarder != nil {
		if err := s.forwarder.close(); !errors.Is(err, net.ErrClosed) { // It may be cut already.
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// poll asks until the answer is nil; the last answer explains why it took too long.
func poll(ctx context.Context, ask func(context.Context) error) error {
	var last error
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	err := wait.PollUntilContextCancel(ctx, pollInterval, true, func(ctx context.Context) (bool, error) {
		last = ask(ctx)
		return last == nil, nil
	})
	if err != nil {
		return errors.Join(err, last)
	}
	return nil
}
