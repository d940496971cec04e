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
	"github.com/winnow-dev/winnow/pkg/controller/freshness"
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
func (r *reader) read(ctx context.Context, began time.Time) (freshness.ConsistentRead, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	var date time.Time
	out := freshness.ConsistentRead{Began: began}
	group, ctx := errgroup.WithContext(ctx)
	from, revision, of := r.policies, policyRevision, StoredPolicies{
		Policies:        v1alpha1.SchemeGroupVersion.WithResource("cleanuppolicies"),
		ClusterPolicies: v1alpha1.SchemeGroupVersion.WithResource("clustercleanuppolicies"),
	}
	if r.stored != nil {
		from, revision, of = r.metadata, r.stored.revision, *r.stored
	}
	group.Go(func() (err error) {
		out.Policies, err = contents(ctx, from, of.Policies, revision)
		return err
	})
	group.Go(func() (err error) {
		out.ClusterPolicies, err = contents(ctx, from, of.ClusterPolicies, revision)
		return err
	})
	group.Go(func() (err error) {
		out.Namespaces, err = contents(withDate(ctx, &date), r.metadata, corev1.SchemeGroupVersion.WithResource("namespaces"), namespaceRevision)
		return err
	})
	group.Go(func() error { return wrap("lease", r.checkLease(ctx)) })
	if err := group.Wait(); err != nil {
		return freshness.ConsistentRead{}, err
	}
	out.ServerTime = date
	return out, nil
}

// contents lists a collection by its metadata.
func contents(
	ctx context.Context, client metadata.Interface, resource schema.GroupVersionResource, revision func(*metav1.ObjectMeta) freshness.Revision,
) (freshness.Contents, error) {
	l, err := client.Resource(resource).List(ctx, metav1.ListOptions{})
	if err != nil {
		return freshness.Contents{}, wrap(resource.Resource, err)
	}
	out := freshness.Contents{Version: l.ResourceVersion, Revisions: make(map[types.NamespacedName]freshness.Revision, len(l.Items))}
	for i := range l.Items {
		m := &l.Items[i].ObjectMeta
		out.Revisions[types.NamespacedName{Namespace: m.Namespace, Name: m.Name}] = revision(m)
	}
	return out, nil
}

func policyRevision(m *metav1.ObjectMeta) freshness.Revision {
	return freshness.PolicyRevision(m.UID, m.Generation)
}

// revision is that of the policy that an object holds.
func (s *StoredPolicies) revision(m *metav1.ObjectMeta) freshness.Revision {
	if m.Annotations[s.HostGeneration] != strconv.FormatInt(m.Generation, 10) {
		return freshness.AlteredRevision(types.UID(m.Annotations[s.UID]), m.ResourceVersion)
	}
	return freshness.Revision{UID: types.UID(m.Annotations[s.UID]), Version: m.Annotations[s.Generation]}
}

func namespaceRevision(m *metav1.ObjectMeta) freshness.Revision {
	return freshness.Revision{UID: m.UID, Version: m.ResourceVersion}
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
