// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package object

import (
	"errors"
	"slices"
	"strings"
	"testing"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/apis/gc/install"
	"github.com/winnow-dev/winnow/pkg/apis/gc/validation"
	"github.com/winnow-dev/winnow/pkg/registry/gc/internal/testpolicy"
)

// testKind is a kind without columns. What the kinds differ in is tested with them.
var testKind = Kind[*gc.CleanupPolicy, gc.CleanupPolicySpec, gc.CleanupPolicyStatus]{
	Name: "CleanupPolicy", Resource: "cleanuppolicies", Singular: "cleanuppolicy", Namespaced: true,

	Spec:       func(p *gc.CleanupPolicy) *gc.CleanupPolicySpec { return &p.Spec },
	Status:     func(p *gc.CleanupPolicy) *gc.CleanupPolicyStatus { return &p.Status },
	Selectable: func(p *gc.CleanupPolicy) fields.Set { return fields.Set{"spec.mode": string(p.Spec.Mode)} },

	Validate:       validation.ValidateCleanupPolicy,
	ValidateUpdate: validation.ValidateCleanupPolicyUpdate,
	ValidateStatus: validation.ValidateStatus,
}

func testStrategy() anyStrategy {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	return newStrategy(testKind, scheme)
}

func TestCreate(t *testing.T) {
	ctx, w := testpolicy.Request("")
	p := testpolicy.Stored()
	p.ResourceVersion, p.Generation = "", 9
	if err := rest.BeforeCreate(testStrategy(), ctx, p); err != nil {
		t.Fatal(err)
	}
	if p.Generation != 1 {
		t.Errorf("generation is %d, want 1", p.Generation)
	}
	if !apiequality.Semantic.DeepEqual(p.Status, gc.CleanupPolicyStatus{}) {
		t.Errorf("a status was created along: %+v", p.Status)
	}
	if len(w.Texts) > 0 {
		t.Errorf("warned of %q", w.Texts)
	}
}

// TestErrorsAreMerged looks at what a user sees of declarative and hand-written validation together: each field once.
func TestErrorsAreMerged(t *testing.T) {
	ctx, _ := testpolicy.Request("")
	p := testpolicy.Stored()
	p.ResourceVersion = ""
	p.Spec.Mode = "enforce"
	p.Spec.TTLAfterFinished = testpolicy.TTL(gc.TTL(strings.Repeat("1", 40)))
	p.Spec.Rules = []gc.CleanupRule{{
		Resources: []string{
			"jobs",
		}, Outcome: "Complete", Dependents: gc.DependentsWithOwner, PropagationPolicy: metav1.DeletePropagationOrphan,
		ManagedElsewhere: gc.ManagedElsewhereHold,
	}, {
		Name: "Not_A_Label", TTL: testpolicy.TTL("1h"), Dependents: "Never", PropagationPolicy: metav1.DeletePropagationBackground,
		ManagedElsewhere: gc.ManagedElsewhereDelete,
	}}
	err := rest.BeforeCreate(testStrategy(), ctx, p)
	if err == nil {
		t.Fatal("it was accepted")
	}
	for _, want := range []string{
		`spec.mode: Unsupported value: "enforce": supported values: "Enforce", "Preview"; did you mean "Enforce"?`, "spec.ttlAfterFinished: Too long", "spec.rules[0].name: Required value: set a name",
		"spec.rules[0].resources[0]: Invalid value", "spec.rules[0].outcome: Unsupported value", "spec.rules[0].ttl: Required value: set ttl, capacity, activeDeadline or several of them",
		"spec.rules[0].propagationPolicy: Unsupported value", "spec.rules[1].name: Invalid value", "spec.rules[1].dependents: Unsupported value",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in: %v", want, err)
		}
	}
	if n := strings.Count(err.Error(), "spec."); n != 9 {
		t.Errorf("want 9 errors, got %d: %v", n, err)
	}
}

