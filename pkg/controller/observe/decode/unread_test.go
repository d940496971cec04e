// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"bytes"
	"errors"
	"maps"
	"math/rand"
	goreflect "reflect"
	"slices"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testkinds"
	"github.com/winnow-dev/winnow/pkg/controller/objects/facts"
)

var (
	whole    = protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)
	stripped = strippedDecoder{whole, NewReading(testkinds.Of(&batchv1.Job{}), testkinds.NoConditions)}
)

// encoded returns an object as the API server sends it.
func encoded(t testing.TB, object runtime.Object) []byte {
	t.Helper()
	var out bytes.Buffer
	kinds, _, err := scheme.Scheme.ObjectKinds(object)
	if err != nil {
		t.Fatal(err)
	}
	object.GetObjectKind().SetGroupVersionKind(kinds[0])
	if err := whole.Encode(object, &out); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func decoded(t testing.TB, by runtime.Decoder, data []byte) runtime.Object {
	t.Helper()
	object, _, err := by.Decode(data, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return object
}

// blank removes all unread fields.
func blank(object runtime.Object) {
	blankMetadata(object)
	switch o := object.(type) {
	case *batchv1.Job:
		s := &o.Spec
		s.Selector, s.Template, s.CompletionMode, s.SuccessPolicy, s.Scheduling = nil, corev1.PodTemplateSpec{}, nil, nil, nil
		if s.PodFailurePolicy != nil {
			for i := range s.PodFailurePolicy.Rules {
				s.PodFailurePolicy.Rules[i] = batchv1.PodFailurePolicyRule{Action: s.PodFailurePolicy.Rules[i].Action}
			}
		}
		o.Status.CompletedIndexes, o.Status.UncountedTerminatedPods, o.Status.FailedIndexes = "", nil, nil
		for i := range o.Status.Conditions {
			c := &o.Status.Conditions[i]
			c.LastProbeTime, c.Message = metav1.Time{}, ""
		}
	case *batchv1.CronJob:
		o.Spec = batchv1.CronJobSpec{}
	case *corev1.Pod:
		o.Spec = corev1.PodSpec{
			RestartPolicy: o.Spec.RestartPolicy, ActiveDeadlineSeconds: o.Spec.ActiveDeadlineSeconds,
		}
		s := &o.Status
		s.ResourceClaimStatuses, s.AllocatedResources, s.Resources, s.NodeAllocatableResourceClaimStatuses, s.VolumeHealth = nil, nil, nil, nil, nil
		for i := range s.Conditions {
			c := &s.Conditions[i]
			c.LastProbeTime, c.Reason, c.Message = metav1.Time{}, "", ""
		}
		for _, c := range slices.Concat(pointers(s.InitContainerStatuses), pointers(s.ContainerStatuses), pointers(s.EphemeralContainerStatuses)) {
			*c = corev1.ContainerStatus{State: c.State, Ready: c.Ready, RestartCount: c.RestartCount, Started: c.Started, StopSignal: c.StopSignal}
		}
	}
}

// blankMetadata removes annotations that facts do not need, and all of managedFields but the managers, and these too if no mark needs them.
func blankMetadata(object runtime.Object) {
	m, ok := object.(metav1.Object)
	if _, quota := object.(*corev1.ResourceQuota); !ok || quota {
		return
	}
	var managers []metav1.ManagedFieldsEntry
	for _, f := range m.GetManagedFields() {
		managers = append(managers, metav1.ManagedFieldsEntry{Manager: f.Manager})
	}
	if m.GetLabels()[fluxMark] == "" {
		managers = nil
	}
	m.SetManagedFields(managers)
	annotations := m.GetAnnotations()
	maps.DeleteFunc(annotations, func(key, _ string) bool { return !slices.Contains(annotationsOfFacts, key) })
	m.SetAnnotations(annotations)
}

// annotationsOfFacts are some of them, and what ends a list.
var annotationsOfFacts = []string{gc.AnnotationTTL, "meta.helm.sh/release-name", "kubernetes.io/config.mirror", "k8s.io/initial-events-end"}

const fluxMark = "kustomize.toolkit.fluxcd.io/name"

func pointers[T any](all []T) []*T {
	var out []*T
	for i := range all {
		out = append(out, &all[i])
	}
	return out
}

// TestUnread fills objects at random: exactly the unread fields are not decoded. client-go removes the kind in any case.
func TestUnread(t *testing.T) {
	filler := fuzzer.FuzzerFor(metafuzzer.Funcs, rand.NewSource(1), scheme.Codecs)
	for _, empty := range []runtime.Object{&batchv1.Job{}, &batchv1.CronJob{}, &corev1.Pod{}, &corev1.ResourceQuota{}} {
		full := 0
		for i := range 300 {
			object := empty.DeepCopyObject()
			filler.Fill(object)
			if m := object.(metav1.Object); i%2 == 0 {
				m.SetLabels(map[string]string{fluxMark: "apps", fluxMark + "space": "flux-system"})
				m.SetAnnotations(map[string]string{annotationsOfFacts[i/2%len(annotationsOfFacts)]: "a", "kubectl.kubernetes.io/last-applied-configuration": "{}"})
			}
			data := encoded(t, object)
			before := bytes.Clone(data)
			got, _, err := stripped.decode(data)
			if errors.Is(err, errUnknownKind) {
				got, _, err = runtime.WithoutVersionDecoder{Decoder: stripped}.Decode(data, nil, nil)
			}
			if err != nil {
				t.Fatal(err)
			}
			want := decoded(t, runtime.WithoutVersionDecoder{Decoder: whole}, data)
			if !apiequality.Semantic.DeepEqual(got, want) {
				full++
			}
			blank(want)
			got.(metav1.Object).SetSelfLink(want.(metav1.Object).GetSelfLink()) // the digest
			if !apiequality.Semantic.DeepEqual(got, want) {
				t.Fatalf("decoded\n%+v\nnot\n%+v", got, want)
			}
			if !bytes.Equal(data, before) {
				t.Fatal("the answer itself was changed")
			}
		}
		if _, ok := empty.(*corev1.ResourceQuota); full == 0 != ok {
			t.Errorf("%T: unread %d times", empty, full)
		}
	}
}

// TestStrippedFacts: a stripped object becomes the same fact.
func TestStrippedFacts(t *testing.T) {
	scheduled := testbuilders.Job("f").Obj()
	scheduled.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "CronJob", Name: "f", Controller: ptr.To(true)}}
	scheduled.Annotations = map[string]string{batchv1.CronJobScheduledTimestampAnnotation: "2026-03-01T11:00:00Z"}
	mirrored := testbuilders.Pod("g").Obj()
	mirrored.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "a"}
	for _, object := range []runtime.Object{
		testbuilders.Job("a").Label("app", "train").Complete(testbuilders.Now).Obj(),
		testbuilders.Job("e").PodFailure(batchv1.PodFailurePolicyActionIgnore, batchv1.PodFailurePolicyActionFailJob).Obj(),
		testbuilders.Pod("b").Label("app", "train").Obj(),
		mirrored, scheduled,
		testbuilders.Job("c").Label(fluxMark, "a").Label(fluxMark+"space", "b").Managers("kube-controller-manager", "kustomize-controller").Obj(),
		testbuilders.Job("d").Label(fluxMark, "a").Label(fluxMark+"space", "b").Managers("kube-controller-manager", "controller").Obj(),
	} {
		data := encoded(t, object)
		all := decoded(t, whole, data)
		setContent(all, data, unreadOf)
		want, err := Fact(testkinds.Of(object), all)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := Fact(testkinds.Of(object), decoded(t, strippedFor(object), data)); err != nil || !goreflect.DeepEqual(got, want) {
			t.Errorf("%+v, %v; not %+v", got, err, want)
		}
	}
}

