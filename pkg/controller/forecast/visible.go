// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/engine/trial"
)

const (
	// questionsMost is how often the review of a cluster policy asks what its caller may list in one namespace, and questionsTimeout limits
	// how long all answers take. What is not answered is not visible.
	questionsMost, questionsTimeout = 2000, 2 * time.Second
	// questionsAtOnce is how many questions wait for an answer at the same time.
	questionsAtOnce = 16
)

// question asks whether the caller may list a resource in a namespace, or with "" in all namespaces.
type question struct{ namespace, resource string }

// look asks what the caller may see of what the draft needs, and limits the proposal to that. The answer depends on the permissions of the
// caller and on what policies name, and never on objects: otherwise a draft could find out whether there are objects with a label, or of an
// age. It does not depend on namespaces in which the caller may list nothing either: otherwise the selector of a draft could find out what
// labels these have.
func (r *review) look(ctx context.Context, f *Forecaster) error {
	if all, err := r.MayList(ctx, gc.ResourceAll, r.own()); err != nil || all {
		return err
	}
	needs := f.Tracker.Needs(ctx, r.proposal)
	if len(needs.Named) == 0 { // It has guardrails alone. Which resources these concern must not tell whether there are more namespaces.
		needs.Named = sets.New(gc.ResourceJobs, gc.ResourcePods)
	}
	resources := needs.Named.Clone()
	for _, needed := range needs.ByNamespace {
		resources = resources.Union(needed)
	}
	mayList, err := r.ask(ctx, questionsOn(r.own(), resources))
	if err != nil {
		return err
	}
	seen, open := r.sort(needs, mayList)
	answered, err := r.askSome(ctx, f.questionsTimeout, open[:min(len(open), f.questionsMost)])
	if err != nil {
		return err
	}
	for q, may := range answered {
		if may {
			seen[q.namespace].Insert(q.resource)
		}
	}
	r.show(needs, seen, mayList)
	return nil
}

// sort returns what the caller is known to see of what the draft needs, by namespace, and what to ask about the rest. mayList has the
// resources that the caller may list in the namespace of the draft, or for a cluster policy in all namespaces.
func (r *review) sort(needs trial.Needs, mayList map[question]bool) (seen map[string]sets.Set[string], open []question) {
	seen = map[string]sets.Set[string]{}
	for _, namespace := range slices.Sorted(maps.Keys(needs.ByNamespace)) {
		seen[namespace] = sets.New[string]()
		for _, q := range questionsOn(namespace, needs.ByNamespace[namespace]) {
			switch {
			case mayList[question{r.own(), q.resource}]:
				seen[namespace].Insert(q.resource)
			case r.own() == "":
				open = append(open, q)
			}
		}
	}
	return seen, open
}

// show limits the proposal to what the caller sees, by namespace. mayList is as in sort.
func (r *review) show(needs trial.Needs, seen map[string]sets.Set[string], mayList map[question]bool) {
	own, within := r.own(), map[string]sets.Set[string]{}
	r.hidden = sets.New[string]()
	hide := func(resources sets.Set[string]) {
		for resource := range resources {
			if !mayList[question{own, resource}] {
				r.hidden.Insert(resource)
			}
		}
	}
	if own == "" {
		hide(needs.Named)
	}
	for namespace, resources := range seen {
		r.partial = r.partial || own == "" && len(resources) < len(needs.ByNamespace[namespace])
		if namespace == own || own == "" && len(resources) > 0 {
			hide(needs.ByNamespace[namespace])
		}
		if namespace == own || len(resources) > 0 {
			within[namespace] = resources
		}
	}
	r.proposal = r.proposal.Within(within)
}

func questionsOn(namespace string, resources sets.Set[string]) []question {
	var out []question
	for _, resource := range sets.List(resources) {
		out = append(out, question{namespace, resource})
	}
	return out
}

// askSome is like ask, but leaves out what takes too long. It sets no deadline: a limit of the rate of questions would refuse those that
// have to wait beyond it, and that error would come before the deadline.
func (r *review) askSome(ctx context.Context, timeout time.Duration, all []question) (map[question]bool, error) {
	limited, cancel := context.WithCancel(ctx)
	defer cancel()
	timer, stop := context.WithTimeout(ctx, timeout)
	defer stop()
	defer context.AfterFunc(timer, cancel)()
	answers, err := r.ask(limited, all)
	if limited.Err() != nil && ctx.Err() == nil {
		return answers, nil
	}
	return answers, err
}

// ask returns the answers to questions. If there is an error, some are missing.
func (r *review) ask(ctx context.Context, all []question) (map[question]bool, error) {
	answers := map[question]bool{}
	var lock sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(questionsAtOnce)
	for _, q := range all {
		group.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			may, err := r.MayList(ctx, q.resource, q.namespace)
			if err != nil {
				return err
			}
			lock.Lock()
			defer lock.Unlock()
			answers[q] = may
			return nil
		})
	}
	return answers, group.Wait()
}
