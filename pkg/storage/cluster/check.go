// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// revisionAnnotation has the revision of the manifests in artifacts/storage. Each change of them increments it, and must be compatible with
// the previous version of Winnow, because they are applied before the replicas are replaced.
const revisionAnnotation = "internal.gc.winnow.dev/revision"

// CheckHost reports what an administrator still has to apply before the cluster can hold Winnow's objects: manifests of the storage
// that are missing, or older than those that this version embeds. It changes nothing.
func CheckHost(ctx context.Context, config *rest.Config) error {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	definitions, policy, err := embedded()
	if err != nil {
		return err
	}
	var missing []string
	for _, wanted := range slices.Concat(definitions, policy) {
		lack, err := lacks(ctx, client, wanted)
		if err != nil {
			return err
		}
		if lack != "" {
			missing = append(missing, lack)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf(
			"the storage in the cluster is not ready for this version of Winnow: %s; run `%s` of this version as a cluster administrator, "+
				"or helm upgrade if Helm has installed it",
			strings.Join(missing, "; "),
			installCommand,
		)
	}
	for _, definition := range definitions {
		plural, _, _ := strings.Cut(definition.GetName(), ".")
		if _, err := client.Resource(GroupVersion.WithResource(plural)).List(ctx, metav1.ListOptions{Limit: 1}); err != nil {
			return fmt.Errorf("%s cannot be listed: %w", definition.GetName(), err)
		}
	}
	return nil
}

// lacks returns what is wrong with the installed object, which should be like wanted; empty if nothing is. A cluster that does not know the
// kind lacks nothing: without admission policies, only RBAC protects the storage.
func lacks(ctx context.Context, client dynamic.Interface, wanted *unstructured.Unstructured) (string, error) {
	what := fmt.Sprintf("%s %q", wanted.GetKind(), wanted.GetName())
	installed, err := client.Resource(manifestResources[wanted.GetKind()]).Get(ctx, wanted.GetName(), metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err) && namesObject(err, wanted.GetName()):
		return what + " is missing", nil
	case apierrors.IsNotFound(err):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("cannot read %s: %w", what, err)
	}
	needs, has := revision(wanted), revision(installed)
	if has < needs {
		return fmt.Sprintf("%s has revision %d and must have %d", what, has, needs), nil
	}
	return "", nil
}

// namesObject reports whether an error is about this object, and not about its kind.
func namesObject(err error, name string) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Details != nil && status.Status().Details.Name == name
}

// revision returns the revision of an object, or 0 if it is missing or no number.
func revision(object *unstructured.Unstructured) int {
	n, err := strconv.Atoi(object.GetAnnotations()[revisionAnnotation])
	if err != nil {
		return 0
	}
	return n
}
