// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/winnow-dev/winnow/test/winnow"
)

// leader is the replica that deletes.
func leader(t *testing.T) (out *winnow.Replica) {
	t.Helper()
	eventually(t, func(ctx context.Context) string {
		if out = leading(ctx); out == nil {
			return "no replica leads"
		}
		return ""
	})
	return out
}

// leading is the replica that deletes now, or nil.
func leading(ctx context.Context) *winnow.Replica {
	for _, r := range server.Replicas {
		if metrics, err := r.Get(ctx, "/metrics"); err == nil && strings.Contains(metrics, "\nwinnow_leading 1") {
			return r
		}
	}
	return nil
}

// kill ends replicas with SIGKILL, and has them back for the next test at the latest. If the leader was among them, the next one has to wait
// for a second only.
func kill(t *testing.T, replicas ...*winnow.Replica) {
	t.Helper()
	for _, r := range replicas {
		must(t, r.Kill())
		t.Cleanup(func() {
			select {
			case <-r.Process.Done():
				must(t, r.Start(whole))
			default:
			}
		})
	}
	shortenLease(t)
}

// shortenLease has the Lease end after a second, unless somebody leads.
func shortenLease(t *testing.T) {
	t.Helper()
	leases := kube.CoordinationV1().Leases(winnow.Namespace)
	eventually(t, func(ctx context.Context) string {
		lease, err := leases.Get(ctx, "winnow", metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		if leading(ctx) != nil {
			return ""
		}
		lease.Spec.LeaseDurationSeconds = new(int32(1))
		if _, err := leases.Update(ctx, lease, metav1.UpdateOptions{}); err != nil {
			return err.Error()
		}
		return ""
	})
}
