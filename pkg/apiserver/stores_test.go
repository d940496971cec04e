// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/apiserver"
	"github.com/winnow-dev/winnow/pkg/registry/gc/cleanuppolicy"
	"github.com/winnow-dev/winnow/pkg/registry/gc/clustercleanuppolicy"
	"github.com/winnow-dev/winnow/pkg/registry/gc/resourcelifecycle"
	"github.com/winnow-dev/winnow/pkg/registry/gc/schemas"
)

// server has the stores of all kinds over memory. It answers for everything that they ask, and notes what they have asked.
type server struct {
	t        *testing.T
	stores   map[string]store
	statuses map[string]rest.Updater
	memories memories

	lock    sync.Mutex
	allowed []string // such as "delete pods"
	asked   []string // those that were not allowed too

	holds     []gc.PolicyHold // of the forecast
	changes   []string        // that were forecast
	warnings  []string
	admission error // of everything
	admitted  int
}

// store is what is served of a kind.
type store interface {
	rest.Creater //nolint:misspell // that is its name
	rest.Updater
	rest.GracefulDeleter
	rest.CollectionDeleter
}

const mostPolicies = 2

func newServer(t *testing.T) *server {
	t.Helper()
	s := &server{t: t, memories: memories{}}
	now := clocktesting.NewFakePassiveClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	auth := authorizer.AuthorizerFunc(s.authorize)
	checker := schemas.NewChecker(func(context.Context, string) (*spec.Schema, error) { return nil, nil }, clock.RealClock{})
	named := func() (sets.Set[string], error) { return sets.New("runs.example.com"), nil }
	config := cleanuppolicy.Config{
		Scheme: apiserver.Scheme, Options: s.memories, Authorizer: auth, Clock: now, Forecast: s.forecast, Served: s.served, Checker: checker,
	}
	policies, err := cleanuppolicy.NewStorage(config, mostPolicies)
	if err != nil {
		t.Fatal(err)
	}
	clusterPolicies, err := clustercleanuppolicy.NewStorage(config, named)
	if err != nil {
		t.Fatal(err)
	}
	lifecycles, err := resourcelifecycle.NewStorage(apiserver.Scheme, s.memories, auth, now, s.forecastLifecycle, s.served, checker)
	if err != nil {
		t.Fatal(err)
	}
	s.stores = map[string]store{
		ofPolicies: policies.Policies, ofClusterPolicies: clusterPolicies.Policies, ofLifecycles: lifecycles.Lifecycles,
	}
	s.statuses = map[string]rest.Updater{
		ofPolicies: policies.Status, ofClusterPolicies: clusterPolicies.Status, ofLifecycles: lifecycles.Status,
	}
	return s
}

func (s *server) authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	resource := a.GetResource()
	if a.GetAPIGroup() != "" {
		resource += "." + a.GetAPIGroup()
	}
	if a.GetName() != "" {
		resource += "/" + a.GetName()
	}
	line := strings.TrimSpace(strings.Join([]string{a.GetVerb(), resource, a.GetNamespace()}, " "))
	s.lock.Lock()
	defer s.lock.Unlock()
	s.asked = append(s.asked, line)
	if slices.Contains(s.allowed, line) {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionNoOpinion, "", nil
}

func (s *server) forecast(_ context.Context, c gc.PolicyChange) gc.PolicyForecast {
	s.changes = append(s.changes, changeOf(c.Before != nil, c.After != nil, c.DryRun))
	return gc.PolicyForecast{Lines: []string{"forecast"}, Holds: s.holds, Complete: true, Leading: true}
}

func (s *server) forecastLifecycle(_ context.Context, c gc.LifecycleChange) []string {
	s.changes = append(s.changes, changeOf(c.Before != nil, c.After != nil, c.DryRun))
	return []string{"forecast"}
}

func changeOf(before, after, dry bool) string {
	change := map[bool]string{true: "create", false: "delete"}[after]
	if before && after {
		change = "update"
	}
	if dry {
		change += " dry"
	}
	return change
}

func (s *server) served(resource string) gc.ServedResource {
	if resource == "scoped.example.com" {
		return gc.ServedResource{Refusal: "is cluster-scoped"}
	}
	return gc.ServedResource{}
}

// AddWarning implements warning.Recorder.
func (s *server) AddWarning(_, text string) { s.warnings = append(s.warnings, text) }

