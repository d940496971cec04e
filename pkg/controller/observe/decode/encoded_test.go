// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"hash/maphash"
	"math/rand"
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/winnow-dev/winnow/pkg/controller/internal/testkinds"
)

// encodedPod returns a Pod as its reader gets it. The memory that it was decoded from is written over.
func encodedPod(t testing.TB, pod *corev1.Pod) *Encoded {
	t.Helper()
	data := encoded(t, pod)
	e, ok := decoded(t, fieldDecoder{whole, ReferrerReading(podReferrer())}, data).(*Encoded)
	if !ok {
		t.Fatal("the Pod is decoded")
	}
	clear(data)
	return e
}

func smallPod() *corev1.Pod {
	job := testkinds.TemplatedJob("a")
	pod := &corev1.Pod{ObjectMeta: job.ObjectMeta, Spec: job.Spec.Template.Spec}
	pod.UID, pod.ResourceVersion = "uid-a", "7"
	pod.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "registry"}}
	return pod
}

// TestEncoded: client-go knows which object it is, and a digest changes with what is read of it.
func TestEncoded(t *testing.T) {
	seed := maphash.MakeSeed()
	before := encodedPod(t, smallPod())
	want := metav1.ObjectMeta{Namespace: before.Namespace, Name: "a", UID: "uid-a", ResourceVersion: "7"}
	if !reflect.DeepEqual(before.ObjectMeta, want) {
		t.Errorf("the metadata is %+v", before.ObjectMeta)
	}
	for name, tc := range map[string]struct {
		change func(*corev1.Pod)
		same   bool
	}{
		"nothing":             {func(*corev1.Pod) {}, true},
		"the resourceVersion": {func(p *corev1.Pod) { p.ResourceVersion = "8" }, true},
		"the generation":      {func(p *corev1.Pod) { p.Generation++ }, true},
		"the status":          {func(p *corev1.Pod) { p.Status.Phase, p.Status.Message = corev1.PodRunning, "runs" }, true},
		"managed fields":      {func(p *corev1.Pod) { p.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubelet"}} }, true},
		"the UID":             {func(p *corev1.Pod) { p.UID = "uid-b" }, false},
		"a label":             {func(p *corev1.Pod) { p.Labels = map[string]string{"a": "b"} }, false},
		"a deletion":          {func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{} }, false},
		"a reference":         {func(p *corev1.Pod) { p.Spec.ImagePullSecrets[0].Name = "other" }, false},
		"one reference more": {func(p *corev1.Pod) {
			p.Spec.ImagePullSecrets = append(p.Spec.ImagePullSecrets, p.Spec.ImagePullSecrets[0])
		}, false},
		"no reference":         {func(p *corev1.Pod) { p.Spec.ImagePullSecrets = nil }, false},
		"a container":          {func(p *corev1.Pod) { p.Spec.InitContainers = []corev1.Container{{Name: "init"}} }, false},
		"a field of its own":   {func(p *corev1.Pod) { p.Finalizers = []string{"a"} }, false},
		"a field beside it":    {func(p *corev1.Pod) { p.Finalizers = []string{"a", "b"} }, false},
		"a name in both parts": {func(p *corev1.Pod) { p.Name = "registry" }, false},
	} {
		pod := smallPod()
		tc.change(pod)
		if got := encodedPod(t, pod).Digest(seed) == before.Digest(seed); got != tc.same {
			t.Errorf("after a change of %s, the digest is the same: %t", name, got)
		}
	}
}

// TestDigestsOfRandomPods: Pods with the same digest are decoded to the same.
func TestDigestsOfRandomPods(t *testing.T) {
	random := rand.New(rand.NewSource(1))
	filler, seed, same := fuzzer.FuzzerFor(fuzzer.MergeFuzzerFuncs(metafuzzer.Funcs, names), random, scheme.Codecs), maphash.MakeSeed(), 0
	for range 300 {
		var a, b corev1.Pod
		filler.Fill(&a)
		filler.Fill(&b)
		a.UID, b.UID = "uid", "uid"
		if changed := a.DeepCopy(); random.Intn(2) == 0 {
			b.Spec, b.ObjectMeta = changed.Spec, changed.ObjectMeta
			b.ResourceVersion += "0"
		}
		x, y := encodedPod(t, &a), encodedPod(t, &b)
		if x.Digest(seed) != y.Digest(seed) {
			continue
		}
		same++
		if !reflect.DeepEqual(unpacked(t, x), unpacked(t, y)) {
			t.Fatalf("two Pods have the same digest:\n%v\n%v", a, b)
		}
	}
	if same < 100 || same > 200 {
		t.Errorf("%d of 300 pairs have the same digest", same)
	}
}

func unpacked(t *testing.T, e *Encoded) map[string]any {
	t.Helper()
	u, err := e.Unstructured()
	if err != nil {
		t.Fatal(err)
	}
	return u.Object
}

// TestBookmarksAreDecoded: a bookmark says whether it ends the initial events.
func TestBookmarksAreDecoded(t *testing.T) {
	bookmark := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		ResourceVersion: "7", Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"},
	}}
	u, ok := decoded(t, fieldDecoder{whole, ReferrerReading(podReferrer())}, encoded(t, bookmark)).(*unstructured.Unstructured)
	if !ok || u.GetResourceVersion() != "7" || u.GetAnnotations()[metav1.InitialEventsAnnotationKey] != "true" {
		t.Errorf("got %v", u)
	}
}
