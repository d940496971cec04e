// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/winnow-dev/winnow/test/poll"
)

// toDelete are the rights that a policy with defaults demands, as kubectl auth can-i asks for them.
var toDelete = []string{"delete jobs.batch", "delete pods", "list jobs.batch", "list pods"}

// author is somebody who may write policies, and reaches them as p.client does.
type author struct {
	dynamic.ResourceInterface
	name string
}

// writer returns a new user, or a new ServiceAccount, who may write the policies of the scope and has these rights.
func (p scope) writer(name string, serviceAccount bool, rights ...string) author {
	p.t.Helper()
	who := p.id + "-" + name
	subject := rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: who}
	config, err := shared.UserConfig(who)
	if err != nil {
		p.t.Fatal(err)
	}
	if serviceAccount {
		subject = rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: metav1.NamespaceDefault, Name: who}
		config = p.token(who)
		who = "system:serviceaccount:default:" + who
	}
	p.grant(
		name+"-policies",
		subject,
		"get "+p.plural+".gc.winnow.dev",
		"create "+p.plural+".gc.winnow.dev",
		"patch "+p.plural+".gc.winnow.dev",
		"update "+p.plural+".gc.winnow.dev",
		"patch "+p.plural+"/status.gc.winnow.dev",
	)
	p.grant(name+"-rights", subject, rights...)
	for _, right := range append(rights, "patch "+p.plural+"/status.gc.winnow.dev") {
		p.awaitRight(who, right)
	}
	policies := dynamic.NewForConfigOrDie(config).
		Resource(schema.GroupVersionResource{Group: "gc.winnow.dev", Version: "v1alpha1", Resource: p.plural})
	if p.namespaced {
		return author{policies.Namespace(p.id), who}
	}
	return author{policies, who}
}

// token makes a ServiceAccount of the namespace default, and is what its Pods have.
func (p scope) token(name string) *rest.Config {
	p.t.Helper()
	accounts := kubernetes.NewForConfigOrDie(shared.RESTConfig()).CoreV1().ServiceAccounts(metav1.NamespaceDefault)
	if _, err := accounts.Create(p.t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
		p.t.Fatal(err)
	}
	request, err := accounts.CreateToken(p.t.Context(), name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		p.t.Fatal(err)
	}
	config := rest.AnonymousClientConfig(shared.RESTConfig())
	config.BearerToken = request.Status.Token
	return config
}

// grant binds a role of this name with these rights: in the namespace of the scope, or in the whole cluster.
func (p scope) grant(name string, subject rbacv1.Subject, rights ...string) {
	p.t.Helper()
	var rules []rbacv1.PolicyRule
	for _, right := range rights {
		verb, resource, _ := strings.Cut(right, " ")
		gr := schema.ParseGroupResource(resource)
		rules = append(rules, rbacv1.PolicyRule{Verbs: []string{verb}, APIGroups: []string{gr.Group}, Resources: []string{gr.Resource}})
	}
	rbac := kubernetes.NewForConfigOrDie(shared.RESTConfig()).RbacV1()
	called, subjects := metav1.ObjectMeta{Name: p.id + "-" + name}, []rbacv1.Subject{subject}
	var err error
	if p.namespaced {
		if _, err = rbac.Roles(p.id).Create(p.t.Context(), &rbacv1.Role{ObjectMeta: called, Rules: rules}, metav1.CreateOptions{}); err == nil {
			ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: called.Name}
			_, err = rbac.RoleBindings(p.id).
				Create(p.t.Context(), &rbacv1.RoleBinding{ObjectMeta: called, RoleRef: ref, Subjects: subjects}, metav1.CreateOptions{})
		}
	} else {
		if _, err = rbac.ClusterRoles().Create(p.t.Context(), &rbacv1.ClusterRole{ObjectMeta: called, Rules: rules}, metav1.CreateOptions{}); err == nil {
			ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: called.Name}
			_, err = rbac.ClusterRoleBindings().Create(p.t.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: called, RoleRef: ref, Subjects: subjects}, metav1.CreateOptions{})
		}
	}
	if err != nil {
		p.t.Fatal(err)
	}
}

