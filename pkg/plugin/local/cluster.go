// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package local answers what Winnow would do in a cluster without Winnow: it lists what the caller may list, and asks the engine of the
// server, in this process. It only reads.
package local

import (
	"context"
	"errors"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientdiscovery "k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/openapi"
	"k8s.io/client-go/rest"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/objects/kinds"
	"github.com/winnow-dev/winnow/pkg/controller/observe"
	"github.com/winnow-dev/winnow/pkg/controller/observe/discovery"
	gcclient "github.com/winnow-dev/winnow/pkg/generated/clientset/versioned/typed/gc/v1alpha1"
)

// Cluster reads a cluster.
type Cluster struct {
	objects   *observe.Client
	metadata  metadata.Interface
	policies  gcclient.GcV1alpha1Interface
	access    authorizationclient.SelfSubjectAccessReviewsGetter
	discovery discovery.Reader
}

// New returns a Cluster that reads with this configuration.
func New(c *rest.Config) (*Cluster, error) {
	protobuf := rest.CopyConfig(c)
	protobuf.ContentType = runtime.ContentTypeProtobuf
	protobuf.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	objects, err := observe.NewClient(protobuf)
	if err != nil {
		return nil, err
	}
	bare, err := metadata.NewForConfig(c)
	if err != nil {
		return nil, err
	}
	policies, err := gcclient.NewForConfig(c)
	if err != nil {
		return nil, err
	}
	served, err := clientdiscovery.NewDiscoveryClientForConfig(c)
	if err != nil {
		return nil, err
	}
	services, err := dynamic.NewForConfig(c)
	if err != nil {
		return nil, err
	}
	access, err := authorizationclient.NewForConfig(c)
	if err != nil {
		return nil, err
	}
	return &Cluster{
		objects: objects, metadata: bare, policies: policies, access: access,
		discovery: discovery.Reader{Discovery: served, APIServices: services, Schemas: openapi.NewClientWithContext(served.RESTClient())},
	}, nil
}

// setting is what decisions depend on besides the objects.
type setting struct {
	kinds           *kinds.Table
	namespaces      []*metav1.PartialObjectMetadata
	policies        []*gc.CleanupPolicy
	clusterPolicies []*gc.ClusterCleanupPolicy
	// marks are what Winnow has stored about objects; nil if they cannot be read.
	marks []*memory.Marks
	// permitted says that ServiceAccounts have all rights; otherwise, it is not known.
	permitted bool
	// notes say what could not be read.
	notes []string
}

func (s *setting) note(format string, args ...any) {
	s.notes = append(s.notes, fmt.Sprintf(format, args...))
}

var (
	namespaceResource = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	apiServices       = schema.GroupResource{Group: "apiregistration.k8s.io", Resource: "apiservices"}
)

// read reads the setting of one namespace, or with "" of all.
func (c *Cluster) read(ctx context.Context, namespace string) (*setting, error) {
	s := &setting{}
	lifecycles, err := c.readOurs(ctx, namespace, s)
	if err != nil {
		return nil, err
	}
	if err := c.readNamespaces(ctx, namespace, s); err != nil {
		return nil, err
	}
	reader, err := c.discoverer(ctx)
	if err != nil {
		return nil, err
	}
	if s.kinds, err = discovery.ReadTable(ctx, reader, lifecycles); err != nil {
		return nil, err
	}
	if s.kinds.Undiscovered != "" {
		s.note("some resources do not count: %s", s.kinds.Undiscovered)
	}
	return s, nil
}

// discoverer returns what reads what the cluster serves. It knows which groups other API servers serve if the caller may; they are unlikely
// to serve a kind that finishes.
func (c *Cluster) discoverer(ctx context.Context) (discovery.Reader, error) {
	reader := c.discovery
	may, err := c.May(ctx, "list", apiServices, "")
	if !may {
		reader.APIServices = nil
	}
	return reader, err
}

// May reports whether the caller may do something in a namespace, or with "" in all of them.
func (c *Cluster) May(ctx context.Context, verb string, resource schema.GroupResource, namespace string) (bool, error) {
	review, err := c.access.SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: verb, Group: resource.Group, Resource: resource.Resource, Namespace: namespace,
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		return false, fmt.Errorf("asking whether you may %s %s: %w", verb, resource, err)
	}
	return review.Status.Allowed, nil
}

// readNamespaces reads the metadata of one namespace, or with "" of all. One that the caller may not read counts as one without labels.
func (c *Cluster) readNamespaces(ctx context.Context, namespace string, s *setting) error {
	if namespace == "" {
		switch may, err := c.May(ctx, "list", namespaceResource.GroupResource(), ""); {
		case err != nil:
			return err
		case !may:
			return errors.New("you may not list namespaces, so choose one: -n NAMESPACE")
		}
		all, err := c.metadata.Resource(namespaceResource).List(ctx, metav1.ListOptions{})
		if err != nil {
			return fmt.Errorf("listing namespaces: %w", err)
		}
		for i := range all.Items {
			s.namespaces = append(s.namespaces, &all.Items[i])
		}
		return nil
	}
	may, err := c.May(ctx, "get", namespaceResource.GroupResource(), namespace)
	if err != nil {
		return err
	}
	one := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: namespace, UID: "unknown", ResourceVersion: "1"}}
	if may {
		one, err = c.metadata.Resource(namespaceResource).Get(ctx, namespace, metav1.GetOptions{})
	} else {
		s.note("you may not read namespace %q, so its labels do not count", namespace)
	}
	s.namespaces = append(s.namespaces, one)
	return err
}

