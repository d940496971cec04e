// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package resourcelifecycle

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/utils/clock"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/registry/gc/internal/object"
	"github.com/winnow-dev/winnow/pkg/registry/gc/internal/permission"
	"github.com/winnow-dev/winnow/pkg/registry/gc/internal/testpolicy"
	"github.com/winnow-dev/winnow/pkg/registry/gc/schemas"
)

// lifecycle says when a Run has finished if when is not empty, and that its Secrets have these names.
func lifecycle(when string, names ...string) *gc.ResourceLifecycle {
	l := generation(1)
	if when != "" {
		l.Spec.Finished = &gc.FinishedExpressions{When: when, Succeeded: "true", At: "null"}
	}
	for _, n := range names {
		l.Spec.References = append(l.Spec.References, gc.LifecycleReference{To: gc.ResourceSecrets, Names: n})
	}
	return l
}

// TestWarnings: authors are told which parts of a lifecycle have no effect, and which expressions do not fit the schema.
func TestWarnings(t *testing.T) {
	schema := spec.MapProperty(nil)
	schema.AdditionalProperties, schema.Properties = nil, map[string]spec.Schema{"key": *spec.StringProperty()}
	const scoped = "has no effect: runs.example.com is cluster-scoped"
	refused := gc.ServedResource{Refusal: "is cluster-scoped", Refers: true}
	withNative := lifecycle("true")
	withNative.Spec.NativeTTL = "object.x"
	for name, tc := range map[string]struct {
		served    gc.ServedResource
		lifecycle *gc.ResourceLifecycle
		want      []string // how each begins
	}{
		"all is well":                            {gc.ServedResource{}, lifecycle("object.key == 'a'", "object.key"), nil},
		"only references":                        {gc.ServedResource{}, lifecycle("", "object.key"), nil},
		"a finish that does not fit":             {gc.ServedResource{}, lifecycle("object.x == 'a'", "object.key"), []string{"spec.finished.when does not fit the schema of runs.example.com: "}},
		"a native TTL that does not fit":         {gc.ServedResource{}, withNative, []string{"spec.nativeTTL does not fit "}},
		"references that do not fit":             {gc.ServedResource{}, lifecycle("", "object.key", "object.x", "object.y"), []string{"spec.references[1].names does not fit ", "spec.references[2].names does not fit "}},
		"data goes along":                        {gc.ServedResource{TakesAlong: "their claims"}, lifecycle("object.key == 'a'"), []string{"deleting objects of runs.example.com also deletes their claims"}},
		"no data goes by references":             {gc.ServedResource{TakesAlong: "their claims"}, lifecycle("", "object.key"), nil},
		"not served":                             {gc.ServedResource{Missing: true}, lifecycle("", "object.x"), []string{"the cluster does not serve runs.example.com"}},
		"not deleted":                            {refused, lifecycle("true"), []string{"the lifecycle " + scoped}},
		"not deleted, and refers":                {refused, lifecycle("", "object.key"), nil},
		"not deleted, and refers to what is not": {refused, lifecycle("", "object.x"), []string{"spec.references[0].names does not fit "}},
		"not deleted, with both":                 {refused, lifecycle("true", "object.x"), []string{"spec.finished " + scoped, "spec.references[0].names does not fit "}},
		"not watched either":                     {gc.ServedResource{Refusal: "is cluster-scoped"}, lifecycle("", "object.x"), []string{"the lifecycle " + scoped}},
	} {
		checker := schemas.NewChecker(func(context.Context, string) (*spec.Schema, error) { return schema, nil }, clock.RealClock{})
		r := &REST{served: func(string) gc.ServedResource { return tc.served }, schemas: checker}
		ctx, warnings := testpolicy.Request("")
		if r.warn(ctx, tc.lifecycle); !slices.EqualFunc(warnings.Texts, tc.want, strings.HasPrefix) {
			t.Errorf("%s: %q, want %q", name, warnings.Texts, tc.want)
		}
	}
}

// TestTable: the columns of a lifecycle that says only what is referred to.
func TestTable(t *testing.T) {
	for want, l := range map[string]*gc.ResourceLifecycle{"true": lifecycle("true"), "": lifecycle("", "object.key")} {
		i := slices.IndexFunc(kind.Columns, func(c object.Column[*gc.ResourceLifecycle]) bool { return c.Name == "Finished" })
		got, _ := kind.Columns[i].Cell(l, time.Now()).(string)
		if got != want {
			t.Errorf("the column is %q, want %q", got, want)
		}
	}
}

// TestPermissions: who says when objects finish must be able to delete them. Who says what is referred to, or has it forgotten, must be able
// to delete all ConfigMaps and Secrets as well.
func TestPermissions(t *testing.T) {
	const run, used = "runs.example.com", "configmaps secrets"
	next := func(l *gc.ResourceLifecycle) *gc.ResourceLifecycle {
		l.Generation++
		return l
	}
	for name, tc := range map[string]struct {
		before, after *gc.ResourceLifecycle
		want          string
	}{
		"a finish":             {nil, lifecycle("true"), run},
		"references":           {nil, lifecycle("", "'a'"), used + " " + run},
		"both":                 {nil, lifecycle("true", "'a'"), used + " " + run},
		"other references":     {lifecycle("", "'a'"), next(lifecycle("", "'b'")), used + " " + run},
		"references that go":   {lifecycle("true", "'a'"), next(lifecycle("true")), used + " " + run},
		"references that come": {lifecycle("true"), next(lifecycle("true", "'a'")), used + " " + run},
		"the same spec":        {lifecycle("true", "'a'"), lifecycle("true", "'a'"), ""},
	} {
		nobody := func(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
			return authorizer.DecisionNoOpinion, "", nil
		}
		r := &REST{permissions: permission.Checker{
			Resource: gc.Resource(kind.Resource), Noun: "lifecycle", Authorizer: authorizer.AuthorizerFunc(nobody),
		}}
		var before runtime.Object
		if tc.before != nil {
			before = tc.before
		}
		err := r.check(genericapirequest.WithUser(t.Context(), &user.DefaultInfo{Name: "vic"}), tc.after, before)
		var refused []string
		for _, resource := range strings.Fields(tc.want) {
			for _, verb := range []string{"delete", "list"} {
				refused = append(refused, "kubectl auth can-i "+verb+" "+resource+" --all-namespaces")
			}
		}
		slices.Sort(refused)
		switch {
		case tc.want == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case tc.want != "" && (err == nil || !strings.HasSuffix(err.Error(), "To check the missing permissions: "+strings.Join(refused, "; "))):
			t.Errorf("%s: %v, want %q", name, err, refused)
		}
	}
}