// withdraw takes back what grant has granted under this name.
func (p scope) withdraw(name string) {
	p.t.Helper()
	if p.namespaced {
		kubectl(p.t, "delete", "rolebinding", p.id+"-"+name, "-n", p.id)
		return
	}
	kubectl(p.t, "delete", "clusterrolebinding", p.id+"-"+name)
}

// awaitRight waits until the cluster knows of a right: Winnow remembers for some seconds that the answer was no.
func (p scope) awaitRight(who, right string) {
	p.t.Helper()
	verb, resource, _ := strings.Cut(right, " ")
	gr := schema.ParseGroupResource(resource)
	name, subresource, _ := strings.Cut(gr.Resource, "/")
	attributes := &authorizationv1.ResourceAttributes{Verb: verb, Group: gr.Group, Resource: name, Subresource: subresource}
	if p.namespaced {
		attributes.Namespace = p.id
	}
	reviews := kubernetes.NewForConfigOrDie(shared.RESTConfig()).AuthorizationV1().SubjectAccessReviews()
	eventually(p.t, func(ctx context.Context) error {
		review := &authorizationv1.SubjectAccessReview{
			Spec: authorizationv1.SubjectAccessReviewSpec{User: who, ResourceAttributes: attributes},
		}
		answer, err := reviews.Create(ctx, review, metav1.CreateOptions{})
		if err == nil && !answer.Status.Allowed {
			err = fmt.Errorf("%s may not yet %s", who, right)
		}
		return err
	})
}

// object is a manifest as clients take it.
func (p scope) object(name, spec string) *unstructured.Unstructured {
	p.t.Helper()
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(p.manifest(name, spec)), &object.Object); err != nil {
		p.t.Fatal(err)
	}
	return object
}

// refusedFor fails unless the error is a 403 that names exactly these rights, or nil without any.
func (p scope) refusedFor(doing string, err error, rights ...string) {
	p.t.Helper()
	where := " --all-namespaces"
	if p.namespaced {
		where = " -n " + p.id
	}
	var lines []string
	for _, right := range slices.Sorted(slices.Values(rights)) {
		line := "kubectl auth can-i " + right + where
		if strings.HasPrefix(right, "approve ") {
			line = strings.TrimSuffix(line, " --all-namespaces")
		}
		lines = append(lines, line)
	}
	switch {
	case len(rights) == 0 && err != nil:
		p.t.Errorf("%s: %v", doing, err)
	case len(rights) > 0 && (!apierrors.IsForbidden(err) || !strings.HasSuffix(err.Error(), "To check the missing permissions: "+strings.Join(lines, "; "))):
		p.t.Errorf("%s: got %v, want 403 for %s", doing, err, lines)
	}
}

// TestAuthor: a user who may write policies and not delete Pods cannot have Pods deleted by a policy, in whichever way it is written.
func TestAuthor(t *testing.T) {
	forEachKind(t, func(t *testing.T, p scope) {
		for name, lacking := range map[string][]string{
			"all": nil, "no-right": toDelete,
			"no-delete-jobs": toDelete[:1], "no-delete-pods": toDelete[1:2], "no-list-jobs": toDelete[2:3], "no-list-pods": toDelete[3:],
		} {
			rights := slices.DeleteFunc(slices.Clone(toDelete), func(right string) bool { return slices.Contains(lacking, right) })
			for _, kind := range []string{"user", "account"} {
				t.Run(name+"-"+kind, func(t *testing.T) {
					t.Parallel()
					p := scope{p.kind, t, p.id}
					p.writes(p.writer(name+"-"+kind, kind == "account", rights...), name+"-"+kind, lacking)
				})
			}
		}
	})
}

