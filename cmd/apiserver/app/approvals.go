// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/write/status"
)

// approvalEventTimeout bounds the request for an event about an approval.
const approvalEventTimeout = 10 * time.Second

// approvals tells who approved holds: in the log of the replica that took the request, and in an event on the policy.
type approvals struct {
	events   kubernetes.Interface
	instance string
	clock    clock.PassiveClock
}

// told logs an approval and writes an event about it. The event is not tried again, because the log has the approval.
func (a approvals) told(ctx context.Context, approval gc.Approval) {
	log := klog.FromContext(ctx)
	var ids []string
	for i := range approval.Holds {
		ids = append(ids, approval.Holds[i].ID)
	}
	log.Info("Approved", "policy", gc.PolicyTitle(approval.Policy.GetNamespace(), approval.Policy.GetName()),
		"namespace", approval.Policy.GetNamespace(), "user", approval.User, "holds", ids)
	go func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), approvalEventTimeout)
		defer cancel()
		if err := status.WriteApproved(ctx, a.events, a.instance, approval, a.clock.Now()); err != nil {
			log.Info("Cannot write the event about an approval", "err", err)
		}
	}()
}
