// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/client-go/util/cert"
	"k8s.io/component-base/metrics"

	ours "github.com/winnow-dev/winnow/pkg/controller/metrics"
)

// servingCertificate collects the expiry of the certificate that is in use when metrics are scraped, so it follows a renewal of the files.
type servingCertificate struct {
	metrics.BaseStableCollector
	current dynamiccertificates.CertKeyContentProvider
}

// DescribeWithStability implements metrics.StableCollector.
func (s *servingCertificate) DescribeWithStability(ch chan<- *metrics.Desc) {
	ch <- ours.CertificateExpiry
}

// CollectWithStability implements metrics.StableCollector. A certificate that cannot be read counts as expired in 1970.
func (s *servingCertificate) CollectWithStability(ch chan<- metrics.Metric) {
	var expires float64
	certPEM, _ := s.current.CurrentCertKeyContent()
	if chain, err := cert.ParseCertsPEM(certPEM); err == nil {
		expires = float64(chain[0].NotAfter.Unix())
	}
	ch <- metrics.NewLazyConstMetric(ours.CertificateExpiry, metrics.GaugeValue, expires)
}
