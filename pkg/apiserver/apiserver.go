// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package apiserver assembles the served API group. A Config is completed to a CompletedConfig, which creates the server.
package apiserver

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/utils/clock"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/pkg/registry/gc/cleanupcandidate"
	"github.com/winnow-dev/winnow/pkg/registry/gc/cleanupcopy"
	"github.com/winnow-dev/winnow/pkg/registry/gc/cleanuppolicy"
	"github.com/winnow-dev/winnow/pkg/registry/gc/cleanuprecord"
	"github.com/winnow-dev/winnow/pkg/registry/gc/cleanupreview"
	"github.com/winnow-dev/winnow/pkg/registry/gc/clustercleanuppolicy"
	"github.com/winnow-dev/winnow/pkg/registry/gc/resourcelifecycle"
	"github.com/winnow-dev/winnow/pkg/registry/gc/schemas"
)

// Config configures a server. It must be completed.
type Config struct {
	GenericConfig *genericapiserver.RecommendedConfig
	// Clock is for the times in tables.
	Clock clock.PassiveClock
	// Forecast returns what a change of a policy makes due at once. If it is nil, there are no forecasts.
	Forecast func(context.Context, gc.PolicyChange) gc.PolicyForecast
	// Approved is told of each approval. It may be nil.
	Approved func(context.Context, gc.Approval)
	// ForecastLifecycle returns what a change of a lifecycle makes due at once. If it is nil, there are no forecasts.
	ForecastLifecycle func(context.Context, gc.LifecycleChange) []string
	// Cluster tells which resources there are.
	Cluster Cluster
	// NamedResources returns the resources that any policy names. If it is nil, none is known.
	NamedResources func() (sets.Set[string], error)
	// Candidates computes candidates.
	Candidates cleanupcandidate.Reader
	// Records reads the records of deleted objects.
	Records cleanuprecord.Reader
	// Copies reads the copies of deleted objects.
	Copies cleanupcopy.Reader
	// Reviews says what drafts would delete.
	Reviews cleanupreview.Reviewer
	// MaxPoliciesPerNamespace limits the number of CleanupPolicies in a namespace; negative for no limit.
	MaxPoliciesPerNamespace int
}

// Cluster tells of resources.
type Cluster interface {
	// Served returns what the cluster says of a resource.
	Served(resource string) gc.ServedResource
	// Schema returns the schema of a resource, without references; nil if none is known.
	Schema(ctx context.Context, resource string) (*spec.Schema, error)
}

type completedConfig struct {
	generic           genericapiserver.CompletedConfig
	clock             clock.PassiveClock
	forecast          func(context.Context, gc.PolicyChange) gc.PolicyForecast
	approved          func(context.Context, gc.Approval)
	forecastLifecycle func(context.Context, gc.LifecycleChange) []string
	cluster           Cluster
	reader            cleanupcandidate.Reader
	records           cleanuprecord.Reader
	copies            cleanupcopy.Reader
	reviewer          cleanupreview.Reviewer
	named             func() (sets.Set[string], error)
	most              int // policies of a namespace
	options           *genericapiserver.RecommendedConfig
}

// CompletedConfig can be created only by Complete.
type CompletedConfig struct {
	*completedConfig
}

// Complete sets the fields that are derived from others.
func (c *Config) Complete() CompletedConfig {
	build := c.GenericConfig.BuildHandlerChainFunc
	c.GenericConfig.BuildHandlerChainFunc = func(handler http.Handler, config *genericapiserver.Config) http.Handler {
		// Errors are made readable after authentication and authorization.
		return withClosing(build(withReadableErrors(handler), config), config.ShutdownInitiatedNotify(), longRunning(config))
	}
	return CompletedConfig{&completedConfig{
		generic: c.GenericConfig.Complete(), clock: c.Clock, forecast: c.Forecast, approved: c.Approved, forecastLifecycle: c.ForecastLifecycle,
		cluster: c.Cluster, reader: c.Candidates, records: c.Records, copies: c.Copies, reviewer: c.Reviews,
		named: c.NamedResources, most: c.MaxPoliciesPerNamespace, options: c.GenericConfig,
	}}
}

// New returns the server with the group gc.winnow.dev installed, and a check of the storage in /readyz.
func (c CompletedConfig) New() (*genericapiserver.GenericAPIServer, error) {
	server, err := c.generic.New("winnow-apiserver", genericapiserver.NewEmptyDelegate())
	if err != nil {
		return nil, fmt.Errorf("cannot build the API server: %w", err)
	}
	authorizer := c.options.Authorization.Authorizer
	options, served := c.options.RESTOptionsGetter, c.cluster.Served
	checker := schemas.NewChecker(c.cluster.Schema, c.clock)
	config := cleanuppolicy.Config{
		Scheme: Scheme, Options: options, Authorizer: authorizer, Clock: c.clock, Forecast: c.forecast, Approved: c.approved,
		Served: served, Checker: checker,
	}
	policies, err := cleanuppolicy.NewStorage(config, c.most)
	if err != nil {
		return nil, fmt.Errorf("cannot build the storage of cleanup policies: %w", err)
	}
	clusterPolicies, err := clustercleanuppolicy.NewStorage(config, c.named)
	if err != nil {
		return nil, fmt.Errorf("cannot build the storage of cluster cleanup policies: %w", err)
	}
	lifecycles, err := resourcelifecycle.NewStorage(Scheme, options, authorizer, c.clock, c.forecastLifecycle, served, checker)
	if err != nil {
		return nil, fmt.Errorf("cannot build the storage of resource lifecycles: %w", err)
	}
	ready := healthz.NamedCheck("storage", func(*http.Request) error {
		return errors.Join(
			policies.Policies.ReadinessCheck(), clusterPolicies.Policies.ReadinessCheck(), lifecycles.Lifecycles.ReadinessCheck(),
		)
	})
	if err := server.AddReadyzChecks(ready); err != nil {
		return nil, fmt.Errorf("cannot add the readiness check of the storage: %w", err)
	}
	reviews := cleanupreview.NewStorage(c.reviewer, policies.Policies, clusterPolicies.Policies, authorizer)
	group := genericapiserver.NewDefaultAPIGroupInfo(gc.GroupName, Scheme, ParameterCodec, Codecs)
	group.NegotiatedSerializer = negotiatedSerializer{Codecs}
	group.VersionedResourcesStorageMap[v1alpha1.SchemeGroupVersion.Version] = map[string]rest.Storage{
		"cleanuppolicies":               policies.Policies,
		"cleanuppolicies/status":        policies.Status,
		"clustercleanuppolicies":        clusterPolicies.Policies,
		"clustercleanuppolicies/status": clusterPolicies.Status,
		"resourcelifecycles":            lifecycles.Lifecycles,
		"resourcelifecycles/status":     lifecycles.Status,
		"cleanupcandidates":             cleanupcandidate.NewREST(c.reader, authorizer, c.clock),
		"cleanuprecords":                cleanuprecord.NewREST(c.records, authorizer, c.clock),
		"cleanupcopies":                 cleanupcopy.NewREST(c.copies, authorizer, c.clock),
		"cleanupreviews":                reviews.Reviews,
		"clustercleanupreviews":         reviews.ClusterReviews,
	}
	if err := server.InstallAPIGroup(&group); err != nil {
		return nil, fmt.Errorf("cannot serve the API group %s: %w", gc.GroupName, err)
	}
	return server, nil
}
