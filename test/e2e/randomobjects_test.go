// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/test/platforms"
)

// randomWorld creates random Jobs, Pods and objects of a custom resource.
type randomWorld struct {
	random *rand.Rand
	client dynamic.Interface
	custom platforms.Resource
}

// randomObject is an object of which the tier says which rule of the policy matches it.
type randomObject struct {
	metav1.ObjectMeta
	resource, tier string
	pinned, failed bool
	runs           bool    // it does not finish
	placed         bool    // another control plane would create it again
	age            float64 // when it finished: 0 for its creation, 1 for now
	nativeTTL      *int32  // of a Job
	left           bool    // to its owner
	version        string
}

// preview is a policy whose rules are for all resources, and the last one for Pods of Jobs that have finished.
func (w *randomWorld) preview() v1alpha1.CleanupPolicySpec {
	tier := func(s string) *metav1.LabelSelector { return matching(map[string]string{"tier": s}) }
	all := []string{"jobs.batch", "pods", w.custom.Name()}
	return v1alpha1.CleanupPolicySpec{
		Mode: v1alpha1.ModePreview, AnnotationTTL: v1alpha1.AnnotationAny,
		Rules: []v1alpha1.CleanupRule{
			{Name: "failures", Resources: all, Outcome: v1alpha1.OutcomeFailed, Selector: tier("now"), TTL: ttl("1d")},
			{Name: "now", Resources: all, Selector: tier("now"), TTL: ttl("0s"), PropagationPolicy: v1alpha1.PropagationForeground},
			{Name: "never", Resources: all, Selector: tier("never"), TTL: ttl("never")},
			{Name: "few", Resources: all, Selector: tier("few"), TTL: ttl("1d"), Capacity: &v1alpha1.Capacity{MaxObjects: new(int64(15))}},
			{Name: "later", Resources: all, Selector: tier("later"), TTL: ttl("1h")},
			{
				Name: "children", Resources: []string{"pods"}, Selector: tier("child"), TTL: ttl("0s"),
				Dependents: v1alpha1.DependentsAfterOwnerFinished,
			},
		},
	}
}

// create creates n objects, and returns the resource versions of those that must be candidates. matched says which finished objects a
// policy matches.
func (w *randomWorld) create(t *testing.T, ns string, n int, matched func(*randomObject) bool) map[string]string {
	t.Helper()
	running := createJob(t, ns, job("running", unmanaged))
	done := createJob(t, ns, job("done", unmanaged, jobLabel("tier", "never")))
	done = finish(t, done, done.CreationTimestamp.Time)
	expected := map[string]string{"jobs/done": done.ResourceVersion}
	all := make([]*randomObject, n)
	for i := range all {
		all[i] = w.object(i)
		all[i].Namespace = ns
		if all[i].tier == "child" {
			owner := done
			if all[i].left = w.random.IntN(2) == 0; all[i].left {
				owner = running
			}
			all[i].OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner, batchv1.SchemeGroupVersion.WithKind("Job"))}
		}
	}
	created := make([]metav1.Object, n)
	each(n, func(i int) { created[i] = w.createOne(t, all[i]) })
	each(n, func(i int) {
		if all[i].version = created[i].GetResourceVersion(); !all[i].runs {
			at := created[i].GetCreationTimestamp()
			seconds := int(time.Since(at.Time)/time.Second) + 1
			all[i].version = w.finishOne(t, all[i], created[i], at.Add(time.Duration(int(all[i].age*float64(seconds)))*time.Second))
		}
	})
	for _, o := range all {
		if !o.runs && !o.left && matched(o) {
			expected[o.resource+"/"+o.Name] = o.version
		}
	}
	return expected
}