// readOurs reads the policies, if the cluster serves them, and returns the lifecycles.
func (c *Cluster) readOurs(ctx context.Context, namespace string, s *setting) ([]*v1alpha1.ResourceLifecycle, error) {
	served, err := c.Installed(ctx)
	switch {
	case err != nil:
		s.note("policies of the cluster do not count: %v", err)
		return nil, nil
	case !served:
		return nil, nil
	}
	own, cluster, notes, err := c.Policies(ctx, namespace)
	if err != nil {
		return nil, err
	}
	s.notes = append(s.notes, notes...)
	for i := range own {
		p := &gc.CleanupPolicy{}
		if err := v1alpha1.Convert_v1alpha1_CleanupPolicy_To_gc_CleanupPolicy(&own[i], p, nil); err != nil {
			return nil, err
		}
		s.policies = append(s.policies, p)
	}
	for i := range cluster {
		p := &gc.ClusterCleanupPolicy{}
		if err := v1alpha1.Convert_v1alpha1_ClusterCleanupPolicy_To_gc_ClusterCleanupPolicy(&cluster[i], p, nil); err != nil {
			return nil, err
		}
		s.clusterPolicies = append(s.clusterPolicies, p)
	}
	lifecycles, err := readAll(ctx, c, s, "resourcelifecycles", "", c.policies.ResourceLifecycles().List)
	if err != nil {
		return nil, err
	}
	var out []*v1alpha1.ResourceLifecycle
	for i := range lifecycles.Items {
		out = append(out, &lifecycles.Items[i])
	}
	return out, nil
}

// unlisted is the note that the caller may not list one of our resources.
func unlisted(resource, namespace string) string {
	return fmt.Sprintf("the %s do not count, because you may not list them: kubectl auth can-i list %s %s",
		resource, v1alpha1.Resource(resource), inNamespace(namespace))
}

// readAll lists one of our resources if the caller may, and notes it otherwise.
func readAll[L any](
	ctx context.Context, c *Cluster, s *setting, resource, namespace string, list func(context.Context, metav1.ListOptions) (*L, error),
) (*L, error) {
	switch may, err := c.May(ctx, "list", v1alpha1.Resource(resource), namespace); {
	case err != nil:
		return nil, err
	case !may:
		s.notes = append(s.notes, unlisted(resource, namespace))
		return new(L), nil
	}
	all, err := list(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("listing %s: %w", resource, err)
	}
	return all, nil
}

// ErrSilent is the error if the API of Winnow is registered, but no replica of Winnow answers.
var ErrSilent = errors.New("this cluster has Winnow, but it does not answer")

// Installed reports whether the cluster serves the API of Winnow. It fails with ErrSilent if the API is registered but does not answer.
func (c *Cluster) Installed(ctx context.Context) (bool, error) {
	err := c.policies.RESTClient().Get().AbsPath("/apis", v1alpha1.GroupName, v1alpha1.SchemeGroupVersion.Version).Do(ctx).Error()
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case apierrors.IsServiceUnavailable(err):
		return false, fmt.Errorf("%w: %w", ErrSilent, err)
	}
	return err == nil, err
}

// Namespaces returns the names of all namespaces, and whether the caller may list them.
func (c *Cluster) Namespaces(ctx context.Context) (names []string, may bool, err error) {
	if may, err = c.May(ctx, "list", namespaceResource.GroupResource(), ""); err != nil || !may {
		return nil, may, err
	}
	all, err := c.metadata.Resource(namespaceResource).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, may, fmt.Errorf("listing namespaces: %w", err)
	}
	for i := range all.Items {
		names = append(names, all.Items[i].Name)
	}
	return names, may, nil
}

// MissingNamespace reports whether there is no namespace of this name, as far as the caller may know.
func (c *Cluster) MissingNamespace(ctx context.Context, name string) (bool, error) {
	if may, err := c.May(ctx, "get", namespaceResource.GroupResource(), name); err != nil || !may {
		return false, err
	}
	_, err := c.metadata.Resource(namespaceResource).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	return false, err
}

// Policies returns the policies of a namespace, or with "" of all, and the cluster policies. The notes say which the caller may not list.
func (c *Cluster) Policies(
	ctx context.Context, namespace string,
) (own []v1alpha1.CleanupPolicy, cluster []v1alpha1.ClusterCleanupPolicy, notes []string, err error) {
	s := &setting{}
	ownList, err := readAll(ctx, c, s, "cleanuppolicies", namespace, c.policies.CleanupPolicies(namespace).List)
	if err != nil {
		return nil, nil, nil, err
	}
	noted := len(s.notes)
	clusterList, err := readAll(ctx, c, s, "clustercleanuppolicies", "", c.policies.ClusterCleanupPolicies().List)
	if err != nil {
		return nil, nil, nil, err
	}
	for i := range s.notes[noted:] { // The server knows what they delete, and says it to those who may list the objects.
		s.notes[noted+i] += "; what they delete is in: kubectl get cand " + inNamespace(namespace)
	}
	return ownList.Items, clusterList.Items, s.notes, nil
}
