// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/pkg/plugin/local"
)

// Explain returns the text of an error, and for errors of client-go and of the API server also the way out.
func (s *Session) Explain(err error) string {
	var request *url.Error
	switch {
	case errors.Is(err, local.ErrSilent), ofWinnow(err) && apierrors.IsServiceUnavailable(err):
		return fmt.Sprintf("%v; whoever runs it can see why: kubectl get apiservice %s.%s", local.ErrSilent,
			v1alpha1.SchemeGroupVersion.Version, v1alpha1.GroupName)
	case errors.As(err, &request):
		return s.unreachable(request)
	case apierrors.IsUnauthorized(err):
		return "the cluster does not accept your credentials; log in again, or choose another user or context: kubectl config get-contexts"
	case LacksRight(err):
		return err.Error() + "; to see what you may do: kubectl auth can-i --list" + s.flagNamespace()
	case noContext(err.Error()):
		return err.Error() + "; to see the contexts: kubectl config get-contexts"
	}
	return err.Error()
}

// LacksRight reports whether a request was refused because the caller lacks a permission. Otherwise a quota, or another admission plugin,
// may have refused it.
func LacksRight(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), " cannot ")
}

// noContext reports whether a message of client-go says that there is no such context. client-go has no type for it.
func noContext(message string) bool {
	return strings.HasPrefix(message, "context ") && strings.HasSuffix(message, " does not exist") ||
		strings.Contains(message, "context was not found for specified context")
}

// ofWinnow reports whether an error is an answer about a resource of Winnow.
func ofWinnow(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Details != nil && status.Status().Details.Group == v1alpha1.GroupName
}

// unreachable says that a request got no answer.
func (s *Session) unreachable(request *url.Error) string {
	if config, err := s.Flags.ToRawKubeConfigLoader().RawConfig(); err == nil && len(config.Clusters) == 0 && *s.Flags.APIServer == "" {
		return "there is no kubeconfig that names a cluster; set KUBECONFIG, or use --kubeconfig"
	}
	server := request.URL
	if u, err := url.Parse(request.URL); err == nil {
		server = u.Scheme + "://" + u.Host
	}
	return fmt.Sprintf("cannot reach the API server %s: %v; to see the cluster and user of your kubeconfig: kubectl config view --minify",
		server, request.Err)
}

// flagNamespace returns the flag of kubectl for the namespace; empty if it is not known.
func (s *Session) flagNamespace() string {
	namespace, err := s.Namespace()
	if err != nil {
		return ""
	}
	return " -n " + namespace
}
