// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
)

// createEvent creates an Event about the namespace, as a controller of the test.
func createEvent(t *testing.T, ns, name, kind string) {
	t.Helper()
	_, err := kube.CoreV1().Events(ns).Create(t.Context(), &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Name: name},
		InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "Namespace", Name: ns, Namespace: ns},
		Type:           kind, Reason: "Tested", Message: "a test", Source: corev1.EventSource{Component: "e2e"},
	}, metav1.CreateOptions{})
	must(t, err)
}

// TestEvents: a rule deletes Events by their type, also those that come later, and those that were created in the other group, because they
// are the same objects. Winnow writes no Events about that, which the rule would delete too. Other namespaces keep theirs.
func TestEvents(t *testing.T) {
	t.Parallel()
	grantByCommand(t, "events")
	ns, other := newNamespace(t), newNamespace(t)
	for _, namespace := range []string{ns, other} {
		createEvent(t, namespace, "normal", corev1.EventTypeNormal)
		createEvent(t, namespace, "warning", corev1.EventTypeWarning)
	}
	createPolicy(t, ns, "p", v1alpha1.CleanupPolicySpec{Rules: []v1alpha1.CleanupRule{{
		Name: "normal", Resources: []string{"events"}, After: v1alpha1.AfterCreated, TTL: ttl("1s"),
		MatchConditions: when("object.type == 'Normal'"),
	}}})
	expectDeletions(t, ns, "events/normal p/normal")
	createEvent(t, ns, "later", corev1.EventTypeNormal)
	_, err := kube.EventsV1().Events(ns).Create(t.Context(), &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{Name: "other-group"}, EventTime: metav1.NewMicroTime(time.Now()), Type: corev1.EventTypeNormal,
		ReportingController: "e2e", ReportingInstance: "e2e", Action: "Testing", Reason: "Tested", Note: "a test",
		Regarding: corev1.ObjectReference{APIVersion: "v1", Kind: "Namespace", Name: ns, Namespace: ns},
	}, metav1.CreateOptions{})
	must(t, err)
	expectDeletions(t, ns, "events/normal p/normal", "events/later p/normal", "events/other-group p/normal")
	expectDeletions(t, other)
}
