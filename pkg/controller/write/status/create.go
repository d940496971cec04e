// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
)

// textID returns an id that is the same for the same text, so that the API refuses an event that was written before.
func textID(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}

// noteMost is the length of the longest note that the API accepts.
const noteMost = 1024

func (w *Writer) createEvent(ctx context.Context, e event) error {
	return e.create(ctx, w.Events, w.Instance, w.Clock.Now())
}

// WriteApproved writes an event on a policy: somebody has approved holds of it.
func WriteApproved(ctx context.Context, events kubernetes.Interface, instance string, a gc.Approval, now time.Time) error {
	of := types.NamespacedName{Namespace: a.Policy.GetNamespace(), Name: a.Policy.GetName()}
	e := event{
		subject: subject{of, a.Policy.GetUID()}, kind: corev1.EventTypeNormal, reason: "Approved", note: a.String(), id: randomID(),
	}
	return e.create(ctx, events, instance, now)
}

func (e event) create(ctx context.Context, events kubernetes.Interface, instance string, now time.Time) error {
	note := e.note
	if len(note) > noteMost {
		note = strings.ToValidUTF8(note[:noteMost-3], "") + "..."
	}
	kind, home := "CleanupPolicy", e.Namespace
	if home == "" { // kubectl expects the events of objects without a namespace here.
		kind, home = "ClusterCleanupPolicy", metav1.NamespaceDefault
	}
	regarding, related := &corev1.ObjectReference{
		APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: kind, Namespace: e.Namespace, Name: e.Name, UID: e.uid,
	}, (*corev1.ObjectReference)(nil)
	if e.object != nil {
		home, regarding, related = e.object.Namespace, e.object, regarding
	}
	if e.uid == "" { // It is about no policy.
		related = nil
	}
	id := e.id
	if id == "" {
		id = strconv.FormatInt(now.UnixNano(), 16)
	}
	_, err := events.EventsV1().Events(home).Create(ctx, &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: home, Name: strings.TrimRight(fmt.Sprintf("%.200s", e.Name), "-.") + "." + id,
		},
		EventTime: metav1.NewMicroTime(now), Type: e.kind, Reason: e.reason, Note: note, Action: "Cleanup",
		ReportingController: gc.GroupName + "/winnow", ReportingInstance: instance,
		Regarding: *regarding, Related: related,
	}, metav1.CreateOptions{})
	return err
}
