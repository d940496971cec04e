// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix && !linux

package cluster

import "syscall"

// childAttributes cannot tie the child to the life of its parent here: only Linux knows how.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
