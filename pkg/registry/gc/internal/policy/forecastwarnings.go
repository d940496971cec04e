// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/warning"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/registry/gc/internal/once"
)

// Forecast returns what a change that is about to be written makes due at once. It must return within about two seconds, whatever
// happens.
type Forecast func(ctx context.Context, change gc.PolicyChange) gc.PolicyForecast

// forecastWarnings asks for the forecast of one request: after all other checks, and before anything is written, since what is due is
// gone soon after. Once the request has succeeded, the forecast becomes a warning, followed by advice on what is valid but probably not
// meant.
type forecastWarnings struct {
	author   author
	forecast Forecast
	advise   func(context.Context, Policy) []string
	dryRun   bool

	told   once.Answer[gc.PolicyForecast]
	advice []string
}

func (o *forecastWarnings) onCreate(then rest.ValidateObjectFunc) rest.ValidateObjectFunc {
	return func(ctx context.Context, obj runtime.Object) error {
		if err := then(ctx, obj); err != nil {
			return err
		}
		p := obj.(Policy)
		o.ask(ctx, nil, p)
		o.advice = o.advise(ctx, p)
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

// warn adds the warnings to the response, unless the request has failed.
func (o *forecastWarnings) warn(ctx context.Context, err error) {
	if err != nil {
		return
	}
	for _, line := range slices.Concat(o.told.Value.Lines, o.advice) {
		warning.AddWarning(ctx, "", line)
	}
}
