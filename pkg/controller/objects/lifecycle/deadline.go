// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
)

// Deadline is what is known of spec.activeDeadlineSeconds of a Job or Pod that has not finished. The zero value is for an object that has
// none, and for every other object.
type Deadline struct {
	// StartedAt is when the object started, from which Kubernetes counts; zero if it has not started. A suspended Job that has one may keep it
	// until it has been resumed: then its deadline may be over at once.
	StartedAt time.Time
	// Fixed says that Winnow must not change the deadline: somebody else has set, changed or removed it, or it would have no effect.
	Fixed bool
	// Set is the deadline that Winnow has set, and nobody has changed; zero if there is none.
	Set time.Duration
	// Paused says that Kubernetes does not enforce Set now, because the Job is suspended.
	Paused bool
}

// deadline compares spec.activeDeadlineSeconds with the annotation in which Winnow records what it has set.
func deadline(m *metav1.ObjectMeta, started *metav1.Time, seconds *int64) Deadline {
	var out Deadline
	if started != nil {
		out.StartedAt = started.UTC()
	}
	recorded, ok := m.Annotations[gc.AnnotationActiveDeadline]
	switch {
	case !ok:
		out.Fixed = seconds != nil
	case seconds == nil || *seconds <= 0 || *seconds > int64(gc.MaxDuration/time.Second) || recorded != strconv.FormatInt(*seconds, 10):
		out.Fixed = true
	default:
		out.Set = time.Duration(*seconds) * time.Second
	}
	return out
}

// Exceeded says that Kubernetes ended an object because of a deadline that Winnow had set.
type Exceeded struct {
	// At is when the deadline ended, and EndedAt when Kubernetes ended the object; zero if the object does not say.
	At, EndedAt time.Time
}

// exceeded returns what became of a deadline that Kubernetes has enforced; nil if it was not Winnow's.
func (d *Deadline) exceeded(endedAt time.Time) *Exceeded {
	end, ok := d.End()
	if !ok {
		return nil
	}
	return &Exceeded{At: end, EndedAt: endedAt}
}

// End returns when Kubernetes will end the object because of a deadline that Winnow has set; false if it will not, or if the object has not
// started, or is suspended.
func (d *Deadline) End() (time.Time, bool) {
	if d.Set == 0 || d.Fixed || d.Paused || d.StartedAt.IsZero() {
		return time.Time{}, false
	}
	return d.StartedAt.Add(d.Set), true
}

// TakesDeadline reports whether Winnow may set a deadline for an object of this kind with this controller: a Job that nothing controls but
// a CronJob, or a Pod that nothing controls. What has another controller is up to that controller.
func (f *Fact) TakesDeadline() bool {
	switch f.Resource {
	case gc.ResourceJobs:
		return f.Controller == nil || f.Controller.GroupKind == kindCronJob
	case gc.ResourcePods:
		return f.Controller == nil
	}
	return false
}
