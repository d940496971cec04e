// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cluster runs a real Kubernetes cluster on 127.0.0.1 for tests and development: etcd, kube-apiserver with
// an audit log, kube-controller-manager, kube-scheduler, and kwok instead of kubelets, so that Jobs run to
// completion. Package test/programs fetches or builds the programs. Clusters are independent of each other; all that
// one writes is in one folder, and none of its processes outlives the process that started it.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"k8s.io/client-go/rest"

	"github.com/winnow-dev/winnow/test/programs"
)

// Options chooses what to start. The zero value is a whole cluster with two Nodes in a temporary folder.
type Options struct {
	// Dir keeps everything. A folder of an earlier cluster continues with its objects and certificates. If empty,
	// a temporary folder, which Stop removes.
	Dir string
	// Components to start, AllComponents if empty. Etcd and APIServer are always among them.
	Components []string
	// OwnEtcd starts a second etcd, in which an aggregated API server can store its objects; see OwnEtcdFlags.
	OwnEtcd bool
	// Nodes is how many kwok Nodes there are, each for 10,000 Pods; two if zero. They need Kwok.
	Nodes int
	// Flags are more flags by component; the last one of a name wins.
	Flags map[string][]string
	// Progress is told what is fetched or built when a program is missing. Standard error if nil.
	Progress io.Writer
}

// Cluster is a running cluster. Its methods may be called from several goroutines.
type Cluster struct {
	Dir string

	options          Options
	programs         programs.Paths
	ca, frontProxyCA *authority
	port             int // of the API server
	kubeconfig       string
	config           *rest.Config
	flags            map[string][]string // by component
	ownEtcdFlags     []string

	ctx    context.Context // ends with the cluster
	cancel context.CancelFunc

	lock      sync.Mutex
	processes []*Process // in the order of their start
}

// Start starts a cluster and waits until it is usable: the API server is ready, the first namespaces exist, and all Nodes, if any, are
// schedulable. The end of ctx kills it; Stop also waits and removes a temporary folder.
func Start(ctx context.Context, options Options) (*Cluster, error) {
	c, err := newCluster(ctx, options)
	if err != nil {
		return nil, err
	}
	if err := c.startAll(); err != nil {
		return nil, errors.Join(fmt.Errorf("starting the cluster: %w", err), c.Stop())
	}
	return c, nil
}

func newCluster(ctx context.Context, options Options) (*Cluster, error) {
	if err := options.complete(); err != nil {
		return nil, err
	}
	paths, err := programs.Provide(ctx, options.Progress, append(options.Components, Kubectl)...)
	if err != nil {
		return nil, err
	}
	c := &Cluster{options: options, programs: paths}
	if options.OwnEtcd {
		c.options.Components = append([]string{OwnEtcd}, options.Components...)
		c.programs[OwnEtcd] = c.programs[Etcd]
	}
	c.ctx, c.cancel = context.WithCancel(ctx)
	return c, nil
}

// complete puts the components into the order in which they start and fills in defaults.
func (o *Options) complete() error {
	for _, name := range append(slices.Collect(maps.Keys(o.Flags)), o.Components...) {
		if !slices.Contains(AllComponents, name) {
			return fmt.Errorf("unknown component %q: choose from %s", name, strings.Join(AllComponents, ", "))
		}
	}
	all := len(o.Components) == 0
	wanted := append([]string{Etcd, APIServer}, o.Components...)
	o.Components = slices.DeleteFunc(slices.Clone(AllComponents), func(name string) bool {
		return !all && !slices.Contains(wanted, name)
	})
	if o.Nodes == 0 {
		o.Nodes = 2
	}
	if o.Progress == nil {
		o.Progress = os.Stderr
	}
	return nil
}

func (c *Cluster) startAll() error {
	if err := c.prepare(); err != nil {
		return err
	}
	for _, name := range c.options.Components {
		if err := c.startComponent(name); err != nil {
			return err
		}
		if name == APIServer { // the next ones give up when it takes long
			if err := c.waitReady(c.ctx, apiServerReady); err != nil {
				return err
			}
		}
	}
	return c.waitReady(c.ctx, namespacesReady, c.nodesReady)
}

// Stop kills what runs, the last started first, and removes a temporary folder. The second call does nothing.
func (c *Cluster) Stop() error {
	c.lock.Lock()
	defer c.lock.Unlock()
	var errs []error
	for _, p := range slices.Backward(c.processes) {
		errs = append(errs, p.Kill())
	}
	c.cancel()
	if c.options.Dir == "" {
		errs = append(errs, os.RemoveAll(c.Dir))
	}
	return errors.Join(errs...)
}

// Run starts a program beside the components, as it would run in production; Stop kills it too. Its log is NAME.log
// in Logs; env comes on top of the environment of this process.
func (c *Cluster) Run(ctx context.Context, name, path string, args, env []string) (*Process, error) {
	c.lock.Lock()
	defer c.lock.Unlock()
	if err := c.ctx.Err(); err != nil {
		return nil, fmt.Errorf("starting %s: the cluster has ended: %w", name, err)
	}
	p, err := startProcess(ctx, name, filepath.Join(c.Logs(), name+".log"), path, args, env)
	if err != nil {
		return nil, err
	}
	c.processes = append(c.processes, p)
	return p, nil
}

// StopComponent ends a component with SIGKILL, as a crash would.
func (c *Cluster) StopComponent(name string) error {
	p := c.Process(name)
	if p == nil {
		return fmt.Errorf("stopping %s: it is no running component of this cluster", name)
	}
	return p.Kill()
}

// StartComponent starts a component again with its ports and data, and waits until the cluster is ready.
func (c *Cluster) StartComponent(ctx context.Context, name string) error {
	if err := c.startComponent(name); err != nil {
		return err
	}
	return c.waitReady(ctx, apiServerReady, namespacesReady, c.nodesReady)
}

func (c *Cluster) startComponent(name string) error {
	if !slices.Contains(c.options.Components, name) {
		return fmt.Errorf("starting %s: it is no component of this cluster", name)
	}
	if c.Process(name) != nil {
		return fmt.Errorf("starting %s: it runs already", name)
	}
	_, err := c.Run(c.ctx, name, c.programs[name], c.flags[name], []string{"HOME=" + c.Dir})
	return err
}

// Process is the running process of this name, or nil.
func (c *Cluster) Process(name string) *Process {
	for _, p := range c.running() {
		if p.Name == name {
			return p
		}
	}
	return nil
}

func (c *Cluster) running() []*Process {
	c.lock.Lock()
	defer c.lock.Unlock()
	c.processes = slices.DeleteFunc(c.processes, (*Process).ended)
	return slices.Clone(c.processes)
}
