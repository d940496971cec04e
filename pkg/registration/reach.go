// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/discovery"
	"k8s.io/klog/v2"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	apiregistration "k8s.io/kube-aggregator/pkg/client/clientset_generated/clientset/typed/apiregistration/v1"

	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
)

// verifies is the first version of Kubernetes in which an APIService is available only if kube-apiserver trusts its certificate.
var verifies = version.MustParseGeneric("1.36.0")

// errUntrusted is in the error of Ask if kube-apiserver does not trust Winnow's certificate, and the APIService cannot show it.
var errUntrusted = errors.New("kube-apiserver does not trust the certificate")

// Ask requests Winnow's API from kube-apiserver.
func Ask(ctx context.Context, client discovery.DiscoveryInterface) error {
	err := client.RESTClient().Get().AbsPath("/apis", v1alpha1.SchemeGroupVersion.String()).Do(ctx).Error()
	if !strings.Contains(unexpected(err), "x509:") && !strings.Contains(unexpected(err), "tls:") {
		return err
	}
	info, infoErr := client.ServerVersion()
	if infoErr != nil {
		return err
	}
	if server, parseErr := version.ParseGeneric(info.GitVersion); parseErr != nil || !server.LessThan(verifies) {
		return err
	}
	return fmt.Errorf("%w: %s (%w)", errUntrusted, unexpected(err), err)
}

// unexpected is what a server said that did not answer with a Status, as the aggregator does. The message of the error does not have it.
func unexpected(err error) string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return ""
	}
	var said []string
	for _, cause := range status.Status().Details.Causes {
		if cause.Type == metav1.CauseTypeUnexpectedServerResponse {
			said = append(said, strings.TrimSpace(cause.Message))
		}
	}
	return strings.Join(said, "; ")
}

// reached reports whether kube-apiserver reaches Winnow, by what the APIService shows and Ask has found out. If there are several
// kube-apiservers, it is enough that one of them does.
func reached(service *apiregistrationv1.APIService, asked error) bool {
	return available(service) && !errors.Is(asked, errUntrusted)
}

// leave withdraws the APIService if Winnow's namespace is being deleted, because nobody will answer for it any more. It reports whether
// that is so.
func leave(
	ctx context.Context, services apiregistration.APIServiceInterface, leaving func(context.Context) (bool, error),
) (bool, error) {
	if is, err := leaving(ctx); err != nil || !is {
		return false, err
	}
	if err := services.Delete(ctx, Name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return true, fmt.Errorf("withdrawing it, because Winnow's namespace is being deleted: %w", err)
	}
	return true, nil
}

// leaveAtLast does the same after ctx has ended: the namespace may be going, and this process with it.
func leaveAtLast(
	ctx context.Context, services apiregistration.APIServiceInterface, leaving func(context.Context) (bool, error),
) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), every)
	defer cancel()
	if _, err := leave(ctx, services, leaving); err != nil {
		klog.FromContext(ctx).Error(err, "Cannot tell whether to withdraw the APIService before the end", "name", Name)
	}
}
