// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"os"
	"strings"
	"testing"

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

// TestStored holds later versions to what this one has stored: every field of the file, read and written, is the same.
func TestStored(t *testing.T) {
	scheme := runtime.NewScheme()
	Install(scheme)
	codecs := serializer.NewCodecFactory(scheme, serializer.EnableStrict)
	stored, err := os.ReadFile("testdata/v1alpha1.json")
	if err != nil {
		t.Fatal(err)
	}
	obj, err := runtime.Decode(codecs.UniversalDecoder(gc.SchemeGroupVersion), stored)
	if err != nil {
		t.Fatal(err)
	}
	pretty := json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme, scheme, json.SerializerOptions{Pretty: true})
	again, err := runtime.Encode(codecs.EncoderForVersion(pretty, v1alpha1.SchemeGroupVersion), obj)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := strings.TrimSpace(string(again)), strings.TrimSpace(string(stored)); got != want {
		t.Errorf("stored:\n%s\nread and written again:\n%s", want, got)
	}
}
