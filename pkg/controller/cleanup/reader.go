// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package cleanup

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	componentbaseconfig "k8s.io/component-base/config"

	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/pkg/controller/tracker"
)

// readTimeout bounds a reading; one that took longer would allow nothing any more.
const readTimeout = 5 * time.Second

// StoredPolicies says where policies are kept in the cluster's own API: what a reading needs of them stands there in annotations,
// so that no policy is decoded for it.
type StoredPolicies struct {
	Policies, ClusterPolicies schema.GroupVersionResource
	// UID and Generation are the keys of the annotations that have those of the policy, HostGeneration that of the generation which the
	// object itself has if these are still those of the policy that is in it.
	UID, Generation, HostGeneration string
}

// reader reads what must agree with memory before anything is deleted: policies and namespaces, consistently, by their
// metadata alone, and the lease.
type reader struct {
	// policies reads from this server itself, metadata from the cluster.
	policies, metadata metadata.Interface
	stored             *StoredPolicies // nil when policies are not kept in the cluster
	cluster            kubernetes.Interface
	instance           string
	election           componentbaseconfig.LeaderElectionConfiguration
}

var errNotLeading = errors.New("the lease names another replica")

// read fails when any part cannot be read, or when the lease is not in our name.
func (r *reader) read(ctx context.Context, began time.Time) (tracker.Reading, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	var date time.Time
	out := tracker.Reading{Began: began}
	group, ctx := errgroup.WithContext(ctx)
	from, stamp, of := r.policies, policyStamp, StoredPolicies{
		Policies:        v1alpha1.SchemeGroupVersion.WithResource("cleanuppolicies"),
		ClusterPolicies: v1alpha1.SchemeGroupVersion.WithResource("clustercleanuppolicies"),
	}
	if r.stored != nil {
		from, stamp, of = r.metadata, r.stored.stamp, *r.stored
	}
	group.Go(func() (err error) {
		out.Policies, err = contents(ctx, from, of.Policies, stamp)
		return err
	})
	group.Go(func() (err error) {
		out.ClusterPolicies, err = contents(ctx, from, of.ClusterPolicies, stamp)
		return err
	})
	group.Go(func() (err error) {
		out.Namespaces, err = contents(withDate(ctx, &date), r.metadata, corev1.SchemeGroupVersion.WithResource("namespaces"), namespaceStamp)
		return err
	})
	group.Go(func() error { return wrap("lease", r.checkLease(ctx)) })
	if err := group.Wait(); err != nil {
		return tracker.Reading{}, err
	}
	out.ServerTime = date
	return out, nil
}

// contents lists a collection by its metadata.
func contents(
	ctx context.Context, client metadata.Interface, resource schema.GroupVersionResource, stamp func(*metav1.ObjectMeta) tracker.Stamp,
) (tracker.Contents, error) {
	l, err := client.Resource(resource).List(ctx, metav1.ListOptions{})
	if err != nil {
		return tracker.Contents{}, wrap(resource.Resource, err)
	}
	out := tracker.Contents{Version: l.ResourceVersion, Stamps: make(map[types.NamespacedName]tracker.Stamp, len(l.Items))}
	for i := range l.Items {
		m := &l.Items[i].ObjectMeta
		out.Stamps[types.NamespacedName{Namespace: m.Namespace, Name: m.Name}] = stamp(m)
	}
	return out, nil
}

func policyStamp(m *metav1.ObjectMeta) tracker.Stamp { return tracker.PolicyStamp(m.UID, m.Generation) }

// stamp is that of the policy that an object holds.
func (s *StoredPolicies) stamp(m *metav1.ObjectMeta) tracker.Stamp {
	if m.Annotations[s.HostGeneration] != strconv.FormatInt(m.Generation, 10) {
		return tracker.AlteredStamp(types.UID(m.Annotations[s.UID]), m.ResourceVersion)
	}
	return tracker.Stamp{UID: types.UID(m.Annotations[s.UID]), Version: m.Annotations[s.Generation]}
}

func namespaceStamp(m *metav1.ObjectMeta) tracker.Stamp {
	return tracker.Stamp{UID: m.UID, Version: m.ResourceVersion}
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
