// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

var manifestNow = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

func manifest(apiVersion, kind, name string, more map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": name}}}
	for key, value := range more {
		u.Object[key] = value
	}
	u.SetAPIVersion(apiVersion)
	u.SetKind(kind)
	return u
}

func ownedBy(u *unstructured.Unstructured, apiVersion, kind, name string) *unstructured.Unstructured {
	u.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: name, Controller: new(true)}})
	return u
}

func finishedAgo(ago time.Duration) map[string]any {
	at := manifestNow.Add(-ago).Format(time.RFC3339)
	return map[string]any{"status": map[string]any{
		"phase": "Succeeded", "finishedAt": at,
		"conditions": []any{map[string]any{"type": "Complete", "status": "True", "lastTransitionTime": at}},
	}}
}

func ruleAbout(resource string, more func(*gc.CleanupRule)) *gc.CleanupPolicy {
	hour := gc.TTL("1h")
	rule := gc.CleanupRule{Name: "rule", Resources: []string{resource}, After: gc.AfterFinished, TTL: &hour}
	if more != nil {
		more(&rule)
	}
	return &gc.CleanupPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "p"},
		Spec:       gc.CleanupPolicySpec{Mode: gc.ModeEnforce, AnnotationTTL: gc.AnnotationExtendOnly, Rules: []gc.CleanupRule{rule}},
	}
}

