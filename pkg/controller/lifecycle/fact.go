// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package lifecycle knows each kind: when it has finished and how, which TTL of its own it carries, and what its owners mean
// for it. It is pure: objects go in, facts come out.
package lifecycle

import (
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
)

// Finalizers that the API server itself gives a meaning: how a deletion in progress reaches the dependents.
const (
	finalizerOrphan     = metav1.FinalizerOrphanDependents
	finalizerForeground = metav1.FinalizerDeleteDependents
)

// Fact is what is known of an object: all that a decision needs, and no more. It is never changed once made; a newer state
// of the object is a new fact. Package facts has the form in which it is kept.
type Fact struct {
	// Resource as policies name it: gc.ResourceJobs or gc.ResourcePods.
	Resource        string
	Namespace, Name string
	UID             types.UID
	// ResourceVersion of the state that was reduced.
	ResourceVersion uint64
	Labels          labels.Labels
	Created         time.Time

	// Terminating says that the object is being deleted, and Finalizers what that waits for.
	Finalizers  []string
	Terminating bool
	// Uncounted says that the Job controller has yet to count this Pod (KEP-2307).
	Uncounted bool
	// Finished says that the execution ended; Outcome and FinishedAt speak of that end.
	Finished   bool
	Outcome    gc.Outcome
	FinishedAt time.Time
	// Doubt is why FinishedAt is not to be believed, empty when it is.
	Doubt string

	// NativeTTL is the TTL after finish that the object's own spec asks Kubernetes for; nil when it does not.
	NativeTTL *time.Duration
	// TTL and KeepUntil are the object's annotations as written; nil when it has none.
	TTL, KeepUntil *string
	// Endless says that nothing but a disturbance ends this Pod, so that its TTL may never count. It is set beside a TTL alone.
	Endless bool

	// Controller is the owner reference that controls the object; nil when none does.
	Controller *Owner
	// Scheduled is the time for which a CronJob created this Job; zero when it was created by hand, or nothing tells. With ScheduledBy it
	// is left out: the name tells it, and it takes time to be read.
	Scheduled   time.Time
	ScheduledBy ScheduledBy
	// Applied is who applied the object and would apply it again, such as `Argo CD app "web"`; empty for nobody, and for an
	// object with a controller, which would be created again by that alone.
	Applied string
	// Propagation that the object's finalizers ask for; a delete with any other would strip them. Empty leaves it free.
	Propagation metav1.DeletionPropagation
	// Contradictory says that the finalizers ask for two of them, so that a delete would strip one, whatever it asks for. The API
	// server takes no such object from anybody; it may still serve one that reached its storage by another way.
	Contradictory bool
}

// Owner is a controlling owner reference.
type Owner struct {
	schema.GroupKind
	Name string
	UID  types.UID
}

// newFact reduces what all kinds have in common. It fails for a resource version that is not a decimal number, which
// Kubernetes promises them to be (KEP-5504).
func newFact(resource string, kind schema.GroupKind, m *metav1.ObjectMeta) (*Fact, error) {
	rv, err := strconv.ParseUint(m.ResourceVersion, 10, 64)
	if err != nil {
		return nil, err
	}
	f := &Fact{
		Resource: resource, Namespace: m.Namespace, Name: m.Name, UID: m.UID, ResourceVersion: rv,
		Labels: labels.Set(m.Labels), Created: m.CreationTimestamp.Time, Terminating: m.DeletionTimestamp != nil,
		TTL: annotation(m, gc.AnnotationTTL), KeepUntil: annotation(m, gc.AnnotationKeepUntil),
	}
	if c := metav1.GetControllerOfNoCopy(m); c != nil {
		gv, err := schema.ParseGroupVersion(c.APIVersion)
		if err != nil { // A group that cannot be read is one that nobody can observe.
			gv.Group = c.APIVersion
		}
		f.Controller = &Owner{GroupKind: schema.GroupKind{Group: gv.Group, Kind: c.Kind}, Name: c.Name, UID: c.UID}
	} else {
		f.Applied = appliedBy(kind, m)
	}
	orphan, foreground := slices.Contains(m.Finalizers, finalizerOrphan), slices.Contains(m.Finalizers, finalizerForeground)
	switch {
	case orphan && foreground:
		f.Contradictory = true
	case orphan:
		f.Propagation = metav1.DeletePropagationOrphan
	case foreground:
		f.Propagation = metav1.DeletePropagationForeground
	}
	if f.Terminating {
		f.Finalizers = m.Finalizers
	}
	return f, nil
}

// annotationMost is more than any annotation needs that can be read.
const annotationMost = 64

// annotation is a value as written, but short.
func annotation(m *metav1.ObjectMeta, key string) *string {
	v, ok := m.Annotations[key]
	if !ok {
		return nil
	}
	v = short(v)
	return &v
}

// short keeps of a value that is too long only what shows that it is, or whoever may annotate could fill the memory.
func short(v string) string {
	if len(v) <= annotationMost {
		return v
	}
	return strings.ToValidUTF8(v[:annotationMost], "") + "..."
}

// finish records the end of the execution. Times before the object's creation are not believed: whoever wrote them was
// wrong, or wants it gone early.
func (f *Fact) finish(outcome gc.Outcome, at time.Time, doubt string) {
	f.Finished, f.Outcome, f.FinishedAt, f.Doubt = true, outcome, at, doubt
	if doubt == "" && at.Before(f.Created) {
		f.Doubt = "its finish time " + at.UTC().Format(time.RFC3339) + " is before its creation"
	}
}
