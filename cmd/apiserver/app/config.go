// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	openapinamer "k8s.io/apiserver/pkg/endpoints/openapi"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/utils/clock"

	"github.com/winnow-dev/winnow/pkg/apiserver"
	"github.com/winnow-dev/winnow/pkg/controller/cleanup"
	"github.com/winnow-dev/winnow/pkg/generated/openapi"
	"github.com/winnow-dev/winnow/pkg/storage/etcd"
	"github.com/winnow-dev/winnow/pkg/version"
)

// setupTimeout bounds all requests to the cluster before the server starts.
const setupTimeout = time.Minute

// Config configures a Server. It must be completed.
type Config struct {
	apiServer  *apiserver.Config
	cluster    *rest.Config
	barriers   *cleanup.Barriers // nil when policies are kept in a separate etcd
	gate       *storageGate
	controller *ControllerOptions
	serving    *serving
	questions  *questions
	namespace  string // that Winnow is installed in
}

// Config checks what the cluster serves and which permissions Winnow has, prepares the storage, and opens the port.
func (o *Options) Config(ctx context.Context) (*Config, error) {
	ctx, cancel := context.WithTimeout(ctx, setupTimeout)
	defer cancel()
	clusterConfig, err := o.clusterConfig()
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(clusterConfig)
	if err != nil {
		return nil, fmt.Errorf("cannot make a client for the cluster at %s: %w", clusterConfig.Host, err)
	}
	if err := o.adaptTo(ctx, client); err != nil {
		return nil, err
	}
	if err := o.checkAuthentication(ctx); err != nil {
		return nil, err
	}

	generic := genericapiserver.NewRecommendedConfig(apiserver.Codecs)
	generic.ClientConfig = clusterConfig
	generic.SharedInformerFactory = informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTransform(withoutManagedFields))
	gate, barriers, err := o.applyStorage(ctx, generic)
	if err != nil {
		return nil, err
	}
	asked, err := newQuestions()
	if err != nil {
		return nil, err
	}
	serving, err := o.applyRegistration(ctx, clusterConfig, client, asked)
	if err != nil {
		return nil, err
	}
	if err := o.applyServing(generic); err != nil {
		return nil, err
	}
	serving.applyTo(generic, o.serverName())
	generic.AddReadyzChecks(gate.readiness())
	return &Config{
		apiServer: &apiserver.Config{
			GenericConfig: generic, Clock: clock.RealClock{}, Forecast: asked.Forecast, ForecastLifecycle: asked.ForecastLifecycle,
			Approved: approvals{client, asked.instance, clock.RealClock{}}.told,
			Cluster:  asked, Candidates: asked, Records: asked, Copies: asked, Reviews: asked, NamedResources: asked.NamedResources,
			MaxPoliciesPerNamespace: o.MaxPoliciesPerNamespace,
		},
		cluster:    clusterConfig,
		barriers:   barriers,
		gate:       gate,
		controller: o.Controller,
		serving:    serving,
		questions:  asked,
		namespace:  o.Service.Namespace,
	}, nil
}

// Loopback returns how the server reaches itself. Who serves in memory sets how to dial.
func (c *Config) Loopback() *rest.Config { return c.apiServer.GenericConfig.LoopbackClientConfig }

// withoutManagedFields removes managed fields, which no informer of this server reads.
func withoutManagedFields(obj any) (any, error) {
	if accessor, err := meta.Accessor(obj); err == nil {
		accessor.SetManagedFields(nil)
	}
	return obj, nil
}

func (o *Options) applyServing(generic *genericapiserver.RecommendedConfig) error {
	namer := openapinamer.NewDefinitionNamer(apiserver.Scheme)
	generic.OpenAPIConfig = genericapiserver.DefaultOpenAPIConfig(openapi.GetOpenAPIDefinitions, namer)
	generic.OpenAPIConfig.Info.Title, generic.OpenAPIConfig.Info.Version = "Winnow", version.Get()
	generic.OpenAPIV3Config = genericapiserver.DefaultOpenAPIV3Config(openapi.GetOpenAPIDefinitions, namer)
	generic.OpenAPIV3Config.Info.Title, generic.OpenAPIV3Config.Info.Version = "Winnow", version.Get()

	if o.Recommended.SecureServing.ServerCert.GeneratedCert == nil { // Somebody else keeps the APIService: a certificate of last resort.
		if err := o.Recommended.SecureServing.MaybeDefaultWithSelfSignedCerts(o.serverName(), []string{"localhost"}, nil); err != nil {
			return fmt.Errorf("cannot make a serving certificate: %w", err)
		}
	}
	if err := o.ServerRun.DefaultAdvertiseAddress(o.Recommended.SecureServing.SecureServingOptions); err != nil {
		return err
	}
	if err := o.ServerRun.ApplyTo(&generic.Config); err != nil {
		return err
	}
	if err := applySecureServing(o.Recommended.SecureServing.SecureServingOptions, &generic.Config); err != nil {
		return err
	}
	others := *o.Recommended
	others.SecureServing = nil
	if err := others.ApplyTo(generic); err != nil {
		return err
	}
	if o.Recommended.Etcd != nil { // see applyStorage
		generic.RESTOptionsGetter = etcd.Follow(generic.RESTOptionsGetter)
	}
	generic.AddReadyzChecks(requestHeaderCALoaded(generic.Authentication.RequestHeaderConfig))
	return nil
}

type completedConfig struct {
	apiServer  apiserver.CompletedConfig
	cluster    *rest.Config
	barriers   *cleanup.Barriers
	gate       *storageGate
	controller *ControllerOptions
	serving    *serving
	questions  *questions
	namespace  string
}

// CompletedConfig can be created only by Complete.
type CompletedConfig struct {
	*completedConfig
}

// Complete sets the fields that are derived from others.
func (c *Config) Complete() CompletedConfig {
	return CompletedConfig{&completedConfig{
		apiServer: c.apiServer.Complete(), cluster: c.cluster, barriers: c.barriers, gate: c.gate, controller: c.controller,
		serving: c.serving, questions: c.questions, namespace: c.namespace,
	}}
}

// Server is a server that is ready to run.
type Server struct {
	api        *genericapiserver.GenericAPIServer
	gate       *storageGate
	serving    *serving
	controller runner
	metrics    func() // registers those of the controller
}

// New returns the server.
func (c CompletedConfig) New() (*Server, error) {
	api, err := c.apiServer.New()
	if err != nil {
		return nil, err
	}
	controller, err := newController(c.cluster, api.LoopbackClientConfig, c.barriers, c.questions.instance, c.namespace, c.controller)
	if err != nil {
		return nil, fmt.Errorf("cannot build the controller: %w", err)
	}
	c.questions.controller.Store(controller)
	c.questions.loopback.Store(api.LoopbackClientConfig)
	return &Server{api: api, gate: c.gate, serving: c.serving, controller: controller, metrics: controller.RegisterMetrics}, nil
}

// RegisterMetrics registers the metrics of the server, once in a process.
func (s *Server) RegisterMetrics() {
	legacyregistry.CustomMustRegister(certificateExpiry(s.api.SecureServingInfo.Cert))
	s.metrics()
}

// Run serves and deletes until ctx ends, then finishes what is in flight and returns nil.
func (s *Server) Run(ctx context.Context) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	if err := startController(ctx, s.api, s.gate, s.controller, fail); err != nil {
		return err
	}
	if err := s.serving.register(ctx, s.api); err != nil {
		return err
	}
	if err := s.api.PrepareRun().RunWithContext(ctx); err != nil {
		return err
	}
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return cause
	}
	return nil
}
