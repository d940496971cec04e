// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
)

// workloads are specs of controllers that run nothing, by "resource kind group/version".
var workloads = map[string]string{
	"statefulsets StatefulSet apps/v1":                `{"serviceName": "x", "replicas": 0, SELECTED}`,
	"deployments Deployment apps/v1":                  `{"replicas": 0, SELECTED}`,
	"replicasets ReplicaSet apps/v1":                  `{"replicas": 0, SELECTED}`,
	"daemonsets DaemonSet apps/v1":                    `{SELECTED}`,
	"replicationcontrollers ReplicationController v1": `{"replicas": 0, "selector": {"app": "x"}, "template": TEMPLATE}`,
	"cronjobs CronJob batch/v1":                       `{"schedule": "0 0 1 1 *", "jobTemplate": {"spec": {"template": JOB}}}`,
	"jobs Job batch/v1":                               `{"suspend": true, "template": JOB}`,
	"services Service v1":                             `{"ports": [{"port": 80}]}`,
}

// createWorkload creates a controller, and returns the reference to it.
func createWorkload(t *testing.T, client dynamic.Interface, ns, what string) map[string]any {
	t.Helper()
	const (
		labels   = `{"metadata": {"labels": {"app": "x"}}, "spec": {"nodeSelector": {"none": "such"}, "containers": [{"name": "c", "image": "x"}]`
		template = labels + `}}`
		job      = labels + `, "restartPolicy": "Never"}}`
		selected = `"selector": {"matchLabels": {"app": "x"}}, "template": ` + template
	)
	fields := strings.Fields(what)
	gv, err := schema.ParseGroupVersion(fields[2])
	must(t, err)
	object := &unstructured.Unstructured{}
	spec := strings.NewReplacer("SELECTED", selected, "TEMPLATE", template, "JOB", job).Replace(workloads[what])
	must(t, object.UnmarshalJSON(fmt.Appendf(nil,
		`{"apiVersion": %q, "kind": %q, "metadata": {"name": %q}, "spec": %s}`, fields[2], fields[1], strings.ToLower(fields[1]), spec)))
	created, err := client.Resource(gv.WithResource(fields[0])).Namespace(ns).Create(t.Context(), object, metav1.CreateOptions{})
	must(t, err)
	return map[string]any{
		"apiVersion": fields[2], "kind": fields[1], "name": created.GetName(), "uid": string(created.GetUID()), "controller": true,
	}
}

// TestWhatLivingControllersControl: ConfigMaps and custom resources under every kind of controller stay, also by a rule that counts from the
// creation. What has no controller goes, before and after them.
func TestWhatLivingControllersControl(t *testing.T) {
	t.Parallel()
	client, ns, r := customClient(t), newNamespace(t), machine("spools", "v1")
	grant(t, r)
	installCustom(t, client, r)
	grantByCommand(t, "configmaps")
	configMaps := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	create := func(resource schema.GroupVersionResource, kind, name string, owners ...any) {
		t.Helper()
		metadata := map[string]any{"name": name, "labels": map[string]any{"tmp": "yes"}}
		if len(owners) > 0 {
			metadata["ownerReferences"] = owners
		}
		createObject(t, client.Resource(resource).Namespace(ns), &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": resource.GroupVersion().String(), "kind": kind, "metadata": metadata,
		}})
	}
	create(configMaps, "ConfigMap", "first")
	for what := range workloads {
		owner := createWorkload(t, client, ns, what)
		name := "of-" + owner["name"].(string)
		create(configMaps, "ConfigMap", name, owner)
		create(r.GroupVersionResource(), r.Kind, name, owner)
	}
	create(r.GroupVersionResource(), r.Kind, "last")
	createPolicy(t, ns, "p", v1alpha1.CleanupPolicySpec{Rules: []v1alpha1.CleanupRule{{
		Name: "tmp", Resources: []string{"configmaps", r.Name()}, After: v1alpha1.AfterCreated, TTL: ttl("1s"),
		Selector: matching(map[string]string{"tmp": "yes"}),
	}}})
	expectDeletions(t, ns, "configmaps/first p/tmp", "spools/last p/tmp")
	status := waitStatus(t, ns, "p", func(s *v1alpha1.CleanupPolicyStatus) bool { return s.Deleted == 2 })
	if status.Candidates != 0 || status.Held != 0 {
		t.Errorf("%d candidates, %d held", status.Candidates, status.Held)
	}
	create(configMaps, "ConfigMap", "later")
	expectDeletions(t, ns, "configmaps/first p/tmp", "spools/last p/tmp", "configmaps/later p/tmp")
	for _, resource := range []schema.GroupVersionResource{configMaps, r.GroupVersionResource()} {
		left, err := client.Resource(resource).Namespace(ns).List(t.Context(), metav1.ListOptions{LabelSelector: "tmp"})
		must(t, err)
		if len(left.Items) != len(workloads) {
			t.Errorf("%d %s are left, want %d", len(left.Items), resource.Resource, len(workloads))
		}
	}
}
