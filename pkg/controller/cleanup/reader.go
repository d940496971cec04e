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
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	componentbaseconfig "k8s.io/component-base/config"

	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/pkg/controller/rules/freshness"
	"github.com/winnow-dev/winnow/pkg/serverdate"
)

// readTimeout bounds a reading; one that took longer would allow nothing any more.
const readTimeout = 5 * time.Second

// Barriers write barriers into the storage of policies and of cluster policies. A barrier is no policy, but it is stored and watched like
// one. Each function writes one and returns the resource version of this write. When the watch has come as far as this version, memory has
// every write of a policy that was acknowledged before the call.
type Barriers struct {
	Policies, ClusterPolicies func(context.Context) (version string, err error)
}

// reader reads what must agree with memory before anything is deleted, and the lease.
type reader struct {
	policies, clusterPolicies, namespaces, lifecycles func(context.Context) (freshness.Contents, error)
	// confirmLifecycles fails if memory has other ResourceLifecycles than these.
	confirmLifecycles func(map[types.NamespacedName]freshness.Revision) error

	// policyStore reads the resourceVersion of the store of policies; nil if this is the store of the cluster.
	policyStore func(context.Context) (version string, err error)

	cluster  kubernetes.Interface
	instance string
	election componentbaseconfig.LeaderElectionConfiguration
	// history is of the readings before. Only one is under way at a time.
	history history
}

var errNotLeading = errors.New("the lease names another replica")

// newReader makes a reader whose answers from the cluster have a Date.
func newReader(
	c Config, dated metadata.Interface, cluster kubernetes.Interface,
	confirmLifecycles func(map[types.NamespacedName]freshness.Revision) error, h history,
) (*reader, error) {
	own, err := metadata.NewForConfig(client(c.Loopback, c.UserAgent, ""))
	if err != nil {
		return nil, fmt.Errorf("metadata client of this server: %w", err)
	}
	const policies, clusterPolicies = "cleanuppolicies", "clustercleanuppolicies"
	ours := v1alpha1.SchemeGroupVersion.WithResource
	r := &reader{
		namespaces:        contents(dated, corev1.SchemeGroupVersion.WithResource("namespaces"), namespaceRevision),
		lifecycles:        contents(own, ours("resourcelifecycles"), specRevision), // There are few.
		confirmLifecycles: confirmLifecycles,
		cluster:           cluster, instance: c.Instance, election: c.LeaderElection,
		history: h,
	}
	if b := c.Barriers; b != nil {
		r.policies, r.clusterPolicies = barrier(policies, b.Policies), barrier(clusterPolicies, b.ClusterPolicies)
		return r, nil
	}
	r.policies = contents(own, ours(policies), specRevision)
	r.clusterPolicies = contents(own, ours(clusterPolicies), specRevision)
	r.policyStore = func(ctx context.Context) (string, error) {
		l, err := own.Resource(ours(policies)).List(ctx, metav1.ListOptions{Limit: 1})
		if err != nil {
			return "", wrap("the store of policies", err)
		}
		return l.ResourceVersion, nil
	}
	return r, nil
}

// read fails when any part cannot be read, or when the lease is not in our name.
func (r *reader) read(ctx context.Context, began time.Time) (freshness.ConsistentRead, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	var date time.Time
	for _, c := range []freshness.Collection{freshness.Policies, freshness.ClusterPolicies, freshness.Namespaces} {
		r.history.begin(c)
	}
	out := freshness.ConsistentRead{Began: began}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		out.Policies, err = r.policies(ctx)
		return err
	})
	group.Go(func() (err error) {
		out.ClusterPolicies, err = r.clusterPolicies(ctx)
		return err
	})
	group.Go(func() (err error) {
		out.Namespaces, err = r.namespaces(serverdate.With(ctx, &date))
		return err
	})
	group.Go(func() error {
		present, err := r.lifecycles(ctx)
		if err != nil {
			return err
		}
		return r.confirmLifecycles(present.Revisions)
	})
	group.Go(func() error { return wrap("lease", r.checkLease(ctx)) })
	if err := group.Wait(); err != nil {
		return freshness.ConsistentRead{}, err
	}
	out.ServerTime = date
	var back []error // of all collections, or the next reading would find the next one, and everything would be observed anew once more
	for c, version := range map[freshness.Collection]string{
		freshness.Policies: out.Policies.Version, freshness.ClusterPolicies: out.ClusterPolicies.Version,
		freshness.Namespaces: out.Namespaces.Version,
	} {
		back = append(back, r.history.follow(c, version))
	}
	if err := errors.Join(back...); err != nil {
		return freshness.ConsistentRead{}, err
	}
	return out, nil
}

// barrier reads a collection as the version of a barrier, which costs the same however many policies there are.
func barrier(resource string, write func(context.Context) (string, error)) func(context.Context) (freshness.Contents, error) {
	return func(ctx context.Context) (freshness.Contents, error) {
		version, err := write(ctx)
		return freshness.Contents{Version: version}, wrap("the barrier of "+resource, err)
	}
}

// contents lists a collection, consistently, by its metadata alone.
func contents(
	client metadata.Interface, resource schema.GroupVersionResource, revision func(*metav1.ObjectMeta) freshness.Revision,
) func(context.Context) (freshness.Contents, error) {
	return func(ctx context.Context) (freshness.Contents, error) {
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
}

func specRevision(m *metav1.ObjectMeta) freshness.Revision {
	return freshness.SpecRevision(m.UID, m.Generation)
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
