// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"k8s.io/apimachinery/pkg/util/sets"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/cleanup"
	"github.com/winnow-dev/winnow/pkg/controller/write/deleter"
	"github.com/winnow-dev/winnow/pkg/controller/write/notify"
	"github.com/winnow-dev/winnow/pkg/controller/write/records"
	"github.com/winnow-dev/winnow/pkg/storage/cluster"
	"github.com/winnow-dev/winnow/pkg/version"
)

const (
	controllerName = "winnow-controller"
	// releaseTimeout is for the Lease, which the leader gives back when its last deletions have ended.
	releaseTimeout = 10 * time.Second
	// stopTimeout is how long the server waits for the last deletions of the controller, each of which may read its object again, and then for
	// their records and notifications, before it stops answering.
	stopTimeout = 2*deleter.RequestTimeout + releaseTimeout + records.FlushTimeout + notify.DrainFor
	// readyTimeout bounds the question whether this replica is ready.
	readyTimeout = 5 * time.Second
)

// questions passes what the API server asks on to the controller, which is created after it. There are no answers until it is set.
type questions struct {
	instance   string // the name of this replica
	controller atomic.Pointer[cleanup.Controller]
	loopback   atomic.Pointer[rest.Config] // of this server itself
}

// newQuestions gives this replica a name that no other one has.
func newQuestions() (*questions, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("cannot distinguish the replicas without the name of this host: %w", err)
	}
	return &questions{instance: host + "_" + uuid.NewString()}, nil
}

// Leading reports whether this replica leads.
func (q *questions) Leading() bool {
	c := q.controller.Load()
	return c != nil && c.Leading()
}

// Ready says why this replica should get no requests yet, as /readyz does.
func (q *questions) Ready(ctx context.Context) error {
	loopback := q.loopback.Load()
	if loopback == nil {
		return errStarting
	}
	client, err := discovery.NewDiscoveryClientForConfig(loopback)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	return client.RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
}

// Forecast returns what a change of a policy makes due at once.
func (q *questions) Forecast(ctx context.Context, change gc.PolicyChange) gc.PolicyForecast {
	if c := q.controller.Load(); c != nil {
		return c.Forecast(ctx, change)
	}
	return gc.PolicyForecast{}
}

// NamedResources returns the resources that any policy names.
func (q *questions) NamedResources() (sets.Set[string], error) {
	if c := q.controller.Load(); c != nil {
		return c.NamedResources()
	}
	return nil, errStarting
}

// ForecastLifecycle returns what a change of a lifecycle makes due at once.
func (q *questions) ForecastLifecycle(ctx context.Context, change gc.LifecycleChange) []string {
	if c := q.controller.Load(); c != nil {
		return c.ForecastLifecycle(ctx, change)
	}
	return nil
}

// Served returns what the cluster says of a resource.
func (q *questions) Served(resource string) gc.ServedResource {
	if c := q.controller.Load(); c != nil {
		return c.Served(resource)
	}
	return gc.ServedResource{}
}

// Schema returns the schema of a resource; nil if none is known.
func (q *questions) Schema(ctx context.Context, resource string) (*spec.Schema, error) {
	if c := q.controller.Load(); c != nil {
		return c.Schema(ctx, resource)
	}
	return nil, nil
}

var errStarting = errors.New("the controller of this replica is starting; try again")

// CandidateResources returns the resources that may have candidates, in a namespace or with "" in any, each with why some of them may be
// missing or out of date; empty if none is.
func (q *questions) CandidateResources(namespace string) (map[string]string, error) {
	if c := q.controller.Load(); c != nil {
		return c.CandidateResources(namespace)
	}
	return nil, errStarting
}

// Candidates returns a page of candidates.
func (q *questions) Candidates(ctx context.Context, query gc.CandidateQuery) (gc.CandidatePage, error) {
	if c := q.controller.Load(); c != nil {
		return c.Candidates(ctx, query)
	}
	return gc.CandidatePage{}, errStarting
}

// Records returns a page of records of deleted objects.
func (q *questions) Records(ctx context.Context, query gc.RecordQuery) (gc.RecordPage, error) {
	if c := q.controller.Load(); c != nil {
		return c.Records(ctx, query)
	}
	return gc.RecordPage{}, errStarting
}

// Copies returns a page of copies of deleted objects, without their contents.
func (q *questions) Copies(ctx context.Context, query gc.CopyQuery) (gc.CopyPage, error) {
	if c := q.controller.Load(); c != nil {
		return c.Copies(ctx, query)
	}
	return gc.CopyPage{}, errStarting
}