// object returns a random object.
func (w *randomWorld) object(i int) *randomObject {
	tiers := []string{"now", "never", "few", "later", "none"}
	annotations := []map[string]string{
		nil, nil, nil, nil, {annotationTTL: "never"}, {annotationTTL: "0s"}, {annotationTTL: "soon"},
		{annotationKeepUntil: time.Now().Add(time.Hour).UTC().Format(time.RFC3339)},
	}
	r := w.random
	o := &randomObject{
		resource: []string{"jobs", "jobs", "pods", w.custom.Plural}[r.IntN(4)], tier: tiers[r.IntN(len(tiers))],
		pinned: r.IntN(8) == 0, failed: r.IntN(3) == 0, runs: r.IntN(10) == 0, age: r.Float64(),
	}
	o.Annotations = annotations[r.IntN(len(annotations))]
	switch r.IntN(20) {
	case 0:
		if o.resource == "jobs" {
			o.nativeTTL = new(int32(3600))
		}
	case 1:
		if o.resource != "pods" {
			o.Finalizers = []string{"test.winnow.dev/wait"}
		}
	case 2:
		o.placed = true
	case 3, 4, 5:
		if o.resource == "pods" {
			o.tier, o.pinned = "child", false
		}
	}
	o.Name = fmt.Sprintf("object-%03d", i)
	o.Labels = map[string]string{"tier": o.tier}
	if o.pinned {
		o.Labels["pinned"] = "yes"
	}
	if o.placed {
		o.Labels["karmada.io/managed"] = "true"
	}
	return o
}

func (w *randomWorld) createOne(t *testing.T, o *randomObject) metav1.Object {
	t.Helper()
	switch o.resource {
	case "jobs":
		j := job(o.Name, unmanaged)
		j.ObjectMeta, j.Spec.TTLSecondsAfterFinished = o.ObjectMeta, o.nativeTTL
		return createJob(t, o.Namespace, j)
	case "pods":
		p := pod(o.Name)
		p.ObjectMeta, p.Spec.SchedulerName = o.ObjectMeta, "none"
		return createPod(t, o.Namespace, p)
	}
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": w.custom.GroupVersionResource().GroupVersion().String(), "kind": w.custom.Kind,
	}}
	u.SetName(o.Name)
	u.SetLabels(o.Labels)
	u.SetAnnotations(o.Annotations)
	u.SetFinalizers(o.Finalizers)
	created, err := w.client.Resource(w.custom.GroupVersionResource()).Namespace(o.Namespace).Create(t.Context(), u, metav1.CreateOptions{})
	must(t, err)
	return created
}

// finishOne returns the new resource version.
func (w *randomWorld) finishOne(t *testing.T, o *randomObject, created metav1.Object, at time.Time) string {
	t.Helper()
	switch created := created.(type) {
	case *batchv1.Job:
		if o.failed {
			return fail(t, created, at).ResourceVersion
		}
		return finish(t, created, at).ResourceVersion
	case *corev1.Pod:
		phase := corev1.PodSucceeded
		if o.failed {
			phase = corev1.PodFailed
		}
		created.Status = statusOf(finishedPod{phase: phase}, metav1.NewTime(at))
		finished, err := kube.CoreV1().Pods(o.Namespace).UpdateStatus(t.Context(), created, metav1.UpdateOptions{})
		must(t, err)
		return finished.ResourceVersion
	}
	u := created.(*unstructured.Unstructured)
	outcome := "well"
	if o.failed {
		outcome = "badly"
	}
	must(t, unstructured.SetNestedStringMap(u.Object, map[string]string{"done": outcome, "at": at.UTC().Format(time.RFC3339)}, "status"))
	finished, err := w.client.Resource(w.custom.GroupVersionResource()).Namespace(o.Namespace).UpdateStatus(t.Context(), u, metav1.UpdateOptions{})
	must(t, err)
	return finished.GetResourceVersion()
}

// fail sets the status of an unmanaged Job to Failed as of at.
func fail(t *testing.T, j *batchv1.Job, at time.Time) *batchv1.Job {
	t.Helper()
	when := metav1.NewTime(at)
	j.Status = batchv1.JobStatus{
		StartTime: &when,
		Conditions: []batchv1.JobCondition{
			{Type: batchv1.JobFailureTarget, Status: corev1.ConditionTrue, LastTransitionTime: when},
			{Type: batchv1.JobFailed, Status: corev1.ConditionTrue, LastTransitionTime: when},
		},
	}
	failed, err := kube.BatchV1().Jobs(j.Namespace).UpdateStatus(t.Context(), j, metav1.UpdateOptions{})
	must(t, err)
	return failed
}