// writes tries every way to write a policy with defaults, which a lack of these rights must forbid.
func (p scope) writes(who author, name string, lacking []string) {
	const wanted = `{ttlAfterFinished: 1h}`
	p.create(name, `{annotationTTL: Ignore}`) // reaches nothing
	fresh, there := p.object(name+"-new", wanted), p.object(name, wanted)
	apply := func(object *unstructured.Unstructured, dry []string) error {
		options := metav1.ApplyOptions{FieldManager: "second", Force: true, DryRun: dry}
		_, err := who.Apply(p.t.Context(), object.GetName(), object, options)
		return err
	}
	ways := map[string]func(dry []string) error{
		"create": func(dry []string) error {
			_, err := who.Create(p.t.Context(), fresh, metav1.CreateOptions{DryRun: dry})
			return err
		},
		"create by apply": func(dry []string) error { return apply(p.object(name+"-applied", wanted), dry) },
		"apply":           func(dry []string) error { return apply(there, dry) },
		"patch": func(dry []string) error {
			_, err := who.Patch(
				p.t.Context(),
				there.GetName(),
				types.MergePatchType,
				[]byte(`{"spec":{"ttlAfterFinished":"2h"}}`),
				metav1.PatchOptions{DryRun: dry},
			)
			return err
		},
		"update": func(dry []string) error {
			_, err := who.Update(p.t.Context(), p.object(name, `{capacity: {maxObjects: 3}}`), metav1.UpdateOptions{DryRun: dry})
			return err
		},
	}
	for way, try := range ways {
		p.refusedFor(way+" as a dry run", try([]string{metav1.DryRunAll}), lacking...)
		p.refusedFor(way, try(nil), lacking...)
	}
	_, err := who.Create(p.t.Context(), p.object(name+"-wrong", `{ttlAfterFinished: 1}`), metav1.CreateOptions{})
	if !apierrors.IsInvalid(err) && !apierrors.IsBadRequest(err) {
		p.t.Errorf("what is wrong comes first: %v", err)
	}
}

// TestRightsWithdrawn: the policy of an author who has lost the rights stays, and they may still do all that makes nothing go.
func TestRightsWithdrawn(t *testing.T) {
	forEachKind(t, func(t *testing.T, p scope) {
		toApprove := "approve " + p.plural + ".gc.winnow.dev"
		who, name := p.writer("author", false, append([]string{toApprove}, toDelete...)...), p.called("a")
		apply := func(manager string, object *unstructured.Unstructured, dry ...string) error {
			_, err := who.Apply(t.Context(), name, object, metav1.ApplyOptions{FieldManager: manager, Force: true, DryRun: dry})
			return err
		}
		patch := func(body string, subresource ...string) error {
			_, err := who.Patch(t.Context(), name, types.MergePatchType, []byte(body), metav1.PatchOptions{}, subresource...)
			return err
		}
		with := func(annotation, id string) *unstructured.Unstructured {
			object := p.object("a", `{ttlAfterFinished: 1h}`)
			object.SetAnnotations(map[string]string{annotation: id})
			return object
		}
		const approve, takeBack = `{"metadata":{"annotations":{"gc.winnow.dev/approved-hold":"5f3c"}}}`, `{"metadata":{"annotations":{"gc.winnow.dev/approved-hold":null}}}`
		p.refusedFor("an author with all rights", apply("first", p.object("a", `{ttlAfterFinished: 1h}`)))
		p.holds("a", "jobs.batch", "pods")
		p.refusedFor("an approval with all rights", patch(approve))

		p.withdraw("author-rights")
		eventually(t, func(context.Context) error { // that they were allowed is remembered for some seconds
			if err := apply("first", p.object("a", `{ttlAfterFinished: 3h}`), metav1.DryRunAll); !apierrors.IsForbidden(err) {
				return fmt.Errorf("still allowed: %v", err)
			}
			err := apply("second", with("gc.winnow.dev/approved-hold", "other"), metav1.DryRunAll)
			if err == nil || !strings.Contains(err.Error(), "can-i approve") {
				return fmt.Errorf("still allowed to approve: %v", err)
			}
			return nil
		})
		for doing, err := range map[string]error{
			"an apply of nothing":                 apply("first", p.object("a", `{ttlAfterFinished: 1h}`)),
			"an apply of nothing by another":      apply("second", p.object("a", `{ttlAfterFinished: 1h}`)),
			"the same approval again":             patch(approve),
			"a label":                             patch(`{"metadata":{"labels":{"team":"blue"}}}`),
			"a note by another":                   apply("second", with("note", "kept")),
			"the status":                          patch(`{"status":{"candidates":7}}`, "status"),
			"an approval through the status":      patch(`{"metadata":{"annotations":{"gc.winnow.dev/approved-hold":"other"}},"status":{"due":1}}`, "status"),
			"the approval taken back":             patch(takeBack),
			"the approval taken back, once again": patch(takeBack),
		} {
			p.refusedFor(doing, err)
		}
		for doing, try := range map[string]func() error{
			"a spec":            func() error { return patch(`{"spec":{"ttlAfterFinished":"2h"}}`) },
			"a longer ttl":      func() error { return patch(`{"spec":{"ttlAfterFinished":"10d"}}`) },
			"a spec by another": func() error { return apply("second", p.object("a", `{ttlAfterFinished: 2h}`)) },
		} {
			p.refusedFor(doing, try(), toDelete...)
		}
		for doing, try := range map[string]func() error{
			"an approval":              func() error { return patch(approve) },
			"an approval by another":   func() error { return apply("second", with("gc.winnow.dev/approved-hold", "5f3c")) },
			"an approval as a dry run": func() error { return apply("second", with("gc.winnow.dev/approved-hold", "5f3c"), metav1.DryRunAll) },
		} {
			p.refusedFor(doing, try(), append([]string{toApprove + "/" + name}, toDelete...)...)
		}
		policy := p.get("a")
		if *policy.Spec.TTLAfterFinished != "1h" || policy.Status.Candidates != 7 ||
			policy.Annotations["gc.winnow.dev/approved-hold"] != "" {
			t.Errorf("the policy did not stay as it was: %+v", policy)
		}
	})
}

