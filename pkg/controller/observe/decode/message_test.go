// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"fmt"
	"hash/maphash"
	"math/rand"
	"reflect"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	"k8s.io/apimachinery/pkg/api/meta"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	runtimeserializer "k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/randfill"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testkinds"
	"github.com/winnow-dev/winnow/pkg/controller/objects/kinds"
	"github.com/winnow-dev/winnow/pkg/controller/objects/references"
)

// names fills objects with strings that may be the names of objects.
func names(runtimeserializer.CodecFactory) []any {
	return []any{
		func(s *string, c randfill.Continue) { *s = fmt.Sprintf("secret-%d", c.Intn(1000)) },
		func(e *runtime.RawExtension, _ randfill.Continue) { e.Raw = []byte("not JSON") }, // It would not be converted.
		func(o *metav1.OwnerReference, c randfill.Continue) {
			c.FillNoCustom(o)
			if c.Bool() {
				o.APIVersion, o.Kind = "v1", "Secret"
			}
		},
	}
}

// podReferrer is the resource of which there are most objects.
func podReferrer() *kinds.Referrer {
	return &kinds.Referrer{
		Listed: kinds.Listed{Served: kinds.Served{GroupVersionKind: corev1.SchemeGroupVersion.WithKind("Pod"), Plural: "pods"}, Namespaced: true},
		Reader: references.Builtin("pods"),
	}
}

// TestReferrersInProtobuf fills objects of every resource of Kubernetes that may refer to others: they refer to the same ones if only the
// fields that are read are decoded.
func TestReferrersInProtobuf(t *testing.T) {
	filler := fuzzer.FuzzerFor(fuzzer.MergeFuzzerFuncs(metafuzzer.Funcs, names), rand.NewSource(1), scheme.Codecs)
	tested := map[string]bool{}
	for gvk := range scheme.Scheme.AllKnownTypes() {
		plural, _ := meta.UnsafeGuessKindToResource(gvk)
		k := &kinds.Referrer{Listed: kinds.Listed{Served: kinds.Served{GroupVersionKind: gvk, Plural: plural.Resource}}}
		if k.Reader = references.Builtin(k.Resource()); k.Reader == nil || gvk.Version == runtime.APIVersionInternal {
			continue
		}
		reading := ReferrerReading(k)
		if !reading.typed() {
			continue
		}
		tested[k.Resource()] = true
		for range 100 {
			object := reading.Kind.New()
			filler.Fill(object)
			checkReferring(t, k, reading, object)
		}
	}
	for _, resource := range references.BuiltinResources() {
		group := schema.ParseGroupResource(resource).Group
		if !tested[resource] && !gc.CanBeUnused(resource) && resource != "controllerrevisions.apps" && !slices.Contains(groupsInJSON, group) {
			t.Errorf("%s is not read in protobuf", resource)
		}
	}
}

var groupsInJSON = []string{"apiextensions.k8s.io", "apiregistration.k8s.io", "resource.k8s.io"}

func checkReferring(t *testing.T, k *kinds.Referrer, reading Reading, object runtime.Object) {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		t.Fatal(err)
	}
	want, failed := k.Reader.References(content)
	u, err := UnstructuredFrom(k)(decoded(t, fieldDecoder{whole, reading}, encoded(t, object)))
	if err != nil {
		t.Fatal(err)
	}
	got, err := k.Reader.References(u.Object)
	if (err == nil) != (failed == nil) || err == nil && !slices.Equal(got, want) {
		t.Fatalf("an object of %s refers to\n%v, %v; not\n%v, %v", k.Resource(), got, err, want, failed)
	}
	if status, _ := u.Object["status"].(map[string]any); len(status) > 0 && k.Resource() == "pods" {
		t.Errorf("the status of a Pod is decoded: %v", status)
	}
}

// TestReferrerErrors: an answer that is cut off is an error wherever that is.
func TestReferrerErrors(t *testing.T) {
	decoder := fieldDecoder{whole, ReferrerReading(podReferrer())}
	job := testkinds.TemplatedJob("a")
	for name, object := range map[string]runtime.Object{
		"object": &corev1.Pod{ObjectMeta: job.ObjectMeta, Spec: job.Spec.Template.Spec},
		"list":   &corev1.PodList{Items: []corev1.Pod{{Spec: job.Spec.Template.Spec}}},
	} {
		data := encoded(t, object)
		for n := range data {
			_, _, got := decoder.Decode(data[:n], nil, nil)
			if _, _, want := whole.Decode(data[:n], nil, nil); (got == nil) != (want == nil) {
				t.Errorf("%s cut off after %d of %d bytes: %v, not %v", name, n, len(data), got, want)
			}
		}
	}
}

// TestReferrerList: a list says how it goes on, and what is no Pod is decoded by its type.
func TestReferrerList(t *testing.T) {
	decoder := fieldDecoder{whole, ReferrerReading(podReferrer())}
	want := metav1.ListMeta{ResourceVersion: "7", Continue: "there", RemainingItemCount: ptr.To[int64](3)}
	list := decoded(t, decoder, encoded(t, &corev1.PodList{ListMeta: want, Items: make([]corev1.Pod, 2)})).(*unstructured.UnstructuredList)
	got := metav1.ListMeta{
		ResourceVersion: list.GetResourceVersion(), Continue: list.GetContinue(), RemainingItemCount: list.GetRemainingItemCount(),
	}
	if len(list.Items) != 2 || !reflect.DeepEqual(got, want) {
		t.Errorf("%d items, %+v", len(list.Items), got)
	}
	job := decoded(t, decoder, encoded(t, testkinds.TemplatedJob("a")))
	if u, err := UnstructuredFrom(podReferrer())(job); err == nil {
		t.Errorf("a Job counts as a Pod: %v", u)
	}
}

// BenchmarkReferrer decodes a small Pod and finds what it refers to.
func BenchmarkReferrer(b *testing.B) {
	k, data := podReferrer(), encoded(b, smallPod())
	decoder, unstructuredOf := fieldDecoder{whole, ReferrerReading(k)}, UnstructuredFrom(k)
	b.ReportAllocs()
	for b.Loop() {
		u, err := unstructuredOf(decoded(b, decoder, data))
		if err != nil {
			b.Fatal(err)
		}
		if of, err := ReferringOf(k, u); err != nil || len(of[0].Keys) == 0 {
			b.Fatal(of, err)
		}
	}
}

// BenchmarkUnchangedReferrer compares a small Pod with the one before.
func BenchmarkUnchangedReferrer(b *testing.B) {
	pod, seed := smallPod(), maphash.MakeSeed()
	decoder, data, before := fieldDecoder{whole, ReferrerReading(podReferrer())}, encoded(b, pod), encodedPod(b, pod).Digest(seed)
	b.ReportAllocs()
	for b.Loop() {
		if e, ok := decoded(b, decoder, data).(*Encoded); !ok || e.Digest(seed) != before {
			b.Fatal("the Pod has changed")
		}
	}
}
