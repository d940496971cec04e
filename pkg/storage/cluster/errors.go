// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/klog/v2"
)

const (
	listExpired     = "The resourceVersion for the provided list is too old."
	watchExpired    = "The resourceVersion for the provided watch is too old."
	continueExpired = "The provided continue parameter is too old to display a consistent list result. " +
		"You can start a new list without the continue parameter, or use the continue token in this " +
		"response to retrieve the remainder of the results. Continuing with the provided token results " +
		"in an inconsistent list - objects that were created, modified, or deleted between the time the " +
		"first chunk was returned and now may show up in the list."
)

// translate translates an error of the host for the client of the served resource. It replaces every message, because the host's messages
// name internal resources. The operations handle "not found" and "conflict" of the object itself before, because each treats them
// differently.
func (s *store) translate(ctx context.Context, err error, at target) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil && errors.Is(ctx.Err(), context.Canceled):
		return ctx.Err()
	case ctx.Err() != nil:
		return apierrors.NewTimeoutError("the cluster's API did not answer in time", 1)
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		klog.FromContext(ctx).V(2).Info("No answer from the cluster's API", "resource", s.table.resource, "err", err)
		return internalError("the cluster's API cannot be reached: %v", withoutURL(err))
	}
	return s.translateStatus(ctx, status.Status(), at)
}

// translateStatus keeps the errors that the client can act on. All others become internal errors.
func (s *store) translateStatus(ctx context.Context, status metav1.Status, at target) error {
	wait := int(max(1, retryAfter(&status)))
	switch {
	case isTooLargeResourceVersion(&status):
		return tooLargeResourceVersion(&status, wait)
	case status.Code == http.StatusGone:
		return apierrors.NewResourceExpired(listExpired)
	case status.Code == http.StatusTooManyRequests:
		return apierrors.NewTooManyRequests("the cluster's API asks to wait", wait)
	case status.Code == http.StatusRequestEntityTooLarge:
		return apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("%s %q is too large to be stored", s.groupResource, at.name))
	case status.Code == http.StatusGatewayTimeout:
		return apierrors.NewTimeoutError("the cluster's API did not answer in time", wait)
	case hasCause(&status, corev1.NamespaceTerminatingCause):
		return namespaceTerminating(s.groupResource, at.location)
	case status.Code == http.StatusForbidden && quotaText(status.Message) != "":
		return s.overQuota(quotaText(status.Message), at)
	case status.Code == http.StatusNotFound && status.Details != nil && status.Details.Kind == "namespaces":
		return apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, at.namespace)
	}
	klog.FromContext(ctx).
		Error(apierrors.FromObject(&status), "The cluster's API refused a request of the storage", "resource", s.table.resource)
	return s.refusal(status.Code, at)
}

// quotaText returns what the admission of quotas says about a request that it refuses, without the object; empty if that is not what the
// message of an error is about. There is no other sign of it.
func quotaText(message string) string {
	_, text, _ := strings.Cut(message, " is forbidden: ")
	for _, begin := range []string{"exceeded quota: ", "status unknown for quota: ", "insufficient quota "} {
		if strings.HasPrefix(text, begin) {
			return text
		}
	}
	return ""
}

// overQuota returns the error of a write that a ResourceQuota does not allow. The ResourceQuota counts the objects of the host.
func (s *store) overQuota(text string, at target) error {
	counted := HostResource(s.groupResource).GroupResource().String()
	return apierrors.NewForbidden(s.groupResource, at.name, errors.New(strings.ReplaceAll(text, counted, s.groupResource.String())))
}

func (s *store) refusal(code int32, at target) error {
	switch code {
	case http.StatusNotFound:
		return internalError("the storage of %s is not installed in the cluster", s.groupResource)
	case http.StatusUnauthorized:
		return internalError("the cluster does not accept the credentials of the storage of %s", s.groupResource)
	case http.StatusForbidden:
		return internalError(
			"the cluster forbids this to the storage of %s: a right is missing, or an admission policy or webhook refused it",
			s.groupResource,
		)
	case http.StatusBadRequest, http.StatusUnprocessableEntity, http.StatusConflict:
		return internalError("the cluster does not take %s %q in its stored form", s.groupResource, at.name)
	case http.StatusServiceUnavailable:
		return apierrors.NewServiceUnavailable("the cluster's API is unavailable")
	}
	return internalError("the cluster's API failed with status %d", code)
}

func internalError(format string, args ...any) error {
	return storage.NewInternalError(fmt.Errorf(format, args...))
}

// withoutURL drops the request's URL, which names the internal resource.
func withoutURL(err error) error {
	var urlError *url.Error
	if errors.As(err, &urlError) {
		return urlError.Err
	}
	return err
}

// isObjectNotFound reports whether the object is missing, and not its namespace or the host resource.
func (s *store) isObjectNotFound(err error, at target) bool {
	var status apierrors.APIStatus
	if !apierrors.IsNotFound(err) || !errors.As(err, &status) {
		return false
	}
	details := status.Status().Details
	return details != nil && details.Kind == s.table.resource && details.Name == at.name
}

func isTooLargeResourceVersion(status *metav1.Status) bool {
	return status.Code == http.StatusGatewayTimeout && hasCause(status, metav1.CauseTypeResourceVersionTooLarge)
}

func tooLargeResourceVersion(status *metav1.Status, wait int) error {
	var asked, current uint64
	// If the numbers cannot be parsed, the error is still the right one.
	_, _ = fmt.Sscanf(status.Message, "Timeout: Too large resource version: %d, current: %d", &asked, &current)
	return storage.NewTooLargeResourceVersionError(asked, current, wait)
}

func namespaceTerminating(resource schema.GroupResource, at location) error {
	err := apierrors.NewForbidden(resource, at.name, fmt.Errorf(
		"unable to create new content in namespace %s because it is being terminated", at.namespace))
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{
		Type:    corev1.NamespaceTerminatingCause,
		Message: fmt.Sprintf("namespace %s is being terminated", at.namespace),
		Field:   "metadata.namespace",
	}}
	return err
}

func hasCause(status *metav1.Status, cause metav1.CauseType) bool {
	_, found := apierrors.StatusCause(&apierrors.StatusError{ErrStatus: *status}, cause)
	return found
}

func retryAfter(status *metav1.Status) int32 {
	if status.Details == nil {
		return 0
	}
	return status.Details.RetryAfterSeconds
}
