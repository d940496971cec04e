// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/lifecycle"
)

// owner is what the controller of an object means for it.
type owner int

const (
	nobody   owner = iota // nobody counts on the object
	running               // its controller does, or is not there, and then the garbage collector takes the object along
	finished              // its controller did, and has finished
	unknown               // nobody can tell
)

// ownerOf knows controllers by their UIDs; those in other namespaces are not believed.
func (w *World) ownerOf(f *lifecycle.Fact) owner {
	if f.Controller == nil {
		return nobody
	}
	switch f.Controller.GroupKind {
	case schema.GroupKind{Group: "apps", Kind: "ReplicaSet"},
		schema.GroupKind{Group: "apps", Kind: "StatefulSet"},
		schema.GroupKind{Group: "apps", Kind: "DaemonSet"}:
		return nobody
	case schema.GroupKind{Group: "batch", Kind: "Job"}:
		if slices.ContainsFunc(w.Objects, func(job *lifecycle.Fact) bool {
			return job.Resource == gc.ResourceJobs && job.UID == f.Controller.UID && job.Namespace == f.Namespace && job.Finished
		}) {
			return finished
		}
		return running
	case schema.GroupKind{Group: "batch", Kind: "CronJob"}:
		return w.cronJobOf(f)
	}
	return unknown
}

// cronJobOf is what the CronJob of a Job means for it.
func (w *World) cronJobOf(f *lifecycle.Fact) owner {
	if slices.ContainsFunc(w.CronJobs, func(cj *lifecycle.CronJob) bool {
		return cj.UID == f.Controller.UID && cj.Namespace == f.Namespace &&
			!slices.Contains(cj.Active, f.UID) && !cj.LastScheduled.Before(f.Scheduled)
	}) {
		return nobody
	}
	return running
}

// leftToOwner tells whether the object goes when its owner goes. Without votes it is left to an owner that has finished.
func (c *recomputation) leftToOwner(f *lifecycle.Fact) bool {
	votes := c.votes[f.UID]
	withOwner := len(votes) == 0 || slices.ContainsFunc(votes, func(v vote) bool { return v.withOwner })
	state := c.ownerOf(f)
	return state == running || state == finished && withOwner
}
