// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package cleanup

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	componentbaseconfig "k8s.io/component-base/config"

	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/pkg/controller/tracker"
)

// readTimeout bounds a reading; one that took longer would allow nothing any more.
const readTimeout = 5 * time.Second

// reader reads what must agree with memory before anything is deleted: policies and namespaces, consistently, by their
// metadata alone, and the lease.
type reader struct {
	policies, namespaces metadata.Interface
	cluster              kubernetes.Interface
	instance             string
	election             componentbaseconfig.LeaderElectionConfiguration
}

var errNotLeading = errors.New("the lease names another replica")

// read fails when any part cannot be read, or when the lease is not in our name.
func (r *reader) read(ctx context.Context, began time.Time) (tracker.Reading, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	var policies, namespaces *metav1.PartialObjectMetadataList
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		policies, err = r.policies.Resource(v1alpha1.SchemeGroupVersion.WithResource("cleanuppolicies")).List(ctx, metav1.ListOptions{})
		return wrap("policies", err)
	})
	group.Go(func() (err error) {
		namespaces, err = r.namespaces.Resource(corev1.SchemeGroupVersion.WithResource("namespaces")).List(ctx, metav1.ListOptions{})
		return wrap("namespaces", err)
	})
	group.Go(func() error { return wrap("lease", r.checkLease(ctx)) })
	if err := group.Wait(); err != nil {
		return tracker.Reading{}, err
	}
	out := tracker.Reading{
		Began: began, PolicyVersion: policies.ResourceVersion, NamespaceVersion: namespaces.ResourceVersion,
		Policies:   make(map[types.NamespacedName]tracker.Stamp, len(policies.Items)),
		Namespaces: make(map[string]tracker.Stamp, len(namespaces.Items)),
	}
	for i := range policies.Items {
		p := &policies.Items[i]
		out.Policies[types.NamespacedName{Namespace: p.Namespace, Name: p.Name}] = tracker.PolicyStamp(p.UID, p.Generation)
	}
	for i := range namespaces.Items {
		ns := &namespaces.Items[i]
		out.Namespaces[ns.Name] = tracker.Stamp{UID: ns.UID, Version: ns.ResourceVersion}
	}
	return out, nil
}

func (r *reader) checkLease(ctx context.Context) error {
	if !r.election.LeaderElect {
		return nil
	}
	lease, err := r.cluster.CoordinationV1().Leases(r.election.ResourceNamespace).Get(ctx, r.election.ResourceName, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if holder := lease.Spec.HolderIdentity; holder == nil || *holder != r.instance {
		return errNotLeading
	}
	return nil
}

func wrap(what string, err error) error {
	if err != nil {
		return fmt.Errorf("reading %s: %w", what, err)
	}
	return nil
}