// TestNamespaceAdminAndClusterPolicies: a user who may delete everything in a namespace can write no cluster policy, and if they were let,
// none that deletes.
func TestNamespaceAdminAndClusterPolicies(t *testing.T) {
	t.Parallel()
	team, p := namespace(t), scoped(t, ofCluster)
	path, err := shared.KubeconfigFor(team + "-admin")
	if err != nil {
		t.Fatal(err)
	}
	kubectl(t, "create", "rolebinding", "admin", "-n", team, "--clusterrole=admin", "--user="+team+"-admin")
	scope{ofNamespace, t, team}.awaitRight(team+"-admin", "delete pods")
	contains(t, refused(t, p.manifest("a", `{ttlAfterFinished: 1h}`), "create", "--kubeconfig", path, "-f", "-"),
		"(Forbidden)", `cannot create resource "clustercleanuppolicies" in API group "gc.winnow.dev" at the cluster scope`)

	kubectl(t, "create", "clusterrolebinding", p.id, "--clusterrole=winnow-operator", "--user="+team+"-admin")
	p.awaitRight(team+"-admin", "create clustercleanuppolicies.gc.winnow.dev")
	eventually(t, func(ctx context.Context) error { // that the answer was no is remembered
		_, stderr, err := shared.KubectlStdin(ctx, p.manifest("a", `{ttlAfterFinished: 1h}`), "create", "--kubeconfig", path, "-f", "-")
		if want := "kubectl auth can-i delete pods --all-namespaces"; err == nil || !strings.Contains(stderr, want) {
			return fmt.Errorf("got %s %v, want %s", stderr, err, want)
		}
		return nil
	})
}

// TestRightsOnWhatWasReached: a user who may delete only Pods may neither drop nor replace a rule that keeps Jobs, nor delete the policy.
func TestRightsOnWhatWasReached(t *testing.T) {
	forEachKind(t, func(t *testing.T, p scope) {
		who := p.writer("author", false, "delete pods", "list pods", "delete "+p.plural+".gc.winnow.dev")
		p.create("kept", `{rules: [{name: jobs, resources: [jobs.batch], ttl: never}]}`)
		for doing, body := range map[string]string{
			"a rule of Pods instead": `{"spec":{"rules":[{"name":"pods","resources":["pods"],"ttl":"never"}]}}`,
			"no rule":                `{"spec":{"rules":null}}`,
			"a shorter TTL":          `{"spec":{"rules":[{"name":"jobs","resources":["jobs.batch"],"ttl":"1h"}]}}`,
			"Preview":                `{"spec":{"mode":"Preview"}}`,
		} {
			_, err := who.Patch(t.Context(), p.called("kept"), types.MergePatchType, []byte(body), metav1.PatchOptions{})
			p.refusedFor(doing, err, "delete jobs.batch", "list jobs.batch")
		}
		_, err := who.Patch(
			t.Context(),
			p.called("kept"),
			types.MergePatchType,
			[]byte(`{"metadata":{"labels":{"team":"a"}}}`),
			metav1.PatchOptions{},
		)
		p.refusedFor("a label", err)
		err = who.Delete(t.Context(), p.called("kept"), metav1.DeleteOptions{})
		p.refusedFor("its deletion", err, "delete jobs.batch", "list jobs.batch")
	})
}

