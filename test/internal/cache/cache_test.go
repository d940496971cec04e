// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"
)

func TestLockIsHeldByOne(t *testing.T) {
	file := filepath.Join(t.TempDir(), "lock")
	unlock, err := Lock(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 150*time.Millisecond)
	defer cancel()
	if _, err := Lock(ctx, file); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a second lock: %v", err)
	}
	unlock()
	if unlock, err = Lock(t.Context(), file); err != nil {
		t.Fatalf("after unlock: %v", err)
	}
	unlock()
}
