// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	internal "github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/test/platforms"
)

// custom installs the custom resources of all platforms, and gives Winnow the rights for them, as docs/operators.md says.
var custom = sync.OnceValues(func() (dynamic.Interface, error) {
	client, err := dynamic.NewForConfig(suite.RESTConfig())
	if err != nil {
		return nil, err
	}
	role := platformRole("winnow-platforms", platforms.All()...)
	if _, err := kube.RbacV1().ClusterRoles().Create(whole, role, metav1.CreateOptions{}); err != nil {
		return nil, err
	}
	return client, platforms.Install(whole, client, platforms.All()...)
})

// platformRole gives Winnow the permissions for some resources.
func platformRole(name string, resources ...platforms.Resource) *rbacv1.ClusterRole {
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{internal.LabelAggregate: "true"}}}
	for _, r := range resources {
		role.Rules = append(role.Rules, platforms.Rule(r.Group, r.Plural))
	}
	return role
}

func customClient(t *testing.T) dynamic.Interface {
	t.Helper()
	client, err := custom()
	must(t, err)
	return client
}

// sample is an object with which a built-in lifecycle is tested, and the expected outcome.
type sample struct {
	*unstructured.Unstructured
	outcome string
}

// samples reads the objects in the stored version of a resource.
func samples(t *testing.T, r platforms.Resource) []sample {
	t.Helper()
	folder := filepath.Join("..", "..", "pkg", "controller", "objects", "kinds", "testdata")
	text, err := os.ReadFile(filepath.Join(folder, "outcomes.yaml"))
	must(t, err)
	var outcomes map[string]map[string]string
	must(t, yaml.UnmarshalStrict(text, &outcomes))
	text, err = os.ReadFile(filepath.Join(folder, r.Name()+".yaml"))
	must(t, err)
	var out []sample
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		u := &unstructured.Unstructured{}
		must(t, yaml.Unmarshal([]byte(document), &u.Object))
		if u.GroupVersionKind().Version == r.Versions[0] {
			out = append(out, sample{u, outcomes[r.Name()][u.GetName()]})
		}
	}
	return out
}

// finishTime stands for the finish time in the status of samples. It is replaced by a time after the creation, because an earlier one is not
// believed.
const finishTime = "2026-03-01T11:00:00Z"

// createObject creates a custom object with its status.
func createObject(t *testing.T, client dynamic.ResourceInterface, object *unstructured.Unstructured) {
	t.Helper()
	object = object.DeepCopy()
	status, hasStatus := object.Object["status"]
	object.SetUID("")
	object.SetResourceVersion("")
	created, err := client.Create(t.Context(), object, metav1.CreateOptions{})
	must(t, err)
	if hasStatus {
		text, err := json.Marshal(status)
		must(t, err)
		now := time.Now().UTC().Add(time.Second).Format(time.RFC3339)
		must(t, json.Unmarshal(bytes.ReplaceAll(text, []byte(finishTime), []byte(now)), &status))
		created.Object["status"] = status
		_, err = client.UpdateStatus(t.Context(), created, metav1.UpdateOptions{})
		must(t, err)
	}
}

// TestBuiltInLifecycles: of every resource with a built-in lifecycle, exactly those objects go that have finished, and whose own TTL is no
// longer than seconds. Those that do not say when they finished count from when Winnow first saw them.
func TestBuiltInLifecycles(t *testing.T) {
	t.Parallel()
	client := customClient(t)
	for _, r := range platforms.All() {
		t.Run(r.Name(), func(t *testing.T) {
			t.Parallel()
			ns := newNamespace(t)
			objects := client.Resource(r.GroupVersionResource()).Namespace(ns)
			createPolicy(t, ns, "p", v1alpha1.CleanupPolicySpec{
				Rules: []v1alpha1.CleanupRule{{Name: "all", Resources: []string{r.Name()}, TTL: ttl("0s")}},
			})
			var want, kept []string
			for _, s := range samples(t, r) {
				s.SetNamespace(ns)
				createObject(t, objects, s.Unstructured)
				finished := strings.Contains(s.outcome, " at 11:00") || strings.HasSuffix(s.outcome, ", in doubt")
				if finished && !strings.HasSuffix(s.outcome, "m0s") {
					want = append(want, fmt.Sprintf("%s/%s p/all", r.Plural, s.GetName()))
				} else {
					kept = append(kept, s.GetName())
				}
			}
			expectDeletions(t, ns, want...)
			left, err := objects.List(t.Context(), metav1.ListOptions{})
			must(t, err)
			var names []string
			for i := range left.Items {
				names = append(names, left.Items[i].GetName())
			}
			slices.Sort(kept)
			if slices.Sort(names); !slices.Equal(names, kept) {
				t.Errorf("left: %v\nwant: %v", names, kept)
			}
		})
	}
}

var (
	jobsResource = schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}
	podsResource = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
)

// chain is a run of a batch platform: each controller creates the children of one resource.
type chain struct {
	controllers func(client dynamic.Interface, ns string) []*platforms.Controller
	// resources are the resources of the chain, from the top.
	resources []string
	top       platforms.Resource
}

// childrenOf returns n objects of a kind for a parent, with a spec.
func childrenOf(kind schema.GroupVersionKind, n int, spec map[string]any) func(*unstructured.Unstructured) []*unstructured.Unstructured {
	return func(parent *unstructured.Unstructured) []*unstructured.Unstructured {
		out := make([]*unstructured.Unstructured, n)
		for i := range out {
			out[i] = &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
			out[i].SetGroupVersionKind(kind)
			out[i].SetName(fmt.Sprintf("%s-%d", parent.GetName(), i))
		}
		return out
	}
}

