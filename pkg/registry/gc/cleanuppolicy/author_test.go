// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package cleanuppolicy

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
)

// asking allows what it is told to, and notes what it was asked for.
type asking struct {
	allowed []string
	err     error
	asked   []string
}

func (a *asking) author() author { return author{authorizer.AuthorizerFunc(a.authorize)} }

func (a *asking) authorize(_ context.Context, attributes authorizer.Attributes) (authorizer.Decision, string, error) {
	resource := attributes.GetResource()
	if group := attributes.GetAPIGroup(); group != "" {
		resource += "." + group
	}
	line := strings.Join([]string{attributes.GetUser().GetName(), attributes.GetVerb(), resource, attributes.GetNamespace()}, " ")
	a.asked = append(a.asked, line)
	if slices.Contains(a.allowed, line) {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionNoOpinion, "", a.err
}

var (
	pods = []string{"alice list pods team-a", "alice delete pods team-a"}
	jobs = []string{"alice list jobs.batch team-a", "alice delete jobs.batch team-a"}
)

func TestAuthor(t *testing.T) {
	ofPods := gc.CleanupPolicySpec{Rules: []gc.CleanupRule{{Name: "a", Resources: []string{gc.ResourcePods}, TTL: ttl("1h")}}}
	ofAll := gc.CleanupPolicySpec{Rules: []gc.CleanupRule{{Name: "a", TTL: ttl("1h")}}}
	defaults := gc.CleanupPolicySpec{TTLAfterFinished: ttl("1h")}
	for name, tc := range map[string]struct {
		spec    gc.CleanupPolicySpec
		allowed []string
		asked   []string
		missing []string // nil: the policy may be written
	}{
		"nothing covered":            {spec: gc.CleanupPolicySpec{}},
		"pods, and may":              {spec: ofPods, allowed: pods, asked: pods},
		"pods, and may list alone":   {spec: ofPods, allowed: pods[:1], asked: pods, missing: []string{"delete pods"}},
		"pods, and may delete alone": {spec: ofPods, allowed: pods[1:], asked: pods, missing: []string{"list pods"}},
		"all, and may":               {spec: ofAll, allowed: slices.Concat(jobs, pods), asked: slices.Concat(jobs, pods)},
		"all, and may pods alone":    {spec: ofAll, allowed: pods, asked: slices.Concat(jobs, pods), missing: []string{"list jobs.batch", "delete jobs.batch"}},
		"defaults, and may not":      {spec: defaults, asked: slices.Concat(jobs, pods), missing: []string{"list jobs.batch", "delete jobs.batch", "list pods", "delete pods"}},
	} {
		a := &asking{allowed: tc.allowed}
		policy := stored()
		policy.Spec = tc.spec
		err := a.author().onCreate(nil)(by("alice"), policy)
		if !slices.Equal(a.asked, tc.asked) {
			t.Errorf("%s: asked for %q, want %q", name, a.asked, tc.asked)
		}
		if (err != nil) != (tc.missing != nil) || err != nil && !apierrors.IsForbidden(err) {
			t.Errorf("%s: got %v", name, err)
			continue
		}
		if n := len(tc.missing); n > 0 && strings.Count(err.Error(), "kubectl auth can-i") != n {
			t.Errorf("%s: got %v, want %d rights", name, err, n)
		}
		for _, right := range tc.missing {
			if want := "kubectl auth can-i " + right + " -n team-a"; !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got %v, want %q", name, err, want)
			}
		}
	}
}

func by(name string) context.Context {
	return genericapirequest.WithUser(context.Background(), &user.DefaultInfo{Name: name})
}

func TestAuthorOfUpdate(t *testing.T) {
	nobody := &asking{}
	admitted := 0
	onUpdate := nobody.author().onUpdate(func(context.Context, runtime.Object, runtime.Object) error { admitted++; return nil })
	if err := onUpdate(by("alice"), stored(), stored()); err != nil || len(nobody.asked) > 0 {
		t.Errorf("an update of metadata: %v, asked for %q", err, nobody.asked)
	}
	changed := stored()
	changed.Generation++
	if err := onUpdate(by("alice"), changed, stored()); !apierrors.IsForbidden(err) {
		t.Errorf("an update of the spec: %v", err)
	}
	if admitted != 1 {
		t.Errorf("admission was asked %d times, want once", admitted)
	}
}

// TestAuthorUnknown: doubt refuses.
func TestAuthorUnknown(t *testing.T) {
	broken := &asking{err: errors.New("no answer")}
	if err := broken.author().onCreate(nil)(by("alice"), stored()); !apierrors.IsInternalError(err) || !strings.Contains(err.Error(), "no answer") {
		t.Errorf("an authorizer that fails: %v", err)
	}
	if err := broken.author().onCreate(nil)(context.Background(), stored()); !apierrors.IsInternalError(err) {
		t.Errorf("a request without user: %v", err)
	}
}
