// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"bytes"
	"math/rand"
	"net/http"
	"net/http/httptest"
	goreflect "reflect"
	"strings"

	"slices"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
)

var (
	whole    = protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)
	stripped = strippedDecoder{whole, NewReading(kindOf(&batchv1.Job{}), none)}
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
	blankManagedFields(object)
	switch o := object.(type) {
	case *batchv1.Job:
		s := &o.Spec
		s.Selector, s.Template, s.CompletionMode, s.PodFailurePolicy, s.SuccessPolicy, s.Scheduling = nil, corev1.PodTemplateSpec{}, nil, nil, nil, nil
		o.Status.CompletedIndexes, o.Status.UncountedTerminatedPods, o.Status.FailedIndexes = "", nil, nil
		for i := range o.Status.Conditions {
			c := &o.Status.Conditions[i]
			c.LastProbeTime, c.Reason, c.Message = metav1.Time{}, "", ""
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

// blankManagedFields removes all of managedFields but the managers, and these too if no mark needs them.
func blankManagedFields(object runtime.Object) {
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
}

const fluxMark = "kustomize.toolkit.fluxcd.io/name"

func pointers[T any](all []T) []*T {
	var out []*T
	for i := range all {
		out = append(out, &all[i])
	}
	return out
}

// TestStripUnread fills objects at random: stripUnread removes exactly the unread fields.
func TestStripUnread(t *testing.T) {
	filler := fuzzer.FuzzerFor(metafuzzer.Funcs, rand.NewSource(1), scheme.Codecs)
	for _, empty := range []runtime.Object{&batchv1.Job{}, &batchv1.CronJob{}, &corev1.Pod{}, &corev1.ResourceQuota{}} {
		full := 0
		for i := range 300 {
			object := empty.DeepCopyObject()
			filler.Fill(object)
			if m := object.(metav1.Object); i%2 == 0 {
				m.SetLabels(map[string]string{fluxMark: "apps", fluxMark + "space": "flux-system"})
			}
			data := encoded(t, object)
			before := bytes.Clone(data)
			got, want := decoded(t, stripped, data), decoded(t, whole, data)
			if !apiequality.Semantic.DeepEqual(got, want) {
				full++
			}
			blank(want)
			got.(metav1.Object).SetSelfLink(want.(metav1.Object).GetSelfLink()) // the digest
			if !apiequality.Semantic.DeepEqual(got, want) {
				t.Fatalf("stripUnread to\n%+v\nnot\n%+v", got, want)
			}
			if !bytes.Equal(data, before) {
				t.Fatal("the answer itself was changed")
			}
		}
		if _, ok := empty.(*corev1.ResourceQuota); full == 0 != ok {
			t.Errorf("%T: stripUnread %d times", empty, full)
		}
	}
}

// TestStrippedFacts: a stripped object becomes the same fact.
func TestStrippedFacts(t *testing.T) {
	for _, object := range []runtime.Object{
		testbuilders.Job("a").Label("app", "train").Complete(testbuilders.Now).Obj(),
		testbuilders.Pod("b").Label("app", "train").Obj(),
		testbuilders.Job("c").Label(fluxMark, "a").Label(fluxMark+"space", "b").Managers("kube-controller-manager", "kustomize-controller").Obj(),
		testbuilders.Job("d").Label(fluxMark, "a").Label(fluxMark+"space", "b").Managers("kube-controller-manager", "controller").Obj(),
	} {
		data := encoded(t, object)
		all := decoded(t, whole, data)
		setContent(all, data, unreadOf)
		want, err := Reduce(kindOf(object), all)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := Reduce(kindOf(object), decoded(t, stripped, data)); err != nil || !goreflect.DeepEqual(got, want) {
			t.Errorf("%+v, %v; not %+v", got, err, want)
		}
	}
}

// TestStrippedRestartPolicy: only the restart policy and the deadline stay of the spec of a Pod.
func TestStrippedRestartPolicy(t *testing.T) {
	for policy, want := range map[corev1.RestartPolicy]bool{corev1.RestartPolicyAlways: true, corev1.RestartPolicyOnFailure: false} {
		got, err := reducePod(decoded(t, stripped, encoded(t, testbuilders.Pod("a").TTL("1h").Restarts(policy).Obj())))
		if err != nil || got.Fact().Endless != want {
			t.Errorf("%s: %+v, %v", policy, got.Fact(), err)
		}
	}
}

// TestStrippedErrors: the decoder returns the same errors for an answer that is cut off, wherever that is.
func TestStrippedErrors(t *testing.T) {
	data := encoded(t, templated("a"))
	for n := range data {
		_, _, wrong := stripped.Decode(data[:n], nil, nil)
		if _, _, want := whole.Decode(data[:n], nil, nil); (wrong == nil) != (want == nil) ||
			wrong != nil && wrong.Error() != want.Error() {
			t.Fatalf("cut off after %d bytes: %v, not %v", n, wrong, want)
		}
	}
}

// templated returns a typical Job, with a template and two managers of its fields.
func templated(name string) *batchv1.Job {
	job := testbuilders.Job(name).Label("app", "train").Complete(testbuilders.Now).Obj()
	job.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"batch.kubernetes.io/controller-uid": string(job.UID)}}
	job.Spec.Template.Labels = map[string]string{"app": "train", "job-name": name, "batch.kubernetes.io/job-name": name}
	job.Spec.Template.Spec = corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever, ServiceAccountName: "train", SecurityContext: &corev1.PodSecurityContext{},
		Containers: []corev1.Container{{
			Name: "main", Image: "registry.example.com/train:1", Command: []string{"/bin/train", "--epochs=3"},
			Env: []corev1.EnvVar{{Name: "DATA", Value: "/data"}, {Name: "MODEL", Value: "small"}},
			Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{"cpu": resource.MustParse("1"), "memory": resource.MustParse("1Gi")},
			},
			VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/data"}},
		}},
		Volumes: []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
	}
	for _, manager := range []string{"kubectl", "kube-controller-manager"} {
		job.ManagedFields = append(job.ManagedFields, metav1.ManagedFieldsEntry{
			Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "batch/v1", FieldsType: "FieldsV1",
			FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:template":{"f:spec":{` + strings.Repeat(`"f:dnsPolicy":{},`, 30) + `".":{}}}}}`),
		})
	}
	return job
}

