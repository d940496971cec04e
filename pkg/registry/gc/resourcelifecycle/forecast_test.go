// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package resourcelifecycle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/registry/gc/internal/testpolicy"
)

func generation(n int64) *gc.ResourceLifecycle {
	return &gc.ResourceLifecycle{ObjectMeta: metav1.ObjectMeta{Name: "runs.example.com", UID: "a", Generation: n}}
}

// written is what a change is from and to, and whether it is a dry run.
func written(c gc.LifecycleChange) string {
	of := func(l *gc.ResourceLifecycle) string {
		if l == nil {
			return "none"
		}
		return fmt.Sprint(l.Generation)
	}
	return fmt.Sprintf("%s of %s to %s, %t", c.Resource(), of(c.Before), of(c.After), c.DryRun)
}

// TestForecast: the forecast is asked once for what is about to be written, after all checks.
func TestForecast(t *testing.T) {
	refused := errors.New("refused")
	create := func(ctx context.Context, f *forecast, invalid error) error {
		return f.onCreate(func(context.Context, runtime.Object) error { return invalid })(ctx, generation(1))
	}
	update := func(tries ...int64) func(context.Context, *forecast, error) error {
		return func(ctx context.Context, f *forecast, invalid error) (err error) {
			validate := f.onUpdate(func(context.Context, runtime.Object, runtime.Object) error { return invalid })
			for i := 0; i < len(tries); i += 2 {
				err = validate(ctx, generation(tries[i+1]), generation(tries[i]))
			}
			return err
		}
	}
	deletion := func(object runtime.Object) func(context.Context, *forecast, error) error {
		return func(ctx context.Context, f *forecast, invalid error) error {
			return f.onDelete(func(context.Context, runtime.Object) error { return invalid })(ctx, object)
		}
	}
	for name, tc := range map[string]struct {
		request func(context.Context, *forecast, error) error
		dryRun  []string
		invalid error
		want    []string
	}{
		"create":                        {request: create, want: []string{"runs.example.com of none to 1, false"}},
		"create in dry run":             {request: create, dryRun: []string{metav1.DryRunAll}, want: []string{"runs.example.com of none to 1, true"}},
		"refused create":                {request: create, invalid: refused},
		"update":                        {request: update(1, 2), want: []string{"runs.example.com of 1 to 2, false"}},
		"update of labels":              {request: update(1, 1)},
		"refused update":                {request: update(1, 2), invalid: refused},
		"update after a conflict":       {request: update(1, 2, 1, 2), want: []string{"runs.example.com of 1 to 2, false"}},
		"update after another update":   {request: update(1, 2, 2, 3), want: []string{"runs.example.com of 1 to 2, false", "runs.example.com of 2 to 3, false"}},
		"delete":                        {request: deletion(generation(1)), want: []string{"runs.example.com of 1 to none, false"}},
		"refused delete":                {request: deletion(generation(1)), invalid: refused},
		"delete what cannot be decoded": {request: deletion(nil)},
	} {
		t.Run(name, func(t *testing.T) {
			var asked []string
			r := &REST{forecast: func(_ context.Context, change gc.LifecycleChange) []string {
				asked = append(asked, written(change))
				return []string{"due by " + written(change)}
			}}
			ctx, warnings := testpolicy.Request("")
			f := r.newForecast(tc.dryRun)
			if err := tc.request(ctx, f, tc.invalid); !errors.Is(err, tc.invalid) {
				t.Errorf("got error %v, want %v", err, tc.invalid)
			}
			f.warn(ctx)
			var warned []string
			if n := len(tc.want); n > 0 {
				warned = []string{"due by " + tc.want[n-1]}
			}
			if !slices.Equal(asked, tc.want) || !slices.Equal(warnings.Texts, warned) {
				t.Errorf("asked for %q, warned of %q, want %q, %q", asked, warnings.Texts, tc.want, warned)
			}
			if err := tc.request(ctx, (&REST{}).newForecast(nil), nil); err != nil {
				t.Errorf("without forecasts: %v", err)
			}
		})
	}
}