// TestManifests: objects in files decide as they do in a cluster.
func TestManifests(t *testing.T) {
	unused := func(r *gc.CleanupRule) {
		r.After, r.Selector = gc.AfterUnused, &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
	}
	matching := func(r *gc.CleanupRule) {
		unused(r)
		r.After = gc.AfterMatched
	}
	labelled := func(u *unstructured.Unstructured) *unstructured.Unstructured {
		u.SetLabels(map[string]string{"a": "b"})
		return u
	}
	created := manifest("v1", "ConfigMap", "object", nil)
	created.SetCreationTimestamp(metav1.NewTime(manifestNow.Add(-time.Minute)))
	for name, c := range map[string]struct {
		policy  *gc.CleanupPolicy
		objects []*unstructured.Unstructured // The first is asked about.
		marks   []Mark
		state   string
		reason  policy.Reason
	}{
		"a Job": {
			ruleAbout("jobs.batch", nil), []*unstructured.Unstructured{manifest("batch/v1", "Job", "object", finishedAgo(2*time.Hour))}, nil,
			"Due", policy.ReasonExpired,
		},
		"a Job that a ServiceAccount deletes, whose rights nobody knows": {
			func() *gc.CleanupPolicy {
				p := ruleAbout("jobs.batch", nil)
				p.Spec.ServiceAccountName = "cleaner"
				return p
			}(), []*unstructured.Unstructured{manifest("batch/v1", "Job", "object", finishedAgo(2*time.Hour))}, nil, "Due", policy.ReasonExpired,
		},
		"a Workflow of a CronWorkflow, which is a resource that no policy names": {
			ruleAbout("workflows.argoproj.io", nil), []*unstructured.Unstructured{
				ownedBy(
					manifest("argoproj.io/v1alpha1", "Workflow", "object", finishedAgo(2*time.Hour)), "argoproj.io/v1alpha1", "CronWorkflow", "cron",
				),
				manifest("argoproj.io/v1alpha1", "CronWorkflow", "cron", nil),
			}, nil, "Due", policy.ReasonExpired,
		},
		"a Job of a JobSet that has finished, which no policy names": {
			ruleAbout("jobs.batch", func(r *gc.CleanupRule) { r.Dependents = gc.DependentsAfterOwnerFinished }), []*unstructured.Unstructured{
				ownedBy(manifest("batch/v1", "Job", "object", finishedAgo(2*time.Hour)), "jobset.x-k8s.io/v1alpha2", "JobSet", "set"),
				manifest("jobset.x-k8s.io/v1alpha2", "JobSet", "set", map[string]any{"status": map[string]any{"conditions": []any{
					map[string]any{"type": "Completed", "status": "True", "lastTransitionTime": manifestNow.Add(-time.Minute).Format(time.RFC3339)},
				}}}),
			}, nil, "Waiting", policy.ReasonNotDue,
		},
		"a Pod of a Job that runs": {
			ruleAbout("pods", nil), []*unstructured.Unstructured{
				ownedBy(manifest("v1", "Pod", "object", map[string]any{"status": map[string]any{"phase": "Failed"}}), "batch/v1", "Job", "job"),
				manifest("batch/v1", "Job", "job", nil),
			}, nil, "NoCandidate", policy.ReasonLeftToOwner,
		},
		"a ConfigMap with a condition on its data": {
			ruleAbout("configmaps", func(r *gc.CleanupRule) {
				r.After, r.MatchConditions = gc.AfterCreated, []gc.MatchCondition{{Name: "old", Expression: "object.data.state == 'old'"}}
			}), []*unstructured.Unstructured{func() *unstructured.Unstructured {
				u := created.DeepCopy()
				u.Object["data"] = map[string]any{"state": "old"}
				return u
			}()}, nil, "Waiting", policy.ReasonNotDue,
		},
		"a Secret that nothing refers to": {
			ruleAbout("secrets", unused), []*unstructured.Unstructured{labelled(manifest("v1", "Secret", "object", nil))},
			[]Mark{{Object: Object{"secrets", "team-a", "object"}, Since: manifestNow.Add(-2 * time.Hour)}}, "Due", policy.ReasonExpired,
		},
		"a Secret without a mark": {
			ruleAbout("secrets", unused), []*unstructured.Unstructured{labelled(manifest("v1", "Secret", "object", nil))}, nil,
			"Waiting", policy.ReasonNotDue,
		},
		"a Secret of a type that is never unused": {
			ruleAbout("secrets", unused), []*unstructured.Unstructured{
				labelled(manifest("v1", "Secret", "object", map[string]any{"type": "bootstrap.kubernetes.io/token"})),
			}, nil, "NoCandidate", policy.ReasonInUse,
		},
		"a Secret that a Gateway uses": {
			ruleAbout("secrets", unused), []*unstructured.Unstructured{
				labelled(manifest("v1", "Secret", "object", nil)), manifest("gateway.networking.k8s.io/v1", "Gateway", "g", map[string]any{
					"spec": map[string]any{"listeners": []any{map[string]any{"tls": map[string]any{
						"certificateRefs": []any{map[string]any{"name": "object"}},
					}}}},
				}),
			}, nil, "NoCandidate", policy.ReasonInUse,
		},
		"a Deployment that has matched for long": {
			ruleAbout("deployments.apps", matching), []*unstructured.Unstructured{labelled(manifest("apps/v1", "Deployment", "object", nil))},
			[]Mark{{Object: Object{"deployments.apps", "team-a", "object"}, Since: manifestNow.Add(-2 * time.Hour)}}, "Due", policy.ReasonExpired,
		},
		"a Deployment that begins to match": {
			ruleAbout("deployments.apps", matching), []*unstructured.Unstructured{labelled(manifest("apps/v1", "Deployment", "object", nil))}, nil,
			"Waiting", policy.ReasonNotDue,
		},
		"a mark of what does not match": {
			ruleAbout("deployments.apps", matching), []*unstructured.Unstructured{manifest("apps/v1", "Deployment", "object", nil)},
			[]Mark{{Object: Object{"deployments.apps", "team-a", "object"}, Since: manifestNow.Add(-2 * time.Hour)}}, "NoCandidate", policy.ReasonNoPolicy,
		},
		"a Job in a namespace that is being deleted": {
			ruleAbout("jobs.batch", nil), []*unstructured.Unstructured{
				manifest("batch/v1", "Job", "object", finishedAgo(2*time.Hour)), func() *unstructured.Unstructured {
					ns := manifest("v1", "Namespace", "team-a", nil)
					ns.SetDeletionTimestamp(&metav1.Time{Time: manifestNow})
					return ns
				}(),
			}, nil, "NoCandidate", policy.ReasonNamespaceTerminating,
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := &Manifests{Policies: []*gc.CleanupPolicy{c.policy}, Objects: c.objects, Marks: c.marks}
			if err := m.Complete("team-a"); err != nil {
				t.Fatal(err)
			}
			w, err := m.World(t.Context(), manifestNow)
			if err != nil {
				t.Fatal(err)
			}
			got, lines, err := w.Candidate(t.Context(), m.ObjectOf(c.objects[0]))
			if err != nil || got == nil {
				t.Fatalf("no candidate: %q, %v", lines, err)
			}
			if string(got.Status.State) != c.state || got.Status.Reason != string(c.reason) {
				t.Errorf("%s %s (%s), want %s %s", got.Status.State, got.Status.Reason, got.Status.Message, c.state, c.reason)
			}
		})
	}
}