func (s *server) admit(context.Context, runtime.Object) error {
	s.admitted++
	return s.admission
}

// names are the names of the samples.
var names = map[string]string{ofPolicies: "a", ofClusterPolicies: "a", ofLifecycles: "runs.example.com"}

// write is a request for a kind.
type write struct {
	verb   string
	change func(runtime.Object) // of the stored object, for an update
	dry    bool
}

var verbs = []string{"create", "apply", "update", "delete", "deletecollection"}

// do sends a request of vic, and returns its error.
func (s *server) do(kind string, w write) error {
	s.t.Helper()
	s.asked, s.changes, s.warnings, s.admitted = nil, nil, nil, 0
	info := &genericapirequest.RequestInfo{APIGroup: gc.GroupName, APIVersion: "v1alpha1", Resource: kind, Verb: w.verb}
	ctx := genericapirequest.WithUser(genericapirequest.WithRequestInfo(s.t.Context(), info), &user.DefaultInfo{Name: "vic"})
	ctx = warning.WithWarningRecorder(ctx, s)
	namespace := map[string]string{ofPolicies: "team-a"}[kind]
	ctx = genericapirequest.WithNamespace(ctx, namespace)
	var dry []string
	if w.dry {
		dry = []string{metav1.DryRunAll}
	}
	err := s.send(ctx, kind, w, dry)
	slices.Sort(s.asked)
	return err
}

func (s *server) send(ctx context.Context, kind string, w write, dry []string) error {
	store, admitUpdate := s.stores[kind], func(ctx context.Context, object, _ runtime.Object) error { return s.admit(ctx, object) }
	changed := func(object runtime.Object) runtime.Object {
		if w.change != nil {
			w.change(object)
		}
		return object
	}
	var err error
	switch w.verb {
	case "create":
		_, err = store.Create(ctx, changed(sample(kind, "1h")), s.admit, &metav1.CreateOptions{DryRun: dry})
	case "apply", "update", "status":
		info := rest.DefaultUpdatedObjectInfo(nil, func(_ context.Context, _, old runtime.Object) (runtime.Object, error) {
			if w.verb == "apply" {
				return changed(sample(kind, "1h")), nil
			}
			return changed(old.DeepCopyObject()), nil
		})
		updater := rest.Updater(store)
		if w.verb == "status" {
			updater = s.statuses[kind]
		}
		_, _, err = updater.Update(ctx, names[kind], info, s.admit, admitUpdate, w.verb == "apply", &metav1.UpdateOptions{DryRun: dry})
	case "delete":
		_, _, err = store.Delete(ctx, names[kind], s.admit, &metav1.DeleteOptions{DryRun: dry})
	case "deletecollection":
		_, err = store.DeleteCollection(ctx, s.admit, &metav1.DeleteOptions{DryRun: dry}, &metainternalversion.ListOptions{})
	}
	return err
}

// must sends a request of somebody who may do everything.
func (s *server) must(kind string, w write) {
	s.t.Helper()
	allowed := s.allowed
	s.allowed = everything
	if err := s.do(kind, w); err != nil {
		s.t.Fatalf("%s %s: %v", w.verb, kind, err)
	}
	s.allowed = allowed
}

const (
	ofPolicies        = "cleanuppolicies"
	ofClusterPolicies = "clustercleanuppolicies"
	ofLifecycles      = "resourcelifecycles"
)

// sample is an object of a kind, as the API server has decoded it, with this TTL.
func sample(kind string, ttl gc.TTL) runtime.Object {
	m := metav1.ObjectMeta{Name: names[kind]}
	switch kind {
	case ofPolicies:
		m.Namespace = "team-a"
		return &gc.CleanupPolicy{ObjectMeta: m, Spec: gc.CleanupPolicySpec{
			Mode: gc.ModeEnforce, AnnotationTTL: gc.AnnotationExtendOnly, TTLAfterFinished: &ttl,
		}}
	case ofClusterPolicies:
		return &gc.ClusterCleanupPolicy{ObjectMeta: m, Spec: gc.ClusterCleanupPolicySpec{
			Mode: gc.ModeEnforce, AnnotationTTL: gc.AnnotationExtendOnly, TTLAfterFinished: &ttl, NamespaceSelector: &metav1.LabelSelector{},
		}}
	}
	return &gc.ResourceLifecycle{ObjectMeta: m, Spec: gc.ResourceLifecycleSpec{
		Finished: &gc.FinishedExpressions{When: "object.a == '" + string(ttl) + "'", Succeeded: "true", At: "object.b"}, Dependents: gc.LifecycleLeaveToOwner,
	}}
}

