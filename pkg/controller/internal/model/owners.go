// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/lifecycle"
)

// owner is what the controller of an object means for the object's deletion.
type owner int

const (
	noOwner  owner = iota // there is none, or it does not need the finished object
	running               // it needs the object, or is gone, and then the garbage collector deletes the object
	finished              // it needed the object, and has finished
	unknown               // its kind is not observed
)

// ownerOf finds controllers by UID. Those in other namespaces do not count.
func (w *World) ownerOf(f *lifecycle.Fact) owner {
	if f.Controller == nil {
		return noOwner
	}
	switch f.Controller.GroupKind {
	case schema.GroupKind{Group: "apps", Kind: "ReplicaSet"},
		schema.GroupKind{Group: "apps", Kind: "StatefulSet"},
		schema.GroupKind{Group: "apps", Kind: "DaemonSet"}:
		return noOwner
	case schema.GroupKind{Group: "batch", Kind: "Job"}:
		return w.finisherOf(f, gc.ResourceJobs)
	case schema.GroupKind{Group: "argoproj.io", Kind: "Workflow"}:
		return w.finisherOf(f, DrawnWorkflows)
	case schema.GroupKind{Group: "batch", Kind: "CronJob"}:
		return w.cronJobOf(f)
	}
	return unknown
}

// finisherOf is ownerOf for an owner of a resource that finishes.
func (w *World) finisherOf(f *lifecycle.Fact, resource string) owner {
	if slices.ContainsFunc(w.Objects, func(of *lifecycle.Fact) bool {
		return of.Resource == resource && of.UID == f.Controller.UID && of.Namespace == f.Namespace && of.Finished
	}) {
		return finished
	}
	return running
}

// cronJobOf is ownerOf for a CronJob.
func (w *World) cronJobOf(f *lifecycle.Fact) owner {
	if slices.ContainsFunc(w.CronJobs, func(cj *lifecycle.CronJob) bool {
		return cj.UID == f.Controller.UID && cj.Namespace == f.Namespace &&
			!slices.Contains(cj.Active, f.UID) && !cj.LastScheduled.Before(f.Scheduled)
	}) {
		return noOwner
	}
	return running
}

// leftToOwner reports whether the object is deleted with its owner. Without votes, it is left to an owner that has finished.
func (c *recomputation) leftToOwner(f *lifecycle.Fact) bool {
	votes := c.votes[f.UID]
	withOwner := len(votes) == 0 || slices.ContainsFunc(votes, func(v vote) bool { return v.withOwner })
	state := c.ownerOf(f)
	return state == running || state == finished && withOwner
}