// TestClientsStripLists: in each content type that the server may choose.
func TestClientsStripLists(t *testing.T) {
	list := &batchv1.JobList{Items: []batchv1.Job{*templated("a"), *templated("b")}}
	for contentType, containers := range map[string]int{runtime.ContentTypeProtobuf: 0, runtime.ContentTypeJSON: 1} {
		info, _ := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), contentType)
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", contentType)
			if err := scheme.Codecs.EncoderForVersion(info.Serializer, batchv1.SchemeGroupVersion).Encode(list, w); err != nil {
				t.Error(err)
			}
		}))
		defer server.Close()
		client, err := NewClient(&rest.Config{Host: server.URL})
		if err != nil {
			t.Fatal(err)
		}
		object, err := client.Lister(NewReading(kindOf(&batchv1.Job{}), none), "default")(t.Context(), metav1.ListOptions{})
		got, ok := object.(*batchv1.JobList)
		if err != nil || !ok || len(got.Items) != 2 || got.Items[1].Name != "b" || len(got.Items[1].Spec.Template.Spec.Containers) != containers {
			t.Errorf("%s: %+v, %v", contentType, got, err)
		}
	}
}

// BenchmarkDecode decodes and reduces a small Job.
func BenchmarkDecode(b *testing.B) {
	data := encoded(b, templated("a"))
	for name, by := range map[string]runtime.Decoder{"whole": whole, "stripped": stripped} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Reduce(kindOf(&batchv1.Job{}), decoded(b, by, data)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