// rights are those that a write of the sample of each kind takes.
var rights = map[string][]string{
	ofPolicies:        {"delete jobs.batch team-a", "delete pods team-a", "list jobs.batch team-a", "list pods team-a"},
	ofClusterPolicies: {"delete jobs.batch", "delete pods", "list jobs.batch", "list pods"},
	ofLifecycles:      {"delete runs.example.com", "list runs.example.com"},
}

var everything = slices.Concat(rights[ofPolicies], rights[ofClusterPolicies], rights[ofLifecycles])

// edited changes the spec of an object, and labeled does not.
func edited(object runtime.Object) {
	switch o := object.(type) {
	case *gc.CleanupPolicy:
		*o.Spec.TTLAfterFinished = "2h"
	case *gc.ClusterCleanupPolicy:
		*o.Spec.TTLAfterFinished = "2h"
	case *gc.ResourceLifecycle:
		o.Spec.Finished.When = "object.c == 'c'"
	}
}

func labeled(object runtime.Object) { object.(metav1.Object).SetLabels(map[string]string{"team": "a"}) }

func forEachWrite(t *testing.T, do func(t *testing.T, s *server, kind string, w write)) {
	for kind := range rights {
		for _, verb := range verbs {
			for _, dry := range []bool{false, true} {
				name := kind + " " + verb
				if dry {
					name += " dry"
				}
				t.Run(name, func(t *testing.T) {
					s, w := newServer(t), write{verb: verb, dry: dry}
					if verb != "create" && verb != "apply" {
						s.must(kind, write{verb: "create"})
					}
					if verb == "update" {
						w.change = edited
					}
					do(t, s, kind, w)
				})
			}
		}
	}
}

// TestStoresAskForRights: every write and every deletion asks for the rights on what it makes due, before anything is stored.
func TestStoresAskForRights(t *testing.T) {
	forEachWrite(t, func(t *testing.T, s *server, kind string, w write) {
		before := s.stored(kind)
		for _, lacking := range rights[kind] {
			s.allowed = slices.DeleteFunc(slices.Clone(rights[kind]), func(right string) bool { return right == lacking })
			err := s.do(kind, w)
			verb, resource, _ := strings.Cut(lacking, " ")
			resource, namespace, _ := strings.Cut(resource, " ")
			where := " --all-namespaces"
			if namespace != "" {
				where = " -n " + namespace
			}
			if want := "To check the missing permissions: kubectl auth can-i " + verb + " " + resource + where; !apierrors.IsForbidden(err) || !strings.HasSuffix(err.Error(), want) {
				t.Errorf("without %s: got %v, want %s", lacking, err, want)
			}
			if !slices.Equal(slices.Compact(s.asked), rights[kind]) {
				t.Errorf("asked for %q, want %q", s.asked, rights[kind])
			}
			if s.stored(kind) != before || s.admitted > 0 || len(s.changes) > 0 || len(s.warnings) > 0 {
				t.Errorf("refused, and yet: %q, admitted %d times, forecast %q, warnings %q", s.stored(kind), s.admitted, s.changes, s.warnings)
			}
		}
		s.allowed = rights[kind]
		if err := s.do(kind, w); err != nil {
			t.Errorf("with all rights: %v", err)
		}
		if changed := s.stored(kind) != before; changed == w.dry {
			t.Errorf("stored is %q, before %q", s.stored(kind), before)
		}
	})
}

// stored is what is stored of a kind.
func (s *server) stored(kind string) string {
	m := s.memories[kind]
	m.lock.Lock()
	defer m.lock.Unlock()
	var all []string
	for key, object := range m.objects {
		all = append(all, key+" "+string(object.data))
	}
	return strings.Join(all, "\n")
}

