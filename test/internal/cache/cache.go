// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cache is the folder that tests and tools share between runs, and the locks in it.
package cache

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// Dir is $WINNOW_CACHE, or winnow below the user's cache folder.
func Dir() (string, error) {
	if dir := os.Getenv("WINNOW_CACHE"); dir != "" {
		return filepath.Abs(dir)
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no folder for built programs, set WINNOW_CACHE: %w", err)
	}
	return filepath.Join(dir, "winnow"), nil
}

// Lock waits until no other process holds the lock of that file.
func Lock(ctx context.Context, path string) (unlock func(), err error) {
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for {
		if unlock, err = TryLock(path); unlock != nil || err != nil {
			return unlock, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-ticker.C:
		}
	}
}

// TryLock returns nil when another process, or another caller in this one, holds the lock of that file. The
// kernel releases the lock when the process ends, however it ends.
func TryLock(path string) (unlock func(), err error) {
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