// strippedFor returns what decodes objects as they are observed.
func strippedFor(object runtime.Object) runtime.Decoder {
	return strippedDecoder{whole, NewReading(testkinds.Of(object), testkinds.NoConditions)}
}

// TestReduced fills objects at random: facts stay as they are while the memory of their objects is used for others.
func TestReduced(t *testing.T) {
	filler := fuzzer.FuzzerFor(metafuzzer.Funcs, rand.NewSource(1), scheme.Codecs)
	for _, empty := range []runtime.Object{&batchv1.Job{}, &corev1.Pod{}} {
		var got, want []*facts.Compact
		by := strippedFor(empty)
		for range 300 {
			object := empty.DeepCopyObject()
			filler.Fill(object)
			m := object.(metav1.Object)
			m.SetUID("u")
			m.SetAnnotations(map[string]string{gc.AnnotationTTL: m.GetName(), gc.AnnotationKeepUntil: m.GetName()})
			data := encoded(t, object)
			all := decoded(t, whole, data)
			setContent(all, data, unreadOf)
			one := decoded(t, by, data)
			if r, ok := one.(*reduced); !ok || r.GetResourceVersion() != m.GetResourceVersion() || r.GetName() != m.GetName() {
				t.Fatalf("decoded\n%+v\nof\n%+v", one, object)
			}
			for _, of := range []struct {
				object runtime.Object
				facts  *[]*facts.Compact
			}{{one, &got}, {all, &want}} {
				fact, err := Fact(testkinds.Of(empty), of.object)
				if err != nil {
					t.Fatal(err)
				}
				*of.facts = append(*of.facts, fact)
			}
		}
		for i := range got {
			if !goreflect.DeepEqual(got[i].Fact(), want[i].Fact()) {
				t.Errorf("%+v\nnot\n%+v", got[i].Fact(), want[i].Fact())
			}
		}
	}
}