// TestStoresAdmit: admission is asked after the rights, and what it refuses is not stored.
func TestStoresAdmit(t *testing.T) {
	forEachWrite(t, func(t *testing.T, s *server, kind string, w write) {
		before := s.stored(kind)
		s.allowed, s.admission = rights[kind], errors.New("a webhook")
		if err := s.do(kind, w); err == nil || !strings.Contains(err.Error(), "a webhook") || s.admitted == 0 || len(s.asked) == 0 {
			t.Errorf("got %v, admitted %d times, asked for %q", err, s.admitted, s.asked)
		}
		if s.stored(kind) != before || len(s.changes) > 0 {
			t.Errorf("stored is %q, forecast %q", s.stored(kind), s.changes)
		}
	})
}

// TestStoresForecast: each change is forecast once, and the user is warned; a request that deletes many is not.
func TestStoresForecast(t *testing.T) {
	forEachWrite(t, func(t *testing.T, s *server, kind string, w write) {
		s.allowed = rights[kind]
		if err := s.do(kind, w); err != nil {
			t.Fatal(err)
		}
		want := map[string]string{"create": "create", "apply": "create", "update": "update", "delete": "delete"}[w.verb]
		if w.dry && want != "" {
			want += " dry"
		}
		if got := strings.Join(s.changes, " "); got != want {
			t.Errorf("forecast %q, want %q", got, want)
		}
		if slices.Contains(s.warnings, "forecast") != (want != "") {
			t.Errorf("warnings: %q", s.warnings)
		}
	})
}

// TestStoresWithoutRights: what makes nothing due takes no rights and is not forecast.
func TestStoresWithoutRights(t *testing.T) {
	for kind := range rights {
		s := newServer(t)
		s.must(kind, write{verb: "create"})
		for name, w := range map[string]write{
			"nothing": {verb: "update"}, "a label": {verb: "update", change: labeled}, "the status": {verb: "status", change: func(object runtime.Object) {
				edited(object) // It is not written.
				switch o := object.(type) {
				case *gc.CleanupPolicy:
					o.Status.Candidates = 7
				case *gc.ClusterCleanupPolicy:
					o.Status.Candidates = 7
				}
			}},
		} {
			if err := s.do(kind, w); err != nil || len(s.asked) > 0 || len(s.changes) > 0 {
				t.Errorf("%s, %s: got %v, asked for %q, forecast %q", kind, name, err, s.asked, s.changes)
			}
		}
		if strings.Contains(s.stored(kind), "2h") || strings.Contains(s.stored(kind), "'c'") || !strings.Contains(s.stored(kind), `"team":"a"`) {
			t.Errorf("%s: stored is %s", kind, s.stored(kind))
		}
		if kind != ofLifecycles && !strings.Contains(s.stored(kind), `"candidates":7`) {
			t.Errorf("%s: stored is %s", kind, s.stored(kind))
		}
	}
}

// TestStoresValidate: whatever the rights, what is invalid is not stored.
func TestStoresValidate(t *testing.T) {
	owner := []metav1.OwnerReference{{APIVersion: "v1", Kind: "Namespace", Name: "n", UID: "u"}}
	for name, tc := range map[string]struct {
		change func(runtime.Object)
		want   string
	}{
		"a finalizer": {func(o runtime.Object) { o.(metav1.Object).SetFinalizers([]string{"example.com/f"}) }, "metadata.finalizers[0]: Forbidden"},
		"an owner":    {func(o runtime.Object) { o.(metav1.Object).SetOwnerReferences(owner) }, "metadata.ownerReferences[0]: Forbidden"},
		"a spec": {func(o runtime.Object) {
			switch o := o.(type) {
			case *gc.CleanupPolicy:
				*o.Spec.TTLAfterFinished = "soon"
			case *gc.ClusterCleanupPolicy:
				*o.Spec.TTLAfterFinished = "soon"
			case *gc.ResourceLifecycle:
				o.Spec.Finished.When = "soon("
			}
		}, "spec."},
		"a resource": {func(o runtime.Object) {
			rules := []gc.CleanupRule{{Name: "a", Resources: []string{"scoped.example.com"}, TTL: new(gc.TTL("1h"))}}
			switch o := o.(type) {
			case *gc.CleanupPolicy:
				o.Spec.Rules = rules
			case *gc.ClusterCleanupPolicy:
				o.Spec.Rules = rules
			case *gc.ResourceLifecycle:
				o.Spec.Finished.At = "soon("
			}
		}, "spec."},
	} {
		for kind := range rights {
			for _, verb := range []string{"create", "apply", "update"} {
				s := newServer(t)
				if verb == "update" {
					s.must(kind, write{verb: "create"})
				}
				s.allowed = append([]string{
					"delete scoped.example.com team-a", "list scoped.example.com team-a", "delete scoped.example.com", "list scoped.example.com",
				}, everything...)
				before := s.stored(kind)
				if err := s.do(kind, write{verb: verb, change: tc.change}); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), tc.want) {
					t.Errorf("%s, %s %s: got %v, want %s", name, verb, kind, err, tc.want)
				}
				if s.stored(kind) != before {
					t.Errorf("%s, %s %s: stored", name, verb, kind)
				}
			}
		}
	}
}

