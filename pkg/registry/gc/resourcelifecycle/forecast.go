// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package resourcelifecycle

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/util/dryrun"
	"k8s.io/apiserver/pkg/warning"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/registry/gc/internal/once"
)

// Forecast returns what a change that is about to be written makes due at once. It must return within about two seconds, whatever happens.
type Forecast func(ctx context.Context, change gc.LifecycleChange) []string

// forecast asks for the forecast of one request: after all other checks, and before anything is written, since what is due is gone soon
// after. Once the request has succeeded, the forecast becomes a warning.
type forecast struct {
	ask    Forecast // may be nil
	dryRun bool
	told   once.Answer[[]string]
}

func (r *REST) newForecast(dryRun []string) *forecast {
	return &forecast{ask: r.forecast, dryRun: dryrun.IsDryRun(dryRun)}
}

func (f *forecast) onCreate(then rest.ValidateObjectFunc) rest.ValidateObjectFunc {
	return func(ctx context.Context, object runtime.Object) error {
		if err := then(ctx, object); err != nil {
			return err
		}
		f.of(ctx, nil, object)
		return nil
	}
}

// onUpdate makes no forecast if the update does not change the spec.
func (f *forecast) onUpdate(then rest.ValidateObjectUpdateFunc) rest.ValidateObjectUpdateFunc {
	return func(ctx context.Context, object, old runtime.Object) error {
		if err := then(ctx, object, old); err != nil {
			return err
		}
		if object.(*gc.ResourceLifecycle).Generation != old.(*gc.ResourceLifecycle).Generation {
			f.of(ctx, old, object)
		}
		return nil
	}
}

func (f *forecast) onDelete(then rest.ValidateObjectFunc) rest.ValidateObjectFunc {
	return func(ctx context.Context, object runtime.Object) error {
		if err := then(ctx, object); err != nil {
			return err
		}
		f.of(ctx, object, nil)
		return nil
	}
}

// of asks for the forecast. before is nil for a new lifecycle, and after for one that is deleted.
func (f *forecast) of(ctx context.Context, before, after runtime.Object) {
	if f.ask == nil {
		return
	}
	change := gc.LifecycleChange{DryRun: f.dryRun}
	var from, to metav1.Object
	if l, ok := before.(*gc.ResourceLifecycle); ok {
		change.Before, from = l, l
	}
	if l, ok := after.(*gc.ResourceLifecycle); ok {
		change.After, to = l, l
	}
	if from == nil && to == nil {
		return // A stored lifecycle that cannot be decoded is deleted.
	}
	f.told.Ask(from, to, func() []string { return f.ask(ctx, change) })
}

// warn adds the warnings to the response.
func (f *forecast) warn(ctx context.Context) {
	for _, line := range f.told.Value {
		warning.AddWarning(ctx, "", line)
	}
}
