// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"fmt"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testkinds"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
)

// contentAsObserved returns the digest of an object that an API server reports.
func contentAsObserved(t *testing.T, object runtime.Object) lifecycle.Digest {
	t.Helper()
	compact, err := Fact(testkinds.Of(object), decoded(t, stripped, encoded(t, object)))
	if err != nil {
		t.Fatal(err)
	}
	return compact.Content()
}

// TestContentOfJobs: two Jobs do the same if their containers do. What the API server adds to each Job does not count.
func TestContentOfJobs(t *testing.T) {
	before := contentAsObserved(t, testkinds.TemplatedJob("a"))
	if before == 0 {
		t.Fatal("the content is not known")
	}
	for name, c := range map[string]struct {
		change func(*batchv1.Job)
		same   bool
	}{
		"again":              {func(*batchv1.Job) {}, true},
		"another UID":        {func(j *batchv1.Job) { j.UID, j.Spec.Template.Labels["batch.kubernetes.io/controller-uid"] = "b", "b" }, true},
		"finished":           {func(j *batchv1.Job) { j.Status = batchv1.JobStatus{} }, true},
		"another label":      {func(j *batchv1.Job) { j.Labels["app"] = "b" }, true},
		"another image":      {func(j *batchv1.Job) { j.Spec.Template.Spec.Containers[0].Image = "b" }, false},
		"another argument":   {func(j *batchv1.Job) { j.Spec.Template.Spec.Containers[0].Args = []string{"b"} }, false},
		"another variable":   {func(j *batchv1.Job) { j.Spec.Template.Spec.Containers[0].Env[0].Value = "b" }, false},
		"an init container":  {func(j *batchv1.Job) { j.Spec.Template.Spec.InitContainers = []corev1.Container{{Name: "b"}} }, false},
		"a mount of a token": {func(j *batchv1.Job) { j.Spec.Template.Spec.Containers[0].VolumeMounts[0].Name = "kube-api-access-x" }, true},
	} {
		job := testkinds.TemplatedJob("a")
		c.change(job)
		if got := contentAsObserved(t, job); (got == before) != c.same {
			t.Errorf("%s: %d after %d", name, got, before)
		}
	}
}

// TestContentOfPods: the node and the mount of the token do not count.
func TestContentOfPods(t *testing.T) {
	pod := func(image, node, token string) lifecycle.Digest {
		p := testbuilders.Pod("a").Obj()
		p.Spec.NodeName, p.Spec.Containers = node, []corev1.Container{{Name: "c", Image: image, VolumeMounts: []corev1.VolumeMount{{Name: token}}}}
		return contentAsObserved(t, p)
	}
	if got, want := pod("x", "n1", "kube-api-access-a"), pod("x", "n2", "kube-api-access-b"); got != want || got == 0 {
		t.Errorf("on another node: %d, not %d", got, want)
	}
	if pod("x", "n", "t") == pod("y", "n", "t") {
		t.Error("another image has the same content")
	}
}

// TestContentWithConditions: an object that is decoded whole has the same digest, and no condition sees it.
func TestContentWithConditions(t *testing.T) {
	job := testkinds.TemplatedJob("a")
	job.Namespace = "team-a"
	r := NewReading(testkinds.Of(job), testkinds.InTeamA(t, "!has(object.metadata.selfLink)"))
	object := decoded(t, strippedDecoder{whole, r}, encoded(t, job))
	compact, err := Fact(testkinds.Of(job), object)
	if err != nil {
		t.Fatal(err)
	}
	testkinds.ExpectResults(t, compact, map[string]bool{"!has(object.metadata.selfLink)": true})
	if got, want := compact.Content(), contentAsObserved(t, job); got != want {
		t.Errorf("got %d, want %d", got, want)
	}
}

// TestContentOfCustom: the spec of a custom resource counts, and of objects of which only the metadata is read, nothing is known.
func TestContentOfCustom(t *testing.T) {
	content := func(spec, phase string) lifecycle.Digest {
		data := fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":"Run","metadata":{"name":"a","resourceVersion":"1"},"spec":%s,"status":{"phase":%q}}`,
			spec, phase)
		object, err := NewPartial([][]string{{"status", "phase"}, {"spec", "a"}}).Decode([]byte(data))
		if err != nil {
			t.Fatal(err)
		}
		f, err := lifecycle.FromUnstructured("runs.example.com", object.GroupVersionKind().GroupKind(), object)
		if err != nil {
			t.Fatal(err)
		}
		return f.Content
	}
	if got, want := content(`{"a":1,"b":2}`, "Running"), content(`{"a":1,"b":2}`, "Succeeded"); got != want || got == 0 {
		t.Errorf("finished: %d, not %d", got, want)
	}
	if content(`{"a":1,"b":2}`, "Running") == content(`{"a":1,"b":3}`, "Running") {
		t.Error("another spec has the same content")
	}
	f, err := lifecycle.FromMetadata("configmaps", metav1.SchemeGroupVersion.WithKind("ConfigMap").GroupKind(), &metav1.ObjectMeta{ResourceVersion: "1"})
	if err != nil || f.Content != 0 {
		t.Errorf("metadata alone: %+v, %v", f, err)
	}
}
