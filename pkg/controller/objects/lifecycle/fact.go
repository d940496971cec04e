// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package lifecycle reduces objects to facts: whether and when an object has finished, its native TTL, and its owner. The package is
// pure.
package lifecycle

import (
	"slices"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
)

// Finalizers of the API server. They say how a deletion in progress treats the dependents.
const (
	finalizerOrphan     = metav1.FinalizerOrphanDependents
	finalizerForeground = metav1.FinalizerDeleteDependents
)

// Stored is the stored form of a fact, which names the object.
type Stored interface {
	Name() string
	UID() types.UID
}

// Fact is everything that decisions need to know of one object. It is immutable: a newer state of the object is a new fact. Package facts
// has the compact form in which facts are stored.
type Fact struct {
	// Resource is the name that policies use: "resource.group".
	Resource  string
	Namespace string
	// Name, UID and Content are empty if Stored has them: while policies are asked, because they are elsewhere in memory.
	Name            string
	UID             types.UID
	Stored          Stored
	ResourceVersion uint64
	Labels          labels.Labels
	Created         time.Time
	// Finishes is set if the resource has a lifecycle. The table of kinds says so, not the object, so it is set when policies are asked.
	Finishes bool

	// Terminating is set if the object is being deleted. Only then are Finalizers set, which the deletion waits for.
	Terminating bool
	Finalizers  []string
	// Uncounted is set if the Job controller has not counted this Pod yet (KEP-2307).
	Uncounted bool
	// Rereads says which finished Pods of this Job must stay until it has finished, although the Job controller has counted them.
	Rereads Rereads
	// Finished is set if the execution has ended, with this Outcome at FinishedAt.
	Finished   bool
	Outcome    gc.Outcome
	FinishedAt time.Time
	// Doubt is why the object does not say when it finished; empty if it does. FinishedAt is zero then. It is only so until the engine
	// counts from when it first saw the object finished, and sets FinishedAt and FirstSeen instead.
	Doubt string
	// FirstSeen is set if FinishedAt is when Winnow first saw the object finished. This is not part of the object.
	FirstSeen *FirstSeen
	// Failed is why an expression of the lifecycle failed; empty if none did. Then it is not known whether the object has finished, and
	// Finished is not set.
	Failed string
	// Needs are the names of what the object controls and needs although that is independent of it otherwise; see Independence.
	Needs []string

	// Usage is not part of the object, so it is set when policies are asked.
	Usage Usage
	// Matched says since when rules with after: Matched match the object. It is not part of the object either.
	Matched []Matched

	// Conditions are the results of match conditions for this state of the object.
	Conditions Results

	// Deadline is the zero value once the object has finished.
	Deadline Deadline
	// Exceeded is set if the object has finished because of a deadline that Winnow had set.
	Exceeded *Exceeded
	// NativeTTL is ttlSecondsAfterFinished of the object's own spec; nil if it is not set.
	NativeTTL *time.Duration
	// TTL and KeepUntil are the object's annotations as written; nil if it has none.
	TTL, KeepUntil *string
	// Endless is set if the object has the annotation TTL and is a running Pod with restartPolicy Always, which does not finish by itself.
	Endless bool

	// Controller is the owner reference with controller: true; nil if there is none.
	Controller *Owner
	// Scheduled is the time for which a CronJob created this Job; zero if the Job was created by hand, or the time is not known. It is also
	// zero if ScheduledBy says that the name contains the time, because parsing the name takes time.
	Scheduled   time.Time
	ScheduledBy ScheduledBy
	// Applied is which control plane placed the object here and would create it again, such as `Argo CD app "web"`; empty if none would.
	Applied string
	// Content is a digest of what the object is to do, which distinguishes two objects of one name; zero if it is not known.
	Content Digest
	// Propagation is the policy that the object's finalizers ask for; a DELETE with another policy would remove them. Empty if any will do.
	Propagation metav1.DeletionPropagation
	// Contradictory is set if the finalizers ask for two policies, so that every DELETE would remove one. The API server accepts no such
	// object, but it may serve one that reached its storage in another way.
	Contradictory bool
}

// Digest is a short hash that is odd, or zero if it is not known. It is compared only with others of the same process.
type Digest uint16

// MayEqual reports whether two digests may be of the same.
func (d Digest) MayEqual(o Digest) bool { return d == 0 || o == 0 || d == o }

// SetContent stores the digest in the metadata of an object that was decoded, for the fact. No API server sets this field any more.
func SetContent(m metav1.Object, d Digest) { m.SetSelfLink(d.String()) }

