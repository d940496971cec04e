// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"

	"github.com/winnow-dev/winnow/test/internal/cache"
)

// Ports are taken from below the ranges that kernels use for outgoing connections, so that a server which is
// stopped and started again finds its port free.
const firstPort, portCount = 20000, 10000

// FreePort returns a TCP port of 127.0.0.1 that nobody listens on, and reserves it among all processes that use
// this function for as long as this process lives.
func FreePort() (int, error) {
	dir, err := cache.Dir()
	if err != nil {
		return 0, err
	}
	dir = filepath.Join(dir, "ports")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return 0, err
	}
	for range 1000 {
		port := firstPort + rand.IntN(portCount)
		unlock, err := cache.TryLock(filepath.Join(dir, strconv.Itoa(port)))
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