func kindOf(r platforms.Resource) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: r.Group, Version: r.Versions[0], Kind: r.Kind}
}

// unstructuredSpec is the spec of an object as JSON has it.
func unstructuredSpec(spec any) map[string]any {
	out, err := runtime.DefaultUnstructuredConverter.ToUnstructured(spec)
	if err != nil {
		panic(err) // The specs of this file can be converted.
	}
	return out
}

// chains returns a pipeline of Tekton, and a TrainJob over a JobSet over Jobs over Pods. The Job controller is the real one.
func chains() map[string]chain {
	pods, jobSpec := podSpec(), job("").Spec
	return map[string]chain{
		"pipeline": {
			top: platforms.PipelineRuns, resources: []string{"pipelineruns.tekton.dev", "taskruns.tekton.dev", "pods"},
			controllers: func(client dynamic.Interface, ns string) []*platforms.Controller {
				return []*platforms.Controller{{
					Client: client, Namespace: ns, Parent: platforms.PipelineRuns, Finished: "Succeeded",
					Child: platforms.TaskRuns.GroupVersionResource(), Children: childrenOf(kindOf(platforms.TaskRuns), 3, nil),
				}, {
					Client: client, Namespace: ns, Parent: platforms.TaskRuns, Finished: "Succeeded",
					Child: podsResource, Children: childrenOf(corev1.SchemeGroupVersion.WithKind("Pod"), 1, unstructuredSpec(&pods)),
				}}
			},
		},
		"training": {
			top:       platforms.TrainJobs,
			resources: []string{"trainjobs.trainer.kubeflow.org", "jobsets.jobset.x-k8s.io", "jobs.batch", "pods"},
			controllers: func(client dynamic.Interface, ns string) []*platforms.Controller {
				return []*platforms.Controller{{
					Client: client, Namespace: ns, Parent: platforms.TrainJobs, Finished: "Complete",
					Child: platforms.JobSets.GroupVersionResource(), Children: childrenOf(kindOf(platforms.JobSets), 1, nil),
				}, {
					Client: client, Namespace: ns, Parent: platforms.JobSets, Finished: "Completed",
					Child: jobsResource, Children: childrenOf(batchv1.SchemeGroupVersion.WithKind("Job"), 2, unstructuredSpec(&jobSpec)),
				}}
			},
		},
	}
}

// TestChains: whatever the order of the TTLs of parents and children, no run is repeated, each object finishes once, and in the end nothing
// is left. A child goes before its parent only where the rule says so, and never before the parent has finished.
func TestChains(t *testing.T) {
	t.Parallel()
	client := customClient(t)
	orders := map[string]func(i, n int) v1alpha1.TTL{
		"all at once":    func(int, int) v1alpha1.TTL { return "0s" },
		"parents first":  func(i, _ int) v1alpha1.TTL { return v1alpha1.TTL(fmt.Sprintf("%ds", 2*i)) },
		"children first": func(i, n int) v1alpha1.TTL { return v1alpha1.TTL(fmt.Sprintf("%ds", 2*(n-1-i))) },
	}
	for chainName, c := range chains() {
		for order, ttlOf := range orders {
			for _, dependents := range []v1alpha1.DependentsPolicy{v1alpha1.DependentsWithOwner, v1alpha1.DependentsAfterOwnerFinished} {
				t.Run(fmt.Sprintf("%s, %s, %s", chainName, order, dependents), func(t *testing.T) {
					t.Parallel()
					ns := newNamespace(t)
					spec := v1alpha1.CleanupPolicySpec{}
					for i, resource := range c.resources {
						spec.Rules = append(spec.Rules, v1alpha1.CleanupRule{
							Name: fmt.Sprintf("level-%d", i), Resources: []string{resource}, Dependents: dependents,
							TTL: ttl(ttlOf(i, len(c.resources))),
						})
					}
					createPolicy(t, ns, "p", spec)
					runChain(t, client, ns, c)
					if dependents == v1alpha1.DependentsWithOwner {
						for _, d := range deletions(t, ns) {
							if d.rule != "level-0" {
								t.Errorf("DELETE of %s, which goes with its owner", d.object)
							}
						}
					}
				})
			}
		}
	}
}

// runChain lets three runs happen, and waits until nothing of them is left.
func runChain(t *testing.T, client dynamic.Interface, ns string, c chain) {
	t.Helper()
	controllers := c.controllers(client, ns)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- platforms.RunAll(ctx, controllers...) }()
	runs := childrenOf(kindOf(c.top), 3, nil)(&unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "run"}}})
	for _, run := range runs {
		createObject(t, client.Resource(c.top.GroupVersionResource()).Namespace(ns), run)
	}
	eventually(t, func(ctx context.Context) string {
		for _, r := range []schema.GroupVersionResource{
			controllers[0].Parent.GroupVersionResource(), controllers[1].Parent.GroupVersionResource(), controllers[1].Child, podsResource,
		} {
			left, err := client.Resource(r).Namespace(ns).List(ctx, metav1.ListOptions{})
			if err != nil || len(left.Items) > 0 {
				return fmt.Sprintf("%d %s are left, %v", len(left.Items), r.Resource, err)
			}
		}
		return ""
	})
	stop()
	must(t, <-ended)
	if got := controllers[0].Ended(); len(got) != len(runs) {
		t.Errorf("%d runs finished, want %d", len(got), len(runs))
	}
	for _, controller := range controllers {
		for counted, times := range map[string]map[string]int{"created": controller.Created(), "finished": controller.Ended()} {
			for name, n := range times {
				if n != 1 {
					t.Errorf("%s was %s %d times", name, counted, n)
				}
			}
		}
	}
}
