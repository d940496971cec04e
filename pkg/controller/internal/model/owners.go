// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
)

// owner is what the controller of an object means for the object's deletion.
type owner int

const (
	noOwner  owner = iota // there is none, or it does not need the object
	running               // it needs the object, or is gone, and then the garbage collector deletes the object
	finished              // it needed the object, and has finished at a known time
	doubtful              // it has finished, nobody knows when, or it is not known whether it has
	unknown               // nothing says whether it needs the object
)

// ownerOf finds controllers by UID. Those in other namespaces do not count.
func (w *World) ownerOf(f *lifecycle.Fact) owner {
	if f.Controller == nil {
		return noOwner
	}
	switch f.Controller.GroupKind {
	case schema.GroupKind{Group: "apps", Kind: "ReplicaSet"},
		schema.GroupKind{Group: "apps", Kind: "StatefulSet"},
		schema.GroupKind{Group: "apps", Kind: "DaemonSet"},
		schema.GroupKind{Kind: "ReplicationController"}:
		return needsUnless(f.Resource == gc.ResourcePods && f.Finished)
	case schema.GroupKind{Group: "apps", Kind: "Deployment"}, schema.GroupKind{Kind: "Service"}, schema.GroupKind{Kind: "Endpoints"},
		schema.GroupKind{Kind: "Node"}:
		return running
	case schema.GroupKind{Group: "batch", Kind: "Job"}:
		return w.finisherOf(f, gc.ResourceJobs)
	case schema.GroupKind{Kind: "Pod"}:
		return w.finisherOf(f, gc.ResourcePods)
	case schema.GroupKind{Group: "argoproj.io", Kind: "Workflow"}:
		return w.finisherOf(f, DrawnWorkflows)
	case schema.GroupKind{Group: "batch", Kind: "CronJob"}:
		return w.cronJobOf(f)
	case schema.GroupKind{Group: "argoproj.io", Kind: "CronWorkflow"}:
		return w.cronWorkflowOf(f)
	case schema.GroupKind{Group: "keda.sh", Kind: "ScaledJob"}:
		return needsUnless(f.Finished)
	}
	return unknown
}

func needsUnless(released bool) owner {
	if released {
		return noOwner
	}
	return running
}

// finisherOf is ownerOf for an owner of a resource that finishes.
func (w *World) finisherOf(f *lifecycle.Fact, resource string) owner {
	for _, of := range w.Objects {
		switch {
		case of.Resource != resource || of.UID != f.Controller.UID || of.Namespace != f.Namespace:
		case of.Doubt != "" || of.FirstSeen != nil || of.Failed != "":
			return doubtful
		case of.Finished:
			return finished
		}
	}
	return running
}

// cronWorkflowOf is ownerOf for a CronWorkflow.
func (w *World) cronWorkflowOf(f *lifecycle.Fact) owner {
	for _, of := range w.Objects {
		switch {
		case !f.Finished || of.Resource != DrawnCronWorkflows || of.UID != f.Controller.UID || of.Namespace != f.Namespace:
		case of.Failed != "":
			return doubtful
		case !slices.Contains(of.Needs, f.Name):
			return noOwner
		}
	}
	return running
}

// counted reports whether the object is a finished Pod that its Job has counted, and that nobody reads again while the Job runs.
func (w *World) counted(f *lifecycle.Fact) bool {
	if f.Controller == nil || f.Controller.GroupKind != (schema.GroupKind{Group: "batch", Kind: "Job"}) ||
		f.Resource != gc.ResourcePods || !f.Finished || f.Uncounted {
		return false
	}
	return slices.ContainsFunc(w.Objects, func(of *lifecycle.Fact) bool {
		known := of.Resource == gc.ResourceJobs && of.UID == f.Controller.UID && of.Namespace == f.Namespace
		return known && w.ownerOf(f) != doubtful && !of.Terminating && !rereads(of, f)
	})
}

// rereads reports whether anybody may read a counted Pod of a Job again while the Job runs.
func rereads(job, pod *lifecycle.Fact) bool {
	return job.Rereads == lifecycle.RereadFailed && pod.Outcome == gc.OutcomeFailed ||
		job.Rereads == lifecycle.RereadByOwner || job.Rereads == lifecycle.RereadByManager
}

// released reports whether an owner does not matter, because all matches delete Pods once they are counted.
func (c *recomputation) released(f *lifecycle.Fact) bool {
	matches := c.matches[f.UID]
	return c.counted(f) && len(matches) > 0 && all(matches, func(v match) bool { return v.onceCounted })
}

// ownerUnderRules is ownerOf for the matches on the object.
func (c *recomputation) ownerUnderRules(f *lifecycle.Fact) owner {
	if c.released(f) {
		return noOwner
	}
	return c.ownerOf(f)
}

// endedAt is when an object finished or, if that is later, when the owner did that needed it.
func (c *recomputation) endedAt(f *lifecycle.Fact) time.Time {
	return c.notBeforeOwner(f, f.FinishedAt)
}

// notBeforeOwner returns a time of an object or, if that is later, when the owner finished that needed it.
func (c *recomputation) notBeforeOwner(f *lifecycle.Fact, at time.Time) time.Time {
	return c.notBeforeOwnerUnless(c.released(f), f, at)
}

// notBeforeOwnerUnless is notBeforeOwner if it is said whether the owner matters.
func (w *World) notBeforeOwnerUnless(released bool, f *lifecycle.Fact, at time.Time) time.Time {
	if released || w.ownerOf(f) != finished || at.IsZero() {
		return at
	}
	for _, of := range w.Objects {
		if of.UID == f.Controller.UID && of.FinishedAt.After(at) {
			return of.FinishedAt
		}
	}
	return at
}

// cronJobOf is ownerOf for a CronJob.
func (w *World) cronJobOf(f *lifecycle.Fact) owner {
	if slices.ContainsFunc(w.CronJobs, func(cj *lifecycle.CronJob) bool {
		return cj.UID == f.Controller.UID && cj.Namespace == f.Namespace && f.Resource == gc.ResourceJobs && f.Finished &&
			!slices.Contains(cj.Active, f.UID) && !cj.LastScheduled.Before(f.Scheduled)
	}) {
		return noOwner
	}
	return running
}

// leftToOwner reports whether the object is deleted with its owner. Without matches, it is left to an owner that has finished.
func (c *recomputation) leftToOwner(f *lifecycle.Fact) bool {
	matches := c.matches[f.UID]
	withOwner := len(matches) == 0 || slices.ContainsFunc(matches, func(v match) bool { return v.withOwner })
	state := c.ownerUnderRules(f)
	return state == running || (state == finished || state == doubtful) && withOwner
}