// TestRightsToRestrain: a user who may delete nothing may stop and restrain everything, but neither release that nor shorten what others
// have granted.
func TestRightsToRestrain(t *testing.T) {
	t.Parallel()
	p := scoped(t, ofCluster)
	who := p.writer("operator", false)
	for name, tc := range map[string]struct {
		spec, change string
		lacking      []string // to create it, or else to change it
	}{
		"stop":     {`{guardrails: {suspendAll: true}}`, `{"spec":{"guardrails":{"suspendAll":false}}}`, toDelete},
		"halt":     {`{guardrails: {minTTL: 1h}}`, `{"spec":{"guardrails":{"suspendAll":true}}}`, nil},
		"suspend":  {`{guardrails: {minTTL: 1h}}`, `{"spec":{"suspend":true}}`, nil},
		"bounds":   {`{guardrails: {minTTL: 1h}}`, `{"spec":{"guardrails":{"minTTL":"1m"}}}`, toDelete},
		"approval": {`{guardrails: {holdAbove: {objects: 1000000}}}`, "", toDelete},
		"maximum":  {`{guardrails: {maxTTL: 1h}}`, "", toDelete},
		"ceiling":  {`{guardrails: {ceilings: [{resources: [pods], maxObjects: 5}]}}`, "", []string{"delete pods", "list pods"}},
	} {
		_, err := who.Create(t.Context(), p.object(name, tc.spec), metav1.CreateOptions{})
		if tc.change != "" {
			p.refusedFor(name, err)
			_, err = who.Patch(t.Context(), p.called(name), types.MergePatchType, []byte(tc.change), metav1.PatchOptions{})
		}
		if slices.Equal(tc.lacking, toDelete) {
			p.refusedAtLeastFor(name, err, tc.lacking...)
		} else {
			p.refusedFor(name, err, tc.lacking...)
		}
	}
}

// refusedAtLeastFor is refusedFor where policies of other tests may name more resources, which guardrails reach too.
func (p scope) refusedAtLeastFor(doing string, err error, rights ...string) {
	p.t.Helper()
	for _, right := range rights {
		if line := "kubectl auth can-i " + right + " --all-namespaces"; !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), line) {
			p.t.Errorf("%s: got %v, want 403 for %s", doing, err, line)
		}
	}
}

// TestGuardrailsReachWhatOthersName: a user who may not delete Workflows cannot shorten how long policies keep them.
func TestGuardrailsReachWhatOthersName(t *testing.T) {
	t.Parallel()
	team := scoped(t, ofNamespace)
	team.create("workflows", `{rules: [{name: a, resources: [workflows.argoproj.io], ttl: 365d}]}`)
	p := scoped(t, ofCluster)
	lacks := func(who author) bool {
		maximum := p.object("maximum", `{guardrails: {maxTTL: 1h, allowNever: false}}`)
		_, err := who.Create(t.Context(), maximum, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err != nil && !apierrors.IsForbidden(err) {
			t.Fatal(err)
		}
		return err != nil && strings.Contains(err.Error(), "kubectl auth can-i delete workflows.argoproj.io --all-namespaces")
	}
	may := p.writer("all", false, append([]string{"delete workflows.argoproj.io", "list workflows.argoproj.io"}, toDelete...)...)
	who := p.writer("operator", false, toDelete...)
	err := poll.Until(t.Context(), 5*time.Minute, 50*time.Millisecond, func(context.Context) error {
		if !lacks(who) {
			return errors.New("the guardrail needs no permission to delete Workflows")
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if lacks(may) {
		t.Error("it is refused to somebody who may delete Workflows")
	}
}
