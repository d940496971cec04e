// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ui serves the page of kubectl winnow ui on this machine. What the page shows comes from a Source, which asks the cluster with the
// permissions of the caller.
package ui

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/pkg/plugin/explain"
	"github.com/winnow-dev/winnow/pkg/plugin/local"
)

// Source answers with the permissions of the caller. Only Approve, Keep and Release change anything.
type Source interface {
	// Place says where the answers come from.
	Place(ctx context.Context) (Place, error)
	// Read calls add for each candidate of a namespace, or with "" of all. held says that it will be held when it is due.
	Read(ctx context.Context, namespace string, add func(c *v1alpha1.CleanupCandidate, held bool)) (Reading, error)
	// Explain says in words what happens to an object.
	Explain(ctx context.Context, object local.Object) (Explanation, error)
	// Keep keeps an object for a duration such as "7d", or with "forever" without end, as kubectl winnow keep does.
	Keep(ctx context.Context, object local.Object, duration string) error
	// Release undoes Keep.
	Release(ctx context.Context, object local.Object) error
	// Policies returns the policies of a namespace, or with "" of all, and the cluster policies. The notes say what is missing.
	Policies(ctx context.Context, namespace string) (all []Policy, notes []string, err error)
	// Approve approves these holds of a policy. Without a namespace, it is a cluster policy.
	Approve(ctx context.Context, policy types.NamespacedName, ids []string) error
	// Records returns what Winnow deleted since a time in a namespace, or with "" in all, the newest first.
	Records(ctx context.Context, namespace string, since time.Time) (History, error)
	// Preview says what a policy, as YAML, would delete, or what a ResourceLifecycle would change. A CleanupPolicy without a namespace counts
	// as one of the given namespace.
	Preview(ctx context.Context, namespace, text string) (Preview, error)
}

// Place is a cluster, and what the caller may see of it.
type Place struct {
	Context string `json:"context"`
	// Namespace is where the page begins; empty for all namespaces.
	Namespace string `json:"namespace"`
	// Default is the namespace of a policy that names none.
	Default string `json:"default"`
	// Namespaces are those that the caller may list. There are none if the caller may not.
	Namespaces []string `json:"namespaces,omitempty"`
	// Winnow says that the cluster has Winnow.
	Winnow bool `json:"winnow"`
	// Drafts says that policies of files count too, so that this process decides.
	Drafts  bool   `json:"drafts"`
	Version string `json:"version"`
}

// Explanation says what happens to an object, and what the caller may do about it.
type Explanation struct {
	explain.Words
	// MayKeep says that the caller may keep and release the object.
	MayKeep bool `json:"mayKeep,omitempty"`
	// Kept are the annotations that Release would remove.
	Kept map[string]string `json:"kept,omitempty"`
}

// Reading is what is known besides candidates.
type Reading struct {
	// Notes say what is hidden from the caller, or could not be read.
	Notes []string `json:"notes,omitempty"`
	// Finished are the finished objects, if they were listed.
	Finished []local.Finished `json:"finished,omitempty"`
}

// Policy is a policy with its status.
type Policy struct {
	Cluster   bool   `json:"cluster"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	Mode      string `json:"mode"`
	// Suspended says that the policy deletes nothing now.
	Suspended  bool               `json:"suspended"`
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	Candidates int64              `json:"candidates"`
	Due        int64              `json:"due"`
	Held       int64              `json:"held"`
	Deleted    int64              `json:"deleted"`
	Next       *metav1.Time       `json:"next,omitempty"`
	Holds      []Hold             `json:"holds,omitempty"`
	// UnlistedHolds is how many more holds there are.
	UnlistedHolds int64 `json:"unlistedHolds,omitempty"`
	// YAML is the policy as its author would write it.
	YAML string `json:"yaml"`
}

// Hold waits for approval.
type Hold struct {
	ID string `json:"id"`
	// Namespace is empty for all namespaces together.
	Namespace string       `json:"namespace,omitempty"`
	Objects   int64        `json:"objects"`
	Resources []string     `json:"resources,omitempty"`
	Why       string       `json:"why,omitempty"`
	Since     *metav1.Time `json:"since,omitempty"`
	// Approver is the other policy that must approve, if it is not this one.
	Approver string `json:"approver,omitempty"`
}

// History is what Winnow deleted.
type History struct {
	Records []Record `json:"records"`
	// Notes say what is hidden from the caller, or missing.
	Notes []string `json:"notes,omitempty"`
}

// Record is of an object that Winnow deleted.
type Record struct {
	Time      metav1.MicroTime `json:"time"`
	Namespace string           `json:"namespace"`
	Resource  string           `json:"resource"`
	Name      string           `json:"name"`
	UID       string           `json:"uid"`
	Policy    string           `json:"policy"`
	Rule      string           `json:"rule,omitempty"`
	Reason    string           `json:"reason"`
	// Late is how long after its due time the object was deleted; "-" if that is not known.
	Late    string `json:"late"`
	Owner   string `json:"owner"`
	Account string `json:"account,omitempty"`
	// AnswerLost says that somebody else may have deleted the object at the same time.
	AnswerLost bool `json:"answerLost,omitempty"`
	// Copied is for how much longer a copy is kept; "-" if there is none.
	Copied string `json:"copied"`
}

// Preview is what a policy would delete, or what is wrong with it.
type Preview struct {
	Kind      string                        `json:"kind,omitempty"`
	Namespace string                        `json:"namespace,omitempty"`
	Name      string                        `json:"name,omitempty"`
	Review    *v1alpha1.CleanupReviewStatus `json:"review,omitempty"`
	Warnings  []string                      `json:"warnings,omitempty"`
	Errors    []FieldError                  `json:"errors,omitempty"`
}

// FieldError says what is wrong with a field. Field is empty if the whole text is meant, and Line is 0 if it is not known.
type FieldError struct {
	Field   string `json:"field,omitempty"`
	Line    int    `json:"line,omitempty"`
	Message string `json:"message"`
}