// String formats the digest as SetContent stores it.
func (d Digest) String() string { return strconv.Itoa(int(d)) }

func contentOf(m *metav1.ObjectMeta) Digest {
	d, err := strconv.ParseUint(m.GetSelfLink(), 10, 16)
	if err != nil {
		return 0
	}
	return Digest(d)
}

// Owner is a controlling owner reference.
type Owner struct {
	schema.GroupKind
	Name string
	UID  types.UID
}

// FirstSeen is where the finish time of an object comes from that does not say when it finished.
type FirstSeen struct {
	// Why is the Doubt of the object.
	Why string
	// Version is the resource version of the state that was seen first. After is the version of the last state without this doubt; 0 if none
	// was seen. Marks of a state before After belong to an earlier run.
	Version, After uint64
}

// ObjectName is the name of the object.
func (f *Fact) ObjectName() string {
	if f.Stored != nil {
		return f.Stored.Name()
	}
	return f.Name
}

// ObjectUID is the UID of the object.
func (f *Fact) ObjectUID() types.UID {
	if f.Stored != nil {
		return f.Stored.UID()
	}
	return f.UID
}

// MetadataFields returns the paths of the metadata that facts need, of Jobs and Pods too. Other annotations can be large. Of managedFields,
// which are large too, only the managers are needed, and only if NeedsManagers.
func MetadataFields() [][]string {
	var out [][]string
	for _, field := range []string{
		"creationTimestamp", "deletionTimestamp", "finalizers", "labels", "name", "namespace", "ownerReferences", "resourceVersion", "uid",
	} {
		out = append(out, []string{"metadata", field})
	}
	keys := []string{
		gc.AnnotationTTL, gc.AnnotationKeepUntil, gc.AnnotationActiveDeadline,
		corev1.MirrorPodAnnotationKey, batchv1.CronJobScheduledTimestampAnnotation,
	}
	for _, key := range append(keys, annotationsOfMarks...) {
		out = append(out, []string{"metadata", "annotations", key})
	}
	return out
}

// FromMetadata reduces an object of which only the metadata is known. Such an object does not finish.
func FromMetadata(resource string, kind schema.GroupKind, m *metav1.ObjectMeta) (*Fact, error) {
	return newFact(resource, kind, m)
}

// newFact reduces the metadata of an object. It fails if the resource version is not a decimal number, as KEP-5504 guarantees.
func newFact(resource string, kind schema.GroupKind, m *metav1.ObjectMeta) (*Fact, error) {
	rv, err := strconv.ParseUint(m.ResourceVersion, 10, 64)
	if err != nil {
		return nil, err
	}
	f := &Fact{
		Resource: resource, Namespace: m.Namespace, Name: m.Name, UID: m.UID, ResourceVersion: rv,
		Labels: labels.Set(m.Labels), Created: m.CreationTimestamp.Time, Terminating: m.DeletionTimestamp != nil,
		TTL: annotation(m, gc.AnnotationTTL), KeepUntil: annotation(m, gc.AnnotationKeepUntil), Applied: AppliedBy(kind, m),
		Content: contentOf(m),
	}
	if c := metav1.GetControllerOfNoCopy(m); c != nil {
		gv, err := schema.ParseGroupVersion(c.APIVersion)
		if err != nil { // An unknown group means a controller of unknown kind.
			gv.Group = c.APIVersion
		}
		f.Controller = &Owner{GroupKind: schema.GroupKind{Group: gv.Group, Kind: c.Kind}, Name: c.Name, UID: c.UID}
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

// maxAnnotationLength is more than any valid annotation needs.
const maxAnnotationLength = 64

// annotation returns a value as written, but truncated; nil if there is none.
func annotation(m *metav1.ObjectMeta, key string) *string {
	v, ok := m.Annotations[key]
	if !ok {
		return nil
	}
	v = truncate(v, maxAnnotationLength)
	return &v
}

// truncate shortens a value that is too long to be valid. Otherwise anybody who may annotate objects could fill the memory.
func truncate(v string, length int) string {
	if len(v) <= length {
		return v
	}
	return strings.ToValidUTF8(v[:length], "") + "..."
}

// finish records the end of the execution; doubt is why it is not known when that was. A time before the creation counts as the creation:
// clocks differ, a backup was restored, or somebody wants the object deleted early.
func (f *Fact) finish(outcome gc.Outcome, at time.Time, doubt string) {
	if doubt == "" && at.Before(f.Created) {
		at = f.Created
	}
	f.Finished, f.Outcome, f.FinishedAt, f.Doubt, f.Deadline = true, outcome, at, doubt, Deadline{}
}