// TestNotReduced: a bookmark and what has no readable version are decoded as they are.
func TestNotReduced(t *testing.T) {
	bookmark := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{
		ResourceVersion: "7", Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"},
	}}
	for _, object := range []*batchv1.Job{bookmark, {ObjectMeta: metav1.ObjectMeta{UID: "u", Name: "a", ResourceVersion: "x"}}} {
		got, ok := decoded(t, stripped, encoded(t, object)).(*batchv1.Job)
		if !ok {
			t.Fatal("reduced")
		}
		got.SetSelfLink("") // the digest
		if !apiequality.Semantic.DeepEqual(got.ObjectMeta, object.ObjectMeta) {
			t.Errorf("decoded %+v, not %+v", got.ObjectMeta, object.ObjectMeta)
		}
	}
}

// TestStrippedRestartPolicy: only the restart policy and the deadline stay of the spec of a Pod.
func TestStrippedRestartPolicy(t *testing.T) {
	for policy, want := range map[corev1.RestartPolicy]bool{corev1.RestartPolicyAlways: true, corev1.RestartPolicyOnFailure: false} {
		got, err := Fact(testkinds.Of(&corev1.Pod{}), decoded(t, stripped, encoded(t, testbuilders.Pod("a").TTL("1h").Restarts(policy).Obj())))
		if err != nil || got.Fact().Endless != want {
			t.Errorf("%s: %+v, %v", policy, got.Fact(), err)
		}
	}
}

// TestStrippedErrors: the decoder returns the same errors for an answer that is cut off, wherever that is.
func TestStrippedErrors(t *testing.T) {
	data := encoded(t, testkinds.TemplatedJob("a"))
	for n := range data {
		_, _, wrong := stripped.Decode(data[:n], nil, nil)
		if _, _, want := whole.Decode(data[:n], nil, nil); (wrong == nil) != (want == nil) ||
			wrong != nil && wrong.Error() != want.Error() {
			t.Fatalf("cut off after %d bytes: %v, not %v", n, wrong, want)
		}
	}
}

// BenchmarkDecode decodes and reduces a small Job.
func BenchmarkDecode(b *testing.B) {
	data := encoded(b, testkinds.TemplatedJob("a"))
	for name, by := range map[string]runtime.Decoder{"whole": whole, "stripped": stripped} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Fact(testkinds.Of(&batchv1.Job{}), decoded(b, by, data)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
