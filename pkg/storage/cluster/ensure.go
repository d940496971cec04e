// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	manifests "github.com/winnow-dev/winnow/artifacts/storage"
)

const (
	// establishTimeout bounds the wait for fresh custom resources to be served.
	establishTimeout = 30 * time.Second
	establishPoll    = 100 * time.Millisecond

	installCommand = "kubectl apply -f artifacts/storage/"
)

// manifestResources are the resources of the kinds in the manifests.
var manifestResources = map[string]schema.GroupVersionResource{
	"CustomResourceDefinition":  {Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"},
	"ValidatingAdmissionPolicy": {Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingadmissionpolicies"},
	"ValidatingAdmissionPolicyBinding": {
		Group:    "admissionregistration.k8s.io",
		Version:  "v1",
		Resource: "validatingadmissionpolicybindings",
	},
}

// EnsureHost prepares the cluster to store Winnow's objects. It applies the custom resource definitions and the admission policy that
// reserves them for user, and waits until they are served. If user is empty, they are reserved for the user of config. If EnsureHost may
// not apply something, it logs that, and continues if the resources exist.
func EnsureHost(ctx context.Context, config *rest.Config, fieldManager, user string) error {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	if user == "" {
		if user, err = whoAmI(ctx, config); err != nil {
			return err
		}
	}
	definitions, policy, err := embedded()
	if err != nil {
		return err
	}
	if err := reserveFor(user, policy); err != nil {
		return err
	}
	group, together := errgroup.WithContext(ctx) // each takes the cluster a moment to serve
	for _, definition := range definitions {
		group.Go(func() error {
			applied, err := apply(together, client, fieldManager, definition)
			if err != nil {
				return err
			}
			return awaitServed(together, client, definition.GetName(), applied)
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for _, object := range policy {
		if _, err := apply(ctx, client, fieldManager, object); err != nil {
			return err
		}
	}
	return nil
}

// whoAmI returns the user name that the cluster's admission policies see.
func whoAmI(ctx context.Context, config *rest.Config) (string, error) {
	client, err := authenticationclient.NewForConfig(config)
	if err != nil {
		return "", err
	}
	review, err := client.SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("cannot ask the cluster which user Winnow runs as: %w", err)
	}
	return review.Status.UserInfo.Username, nil
}

// embedded returns the manifests of artifacts/storage: the custom resource definitions, and the admission policy with its binding.
func embedded() (definitions, policy []*unstructured.Unstructured, err error) {
	if definitions, err = parse(manifests.CRDs); err != nil {
		return nil, nil, err
	}
	policy, err = parse(manifests.AdmissionPolicy)
	return definitions, policy, err
}

func parse(manifest []byte) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	for decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifest), 4096); ; {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(object)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, fmt.Errorf("an embedded manifest is broken: %w", err)
		}
		objects = append(objects, object)
	}
}

// reserveFor sets the user in the admission policy.
func reserveFor(user string, objects []*unstructured.Unstructured) error {
	for _, object := range objects {
		variables, found, err := unstructured.NestedSlice(object.Object, "spec", "variables")
		if err != nil {
			return err
		}
		if !found {
			continue
		}
		for _, variable := range variables {
			if v := variable.(map[string]any); v["name"] == "byWinnow" {
				v["expression"] = "request.userInfo.username == " + strconv.Quote(user)
			}
		}
		if err := unstructured.SetNestedSlice(object.Object, variables, "spec", "variables"); err != nil {
			return err
		}
	}
	return nil
}

// apply applies an object, and reports whether it had the permission to. A 404 means that the cluster does not know the kind yet.
func apply(ctx context.Context, client dynamic.Interface, fieldManager string, object *unstructured.Unstructured) (bool, error) {
	options := metav1.ApplyOptions{FieldManager: fieldManager, Force: true}
	_, err := client.Resource(manifestResources[object.GetKind()]).Apply(ctx, object.GetName(), object, options)
	switch {
	case apierrors.IsForbidden(err), apierrors.IsNotFound(err):
		klog.FromContext(ctx).Info("Cannot apply a manifest of the storage, going on with what is installed",
			"kind", object.GetKind(), "name", object.GetName(), "err", err, "install", installCommand)
		return false, nil
	case err != nil:
		return false, fmt.Errorf("cannot apply %s %q: %w", object.GetKind(), object.GetName(), err)
	}
	return true, nil
}

// awaitServed waits until the resource that a definition of this name defines can be listed; one that
// we have not applied has to be there already.
func awaitServed(ctx context.Context, client dynamic.Interface, definition string, applied bool) error {
	plural, _, _ := strings.Cut(definition, ".")
	resource := client.Resource(GroupVersion.WithResource(plural))
	var last error
	err := wait.PollUntilContextTimeout(ctx, establishPoll, establishTimeout, true, func(ctx context.Context) (bool, error) {
		_, last = resource.List(ctx, metav1.ListOptions{Limit: 1})
		if apierrors.IsForbidden(last) || !applied && apierrors.IsNotFound(last) {
			return false, last
		}
		return last == nil, nil
	})
	switch {
	case err == nil:
		return nil
	case apierrors.IsForbidden(last):
		return fmt.Errorf("the right to list %s is missing, Winnow keeps its objects there: %w", definition, last)
	case !applied && apierrors.IsNotFound(last):
		return fmt.Errorf(
			"%s is not installed in the cluster, and the right to install it is missing: run `%s` as a cluster administrator",
			definition,
			installCommand,
		)
	}
	return fmt.Errorf("%s is not served after %s: %w", definition, establishTimeout, errors.Join(last, err))
}
