// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestStorageGate: it says why it is closed, opens by itself, and does not close again.
func TestStorageGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		missing, asked := errors.New("run kubectl apply"), 0
		installed := time.Now().Add(time.Minute)
		gate := newStorageGate(func(context.Context) error {
			asked++
			if time.Now().Before(installed) {
				return missing
			}
			return nil
		})
		if gate.readiness().Check(nil) == nil {
			t.Error("ready before the storage is checked")
		}
		go func() {
			time.Sleep(30 * time.Second)
			if err := gate.readiness().Check(nil); !errors.Is(err, missing) {
				t.Errorf("while the storage is missing: %v", err)
			}
		}()
		if err := gate.await(t.Context()); err != nil || time.Now().Before(installed) {
			t.Fatalf("opened with %v, %v before the storage was installed", err, time.Until(installed))
		}
		if err := gate.readiness().Check(nil); err != nil {
			t.Errorf("once installed: %v", err)
		}
		before := asked
		if err := gate.await(t.Context()); err != nil || asked != before {
			t.Errorf("an open gate asked again (%d times, error %v)", asked-before, err)
		}
	})
}

// TestStorageGateEnds: Winnow can be stopped while it waits.
func TestStorageGateEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := newStorageGate(func(context.Context) error { return errors.New("not installed") })
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := gate.await(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
	})
}

func TestGateWithoutStorage(t *testing.T) {
	gate := openGate()
	if err := errors.Join(gate.await(t.Context()), gate.readiness().Check(nil)); err != nil {
		t.Error(err)
	}
}
