// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/registry/gc/internal/permission"
	"github.com/winnow-dev/winnow/pkg/registry/gc/internal/testpolicy"
)

// asking allows what it is told to, and notes what it was asked for.
type asking struct {
	all     bool
	allowed []string
	err     error

	lock  sync.Mutex
	asked []string
}

func (a *asking) author() author {
	named := func(p Policy) sets.Set[string] { return Reach(&p.(*gc.CleanupPolicy).Spec) }
	reach := func(p, _ Policy) (sets.Set[string], error) { return named(p), nil }
	freed := func(p Policy) (sets.Set[string], error) { return reach(p, nil) }
	deadlines := func(p, _ Policy) sets.Set[string] { return Deadlines(&p.(*gc.CleanupPolicy).Spec) }
	status := func(p Policy) *gc.CleanupPolicyStatus { return &p.(*gc.CleanupPolicy).Status }
	account := func(p Policy) string { return p.(*gc.CleanupPolicy).Spec.ServiceAccountName }
	return author{
		permission.Checker{Authorizer: authorizer.AuthorizerFunc(a.authorize), Resource: gc.Resource("cleanuppolicies"), Noun: "policy"},
		"CleanupPolicy", reach, freed, deadlines, status, named, account,
	}
}

func (a *asking) authorize(_ context.Context, attributes authorizer.Attributes) (authorizer.Decision, string, error) {
	resource := attributes.GetResource()
	if group := attributes.GetAPIGroup(); group != "" {
		resource += "." + group
	}
	if name := attributes.GetName(); name != "" {
		resource += "/" + name
	}
	line := strings.TrimSpace(
		strings.Join([]string{attributes.GetUser().GetName(), attributes.GetVerb(), resource, attributes.GetNamespace()}, " "),
	)
	a.lock.Lock()
	defer a.lock.Unlock()
	a.asked = append(a.asked, line)
	if a.all || slices.Contains(a.allowed, line) {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionNoOpinion, "", a.err
}

const robot = "system:serviceaccount:team-a:robot"

func TestAuthor(t *testing.T) {
	ofPods := gc.CleanupPolicySpec{Rules: []gc.CleanupRule{{Name: "a", Resources: []string{gc.ResourcePods}, TTL: testpolicy.TTL("1h")}}}
	ofAll := gc.CleanupPolicySpec{Rules: []gc.CleanupRule{{Name: "a", TTL: testpolicy.TTL("1h")}}}
	ended := *ofPods.DeepCopy()
	ended.Rules[0].ActiveDeadline = testpolicy.TTL("1h")
	patched := []string{"delete pods", "list pods", "patch pods"}
	const whyPatch = `it would set the activeDeadlineSeconds of objects that "WHO" cannot patch`
	limit := int64(5)
	pods := []string{"delete pods", "list pods"}
	jobs := []string{"delete jobs.batch", "list jobs.batch"}
	all := []string{jobs[0], pods[0], jobs[1], pods[1]}
	of := func(resource string) gc.CleanupPolicySpec {
		return gc.CleanupPolicySpec{Rules: []gc.CleanupRule{{Name: "a", Resources: []string{resource}, TTL: testpolicy.TTL("1h")}}}
	}
	workflows := []string{"delete workflows.argoproj.io", "list workflows.argoproj.io"}
	for name, tc := range map[string]struct {
		spec    gc.CleanupPolicySpec
		may     []string
		asked   []string
		missing []string // nil: the policy may be written
		why     string   // empty: it would delete objects
	}{
		"nothing reached":            {spec: gc.CleanupPolicySpec{Mode: gc.ModeEnforce}},
		"pods, and may":              {spec: ofPods, may: pods, asked: pods},
		"pods, and may delete alone": {spec: ofPods, may: pods[:1], asked: pods, missing: pods[1:]},
		"pods, and may list alone":   {spec: ofPods, may: pods[1:], asked: pods, missing: pods[:1]},
		"a custom resource":          {spec: of("workflows.argoproj.io"), may: workflows[:1], asked: workflows, missing: workflows[1:]},
		"all, and may":               {spec: ofAll, may: all, asked: all},
		"all, and may pods alone":    {spec: ofAll, may: pods, asked: all, missing: jobs},
		"a default ttl, and may not": {spec: gc.CleanupPolicySpec{TTLAfterFinished: testpolicy.TTL("1h")}, asked: all, missing: all},
		"a default capacity, and may jobs alone": {
			spec: gc.CleanupPolicySpec{Capacity: &gc.Capacity{MaxObjects: &limit}}, may: jobs, asked: all, missing: pods,
		},
		"a deadline, and may not patch": {spec: ended, may: pods, asked: patched, missing: patched[2:], why: whyPatch},
		"a deadline, and may":           {spec: ended, may: patched, asked: patched},
		"a deadline, and may not delete": {
			spec: ended, may: patched[1:], asked: patched, missing: patched[:1],
		},
		"a default deadline": {
			spec: gc.CleanupPolicySpec{ActiveDeadline: testpolicy.TTL("1h")}, may: all,
			asked: append([]string{"patch jobs.batch", "patch pods"}, all...), missing: []string{"patch jobs.batch", "patch pods"}, why: whyPatch,
		},
	} {
		for _, who := range []string{"alice", robot} {
			for _, namespace := range []string{"team-a", ""} {
				a := &asking{allowed: lines(who, namespace, tc.may)}
				policy := testpolicy.Stored()
				policy.Spec, policy.Namespace = tc.spec, namespace
				err := permission.OnCreate(a.author().check, nil)(by(who), policy)
				slices.Sort(a.asked)
				want := lines(who, namespace, tc.asked)
				if slices.Sort(want); !slices.Equal(a.asked, want) {
					t.Errorf("%s, %s in %q: asked for %q, want %q", name, who, namespace, a.asked, want)
				}
				if tc.missing == nil && err == nil {
					continue
				}
				why := cmp.Or(tc.why, `it would delete objects that "WHO" cannot list and delete`)
				message := strings.ReplaceAll(`"WHO" may not write this policy: `+why, "WHO", who) +
					". To check the missing permissions: " + commands(namespace, tc.missing)
				if !apierrors.IsForbidden(err) || !strings.HasSuffix(err.Error(), message) {
					t.Errorf("%s, %s in %q: got %v, want %s", name, who, namespace, err, message)
				}
			}
		}
	}
}

// TestAuthorOfARuleForAll: an author who names all resources needs the permissions on all of them, in later groups too.
func TestAuthorOfARuleForAll(t *testing.T) {
	p := testpolicy.Stored()
	p.Namespace, p.Spec.Rules[0].Resources, p.Spec.TTLAfterFinished = "", []string{gc.ResourceAll}, nil
	a := &asking{}
	err := permission.OnCreate(a.author().check, nil)(by("alice"), p)
	slices.Sort(a.asked)
	if want := []string{"alice delete *.*", "alice list *.*"}; !slices.Equal(a.asked, want) {
		t.Errorf("asked for %q, want %q", a.asked, want)
	}
	const want = "To check the missing permissions: kubectl auth can-i delete '*' --all-namespaces; kubectl auth can-i list '*' --all-namespaces"
	if !apierrors.IsForbidden(err) || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestAuthorOfGuardrails: guardrails delete nothing themselves, unless they have ceilings.
func TestAuthorOfGuardrails(t *testing.T) {
	const deletes = `it would delete objects that "alice" cannot list and delete`
	for name, tc := range map[string]struct {
		spec gc.ClusterCleanupPolicySpec
		why  string
	}{
		"bounds": {
			gc.ClusterCleanupPolicySpec{Guardrails: &gc.Guardrails{MaxTTL: testpolicy.TTL("1h")}},
			`it can change which objects are deleted, and "alice" cannot list and delete all of them`,
		},
		"a ceiling":           {gc.ClusterCleanupPolicySpec{Guardrails: &gc.Guardrails{Ceilings: []gc.Ceiling{{}}}}, deletes},
		"bounds and defaults": {gc.ClusterCleanupPolicySpec{Guardrails: &gc.Guardrails{}, TTLAfterFinished: testpolicy.TTL("1h")}, deletes},
	} {
		p := &gc.ClusterCleanupPolicy{Spec: tc.spec}
		err := (&asking{}).author().demand(by("alice"), p, permission.ToDelete(sets.New(gc.ResourcePods), ""))
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "may not write this policy: "+tc.why+". To check") {
			t.Errorf("%s: got %v, want %s", name, err, tc.why)
		}
	}
}

// lines are rights as asking notes them.
func lines(who, namespace string, rights []string) []string {
	var noted []string
	for _, right := range rights {
		noted = append(noted, strings.TrimSpace(who+" "+right+" "+namespace))
	}
	return noted
}

func commands(namespace string, rights []string) string {
	where := " --all-namespaces"
	if namespace != "" {
		where = " -n " + namespace
	}
	var all []string
	for _, right := range rights {
		all = append(all, "kubectl auth can-i "+right+where)
	}
	return strings.Join(all, "; ")
}

func by(name string) context.Context {
	return genericapirequest.WithUser(context.Background(), &user.DefaultInfo{Name: name})
}

// TestAuthorOfUpdate: those without rights may change what makes nothing go.
func TestAuthorOfUpdate(t *testing.T) {
	approved := func(p *gc.CleanupPolicy, id string) { p.Annotations = map[string]string{gc.AnnotationApprovedHold: id} }
	for name, tc := range map[string]struct {
		old, change func(*gc.CleanupPolicy)
		refused     bool
	}{
		"nothing":             {change: func(*gc.CleanupPolicy) {}},
		"a label":             {change: func(p *gc.CleanupPolicy) { p.Labels = map[string]string{"team": "b"} }},
		"a note":              {change: func(p *gc.CleanupPolicy) { p.Annotations["note"] = "changed" }},
		"the status":          {change: func(p *gc.CleanupPolicy) { p.Status.Due = 7 }},
		"the spec":            {change: func(p *gc.CleanupPolicy) { p.Generation++ }, refused: true},
		"an approval":         {change: func(p *gc.CleanupPolicy) { approved(p, "1") }, refused: true},
		"another approval":    {old: func(p *gc.CleanupPolicy) { approved(p, "1") }, change: func(p *gc.CleanupPolicy) { approved(p, "2") }, refused: true},
		"the same approval":   {old: func(p *gc.CleanupPolicy) { approved(p, "1") }, change: func(p *gc.CleanupPolicy) { approved(p, "1") }},
		"an approval gone":    {old: func(p *gc.CleanupPolicy) { approved(p, "1") }, change: func(p *gc.CleanupPolicy) { p.Annotations = nil }},
		"an approval emptied": {old: func(p *gc.CleanupPolicy) { approved(p, "1") }, change: func(p *gc.CleanupPolicy) { approved(p, "") }},
	} {
		nobody, admitted := &asking{}, 0
		onUpdate := permission.OnUpdate(nobody.author().check, func(context.Context, runtime.Object, runtime.Object) error { admitted++; return nil })
		old, changed := testpolicy.Stored(), testpolicy.Stored()
		if tc.old != nil {
			tc.old(old)
		}
		tc.change(changed)
		err := onUpdate(by("alice"), changed, old)
		if tc.refused != apierrors.IsForbidden(err) || tc.refused == (admitted == 1) || tc.refused == (len(nobody.asked) == 0) {
			t.Errorf("%s: got %v, asked for %q, admitted %d times", name, err, nobody.asked, admitted)
		}
	}
}

// TestAuthorUnknown: doubt refuses.
func TestAuthorUnknown(t *testing.T) {
	broken := &asking{err: errors.New("no answer")}
	if err := permission.OnCreate(broken.author().check, nil)(by("alice"), testpolicy.Stored()); !apierrors.IsInternalError(err) ||
		!strings.Contains(err.Error(), "no answer") {
		t.Errorf("an authorizer that fails: %v", err)
	}
	if err := permission.OnCreate(broken.author().check, nil)(context.Background(), testpolicy.Stored()); !apierrors.IsInternalError(err) {
		t.Errorf("a request without user: %v", err)
	}
}