// TestStoresApprove: an approval takes the verb, the rights on what waits, and a hold that exists.
func TestStoresApprove(t *testing.T) {
	for kind, approve := range map[string]string{
		ofPolicies: "approve cleanuppolicies.gc.winnow.dev/a team-a", ofClusterPolicies: "approve clustercleanuppolicies.gc.winnow.dev/a",
	} {
		waits := gc.PolicyHold{ID: "5f3c", Namespace: "team-b", Resources: []string{gc.ResourcePods}, Objects: 7}
		toDelete := []string{"delete pods team-b", "list pods team-b"}
		for name, tc := range map[string]struct {
			allowed []string
			holds   []gc.PolicyHold
			want    string
		}{
			"nothing waits":  {append(toDelete, approve), nil, "is not the ID of a hold"},
			"no verb":        {toDelete, []gc.PolicyHold{waits}, "approving a hold needs the verb"},
			"no permissions": {[]string{approve}, []gc.PolicyHold{waits}, "can-i delete pods -n team-b"},
			"all":            {append(toDelete, approve), []gc.PolicyHold{waits}, ""},
		} {
			s := newServer(t)
			s.must(kind, write{verb: "create"})
			s.allowed, s.holds = tc.allowed, tc.holds
			err := s.do(kind, write{verb: "update", change: func(o runtime.Object) {
				o.(metav1.Object).SetAnnotations(map[string]string{gc.AnnotationApprovedHold: "5f3c"})
			}})
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("%s, %s: got %v, want %q", kind, name, err, tc.want)
			}
			if approved := strings.Contains(s.stored(kind), `"5f3c"`); approved != (tc.want == "") {
				t.Errorf("%s, %s: approved %t", kind, name, approved)
			}
		}
	}
}