func TestUpdate(t *testing.T) {
	for name, tc := range map[string]struct {
		change     func(*gc.CleanupPolicy)
		generation int64
		refused    string
	}{
		"nothing":       {change: func(*gc.CleanupPolicy) {}, generation: 3},
		"a label":       {change: func(p *gc.CleanupPolicy) { p.Labels = nil }, generation: 3},
		"the status":    {change: func(p *gc.CleanupPolicy) { p.Status.Candidates = 0 }, generation: 3},
		"an empty list": {change: func(p *gc.CleanupPolicy) { p.Spec.Rules[0].Resources = []string{} }, generation: 3},
		"generation":    {change: func(p *gc.CleanupPolicy) { p.Generation = 77 }, generation: 3},
		"the spec":      {change: func(p *gc.CleanupPolicy) { p.Spec.TTLAfterFinished = testpolicy.TTL("2h") }, generation: 4},
		"a finalizer":   {change: func(p *gc.CleanupPolicy) { p.Finalizers = []string{"example.com/a"} }, refused: "metadata.finalizers[0]"},
		"a wrong ttl":   {change: func(p *gc.CleanupPolicy) { p.Spec.Rules[0].TTL = testpolicy.TTL("7") }, refused: "spec.rules[0].ttl"},
		"a wrong mode":  {change: func(p *gc.CleanupPolicy) { p.Spec.Mode = "Dry" }, refused: "spec.mode"},
	} {
		ctx, _ := testpolicy.Request("")
		p := testpolicy.Stored()
		tc.change(p)
		err := rest.BeforeUpdate(testStrategy(), ctx, p, testpolicy.Stored())
		if tc.refused != "" {
			if err == nil || strings.Count(err.Error(), tc.refused) != 1 {
				t.Errorf("%s: got %v, want %s refused once", name, err, tc.refused)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if p.Generation != tc.generation || p.Status.Candidates != 12 {
			t.Errorf(
				"%s: generation %d, %d candidates; want generation %d, 12 candidates",
				name,
				p.Generation,
				p.Status.Candidates,
				tc.generation,
			)
		}
	}
}

func TestUpdateOfStatus(t *testing.T) {
	ctx, w := testpolicy.Request("status")
	p := testpolicy.Stored()
	p.Spec = gc.CleanupPolicySpec{}
	p.Labels, p.Annotations, p.Finalizers = nil, nil, []string{"example.com/a"}
	p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "a", UID: "b"}}
	p.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "winnow", Operation: "Update", APIVersion: "gc.winnow.dev/v1alpha1"}}
	p.Status.Candidates = 5
	if err := rest.BeforeUpdate(anyStatusStrategy{testStrategy()}, ctx, p, testpolicy.Stored()); err != nil {
		t.Fatal(err)
	}
	want := testpolicy.Stored()
	want.CreationTimestamp = p.CreationTimestamp
	want.Status.Candidates = 5
	want.ManagedFields = p.ManagedFields
	if !apiequality.Semantic.DeepEqual(p, want) {
		t.Errorf("a status writer changed more than the status:\n%+v\nwant\n%+v", p, want)
	}
	if len(w.Texts) > 0 {
		t.Errorf("a status writer was warned of %q", w.Texts)
	}
	p.Status.Due = -1
	if err := rest.BeforeUpdate(anyStatusStrategy{testStrategy()}, ctx, p, testpolicy.Stored()); err == nil ||
		!strings.Contains(err.Error(), "status.due") {
		t.Errorf("a negative count: %v", err)
	}
}

