// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
)

// StatusReader reads the status of policies again and again. It asks once what the caller may list.
type StatusReader struct {
	cluster                     *Cluster
	namespace                   string
	clusterPolicies, candidates bool // whether they may be listed
	notes                       []string
}

// Statuses are policies with their status.
type Statuses struct {
	Policies        []v1alpha1.CleanupPolicy
	ClusterPolicies []v1alpha1.ClusterCleanupPolicy
}

// StatusReader returns a reader for one namespace, or with "" for all and for cluster policies.
func (c *Cluster) StatusReader(ctx context.Context, namespace string) (*StatusReader, error) {
	r := &StatusReader{cluster: c, namespace: namespace}
	mayOwn, err := r.may(ctx, "cleanuppolicies", namespace)
	switch {
	case err != nil:
		return nil, err
	case !mayOwn && namespace == "":
		return nil, errors.New("you may not list cleanuppolicies in all namespaces, so choose one: -n NAMESPACE")
	case !mayOwn:
		return nil, fmt.Errorf("you may not list cleanuppolicies %s: kubectl auth can-i list %s %s",
			gc.InNamespace(namespace), v1alpha1.Resource("cleanuppolicies"), inNamespace(namespace))
	}
	if r.candidates, err = r.mayNoted(ctx, "cleanupcandidates", namespace); err != nil {
		return nil, err
	}
	if namespace == "" {
		r.clusterPolicies, err = r.mayNoted(ctx, "clustercleanuppolicies", "")
	}
	return r, err
}

func (r *StatusReader) may(ctx context.Context, resource, namespace string) (bool, error) {
	return r.cluster.May(ctx, "list", v1alpha1.Resource(resource), namespace)
}

// mayNoted is like may, and notes a missing permission.
func (r *StatusReader) mayNoted(ctx context.Context, resource, namespace string) (bool, error) {
	may, err := r.may(ctx, resource, namespace)
	if err == nil && !may {
		r.notes = append(r.notes, unlisted(resource, namespace))
	}
	return may, err
}

// Notes say what cannot be read.
func (r *StatusReader) Notes() []string { return r.notes }

// Read reads the policies. It takes any recent state, which costs the server the least: a status itself is some seconds old.
func (r *StatusReader) Read(ctx context.Context) (*Statuses, error) {
	recent := metav1.ListOptions{ResourceVersion: "0"}
	own, err := r.cluster.policies.CleanupPolicies(r.namespace).List(ctx, recent)
	if err != nil {
		return nil, fmt.Errorf("listing cleanuppolicies: %w", err)
	}
	out := &Statuses{Policies: own.Items}
	if r.clusterPolicies {
		all, err := r.cluster.policies.ClusterCleanupPolicies().List(ctx, recent)
		if err != nil {
			return nil, fmt.Errorf("listing clustercleanuppolicies: %w", err)
		}
		out.ClusterPolicies = all.Items
	}
	return out, nil
}

// MaySample reports whether the caller may list candidates.
func (r *StatusReader) MaySample() bool { return r.candidates }

// Sample returns the first candidates of a namespace, at most so many, and reports whether there are more. They are ordered by UID, and so
// by chance.
func (r *StatusReader) Sample(
	ctx context.Context, namespace string, most int64,
) (candidates []v1alpha1.CleanupCandidate, more bool, err error) {
	page, err := r.cluster.policies.CleanupCandidates(namespace).List(ctx, metav1.ListOptions{Limit: most})
	if err != nil {
		return nil, false, fmt.Errorf("listing cleanupcandidates %s: %w", gc.InNamespace(namespace), err)
	}
	return page.Items, page.Continue != "", nil
}
