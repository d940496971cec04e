// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package session has what every command starts with: streams, flags, clients, and the object that its arguments name.
package session

import (
	"context"
	"fmt"

	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"

	gcclient "github.com/winnow-dev/winnow/pkg/generated/clientset/versioned/typed/gc/v1alpha1"
	"github.com/winnow-dev/winnow/pkg/plugin/local"
	"github.com/winnow-dev/winnow/pkg/version"
)

// Session has the streams and flags of a command.
type Session struct {
	genericiooptions.IOStreams
	Flags *genericclioptions.ConfigFlags
}

// New returns a session. Requests name the plugin, and warnings of servers are printed as kubectl prints them.
func New(streams genericiooptions.IOStreams) *Session {
	s := &Session{IOStreams: streams, Flags: genericclioptions.NewConfigFlags(true)}
	s.Flags.WithWrapConfigFn(func(c *rest.Config) *rest.Config {
		c.UserAgent, c.QPS = "kubectl-winnow/"+version.Get(), -1 // The API server limits requests itself.
		c.WarningHandler = warnings{s.ErrOut}
		return c
	})
	return s
}

// Namespace returns the namespace of the flags, or of the kubeconfig.
func (s *Session) Namespace() (string, error) {
	namespace, _, err := s.Flags.ToRawKubeConfigLoader().Namespace()
	return namespace, err
}

// Cluster returns what decides in this process.
func (s *Session) Cluster() (*local.Cluster, error) {
	c, err := s.Flags.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	return local.New(c)
}

// Winnow returns a client of the API of Winnow.
func (s *Session) Winnow() (gcclient.GcV1alpha1Interface, error) {
	config, err := s.Flags.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	return gcclient.NewForConfig(config)
}

// ExpectWinnow fails if there is no Winnow in the cluster. so says what follows from that.
func ExpectWinnow(ctx context.Context, cluster *local.Cluster, so string) error {
	installed, err := cluster.Installed(ctx)
	switch {
	case err != nil:
		return fmt.Errorf("asking for the API of Winnow: %w", err)
	case !installed:
		return fmt.Errorf("there is no Winnow in this cluster, so %s; to see what finished objects lie around: kubectl winnow report", so)
	}
	return nil
}

// ExpectedWinnow returns a client of the API of Winnow. It fails if there is no Winnow in the cluster; see ExpectWinnow.
func (s *Session) ExpectedWinnow(ctx context.Context, so string) (gcclient.GcV1alpha1Interface, error) {
	cluster, err := s.Cluster()
	if err != nil {
		return nil, err
	}
	if err := ExpectWinnow(ctx, cluster, so); err != nil {
		return nil, err
	}
	return s.Winnow()
}

// Warn writes a line that is no part of the result.
func (s *Session) Warn(text string) { warnings{s.ErrOut}.write(text) }
