// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/healthz"
)

// fakeServer keeps the hooks.
type fakeServer struct {
	start genericapiserver.PostStartHookFunc
	ready []healthz.HealthChecker
	stop  genericapiserver.PreShutdownHookFunc
}

func (s *fakeServer) AddPostStartHook(_ string, hook genericapiserver.PostStartHookFunc) error {
	s.start = hook
	return nil
}

func (s *fakeServer) AddReadyzChecks(checks ...healthz.HealthChecker) error {
	s.ready = append(s.ready, checks...)
	return nil
}

func (s *fakeServer) AddPreShutdownHook(_ string, hook genericapiserver.PreShutdownHookFunc) error {
	s.stop = hook
	return nil
}

func (s *fakeServer) isReady() error {
	var errs []error
	for _, check := range s.ready {
		errs = append(errs, check.Check(nil))
	}
	return errors.Join(errs...)
}

// fakeController runs until its context ends and then for as long as finishing takes, or until it is given an error.
type fakeController struct {
	fails           chan error
	finishing       time.Duration
	running, synced atomic.Bool
}

func (c *fakeController) Run(ctx context.Context) error {
	c.running.Store(true)
	defer c.running.Store(false)
	select {
	case err := <-c.fails:
		return err
	case <-ctx.Done():
		time.Sleep(c.finishing)
		return nil
	}
}

func (c *fakeController) Synced() bool { return c.synced.Load() }

// started is a controller that was started as the server starts it.
func started(ctx context.Context, t *testing.T, gate *storageGate, c *fakeController, fail func(error)) *fakeServer {
	t.Helper()
	server := &fakeServer{}
	if err := startController(ctx, server, gate, c, fail); err != nil {
		t.Fatal(err)
	}
	if c.running.Load() {
		t.Error("the controller runs before the server has started")
	}
	if err := server.start(genericapiserver.PostStartHookContext{}); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
	return server
}

// TestControllerEndsTheProcess: a server that goes on without its controller would delete nothing, and say nothing of it.
func TestControllerEndsTheProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var cause error
		c := &fakeController{fails: make(chan error)}
		started(t.Context(), t, openGate(), c, func(err error) { cause = err })
		if !c.running.Load() || cause != nil {
			t.Fatalf("the controller runs: %v; failed with %v", c.running.Load(), cause)
		}
		lost := errors.New("the lease was lost")
		c.fails <- lost
		synctest.Wait()
		if !errors.Is(cause, lost) || !strings.Contains(cause.Error(), "the controller ended") {
			t.Errorf("the process ends with %v", cause)
		}
	})
}

// TestReadyOnceSynced: a replica that does not know the policies must not answer for them.
func TestReadyOnceSynced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &fakeController{}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		server := started(ctx, t, openGate(), c, func(err error) { t.Error(err) })
		if err := server.isReady(); err == nil {
			t.Error("ready before policies are read")
		}
		c.synced.Store(true)
		if err := server.isReady(); err != nil {
			t.Errorf("not ready once policies are read: %v", err)
		}
	})
}

// TestControllerWaitsForTheStorage, and ends without it when it is told to.
func TestControllerWaitsForTheStorage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var installed atomic.Bool
		gate := newStorageGate(func(context.Context) error {
			if installed.Load() {
				return nil
			}
			return errors.New("not installed")
		})
		for _, install := range []bool{false, true} {
			installed.Store(false)
			c := &fakeController{}
			ctx, cancel := context.WithCancel(t.Context())
			server := started(ctx, t, gate, c, func(err error) { t.Error(err) })
			if c.running.Load() {
				t.Error("the controller runs without a storage")
			}
			installed.Store(install)
			time.Sleep(2 * storagePoll)
			if c.running.Load() != install {
				t.Errorf("with the storage installed %v, the controller runs: %v", install, c.running.Load())
			}
			cancel()
			if err := server.stop(); err != nil {
				t.Error(err)
			}
		}
	})
}

// TestServerStopsAfterTheController: what is in flight is finished, but nobody waits for ever.
func TestServerStopsAfterTheController(t *testing.T) {
	for _, finishing := range []time.Duration{stopTimeout - time.Second, stopTimeout + time.Second} {
		synctest.Test(t, func(t *testing.T) {
			c := &fakeController{finishing: finishing}
			ctx, cancel := context.WithCancel(t.Context())
			server := started(ctx, t, openGate(), c, func(err error) { t.Error(err) })
			begin := time.Now()
			cancel()
			err := server.stop()
			if took := time.Since(begin); took != min(finishing, stopTimeout) || err != nil {
				t.Errorf("a controller that ends within %s: the server stops after %s with %v", finishing, took, err)
			}
			time.Sleep(finishing) // until the controller has ended too
		})
	}
}