// TestUnreadable: nothing is written over a policy that is not understood whole, nor is what was read of it written elsewhere.
func TestUnreadable(t *testing.T) {
	why := errors.New(`unknown field "spec.x"`)
	unreadable := func() *gc.CleanupPolicy {
		p := testpolicy.Stored()
		gc.MarkUnreadable(p, why)
		return p
	}
	for name, c := range map[string]struct {
		strategy rest.RESTUpdateStrategy
		p        *gc.CleanupPolicy
	}{
		"the same":   {testStrategy(), unreadable()},
		"unmarked":   {testStrategy(), testpolicy.Stored()},
		"its status": {anyStatusStrategy{testStrategy()}, testpolicy.Stored()},
	} {
		ctx, _ := testpolicy.Request("")
		err := rest.BeforeUpdate(c.strategy, ctx, c.p, unreadable())
		if err == nil || strings.Count(err.Error(), why.Error()) != 1 || !strings.Contains(err.Error(), "delete and recreate it") {
			t.Errorf("%s: %v", name, err)
		}
	}
	ctx, w := testpolicy.Request("")
	for name, err := range map[string]error{
		"a copy":         rest.BeforeCreate(testStrategy(), ctx, unreadable()),
		"made to be one": rest.BeforeUpdate(testStrategy(), ctx, unreadable(), testpolicy.Stored()),
	} {
		if err == nil || !strings.Contains(err.Error(), "metadata.annotations["+gc.AnnotationUnreadable+"]: Forbidden") {
			t.Errorf("%s: %v", name, err)
		}
	}
	all := &gc.CleanupPolicyList{
		Items: []gc.CleanupPolicy{*testpolicy.Stored(), *unreadable(), *unreadable(), *unreadable(), *unreadable(), *unreadable()},
	}
	r := &REST{Store: &genericregistry.Store{SingularQualifiedResource: gc.Resource("cleanuppolicy")}}
	r.warnUnreadable(genericapirequest.WithUser(ctx, &user.DefaultInfo{Name: user.APIServerUser}), all)
	r.warnUnreadable(ctx, testpolicy.Stored())
	if len(w.Texts) != 0 {
		t.Errorf("warned of %q", w.Texts)
	}
	r.warnUnreadable(ctx, unreadable())
	const text = `cleanuppolicy "team-a/defaults" cannot be changed, because this version of Winnow does not understand all of it: unknown field "spec.x"`
	if want := []string{text}; !slices.Equal(w.Texts, want) {
		t.Errorf("warned of %q, want %q", w.Texts, want)
	}
	w.Texts = nil
	r.warnUnreadable(ctx, all)
	if want := []string{text, text, text, "2 more cannot be changed either; see their annotation " + gc.AnnotationUnreadable}; !slices.Equal(
		w.Texts,
		want,
	) {
		t.Errorf("warned of %q, want %q", w.Texts, want)
	}
}

func TestSelectors(t *testing.T) {
	for selector, want := range map[string]bool{
		"": true, "metadata.name=defaults": true, "metadata.name=other": false, "metadata.namespace=team-a": true,
		"spec.mode=Enforce": true, "spec.mode!=Enforce": false, "spec.mode=Preview,metadata.name=defaults": false,
	} {
		if got, err := matches(labels.Everything(), fields.ParseSelectorOrDie(selector), testpolicy.Stored()); err != nil || got != want {
			t.Errorf("field selector %q: got %v, %v, want %v", selector, got, err, want)
		}
	}
	for selector, want := range map[string]bool{"team=a": true, "team=b": false, "!team": false} {
		parsed, err := labels.Parse(selector)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := matches(parsed, fields.Everything(), testpolicy.Stored()); err != nil || got != want {
			t.Errorf("label selector %q: got %v, %v, want %v", selector, got, err, want)
		}
	}
	byMode := fields.OneTermEqualSelector("spec.mode", "Enforce")
	if _, err := matches(labels.Everything(), byMode, &gc.CleanupPolicyList{}); err == nil {
		t.Error("a list was matched")
	}
}

func matches(label labels.Selector, field fields.Selector, obj runtime.Object) (bool, error) {
	predicate := testStrategy().match(label, field)
	return predicate.Matches(obj)
}
