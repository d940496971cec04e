// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"net/http"
	"time"

	"k8s.io/client-go/rest"

	"github.com/winnow-dev/winnow/pkg/generated/clientset/versioned"
	gcclient "github.com/winnow-dev/winnow/pkg/generated/clientset/versioned/typed/gc/v1alpha1"
)

// patientClient returns a client for policies that waits until Winnow can be reached, and has time to answer.
func patientClient(config *rest.Config) (gcclient.GcV1alpha1Interface, error) {
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return patient{next} })
	clients, err := versioned.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return clients.GcV1alpha1(), nil
}

// patient repeats a request while the answer is that the service is unavailable: after replicas were killed, the aggregator takes a while to
// find those that run. Such a request has changed nothing.
type patient struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (p patient) RoundTrip(r *http.Request) (*http.Response, error) {
	for begin := time.Now(); ; {
		response, err := p.next.RoundTrip(r)
		if err != nil || response.StatusCode != http.StatusServiceUnavailable || time.Since(begin) > waitMost {
			return response, err
		}
		_ = response.Body.Close()
		if !sleepUntil(r.Context(), time.Now().Add(100*time.Millisecond)) {
			return nil, r.Context().Err()
		}
		again := r.Clone(r.Context())
		if r.GetBody != nil {
			if again.Body, err = r.GetBody(); err != nil {
				return nil, err
			}
		}
		r = again
	}
}