// TestStoresFree: the deletion of a policy takes the rights to what it keeps.
func TestStoresFree(t *testing.T) {
	with := func(change func(*gc.CleanupPolicySpec, *gc.ClusterCleanupPolicySpec)) func(runtime.Object) {
		return func(o runtime.Object) {
			switch o := o.(type) {
			case *gc.CleanupPolicy:
				o.Spec.TTLAfterFinished = nil
				change(&o.Spec, nil)
			case *gc.ClusterCleanupPolicy:
				o.Spec.TTLAfterFinished = nil
				change(nil, &o.Spec)
			}
		}
	}
	both := []string{"jobs.batch", "pods"}
	guards := append([]string{"runs.example.com"}, both...)
	slices.Sort(guards)
	guarded := func(g gc.Guardrails) func(runtime.Object) {
		return with(func(_ *gc.CleanupPolicySpec, c *gc.ClusterCleanupPolicySpec) { c.Guardrails = &g })
	}
	keep := []gc.CleanupRule{{Name: "a", Resources: []string{"runs.example.com"}, TTL: new(gc.TTLNever)}}
	for name, tc := range map[string]struct {
		kind   string
		change func(runtime.Object)
		want   []string
	}{
		"a rule that keeps": {ofPolicies, with(func(s *gc.CleanupPolicySpec, _ *gc.ClusterCleanupPolicySpec) { s.Rules = keep }), []string{"runs.example.com"}},
		"suspended": {ofPolicies, with(func(s *gc.CleanupPolicySpec, _ *gc.ClusterCleanupPolicySpec) {
			s.Suspend, s.TTLAfterFinished = true, new(gc.TTL("1h"))
		}), both},
		"a deadline": {ofPolicies, with(func(s *gc.CleanupPolicySpec, _ *gc.ClusterCleanupPolicySpec) { s.ActiveDeadline = new(gc.TTL("1h")) }), both},
		"empty":      {ofPolicies, with(func(*gc.CleanupPolicySpec, *gc.ClusterCleanupPolicySpec) {}), nil},
		"a preview": {ofPolicies, with(func(s *gc.CleanupPolicySpec, _ *gc.ClusterCleanupPolicySpec) {
			s.Mode, s.Rules = gc.ModePreview, keep
		}), nil},
		"a cluster policy": {ofClusterPolicies, with(func(_ *gc.CleanupPolicySpec, c *gc.ClusterCleanupPolicySpec) { c.Rules = keep }), []string{"runs.example.com"}},
		"an empty one":     {ofClusterPolicies, with(func(*gc.CleanupPolicySpec, *gc.ClusterCleanupPolicySpec) {}), nil},
		"a stop":           {ofClusterPolicies, guarded(gc.Guardrails{SuspendAll: true}), guards},
		"a lower bound":    {ofClusterPolicies, guarded(gc.Guardrails{MinTTL: new(gc.TTL("1h"))}), guards},
		"a limit":          {ofClusterPolicies, guarded(gc.Guardrails{HoldAbove: &gc.HoldAbove{Objects: new(int64(5))}}), guards},
		"a ceiling": {
			ofClusterPolicies, guarded(gc.Guardrails{Ceilings: []gc.Ceiling{{Resources: []string{"pods"}, MaxObjects: new(int64(5))}}}), guards,
		},
	} {
		for _, verb := range []string{"delete", "deletecollection"} {
			s := newServer(t)
			s.allowed = append([]string{
				"delete runs.example.com team-a", "list runs.example.com team-a", "patch jobs.batch team-a", "patch pods team-a",
			}, everything...)
			if err := s.do(tc.kind, write{verb: "create", change: tc.change}); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			s.allowed = nil
			err := s.do(tc.kind, write{verb: verb})
			in := ""
			if tc.kind == ofPolicies {
				in = " team-a"
			}
			var want []string
			for _, v := range []string{"delete ", "list "} {
				for _, resource := range tc.want {
					want = append(want, v+resource+in)
				}
			}
			if !slices.Equal(s.asked, want) || apierrors.IsForbidden(err) != (want != nil) || want == nil && err != nil {
				t.Errorf("%s of %s: got %v, asked for %q, want %q", verb, name, err, s.asked, want)
			}
			if there := s.memories[tc.kind].names() == "a"; there != (want != nil) {
				t.Errorf("%s of %s: still there: %t", verb, name, there)
			}
		}
	}
}

// TestStoresFreeUnreadable: a policy that cannot be read holds everything, and its deletion takes the rights to everything.
func TestStoresFreeUnreadable(t *testing.T) {
	for _, verb := range []string{"delete", "deletecollection"} {
		s := newServer(t)
		s.must(ofPolicies, write{verb: "create"})
		s.memories[ofPolicies].damage("a", `"mode":"Enforce"`, `"mode":"Preview","schedule":"nightly"`)
		s.allowed = everything
		err := s.do(ofPolicies, write{verb: verb})
		if want := []string{"delete *.* team-a", "list *.* team-a"}; !apierrors.IsForbidden(err) || !slices.Equal(s.asked, want) {
			t.Errorf("%s: got %v, asked for %q, want %q", verb, err, s.asked, want)
		}
		s.allowed = []string{"delete *.* team-a", "list *.* team-a"}
		if err := s.do(ofPolicies, write{verb: verb}); err != nil || s.memories[ofPolicies].names() != "" {
			t.Errorf("%s: %v", verb, err)
		}
	}
}

// TestStoresLimit: a namespace has at most so many policies, however they are created; cluster policies have no limit.
func TestStoresLimit(t *testing.T) {
	for kind, limited := range map[string]bool{ofPolicies: true, ofClusterPolicies: false} {
		for _, verb := range []string{"create", "apply"} {
			s := newServer(t)
			s.allowed = everything
			for _, name := range []string{"b", "c"} {
				if err := s.do(kind, write{verb: "create", change: func(o runtime.Object) { o.(metav1.Object).SetName(name) }}); err != nil {
					t.Fatal(err)
				}
			}
			if err := s.do(kind, write{verb: verb}); apierrors.IsInvalid(err) != limited || !limited && err != nil {
				t.Errorf("%s of another: %v", verb, err)
			}
		}
	}
}
