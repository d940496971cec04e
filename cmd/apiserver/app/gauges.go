// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/client-go/util/cert"
	"k8s.io/component-base/metrics"

	ours "github.com/winnow-dev/winnow/pkg/controller/metrics"
	"github.com/winnow-dev/winnow/pkg/registration"
)

// gauge is a metric whose value is computed when metrics are scraped.
type gauge struct {
	metrics.BaseStableCollector
	desc  *metrics.Desc
	value func() float64
}

// DescribeWithStability implements metrics.StableCollector.
func (g *gauge) DescribeWithStability(ch chan<- *metrics.Desc) { ch <- g.desc }

// CollectWithStability implements metrics.StableCollector.
func (g *gauge) CollectWithStability(ch chan<- metrics.Metric) {
	ch <- metrics.NewLazyConstMetric(g.desc, metrics.GaugeValue, g.value())
}

// certificateExpiry is when the certificate in use expires, so it follows a renewal. One that cannot be read counts as expired in 1970.
func certificateExpiry(current dynamiccertificates.CertKeyContentProvider) *gauge {
	return &gauge{desc: ours.CertificateExpiry, value: func() float64 {
		certPEM, _ := current.CurrentCertKeyContent()
		chain, err := cert.ParseCertsPEM(certPEM)
		if err != nil {
			return 0
		}
		return float64(chain[0].NotAfter.Unix())
	}}
}

// apiServiceAvailable is whether kube-apiserver sends requests to Winnow.
func apiServiceAvailable(registrar *registration.Registrar) *gauge {
	return &gauge{desc: ours.APIServiceAvailable, value: func() float64 {
		if registrar.Available() {
			return 1
		}
		return 0
	}}
}
