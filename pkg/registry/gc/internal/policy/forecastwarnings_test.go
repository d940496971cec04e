// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/registry/gc/internal/testpolicy"
)

// generations is what a change is from and to, and whether it is a dry run.
func generations(c gc.PolicyChange) string {
	of := func(p metav1.Object) string {
		if p == nil {
			return "none"
		}
		return fmt.Sprint(p.GetGeneration())
	}
	return fmt.Sprintf("%s to %s, %t", of(c.Before), of(c.After), c.DryRun)
}

func generation(n int64) *gc.CleanupPolicy {
	return &gc.CleanupPolicy{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "team-a", UID: "a", Generation: n}}
}

// advice is on a generation, so that it can be told from others.
func advice(_ context.Context, p Policy) []string {
	return []string{fmt.Sprintf("advice on %d", p.GetGeneration())}
}

// TestOutlook: the forecast is asked once for what is about to be written, and told when it was, before any advice.
func TestOutlook(t *testing.T) {
	refuse := errors.New("refused")
	for name, tc := range map[string]struct {
		dryRun  bool
		request func(ctx context.Context, o *forecastWarnings, validate error) error
		invalid error // what validation says
		failed  error // what the store says
		refused bool  // by what the forecast says
		asked   []string
		warned  []string
		told    string // of the approval
	}{
		"create":              {request: creates, asked: []string{"none to 1, false"}, warned: []string{"none to 1, false", "advice on 1"}},
		"create in dry run":   {request: creates, dryRun: true, asked: []string{"none to 1, true"}, warned: []string{"none to 1, true", "advice on 1"}},
		"invalid create":      {request: creates, invalid: refuse},
		"failed create":       {request: creates, failed: refuse, asked: []string{"none to 1, false"}},
		"update":              {request: updates(1, 2), asked: []string{"1 to 2, false"}, warned: []string{"1 to 2, false", "advice on 2"}},
		"invalid update":      {request: updates(1, 2), invalid: refuse},
		"update of labels":    {request: updates(1, 1)},
		"approval":            {request: approves("5f3c"), asked: []string{"1 to 1, false"}, warned: []string{"1 to 1, false"}, told: `"alice" approved 5f3c (7 in team-a)`},
		"approval in dry run": {request: approves("5f3c"), dryRun: true, asked: []string{"1 to 1, true"}, warned: []string{"1 to 1, true"}},
		"wrong approval":      {request: approves("77aa"), asked: []string{"1 to 1, false"}, refused: true},
		"refused approval":    {request: approves("5f3c"), invalid: refuse},
		"failed approval":     {request: approves("5f3c"), failed: refuse, asked: []string{"1 to 1, false"}},
		"update after a conflict with a status": {
			request: updates(1, 2, 1, 2), asked: []string{"1 to 2, false"}, warned: []string{"1 to 2, false", "advice on 2"},
		},
		"update after a conflict with a spec": {
			request: updates(1, 2, 2, 3), asked: []string{"1 to 2, false", "2 to 3, false"}, warned: []string{"2 to 3, false", "advice on 3"},
		},
		"delete":         {request: deletes, asked: []string{"1 to none, false"}, warned: []string{"1 to none, false"}},
		"refused delete": {request: deletes, invalid: refuse},
	} {
		t.Run(name, func(t *testing.T) {
			var asked []string
			told := ""
			ctx, w := testpolicy.Request("")
			ctx = genericapirequest.WithUser(ctx, &user.DefaultInfo{Name: "alice"})
			everybody := &asking{all: true}
			r := &REST{author: everybody.author(), forecast: func(_ context.Context, change gc.PolicyChange) gc.PolicyForecast {
				asked = append(asked, generations(change))
				return gc.PolicyForecast{
					Lines:    []string{generations(change)},
					Holds:    []gc.PolicyHold{{ID: "5f3c", Namespace: "team-a", Objects: 7}},
					Complete: true,
				}
			}, advise: advice, approved: func(_ context.Context, a gc.Approval) { told += a.String() }}
			var dryRun []string
			if tc.dryRun {
				dryRun = []string{metav1.DryRunAll}
			}
			o := r.forecastWarnings(dryRun)
			err := tc.request(ctx, o, tc.invalid)
			if apierrors.IsInvalid(err) != tc.refused || !tc.refused && !errors.Is(err, tc.invalid) {
				t.Errorf("validation: got %v, want %v", err, tc.invalid)
			}
			o.done(ctx, errors.Join(err, tc.failed))
			if told != tc.told {
				t.Errorf("told of %q, want %q", told, tc.told)
			}
			if !slices.Equal(asked, tc.asked) || !slices.Equal(w.Texts, tc.warned) {
				t.Errorf("asked for %q, warned of %q, want %q, %q", asked, w.Texts, tc.asked, tc.warned)
			}
		})
	}
}

func creates(ctx context.Context, o *forecastWarnings, invalid error) error {
	return o.onCreate(func(context.Context, runtime.Object) error { return invalid })(ctx, generation(1))
}

func deletes(ctx context.Context, o *forecastWarnings, invalid error) error {
	return o.onDelete(func(context.Context, runtime.Object) error { return invalid })(ctx, generation(1))
}

// updates tries with these pairs of generations.
func updates(tries ...int64) func(context.Context, *forecastWarnings, error) error {
	return func(ctx context.Context, o *forecastWarnings, invalid error) (err error) {
		validate := o.onUpdate(func(context.Context, runtime.Object, runtime.Object) error { return invalid })
		for i := 0; i < len(tries); i += 2 {
			err = validate(ctx, generation(tries[i+1]), generation(tries[i]))
		}
		return err
	}
}

func approves(id string) func(context.Context, *forecastWarnings, error) error {
	return func(ctx context.Context, o *forecastWarnings, invalid error) error {
		approved := generation(1)
		approved.Annotations = map[string]string{gc.AnnotationApprovedHold: id}
		return o.onUpdate(func(context.Context, runtime.Object, runtime.Object) error { return invalid })(ctx, approved, generation(1))
	}
}

// TestNobodyForecasts: a server without a controller.
func TestNobodyForecasts(t *testing.T) {
	ctx, w := testpolicy.Request("")
	silent := (&REST{author: (&asking{}).author(), advise: advice}).forecastWarnings(nil)
	if err := errors.Join(creates(ctx, silent, nil), updates(1, 2)(ctx, silent, nil), deletes(ctx, silent, nil)); err != nil {
		t.Error(err)
	}
	if silent.done(ctx, nil); !slices.Equal(w.Texts, []string{"advice on 2"}) {
		t.Errorf("warned of %q", w.Texts)
	}
}
