// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/objects/facts"
	"github.com/winnow-dev/winnow/pkg/controller/objects/kinds"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/tracker"
)

// Tracker says what must be observed, and takes in what is. Of each kind of object it takes in changes, and all objects at once: Replace.
type Tracker interface {
	// Coverage is by resource and namespace; CoverageChanged says when to ask for it again.
	Coverage() map[string]map[string]memory.Covering
	CoverageChanged() <-chan struct{}
	// StartAnew says that the store has gone back; see engine.Engine.StartAnew.
	StartAnew(now time.Time)
	// Kinds is the table that the coverage refers to.
	Kinds() *kinds.Table
	// Conditions are the match conditions to evaluate for the objects of a resource, by namespace.
	Conditions(resource string) map[string]*lifecycle.Conditions

	watched
	objects
	cronJobs
	quotas
	referrersTracker
	marksTracker
	policies
	clusterPolicies
	namespaces
}

// watched receives the state of a resource's watch.
type watched interface {
	StartObserving(k *kinds.Kind)
	Observing(resource string, why error, now time.Time)
	Heard(resource string, now time.Time)
	Unheard(resource string)
}

type objects interface {
	Upsert(k *facts.Compact, now time.Time)
	Remove(k *facts.Compact, now time.Time)
	BeginList(resource string) *tracker.List
	BeginMerge(resource, namespace string) *tracker.Merge
}

type cronJobs interface {
	SetCronJob(cj *lifecycle.CronJob, now time.Time)
	RemoveCronJob(uid types.UID, now time.Time)
	ReplaceCronJobs(all []*lifecycle.CronJob, now time.Time)
	ForgetCronJobs(now time.Time)
}

type quotas interface {
	SetQuota(q *memory.Quota, now time.Time)
	RemoveQuota(q *memory.Quota, now time.Time)
	ReplaceQuotas(all []*memory.Quota, now time.Time)
	ForgetQuotas(now time.Time)
}

// policies are of a namespace each. A bookmark is a version up to which they have been observed.
type policies interface {
	SetPolicy(p *gc.CleanupPolicy, now time.Time)
	RemovePolicy(p *gc.CleanupPolicy, now time.Time)
	ReplacePolicies(all []*gc.CleanupPolicy, rv string, now time.Time)
	ObservePolicies(bookmark string)
}

type clusterPolicies interface {
	SetClusterPolicy(p *gc.ClusterCleanupPolicy, now time.Time)
	RemoveClusterPolicy(p *gc.ClusterCleanupPolicy, now time.Time)
	ReplaceClusterPolicies(all []*gc.ClusterCleanupPolicy, rv string, now time.Time)
	ObserveClusterPolicies(bookmark string)
}

type namespaces interface {
	SetNamespace(m *metav1.PartialObjectMetadata, now time.Time)
	RemoveNamespace(m *metav1.PartialObjectMetadata, now time.Time)
	ReplaceNamespaces(all []*metav1.PartialObjectMetadata, rv string, now time.Time)
	ObserveNamespaces(bookmark string)
}
