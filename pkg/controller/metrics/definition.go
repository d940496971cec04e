// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"cmp"
	"slices"

	"k8s.io/component-base/metrics"
)

// Definition describes a metric. docs/metrics.md is made from the definitions.
type Definition struct {
	Name, Type, Help string
	Stability        metrics.StabilityLevel
	Labels           []Label
}

// Label is a label of a metric.
type Label struct {
	Name string
	// Values are all values that the label can have; nil if What says what they are.
	Values []string
	What   string
}

var (
	definitions []Definition
	// counting are the metrics that are counted as things happen.
	counting []metrics.Registerable
)

// Definitions returns the definitions of all metrics of Winnow, by name.
func Definitions() []Definition {
	return slices.SortedFunc(slices.Values(definitions), func(a, b Definition) int { return cmp.Compare(a.Name, b.Name) })
}

// define adds a definition, and returns the names of its labels.
func define(name, kind, help string, labels []Label) (names []string) {
	definitions = append(definitions, Definition{Name: name, Type: kind, Help: help, Stability: metrics.ALPHA, Labels: labels})
	for _, l := range labels {
		names = append(names, l.Name)
	}
	return names
}

// count adds a metric that is counted as things happen.
func count[M metrics.Registerable](m M) M {
	counting = append(counting, m)
	return m
}

func counterVec(name, help string, labels ...Label) *metrics.CounterVec {
	return count(metrics.NewCounterVec(
		&metrics.CounterOpts{Name: name, Help: help, StabilityLevel: metrics.ALPHA}, define(name, "counter", help, labels),
	))
}

func counter(name, help string) *metrics.Counter {
	define(name, "counter", help, nil)
	return count(metrics.NewCounter(&metrics.CounterOpts{Name: name, Help: help, StabilityLevel: metrics.ALPHA}))
}

func gaugeVec(name, help string, labels ...Label) *metrics.GaugeVec {
	return count(metrics.NewGaugeVec(
		&metrics.GaugeOpts{Name: name, Help: help, StabilityLevel: metrics.ALPHA}, define(name, "gauge", help, labels),
	))
}

func gauge(name, help string) *metrics.Gauge {
	define(name, "gauge", help, nil)
	return count(metrics.NewGauge(&metrics.GaugeOpts{Name: name, Help: help, StabilityLevel: metrics.ALPHA}))
}

func histogram(name, help string, buckets ...float64) *metrics.Histogram {
	define(name, "histogram", help, nil)
	return count(metrics.NewHistogram(&metrics.HistogramOpts{Name: name, Help: help, Buckets: buckets, StabilityLevel: metrics.ALPHA}))
}

func histogramVec(name, help string, buckets []float64, labels ...Label) *metrics.HistogramVec {
	names := define(name, "histogram", help, labels)
	return count(metrics.NewHistogramVec(
		&metrics.HistogramOpts{Name: name, Help: help, Buckets: buckets, StabilityLevel: metrics.ALPHA}, names,
	))
}

// collected describes a gauge whose value is collected when metrics are scraped.
func collected(name, help string, labels ...Label) *metrics.Desc {
	return metrics.NewDesc(name, help, define(name, "gauge", help, labels), nil, metrics.ALPHA, "")
}