// TestComplete: what the API server sets is set, and what is written stays.
func TestComplete(t *testing.T) {
	definition := manifest("apiextensions.k8s.io/v1", "CustomResourceDefinition", "mice.example.com", map[string]any{"spec": map[string]any{
		"group": "example.com", "scope": "Namespaced", "names": map[string]any{"kind": "Mouse", "plural": "mice"},
	}})
	mouse := ownedBy(manifest("example.com/v1", "Mouse", "m", nil), "v1", "ConfigMap", "owner")
	owner := manifest("v1", "ConfigMap", "owner", nil)
	owner.SetUID("u-1")
	owner.SetNamespace("team-b")
	same := manifest("v1", "ConfigMap", "owner", nil)
	m := &Manifests{Objects: []*unstructured.Unstructured{definition, mouse, owner, same, manifest("v1", "PersistentVolume", "pv", nil)}}
	if err := m.Complete("team-a"); err != nil {
		t.Fatal(err)
	}
	for u, want := range map[*unstructured.Unstructured]Object{
		mouse: {"mice.example.com", "team-a", "m"}, owner: {"configmaps", "team-b", "owner"}, same: {"configmaps", "team-a", "owner"},
		m.Objects[4]: {"persistentvolumes", "", "pv"},
	} {
		if got := m.ObjectOf(u); got != want || u.GetUID() == "" || u.GetResourceVersion() == "" {
			t.Errorf("%+v with UID %q, want %+v", got, u.GetUID(), want)
		}
	}
	if owner.GetUID() != "u-1" || mouse.GetOwnerReferences()[0].UID != same.GetUID() {
		t.Errorf("UIDs %q, %q", owner.GetUID(), mouse.GetOwnerReferences()[0].UID)
	}
	again := &Manifests{Objects: []*unstructured.Unstructured{manifest("v1", "Pod", "a", nil), manifest("v1", "Pod", "a", nil)}}
	if err := again.Complete("team-a"); err == nil || !strings.Contains(err.Error(), "two objects pods/a in namespace team-a") {
		t.Errorf("two of the same name: %v", err)
	}
}

// TestCompleteDoubts: two policies of one name, and a resource that is not the plural of a kind, are errors, because a policy or an object
// would silently not count.
func TestCompleteDoubts(t *testing.T) {
	chaos := manifest("chaos-mesh.org/v1alpha1", "NetworkChaos", "c", nil)
	definition := manifest("apiextensions.k8s.io/v1", "CustomResourceDefinition", "networkchaos.chaos-mesh.org", map[string]any{
		"spec": map[string]any{
			"group": "chaos-mesh.org", "scope": "Namespaced", "names": map[string]any{"kind": "NetworkChaos", "plural": "networkchaos"},
		},
	})
	lifecycle := func() *gc.ResourceLifecycle {
		return &gc.ResourceLifecycle{ObjectMeta: metav1.ObjectMeta{Name: "networkchaos.chaos-mesh.org"}}
	}
	named := ruleAbout("networkchaos.chaos-mesh.org", nil)
	for name, c := range map[string]struct {
		m    Manifests
		want string
	}{
		"two policies":         {Manifests{Policies: []*gc.CleanupPolicy{named, named}}, "two CleanupPolicies p in"},
		"two cluster policies": {Manifests{ClusterPolicies: []*gc.ClusterCleanupPolicy{{}, {}}}, "two ClusterCleanupPolicies"},
		"two lifecycles":       {Manifests{Lifecycles: []*gc.ResourceLifecycle{lifecycle(), lifecycle()}}, "two ResourceLifecycles networkchaos"},
		"a plural that a policy knows better": {
			Manifests{Policies: []*gc.CleanupPolicy{named}, Objects: []*unstructured.Unstructured{chaos.DeepCopy()}},
			"may be networkchaoses.chaos-mesh.org or networkchaos.chaos-mesh.org",
		},
		"a plural that a lifecycle knows better": {
			Manifests{Lifecycles: []*gc.ResourceLifecycle{lifecycle()}, Objects: []*unstructured.Unstructured{chaos.DeepCopy()}},
			"may be networkchaoses",
		},
		"its definition": {
			Manifests{Policies: []*gc.CleanupPolicy{named}, Objects: []*unstructured.Unstructured{chaos.DeepCopy(), definition}}, "",
		},
		"a policy about another kind of the group": {
			Manifests{
				Policies: []*gc.CleanupPolicy{ruleAbout("certificaterequests.cert-manager.io", nil)},
				Objects:  []*unstructured.Unstructured{manifest("cert-manager.io/v1", "Certificate", "c", nil)},
			}, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.m.Complete("team-a")
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestPlural(t *testing.T) {
	for kind, want := range map[string]string{
		"job": "jobs", "ingress": "ingresses", "networkpolicy": "networkpolicies", "gateway": "gateways", "endpoints": "endpoints",
		"box": "boxes", "batch": "batches", "mesh": "meshes", "y": "ys",
	} {
		if got := plural(kind); got != want {
			t.Errorf("%s: %s, want %s", kind, got, want)
		}
	}
}
