// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	"k8s.io/apimachinery/pkg/api/apitesting/roundtrip"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	gcfuzzer "github.com/winnow-dev/winnow/pkg/apis/gc/fuzzer"
	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
)

// TestRoundTrip converts random policies from the internal version to each served one, to bytes, and back.
func TestRoundTrip(t *testing.T) {
	roundtrip.RoundTripTestForAPIGroup(t, Install, gcfuzzer.Funcs)
}

func TestRoundTripToUnstructured(t *testing.T) {
	scheme := runtime.NewScheme()
	Install(scheme)
	withoutInternal := sets.New[schema.GroupVersionKind]()
	for _, options := range []string{"CreateOptions", "UpdateOptions", "PatchOptions"} {
		withoutInternal.Insert(v1alpha1.SchemeGroupVersion.WithKind(options))
	}
	roundtrip.RoundtripToUnstructured(t, scheme, fuzzer.MergeFuzzerFuncs(metafuzzer.Funcs, gcfuzzer.Funcs), withoutInternal, nil)
}

// TestStored holds later versions to what this one has stored: every field of the files, read and written, is the same.
func TestStored(t *testing.T) {
	scheme := runtime.NewScheme()
	Install(scheme)
	codecs := serializer.NewCodecFactory(scheme, serializer.EnableStrict)
	pretty := json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme, scheme, json.SerializerOptions{Pretty: true})
	for _, kind := range []string{"cleanuppolicy", "clustercleanuppolicy", "resourcelifecycle", "resourcelifecycle-references"} {
		stored, err := os.ReadFile("testdata/" + kind + ".v1alpha1.json")
		if err != nil {
			t.Fatal(err)
		}
		obj, err := runtime.Decode(codecs.UniversalDecoder(gc.SchemeGroupVersion), stored)
		if err != nil {
			t.Fatal(err)
		}
		again, err := runtime.Encode(codecs.EncoderForVersion(pretty, v1alpha1.SchemeGroupVersion), obj)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := strings.TrimSpace(string(again)), strings.TrimSpace(string(stored)); got != want {
			t.Errorf("stored:\n%s\nread and written again:\n%s", want, got)
		}
	}
}

// TestDefaults reads a cluster policy with as little as can be written. The mode has no default, and nothing is filled into rules: they
// are an atomic list, so that whoever applies them would see a difference each time.
func TestDefaults(t *testing.T) {
	scheme := runtime.NewScheme()
	Install(scheme)
	codecs := serializer.NewCodecFactory(scheme, serializer.EnableStrict)
	obj, err := runtime.Decode(
		codecs.UniversalDecoder(gc.SchemeGroupVersion),
		[]byte(`{"apiVersion": "gc.winnow.dev/v1alpha1", "kind": "ClusterCleanupPolicy",
		"spec": {"capacity": {"maxObjects": 0}, "rules": [{"name": "a", "capacity": {"percentOfQuota": 50}}]}}`),
	)
	if err != nil {
		t.Fatal(err)
	}
	none, half := int64(0), int64(50)
	want := gc.ClusterCleanupPolicySpec{
		AnnotationTTL: gc.AnnotationExtendOnly,
		Capacity:      &gc.Capacity{MaxObjects: &none},
		Rules:         []gc.CleanupRule{{Name: "a", Capacity: &gc.Capacity{PercentOfQuota: &half}}},
	}
	if diff := cmp.Diff(want, obj.(*gc.ClusterCleanupPolicy).Spec); diff != "" {
		t.Errorf("read (-want +got):\n%s", diff)
	}
}

// TestDefaultsOfLifecycles reads lifecycles with as little as can be written.
func TestDefaultsOfLifecycles(t *testing.T) {
	scheme := runtime.NewScheme()
	Install(scheme)
	codecs := serializer.NewCodecFactory(scheme, serializer.EnableStrict)
	for spec, want := range map[string]gc.ResourceLifecycleSpec{
		`{"finished": {"when": "true", "succeeded": "true", "at": "null"}}`: {
			Finished: &gc.FinishedExpressions{When: "true", Succeeded: "true", At: "null"}, Dependents: gc.LifecycleLeaveToOwner,
		},
		`{"references": [{"to": "secrets", "names": "'a'"}]}`: {
			References: []gc.LifecycleReference{{To: gc.ResourceSecrets, Names: "'a'"}}, Dependents: gc.LifecycleLeaveToOwner,
		},
	} {
		text := `{"apiVersion": "gc.winnow.dev/v1alpha1", "kind": "ResourceLifecycle", "spec": ` + spec + `}`
		obj, err := runtime.Decode(codecs.UniversalDecoder(gc.SchemeGroupVersion), []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, obj.(*gc.ResourceLifecycle).Spec); diff != "" {
			t.Errorf("read (-want +got):\n%s", diff)
		}
	}
}
