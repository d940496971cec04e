// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"crypto/x509"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/kube-aggregator/pkg/client/clientset_generated/clientset"
	"k8s.io/utils/clock"

	"github.com/winnow-dev/winnow/pkg/certificates"
	"github.com/winnow-dev/winnow/pkg/registration"
	"github.com/winnow-dev/winnow/pkg/serverdate"
)

const (
	certificatesSecret = "winnow-certificates"
	// The APIService goes when this ClusterRole is uninstalled, and the Secret when this Role is. They also allow Winnow to create them.
	registrationRole, certificatesRole = "winnow:registration", "winnow:certificates"
)

// serving is what kube-apiserver needs to know about how this replica serves, and what publishes it. The zero value is for a server whose
// APIService somebody else keeps.
type serving struct {
	registrar *registration.Registrar // nil: somebody else keeps the APIService
	// authority follows --tls-ca-file, and files what it has signed; nil if there is none.
	authority *dynamiccertificates.DynamicFileCAContent
	files     *certificates.Files
}

// applyRegistration sets the certificate that Winnow serves with, unless files do, and returns who keeps the APIService.
func (o *Options) applyRegistration(
	ctx context.Context, cluster *rest.Config, client kubernetes.Interface, asked *questions,
) (*serving, error) {
	s := &serving{}
	if !o.Service.Register {
		return s, nil
	}
	services, err := clientset.NewForConfig(cluster)
	if err != nil {
		return nil, err
	}
	config := registration.Config{
		APIServices: services.ApiregistrationV1().APIServices(),
		Namespace:   o.Service.Namespace, Service: ownName, Port: int32(o.Service.Port),
		Ask:     func(ctx context.Context) error { return registration.Ask(ctx, client.Discovery()) },
		Leaving: isBeingDeleted(client, o.Service.Namespace),
		Owner: func(ctx context.Context) (*owner, error) {
			role, err := client.RbacV1().ClusterRoles().Get(ctx, registrationRole, metav1.GetOptions{})
			return ownerOf("ClusterRole", role, err)
		},
		Leading: asked.Leading, Ready: asked.Ready, Clock: clock.RealClock{},
	}
	if file := o.Service.CAFile; file != "" {
		if s.authority, err = dynamiccertificates.NewDynamicCAContentFromFile("tls-ca", file); err != nil {
			return nil, fmt.Errorf("cannot read --tls-ca-file: %w", err)
		}
		config.CAPEM = func() []byte { return s.files.CAPEM() }
		config.ServingCAPEM = func() []byte { return s.files.ServingCAPEM() }
	} else {
		// The registrar asks the keeper for the authorities, and the keeper asks the registrar which of them are trusted.
		trusted := func(c *x509.Certificate) bool { return s.registrar == nil || s.registrar.Trusted(c) }
		keeper, err := o.newKeeper(ctx, cluster, asked, trusted)
		if err != nil {
			return nil, err
		}
		o.Recommended.SecureServing.ServerCert.GeneratedCert = keeper
		config.CAPEM, config.ServingCAPEM = keeper.CAPEM, keeper.ServingCAPEM
	}
	s.registrar = registration.New(config)
	return s, nil
}

// applyTo keeps a certificate from files that is new from being served before kube-apiserver trusts it.
func (s *serving) applyTo(generic *genericapiserver.RecommendedConfig, name string) {
	if s.authority == nil {
		return
	}
	s.files = certificates.NewFiles(
		generic.SecureServing.Cert, s.authority.CurrentCABundleContent, []string{name}, s.registrar.Trusted, clock.RealClock{})
	generic.SecureServing.Cert = s.files
}

// newKeeper returns the keeper of Winnow's own certificates.
func (o *Options) newKeeper(
	ctx context.Context, cluster *rest.Config, asked *questions, trusted func(*x509.Certificate) bool,
) (*certificates.Keeper, error) {
	dated := rest.CopyConfig(cluster)
	dated.Wrap(serverdate.NewReader)
	client, err := kubernetes.NewForConfig(dated)
	if err != nil {
		return nil, err
	}
	keeper, err := certificates.New(ctx, certificates.Config{
		Secrets: client.CoreV1().Secrets(o.Service.Namespace), Secret: certificatesSecret,
		Owner: func(ctx context.Context) (*owner, error) {
			role, err := client.RbacV1().Roles(o.Service.Namespace).Get(ctx, certificatesRole, metav1.GetOptions{})
			return ownerOf("Role", role, err)
		},
		Names: []string{o.serverName()}, Lifetimes: o.Service.Lifetimes,
		Leading: asked.Leading, Trusted: trusted, Instance: asked.instance, Clock: clock.RealClock{},
	})
	if err != nil {
		return nil, fmt.Errorf("cannot get a serving certificate: %w", err)
	}
	return keeper, nil
}

// isBeingDeleted returns what asks whether a namespace is being deleted. One that does not exist is not.
func isBeingDeleted(client kubernetes.Interface, namespace string) func(context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		n, err := client.CoreV1().Namespaces().Get(ctx, namespace, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("reading namespace %s: %w", namespace, err)
		}
		return n.DeletionTimestamp != nil, nil
	}
}

type owner = applymetav1.OwnerReferenceApplyConfiguration

// ownerOf refers to a Role or ClusterRole that was read; nil if there is none that can be read.
func ownerOf(kind string, role metav1.Object, err error) (*owner, error) {
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading a %s: %w", kind, err)
	}
	return applymetav1.OwnerReference().WithAPIVersion(rbacv1.SchemeGroupVersion.String()).WithKind(kind).
		WithName(role.GetName()).WithUID(role.GetUID()), nil
}

// register runs the registrar after the server has started, until ctx ends.
func (s *serving) register(ctx context.Context, api hooks) error {
	if s.registrar == nil {
		return nil
	}
	if err := api.AddReadyzChecks(s.registrar.Readiness()); err != nil {
		return err
	}
	legacyregistry.CustomMustRegister(apiServiceAvailable(s.registrar)) // once in a process
	return api.AddPostStartHook("registration", func(genericapiserver.PostStartHookContext) error {
		if s.authority != nil {
			go s.authority.Run(ctx, 1)
		}
		go s.registrar.Run(ctx)
		return nil
	})
}

// registrationRights are those without which Winnow could not keep its APIService and certificates.
func (o *Options) registrationRights() []authorizationv1.ResourceAttributes {
	if !o.Service.Register {
		return nil
	}
	var rights []authorizationv1.ResourceAttributes
	for _, verb := range []string{"get", "create", "patch", "delete"} {
		rights = append(rights, authorizationv1.ResourceAttributes{
			Verb: verb, Group: "apiregistration.k8s.io", Resource: "apiservices", Name: registration.Name,
		})
	}
	if !o.Service.makesCertificates() {
		return rights
	}
	for _, verb := range []string{"get", "create", "patch", "update"} {
		rights = append(rights, authorizationv1.ResourceAttributes{
			Verb: verb, Resource: "secrets", Namespace: o.Service.Namespace, Name: certificatesSecret,
		})
	}
	return rights
}
