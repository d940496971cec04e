// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package metrics defines the metrics of Winnow. Their labels have no names of objects, and names of at most a hundred namespaces, so that
// their number stays small.
package metrics

import (
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/rules/deletion"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

// triggerNativeTTL is the trigger if the TTL of the object itself decides.
const triggerNativeTTL = "NativeTTL"

// deletionReasons are the reasons for which objects are deleted.
var deletionReasons = names([]policy.Reason{policy.ReasonExpired, policy.ReasonOverCapacity, policy.ReasonOverCeiling})

var (
	resource = Label{Name: "resource", What: "`resource.group`, as kubectl has it"}
	outcome  = Label{Name: "outcome", Values: outcomes()}
	result   = func(values ...string) Label { return Label{Name: "result", Values: values} }

	notification = Label{Name: "type", Values: []string{NotificationHold, NotificationNotice, NotificationDeletion}}
)

var (
	// DeleteRequests counts the DELETE requests by outcome.
	DeleteRequests = counterVec("winnow_delete_requests_total", "DELETE requests sent.", resource, outcome)
	// DeadlineRequests counts the PATCH requests for deadlines by outcome.
	DeadlineRequests = counterVec("winnow_deadline_requests_total",
		"PATCH requests sent to change spec.activeDeadlineSeconds.", resource, outcome)
	// DeadlineExceeded counts the objects that Kubernetes ended because of a deadline that Winnow had set.
	DeadlineExceeded = counterVec("winnow_deadline_exceeded_total",
		"Objects that failed with DeadlineExceeded because of a deadline that Winnow had set, as the replica that leads saw them fail.", resource)
	// DeadlineLateness is the time from a deadline to when Kubernetes enforced it.
	DeadlineLateness = histogramVec("winnow_deadline_lateness_seconds",
		"Time from a deadline that Winnow had set until Kubernetes ended the object; negative if it was sooner. For a Job, it ends when the "+
			"Job controller begins to end the Pods; for a Pod, when its containers have ended. Deadlines that were over when they were set do "+
			"not count.",
		[]float64{-5, -1, 0, 1, 2, 5, 10, 30, 60, 300, 1800}, resource)
	// Deletions counts the objects that were confirmed gone.
	Deletions = counterVec("winnow_deletions_total",
		"Objects confirmed gone after a delete. The trigger is what the TTL is counted from (`after` of the rule), "+
			"or NativeTTL if the TTL of the object itself decided.",
		resource,
		Label{Name: "trigger", Values: append(names(gc.Afters()), triggerNativeTTL)},
		Label{Name: "reason", Values: deletionReasons})
	// Lateness is the time from when an object was due to when it was gone.
	Lateness = histogram("winnow_deletion_lateness_seconds",
		"Time from when an object was due until it was gone, including the time in which it waited for a finalizer, or was held because Winnow "+
			"was not sure. If people let it go only later, it counts since then: since a change made it due, a hold was approved, "+
			"deletions were resumed, a window opened, a notice was over, or it was archived.",
		.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 1800)
	// Readings counts the consistent reads of policies and namespaces by result.
	Readings = counterVec("winnow_readings_total",
		"Consistent reads of policies and namespaces before deletes. A reading disagreed if memory was still behind it after 900 ms.",
		result("agreed", "disagreed", "failed"))
	// DiscoveryFailures counts the readings of what the cluster serves that failed, for everything or for one version of a group.
	DiscoveryFailures = counter("winnow_discovery_failures_total",
		"Failures to find out which resources the cluster serves, for everything or for one version of a group.")
	// ResourceObjects is the number of objects of each resource with a lifecycle.
	ResourceObjects = gaugeVec("winnow_resource_objects",
		"Objects of each served custom resource that has a lifecycle, counted every five minutes by the replica that leads.", resource)
	// ResourceUnused is since when a resource has no objects.
	ResourceUnused = gaugeVec("winnow_resource_unused_since_timestamp_seconds",
		"Unix time of the first count that found no object of a served custom resource with a lifecycle; not set while there are objects.",
		resource)
	// Concurrency is how many DELETE requests may be in flight.
	Concurrency = gauge("winnow_delete_concurrency_limit", "DELETE requests that may be in flight. "+
		"It is below --concurrent-deletions if fewer delete as fast, or if the API server throttles.")
	// Leading is 1 on the replica that deletes.
	Leading = gauge("winnow_leading", "1 while this replica leads and deletes, 0 otherwise.")
	// Policies is the number of policies by their condition Ready.
	Policies = gaugeVec("winnow_policies",
		"Policies by their condition Ready and its reason, as the leader saw them some seconds ago.",
		Label{Name: "kind", Values: []string{gc.KindCleanupPolicy, gc.KindClusterCleanupPolicy}},
		Label{Name: "ready", Values: []string{"True", "False"}},
		Label{Name: "reason", What: "the [reason](troubleshooting.md#a-policy-is-not-ready) of the condition"})
	// StatusWrites counts the writes of policy status and events.
	StatusWrites = counterVec("winnow_status_writes_total",
		"Writes of policy status and events. dropped counts annotated objects that were not looked at because there were too many.",
		Label{Name: "kind", Values: []string{"status", "event"}}, result("ok", "failed", "dropped"))
	// UsageMarksWrites counts the writes of usage marks.
	UsageMarksWrites = counterVec("winnow_usage_marks_writes_total",
		"Writes that store since when ConfigMaps and Secrets are unused, or objects finished that do not say so. There was a conflict if "+
			"the stored object or its namespace had changed in the meantime.",
		result("ok", "conflict", "failed"))
	// Notifications counts the events for the receiver of --notify-url, by what became of them.
	Notifications = counterVec("winnow_notifications_total",
		"Events for the receiver of --notify-url. dropped counts events for which the queue had no room, or that were not sent when the replica "+
			"ended. refused counts events that the receiver did not accept. Neither is sent again.",
		notification, result(NotificationSent, NotificationDropped, NotificationRefused))
	// NotificationRequests counts the requests to the receiver of --notify-url by result.
	NotificationRequests = counterVec("winnow_notification_requests_total",
		"Requests to the receiver of --notify-url, each with several events. A request that failed is repeated. One that was refused is sent in "+
			"two halves.",
		result(NotificationOK, NotificationFailed, NotificationRefused))
	// NotificationQueue is how many events wait to be sent.
	NotificationQueue = gaugeVec("winnow_notification_queue_length",
		"Events that wait to be sent to the receiver of --notify-url, without those of the request in flight.", notification)
	// Records counts the records of deleted objects.
	Records = counterVec("winnow_records_total",
		"CleanupRecords: stored, gone with their namespace, or removed later because they were too old or too many. Not stored: dropped, "+
			"because too many waited or the writes of their namespace failed for ten minutes; unserved, because the cluster does not serve "+
			"recordchunks; left, when the replica ended.",
		result("stored", "gone", "removed", "dropped", "unserved", "left"))
	// RecordsPending is how many records wait to be written.
	RecordsPending = gauge("winnow_records_pending", "CleanupRecords of this replica that are not stored yet. They are written every three "+
		"seconds.")
	// RecordWrites counts the writes of records.
	RecordWrites = counterVec("winnow_record_writes_total",
		"Writes that store or remove CleanupRecords, many at once. There was a conflict if the stored object or its namespace had changed "+
			"in the meantime.",
		result("ok", "conflict", "failed"))
	// CopyWrites counts the writes of copies.
	CopyWrites = counterVec("winnow_copy_writes_total",
		"Writes that store a copy of an object before its deletion, or remove one. There was a conflict if another replica had stored one, or "+
			"the namespace had gone.",
		result("ok", "conflict", "failed"))
	// CopyBytes is the room of all copies.
	CopyBytes = gauge("winnow_copy_bytes", "How many bytes the copies of deleted objects take in the etcd of the cluster, as the leader "+
		"counts them each hour; 0 on other replicas.")
)

// The values of the labels type and result of notifications.
const (
	NotificationHold     = "Hold"
	NotificationNotice   = "Notice"
	NotificationDeletion = "Deletion"

	NotificationOK      = "ok"
	NotificationFailed  = "failed"
	NotificationSent    = "sent"
	NotificationDropped = "dropped"
	NotificationRefused = "refused"
)

// CertificateExpiry describes when the serving certificate expires.
var CertificateExpiry = collected("winnow_serving_certificate_expiration_timestamp_seconds",
	"Unix time when the serving certificate of this replica expires.")

// APIServiceAvailable describes whether kube-apiserver sends requests to Winnow.
var APIServiceAvailable = collected("winnow_apiservice_available",
	"1 if kube-apiserver sends requests for gc.winnow.dev to Winnow, 0 if it does not, as this replica saw it some seconds ago.")

// Register registers the metrics that are counted as things happen.
func Register() {
	legacyregistry.MustRegister(counting...)
	for _, resource := range gc.DefaultResources() { // A rate sees only what is added to a counter that is there.
		DeadlineExceeded.WithLabelValues(resource)
		DeadlineLateness.WithLabelValues(resource)
		for _, reason := range deletionReasons {
			Deletions.WithLabelValues(resource, string(gc.AfterFinished), reason)
		}
	}
	for _, result := range []string{NotificationOK, NotificationFailed, NotificationRefused} {
		NotificationRequests.WithLabelValues(result)
	}
	for _, result := range []string{NotificationSent, NotificationDropped, NotificationRefused} {
		for _, of := range notification.Values {
			Notifications.WithLabelValues(of, result)
		}
	}
}

// Trigger returns the value of the label trigger.
func Trigger(o *deletion.Order) string {
	if o.Native {
		return triggerNativeTTL
	}
	return string(o.After)
}

// outcomes are the outcomes of requests that were sent.
func outcomes() []string {
	var out []string
	for _, o := range deletion.Outcomes {
		switch o {
		case deletion.Released, deletion.CopyTooLarge, deletion.CopyQuotaExceeded: // Then none is sent.
		case deletion.Accepted, deletion.NotFound, deletion.Conflict, deletion.RetryLater, deletion.Unauthorized, deletion.Refused,
			deletion.Unknown:
			out = append(out, o.String())
		}
	}
	return out
}
