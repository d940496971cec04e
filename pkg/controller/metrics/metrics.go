// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package metrics defines the metrics of the controller. Their labels have no names of objects or namespaces, so that their number stays
// small.
package metrics

import (
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

const namespace = "winnow"

var (
	// DeleteRequests counts the DELETE requests by outcome.
	DeleteRequests = counter("delete_requests_total",
		"DELETE requests sent, by resource and outcome (Accepted, NotFound, Conflict, RetryLater, Unauthorized, Refused, Unknown).",
		"resource", "outcome")
	// DeadlineRequests counts the PATCH requests for deadlines by outcome.
	DeadlineRequests = counter("deadline_requests_total",
		"PATCH requests sent to change spec.activeDeadlineSeconds, by resource and outcome (as in delete_requests_total).",
		"resource", "outcome")
	// Deletions counts the objects that were confirmed gone.
	Deletions = counter("deletions_total", "Objects confirmed gone after a delete, by resource.", "resource")
	// Lateness is the time from when an object was due to when it was gone.
	Lateness = metrics.NewHistogram(&metrics.HistogramOpts{
		Namespace: namespace, Name: "deletion_lateness_seconds", StabilityLevel: metrics.ALPHA,
		Help:    "Time from when an object was due to when it was seen to be gone.",
		Buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 1800},
	})
	// Readings counts the consistent reads of policies and namespaces by result.
	Readings = counter("readings_total",
		"Consistent reads of policies and namespaces before deletes, by result (agreed, disagreed, failed).", "result")
	// DiscoveryFailures counts the readings of what the cluster serves that failed, for everything or for one version of a group.
	DiscoveryFailures = metrics.NewCounter(&metrics.CounterOpts{
		Namespace: namespace, Name: "discovery_failures_total", StabilityLevel: metrics.ALPHA,
		Help: "Failures to find out which resources the cluster serves, for everything or for one version of a group.",
	})
	// ResourceObjects is the number of objects of each resource with a lifecycle.
	ResourceObjects = metrics.NewGaugeVec(&metrics.GaugeOpts{
		Namespace: namespace, Name: "resource_objects", StabilityLevel: metrics.ALPHA,
		Help: "Objects of each served custom resource that has a lifecycle, counted every five minutes by the replica that leads.",
	}, []string{"resource"})
	// ResourceUnused is since when a resource has no objects.
	ResourceUnused = metrics.NewGaugeVec(&metrics.GaugeOpts{
		Namespace: namespace, Name: "resource_unused_since_timestamp_seconds", StabilityLevel: metrics.ALPHA,
		Help: "Unix time since when every count of a served custom resource with a lifecycle has found no object; not set while there are any.",
	}, []string{"resource"})
	// Concurrency is how many DELETE requests may be in flight.
	Concurrency = gauge(
		"delete_concurrency_limit",
		"Deletes that may be under way at once: as many as the API server needs to delete about as fast as it can.",
	)
	// Leading is 1 on the replica that deletes.
	Leading = gauge("leading", "1 while this replica leads and deletes, 0 otherwise.")
	// StatusWrites counts the writes of policy status and events.
	StatusWrites = counter(
		"status_writes_total",
		"Writes of policy status and events, by kind (status, event) and result (ok, failed, dropped).",
		"kind",
		"result",
	)
)

// Register registers the metrics.
func Register() {
	legacyregistry.MustRegister(
		DeleteRequests, DeadlineRequests, Deletions, Lateness, Readings, DiscoveryFailures, ResourceObjects, ResourceUnused,
		Concurrency, Leading, StatusWrites,
	)
}

func counter(name, help string, labels ...string) *metrics.CounterVec {
	return metrics.NewCounterVec(&metrics.CounterOpts{
		Namespace: namespace, Name: name, Help: help, StabilityLevel: metrics.ALPHA,
	}, labels)
}

func gauge(name, help string) *metrics.Gauge {
	return metrics.NewGauge(&metrics.GaugeOpts{Namespace: namespace, Name: name, Help: help, StabilityLevel: metrics.ALPHA})
}
