// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/warning"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/registry/gc/internal/once"
)

// Forecast returns what a change that is about to be written makes due at once. It must return within about two seconds, whatever
// happens.
type Forecast func(ctx context.Context, change gc.PolicyChange) gc.PolicyForecast

// Approved is told of each approval once it is stored. It must return at once.
type Approved func(context.Context, gc.Approval)

// forecastWarnings asks for the forecast of one request: after all other checks, and before anything is written, since what is due is
// gone soon after. Once the request has succeeded, the forecast becomes a warning, followed by advice on what is valid but probably not
// meant.
type forecastWarnings struct {
	author   author
	forecast Forecast
	advise   func(context.Context, Policy) []string
	approved Approved
	dryRun   bool

	told   once.Answer[gc.PolicyForecast]
	advice []string
	// before is nil for a new policy, and after for one that is deleted.
	before, after Policy
}

func (o *forecastWarnings) onCreate(then rest.ValidateObjectFunc) rest.ValidateObjectFunc {
	return func(ctx context.Context, obj runtime.Object) error {
		if err := then(ctx, obj); err != nil {
			return err
		}
		p := obj.(Policy)
		o.ask(ctx, nil, p)
		o.advice = o.advise(ctx, p)
		o.after = p
		return o.author.checkApproved(ctx, p, nil, o.told.Value)
	}
}

// onUpdate makes no forecast if the update neither changes the spec nor approves a hold.
func (o *forecastWarnings) onUpdate(then rest.ValidateObjectUpdateFunc) rest.ValidateObjectUpdateFunc {
	return func(ctx context.Context, obj, old runtime.Object) error {
		if err := then(ctx, obj, old); err != nil {
			return err
		}
		p, before := obj.(Policy), old.(Policy)
		o.before, o.after = before, p
		if p.GetGeneration() == before.GetGeneration() && len(gc.NewlyApproved(p, before)) == 0 {
			return nil
		}
		o.ask(ctx, before, p)
		if p.GetGeneration() != before.GetGeneration() {
			o.advice = o.advise(ctx, p)
		}
		return o.author.checkApproved(ctx, p, before, o.told.Value)
	}
}

func (o *forecastWarnings) onDelete(then rest.ValidateObjectFunc) rest.ValidateObjectFunc {
	return func(ctx context.Context, obj runtime.Object) error {
		if err := then(ctx, obj); err != nil {
			return err
		}
		o.ask(ctx, obj.(Policy), nil)
		return nil
	}
}

func (o *forecastWarnings) ask(ctx context.Context, before, after Policy) {
	if o.forecast == nil {
		return
	}
	change := gc.PolicyChange{DryRun: o.dryRun}
	if before != nil {
		change.Before = before
	}
	if after != nil {
		change.After = after
	}
	o.told.Ask(change.Before, change.After, func() gc.PolicyForecast { return o.forecast(ctx, change) })
}

// approval returns which holds the request approves, with what is known of them.
func (o *forecastWarnings) approval() gc.Approval {
	out := gc.Approval{Policy: o.after}
	var old metav1.Object // Not a nil Policy.
	if o.before != nil {
		old = o.before
	}
	all := slices.Concat(o.author.waiting(o.before), o.told.Value.Holds)
	for _, id := range gc.NewlyApproved(o.after, old) {
		hold := gc.PolicyHold{ID: id}
		if i := slices.IndexFunc(all, func(h gc.PolicyHold) bool { return h.ID == id }); i >= 0 {
			hold = all[i]
		}
		out.Holds = append(out.Holds, hold)
	}
	return out
}

// tellApproved tells of the approval, if the request was one.
func (o *forecastWarnings) tellApproved(ctx context.Context) {
	if o.approved == nil || o.dryRun || o.after == nil {
		return
	}
	who, ok := genericapirequest.UserFrom(ctx)
	if a := o.approval(); ok && len(a.Holds) > 0 {
		a.User = who.GetName()
		o.approved(ctx, a)
	}
}

// done adds the warnings to the response and tells of the approval, unless the request has failed.
func (o *forecastWarnings) done(ctx context.Context, err error) {
	if err != nil {
		return
	}
	o.tellApproved(ctx)
	for _, line := range slices.Concat(o.told.Value.Lines, o.advice) {
		warning.AddWarning(ctx, "", line)
	}
}