// Copy returns a copy of a deleted object, without its content.
func (q *questions) Copy(ctx context.Context, namespace, name string) (*gc.CleanupCopy, error) {
	if c := q.controller.Load(); c != nil {
		return c.Copy(ctx, namespace, name)
	}
	return nil, errStarting
}

// CopyContent returns a copy of a deleted object with its content.
func (q *questions) CopyContent(ctx context.Context, namespace, name string) (*gc.CleanupCopy, error) {
	if c := q.controller.Load(); c != nil {
		return c.CopyContent(ctx, namespace, name)
	}
	return nil, errStarting
}

// Review says what a draft would delete.
func (q *questions) Review(ctx context.Context, draft gc.Draft) (gc.ClusterCleanupReviewStatus, error) {
	if c := q.controller.Load(); c != nil {
		return c.Review(ctx, draft)
	}
	return gc.ClusterCleanupReviewStatus{}, errStarting
}

// barriersOf returns the Barriers of the storage in the cluster.
func barriersOf(host *cluster.Host) *cleanup.Barriers {
	return &cleanup.Barriers{
		Policies:        host.Barrier(gc.Resource("cleanuppolicies"), "CleanupPolicy", true).Write,
		ClusterPolicies: host.Barrier(gc.Resource("clustercleanuppolicies"), "ClusterCleanupPolicy", false).Write,
	}
}

// newController reads policies from this server itself, over the loopback connection, and everything else from the cluster.
func newController(
	clusterConfig, loopback *rest.Config,
	barriers *cleanup.Barriers,
	instance, ownNamespace string,
	o *ControllerOptions,
) (*cleanup.Controller, error) {
	c := o.controllerConfig(ownNamespace)
	c.FirstLists = paceGarbage()
	c.Cluster, c.Loopback, c.Barriers = clusterConfig, loopback, barriers
	c.UserAgent, c.Instance = version.UserAgent(), instance
	return cleanup.New(c)
}

// controllerConfig returns the configuration of the controller that the flags describe.
func (o *ControllerOptions) controllerConfig(ownNamespace string) cleanup.Config {
	return cleanup.Config{
		ConcurrentDeletions:   o.ConcurrentDeletions,
		ProtectedNamespaces:   append([]string{ownNamespace, o.LeaderElection.ResourceNamespace}, o.ProtectedNamespaces...),
		HoldAbove:             o.HoldAbove,
		HoldAboveTotal:        o.HoldAboveTotal,
		StartSuspended:        o.StartSuspended,
		DefaultServiceAccount: o.DefaultServiceAccount,
		RequireServiceAccount: o.RequireServiceAccount,
		Notify:                o.Notify.config(),
		RecordRetention:       o.RecordRetention,
		RecordsPerNamespace:   o.RecordsPerNamespace,
		CopiesPerNamespace:    o.CopiesPerNamespace,
		CopyBytesPerNamespace: o.CopyBytesPerNamespace,
		CopyBytesTotal:        o.CopyBytesTotal,
		LeaderElection:        o.LeaderElection,
	}
}

// runner is a controller.
type runner interface {
	Run(ctx context.Context) error
	Synced() bool
}

// hooks are the hooks of a server.
type hooks interface {
	AddPostStartHook(name string, hook genericapiserver.PostStartHookFunc) error
	AddReadyzChecks(checks ...healthz.HealthChecker) error
	AddPreShutdownHook(name string, hook genericapiserver.PreShutdownHookFunc) error
}

// startController runs the controller after the server has started and the gate is open, until ctx ends. The server stops only after the
// controller has stopped, and becomes ready once the controller has read what it needs to lead. If the controller cannot run,
// startController passes the error to fail.
func startController(ctx context.Context, api hooks, gate *storageGate, controller runner, fail func(error)) error {
	stopped := make(chan struct{})
	start := func(genericapiserver.PostStartHookContext) error {
		go func() {
			defer close(stopped)
			if gate.await(ctx) != nil {
				return // told to end before there was a storage
			}
			if err := controller.Run(ctx); err != nil {
				fail(fmt.Errorf("the controller ended: %w", err))
			}
		}()
		return nil
	}
	if err := api.AddPostStartHook(controllerName, start); err != nil {
		return err
	}
	synced := healthz.NamedCheck(controllerName, func(*http.Request) error {
		if !controller.Synced() {
			return errors.New("policies and namespaces are not read yet")
		}
		return nil
	})
	if err := api.AddReadyzChecks(synced); err != nil {
		return err
	}
	return api.AddPreShutdownHook(controllerName, func() error {
		select {
		case <-stopped:
		case <-time.After(stopTimeout): // An error would end the requests of users that are under way.
			klog.Background().Info("The controller did not stop in time", "timeout", stopTimeout)
		}
		return nil
	})
}
