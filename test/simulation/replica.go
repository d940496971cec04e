// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/spf13/pflag"
	"google.golang.org/grpc/test/bufconn"

	"github.com/winnow-dev/winnow/cmd/apiserver/app"
)

// buffered is how much a connection to a replica holds that nobody has read.
const buffered = 1 << 16

// replica is a whole Winnow, with the flags of an installation but for its port, its storage and its registration: an administrator has
// installed the storage.
type replica struct {
	host    string // in the URLs of its requests; no other replica has it, before or after
	pipe    *bufconn.Listener
	client  *aggregator
	started time.Time
	cancel  context.CancelFunc
	ended   chan error  // has why it ended
	creates atomic.Bool // whether it creates a policy
}

// listener is bound to an address, as far as the server can see.
type listener struct{ *bufconn.Listener }

func (listener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8443} }

// start starts a replica.
func start(ctx context.Context, dir, host string, holdAbove int) *replica {
	ctx, cancel := context.WithCancel(ctx)
	r := &replica{host: host, pipe: bufconn.Listen(buffered), started: time.Now(), cancel: cancel, ended: make(chan error, 1)}
	go func() { r.ended <- r.run(ctx, dir, holdAbove) }()
	return r
}

func (r *replica) run(ctx context.Context, dir string, holdAbove int) error {
	// A URL without TLS has client-go use http.DefaultTransport, which is the network of the simulation.
	kubeconfig := filepath.Join(dir, r.host)
	err := os.WriteFile(kubeconfig, fmt.Appendf(nil, `apiVersion: v1
kind: Config
current-context: simulation
clusters: [{name: simulation, cluster: {server: "http://%s"}}]
contexts: [{name: simulation, context: {cluster: simulation}}]
`, r.host), 0o600)
	if err != nil {
		return err
	}
	o := app.NewOptions()
	flags, sections := pflag.NewFlagSet("", pflag.ContinueOnError), o.Flags()
	for _, set := range sections.FlagSets {
		flags.AddFlagSet(set)
	}
	args := []string{
		"--kubeconfig=" + kubeconfig, "--manage-storage=false", "--register=false", "--bind-address=127.0.0.1",
		fmt.Sprint("--default-hold-above=", holdAbove),
	}
	if err := flags.Parse(args); err != nil {
		return err
	}
	o.Recommended.SecureServing.Listener = listener{r.pipe}
	o.Complete()
	if err := o.Validate(); err != nil {
		return err
	}
	config, err := o.Config(ctx)
	if err != nil {
		return err
	}
	config.Loopback().Dial = func(ctx context.Context, _, _ string) (net.Conn, error) { return r.pipe.DialContext(ctx) }
	server, err := config.Complete().New()
	if err != nil {
		return err
	}
	return server.Run(ctx)
}
