// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/winnow-dev/winnow/test/platforms"
)

const widgetDefinition = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.served.example.com}
spec:
  group: served.example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          status:
            type: object
            properties:
              phase: {type: string}
              finishedAt: {type: string, format: date-time}
`

// define creates a CustomResourceDefinition, and deletes it after the test.
func define(t *testing.T, manifest string) {
	t.Helper()
	definition := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(manifest), &definition.Object); err != nil {
		t.Fatal(err)
	}
	definitions := dynamic.NewForConfigOrDie(shared.RESTConfig()).Resource(platforms.Definitions)
	if _, err := definitions.Create(t.Context(), definition, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := definitions.Delete(context.Background(), definition.GetName(), metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
}

// warnings applies a manifest and returns what the user is warned of.
func warnings(t *testing.T, manifest string) string {
	t.Helper()
	_, warned, err := shared.KubectlStdin(t.Context(), manifest, "apply", "-f", "-")
	if err != nil {
		t.Fatal(err)
	}
	return warned
}

// TestServedResources: a policy's author is warned about resources that the cluster does not serve, and about expressions that do not fit
// the schema. It runs alone, because Winnow may not list the resource, and warns of that in all forecasts for these namespaces.
func TestServedResources(t *testing.T) {
	team := "served-resources"
	kubectl(t, "create", "namespace", team)
	policy := func(resource string) string {
		return fmt.Sprintf(`{apiVersion: gc.winnow.dev/v1alpha1, kind: CleanupPolicy, metadata: {name: a, namespace: %s},
spec: {rules: [{name: a, resources: [%s], ttl: 1h}]}}`, team, resource)
	}
	ceiling := func(resource string) string {
		return fmt.Sprintf(`{apiVersion: gc.winnow.dev/v1alpha1, kind: ClusterCleanupPolicy, metadata: {name: %s},
spec: {mode: Preview, namespaceSelector: {matchLabels: {a: b}}, guardrails: {ceilings: [{resources: [%s], maxObjects: 5}]}}}`, team, resource)
	}
	for resource, why := range map[string]string{
		"ingressclasses.networking.k8s.io":               "is cluster-scoped, and Winnow deletes only objects in namespaces",
		"localsubjectaccessreviews.authorization.k8s.io": `does not support the verb "list"`,
	} {
		eventually(t, func(context.Context) error { // The controller has to read what the cluster serves first.
			_, stderr, err := shared.KubectlStdin(t.Context(), policy(resource), "create", "--dry-run=server", "-f", "-")
			if err == nil {
				return fmt.Errorf("%s is not refused: %s", resource, stderr)
			}
			contains(t, stderr, "spec.rules[0].resources[0]: Invalid value", why)
			return nil
		})
		contains(t, refused(t, ceiling(resource), "create", "-f", "-"), "spec.guardrails.ceilings[0].resources[0]: Invalid value", why)
	}

	const widgets = "widgets.served.example.com"
	const waits = "the cluster does not serve widgets.served.example.com; this applies as soon as it does"
	contains(t, warnings(t, policy(widgets)), "Warning: spec.rules[0].resources[0]: "+waits)
	contains(t, warnings(t, ceiling(widgets)), "Warning: spec.guardrails.ceilings[0].resources[0]: "+waits)
	contains(t, warnings(t, lifecycle(widgets, succeeds)), "Warning: "+waits)
	contains(t, warnings(t, policy("deployment.apps")), `the cluster does not serve deployment.apps`, `Did you mean "deployments.apps"?`)
	contains(t, warnings(t, lifecycle("ingressclasses.networking.k8s.io", succeeds)), "the lifecycle has no effect", "is cluster-scoped")

	define(t, widgetDefinition)
	eventually(t, func(context.Context) error {
		if warned := warnings(t, policy(widgets)); warned != "" {
			return fmt.Errorf("warned of %s", warned)
		}
		return nil
	})
	if warned := warnings(t, lifecycle(widgets, succeeds)); warned != "" {
		t.Errorf("warned of %s", warned)
	}
	const misfit = "Warning: spec.finished.succeeded does not fit the schema of " + widgets +
		": 1:14: undefined field 'outcome'. Objects for which it fails are kept"
	eventually(t, func(context.Context) error { // The schema is published some time after the resource is served.
		manifest := lifecycle(widgets, "object.status.outcome == 'Good'")
		_, warned, err := shared.KubectlStdin(t.Context(), manifest, "replace", "--dry-run=server", "-f", "-")
		if err != nil || !strings.Contains(warned, misfit) {
			return fmt.Errorf("warned of %q, %w", warned, err)
		}
		return nil
	})
	kubectl(t, "delete", "cup", "a", "-n", team)
	kubectl(t, "delete", "ccup", team)
	kubectl(t, "delete", "rlc", widgets, "ingressclasses.networking.k8s.io")
}

// TestMatchConditions: one that does not compile is refused, with its position. One that does not fit the schema is warned of.
func TestMatchConditions(t *testing.T) {
	forEachKind(t, func(t *testing.T, p scope) {
		rule := func(expression string) string {
			return p.manifest("a", `{rules: [{name: a, ttl: 7d, resources: [jobs.batch], matchConditions: [{name: c, expression: "`+expression+`"}]}]}`)
		}
		contains(t, refused(t, rule("object.metadata.name = 'a'"), "create", "-f", "-"),
			"spec.rules[0].matchConditions[0].expression: Invalid value", "<input>:1:22: Syntax error")
		contains(t, refused(t, rule("object.metadata.name"), "create", "-f", "-"), "must evaluate to bool")
		contains(t, refused(t, p.manifest("a", `{rules: [{name: a, ttl: 7d, matchConditions: [{expression: "true"}]}]}`), "create", "-f", "-"),
			"spec.rules[0].matchConditions[0].name: Required value: set a name")
		contains(t, warnings(t, rule("object.spec.paralelism > 1")),
			"spec.rules[0].matchConditions[0].expression does not fit the schema of jobs.batch: 1:12: undefined field 'paralelism'")
		contains(t, warnings(t, rule("object.metadata.lables['app'] == 'a'")), "1:16: undefined field 'lables'")
		if warned := warnings(t, rule("object.spec.parallelism > 1 && object.metadata.namespace == 'a'")); strings.Contains(warned, "schema") {
			t.Errorf("warned %q", warned)
		}
	})
}

// TestAuthorOfALifecycle: who says when objects have finished must be allowed to delete them.
func TestAuthorOfALifecycle(t *testing.T) {
	t.Parallel()
	p := scope{kind{plural: "resourcelifecycles"}, t, identifier(t)}
	const name = "authored.example.com"
	who := p.writer("author", false, "delete resourcelifecycles.gc.winnow.dev", "deletecollection resourcelifecycles.gc.winnow.dev")
	apply := func(succeeded string) error {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(lifecycle(name, succeeded)), &object.Object); err != nil {
			t.Fatal(err)
		}
		_, err := who.Apply(t.Context(), name, object, metav1.ApplyOptions{FieldManager: "author", Force: true})
		return err
	}
	rights := []string{"delete " + name, "list " + name}
	p.refusedFor("create", apply(succeeds), rights...)
	kubectlStdin(t, lifecycle(name, succeeds), "apply", "-f", "-")
	p.refusedFor("update", apply("true"), rights...)
	label := []byte(`{"metadata":{"labels":{"a":"b"}}}`)
	if _, err := who.Patch(t.Context(), name, types.MergePatchType, label, metav1.PatchOptions{}); err != nil {
		t.Errorf("a label: %v", err)
	}
	p.refusedFor("delete", who.Delete(t.Context(), name, metav1.DeleteOptions{}), rights...)
	only := metav1.ListOptions{FieldSelector: "metadata.name=" + name}
	p.refusedFor("delete all", who.DeleteCollection(t.Context(), metav1.DeleteOptions{}, only), rights...)
	p.grant("objects", rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: who.name}, rights...)
	for _, right := range rights {
		p.awaitRight(who.name, right)
	}
	// Winnow asks again ten seconds after it was told that somebody lacks a right.
	eventually(t, func(context.Context) error { return apply("true") })
	if err := who.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
}
