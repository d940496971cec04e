// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/pkg/controller/forecast"
	"github.com/winnow-dev/winnow/pkg/controller/objects/facts"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
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
	return w.Candidate(ctx, o)
}

// Candidate is Cluster.Candidate, for a World that was read before.
func (w *World) Candidate(ctx context.Context, o Object) (*v1alpha1.CleanupCandidate, []string, error) {
	candidates, _, err := w.page(ctx, gc.CandidateQuery{
		Namespace: o.Namespace, Fields: fields.OneTermEqualSelector(gc.FieldObject, o.field()), All: true,
	})
	switch lines := w.Notes(); {
	case err != nil:
		return nil, nil, err
	case len(candidates) > 0:
		return &candidates[0], lines, nil
	case w.unlisted[o.Resource] != nil:
		return nil, lines, nil
	case w.has(o):
		return nil, append(lines, fmt.Sprintf("no policy is about %s %s", o.Resource, gc.InNamespace(o.Namespace))), nil
	case len(w.objects[o.Resource]) > 0:
		return nil, append(lines, gc.UnknownObject(o.field(), o.Namespace)), nil
	default:
		return nil, append(lines, gc.NoPolicyAbout(o.Resource, o.Namespace)), nil
	}
}

// has reports whether an object was listed.
func (w *World) has(o Object) bool {
	return slices.ContainsFunc(w.objects[o.Resource], func(k *facts.Compact) bool {
		return k.Namespace == o.Namespace && k.Name() == o.Name
	})
}

// Excluded returns why nothing is deleted in a namespace, whatever policies say; empty if objects may be. about reports whether any policy
// names the resource.
func (w *World) Excluded(resource, namespace string) (reason policy.Reason, about bool) {
	if namespace == "" {
		return "", false
	}
	decided := w.decided()
	return decided.Excluded(namespace), decided.NamedResources().Has(resource)
}

// Deadline returns when a running object ends by the deadline that Winnow sets for it; zero if Winnow sets none, or the object has not
// started.
func (w *World) Deadline(o Object) time.Time {
	for _, v := range w.decided().Verdicts(o.Namespace, w.options.Now, w.options.Now) {
		if v.Reason == policy.ReasonActiveDeadline && o == (Object{v.Resource, v.Namespace, v.Name()}) {
			return v.At
		}
	}
	return time.Time{}
}

// Candidates returns the candidates of all policies and drafts.
func (w *World) Candidates(ctx context.Context) ([]v1alpha1.CleanupCandidate, error) {
	var out []v1alpha1.CleanupCandidate
	err := w.EachCandidate(ctx, func(c *v1alpha1.CleanupCandidate, _ bool) { out = append(out, *c) })
	return out, err
}

// pageSize is how many candidates are asked for at once. The server sends no more.
const pageSize = 1000

// EachCandidate calls f for each candidate of all policies and drafts. It also says whether the candidate will be held when it is due, as
// far as that is known.
func (w *World) EachCandidate(ctx context.Context, f func(c *v1alpha1.CleanupCandidate, held bool)) error {
	held := w.heldWhenDue()
	q := gc.CandidateQuery{Namespace: w.options.Namespace, Fields: fields.Everything(), Limit: pageSize}
	for {
		items, next, err := w.page(ctx, q)
		if err != nil {
			return err
		}
		for i := range items {
			c := &items[i]
			f(c, held.Has(Object{c.Status.Object.Resource, c.Namespace, c.Status.Object.Name}))
		}
		if next == nil {
			return nil
		}
		q.After = *next
	}
}

// heldWhenDue returns the objects that are held, or that will be when they are due within a week.
func (w *World) heldWhenDue() sets.Set[Object] {
	out := sets.New[Object]()
	for _, ns := range w.namespaces {
		for _, v := range w.decided().Verdicts(ns.Name, w.options.Now, w.options.Now.Add(forecast.Week)) {
			if v.State == gc.CandidateHeld {
				out.Insert(Object{v.Resource, v.Namespace, v.Name()})
			}
		}
	}
	return out
}

// page returns a page of candidates, and where the next one begins.
func (w *World) page(ctx context.Context, q gc.CandidateQuery) ([]v1alpha1.CleanupCandidate, *gc.CandidatePosition, error) {
	decided := w.decided()
	q.Resources, q.Labels = sets.KeySet(decided.CandidateResources(q.Namespace)), labels.Everything()
	page, err := decided.Candidates(ctx, q)
	if err != nil {
		return nil, nil, err
	}
	out := make([]v1alpha1.CleanupCandidate, len(page.Items))
	for i := range page.Items {
		if err := v1alpha1.Convert_gc_CleanupCandidate_To_v1alpha1_CleanupCandidate(&page.Items[i], &out[i], nil); err != nil {
			return nil, nil, err
		}
	}
	return out, page.Next, nil
}

// EachServerCandidate calls f for each candidate of the server in a namespace, or with "" in all. The server sends warnings that say what
// it hides from the caller.
func (c *Cluster) EachServerCandidate(ctx context.Context, namespace string, f func(*v1alpha1.CleanupCandidate)) error {
	options := metav1.ListOptions{Limit: pageSize}
	for {
		page, err := c.policies.CleanupCandidates(namespace).List(ctx, options)
		if err != nil {
			return err
		}
		for i := range page.Items {
			f(&page.Items[i])
		}
		if options.Continue = page.Continue; page.Continue == "" {
			return nil
		}
	}
}
