// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// Ports are taken from below the ranges that kernels use for outgoing connections, so that a server which is
// stopped and started again finds its port free.
const firstPort, portCount = 20000, 10000

// FreePort returns a TCP port of 127.0.0.1 that nobody listens on, and reserves it among all processes that use
// this function for as long as this process lives.
func FreePort() (int, error) {
	cache, err := cacheDir()
	if err != nil {
		return 0, err
	}
	dir := filepath.Join(cache, "ports")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return 0, err
	}
	for range 1000 {
		port := firstPort + rand.IntN(portCount)
		unlock, err := tryLock(filepath.Join(dir, strconv.Itoa(port)))
		if err != nil {
			return 0, err
		}
		if unlock == nil {
			continue
		}
		if listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))); err == nil {
			return port, listener.Close() // the lock goes with the process
		}
		unlock()
	}
	return 0, fmt.Errorf("no free port on 127.0.0.1 from %d to %d", firstPort, firstPort+portCount-1)
}

// lock waits until no other process holds the lock of that file.
func lock(ctx context.Context, path string) (unlock func(), err error) {
	err = wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(context.Context) (bool, error) {
		unlock, err = tryLock(path)
		return unlock != nil, err
	})
	return unlock, err
}

// tryLock returns nil when another process, or another caller in this one, holds the lock of that file. The
// kernel releases the lock when the process ends, however it ends.
func tryLock(path string) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		return func() { _ = file.Close() }, nil
	}
	_ = file.Close()
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, nil
	}
	return nil, fmt.Errorf("locking %s: %w", path, err)
}
