// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
)

// Object names an object. Resource is "resource.group".
type Object struct{ Resource, Namespace, Name string }

// field is the value of gc.FieldObject.
func (o Object) field() string { return o.Resource + "/" + o.Name }

// ServerCandidate returns what the server says about an object; nil if it says nothing, and sends a warning that says why.
func (c *Cluster) ServerCandidate(ctx context.Context, o Object) (*v1alpha1.CleanupCandidate, error) {
	all, err := c.policies.CleanupCandidates(o.Namespace).List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector(gc.FieldObject, o.field()).String(),
	})
	if err != nil || len(all.Items) == 0 {
		return nil, err
	}
	return &all.Items[0], nil
}

// Candidate returns what the engine says about an object, by the stored policies and these drafts; nil if it says nothing. The lines say
// what could not be read, and why there is no candidate.
func (c *Cluster) Candidate(ctx context.Context, o Object, drafts Drafts, now time.Time) (*v1alpha1.CleanupCandidate, []string, error) {
	w, err := c.Read(ctx, Options{Namespace: o.Namespace, Drafts: drafts, Resources: []string{}, Now: now})
	if err != nil {
		return nil, nil, err
	}
	candidates, err := w.candidates(ctx, fields.OneTermEqualSelector(gc.FieldObject, o.field()))
	switch lines := w.Notes(); {
	case err != nil:
		return nil, nil, err
	case len(candidates) > 0:
		return &candidates[0], lines, nil
	case w.unlisted[o.Resource] != nil:
		return nil, lines, nil
	case len(w.objects[o.Resource]) > 0:
		return nil, append(lines, gc.UnknownObject(o.field(), o.Namespace)), nil
	default:
		return nil, append(lines, gc.NoPolicyAbout(o.Resource, o.Namespace)), nil
	}
}

// Candidates returns the candidates of all policies and drafts.
func (w *World) Candidates(ctx context.Context) ([]v1alpha1.CleanupCandidate, error) {
	return w.candidates(ctx, fields.Everything())
}

// candidates returns those that a selector selects, and an object that is asked for by name also if it is no candidate.
func (w *World) candidates(ctx context.Context, which fields.Selector) ([]v1alpha1.CleanupCandidate, error) {
	judged := w.Judged()
	_, byName := which.RequiresExactMatch(gc.FieldObject)
	page, err := judged.Candidates(ctx, gc.CandidateQuery{
		Namespace: w.options.Namespace, Resources: sets.KeySet(judged.CandidateResources(w.options.Namespace)),
		Labels: labels.Everything(), Fields: which, All: byName,
	})
	out := make([]v1alpha1.CleanupCandidate, len(page.Items))
	for i := range page.Items {
		if err := v1alpha1.Convert_gc_CleanupCandidate_To_v1alpha1_CleanupCandidate(&page.Items[i], &out[i], nil); err != nil {
			return nil, err
		}
	}
	return out, err
}
