// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"bytes"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/winnow-dev/winnow/pkg/controller/internal/testkinds"
)

// TestEvents: an event is decoded as the serializers of Kubernetes decode it, and its object is not copied.
func TestEvents(t *testing.T) {
	plain := map[string]runtime.Serializer{}
	for _, info := range scheme.Codecs.SupportedMediaTypes() {
		if info.StreamSerializer != nil {
			plain[info.MediaType] = info.StreamSerializer.Serializer
		}
	}
	codecs, _ := referrerReading().Codecs("")
	jobs := NewReading(testkinds.Of(&batchv1.Job{}), testkinds.NoConditions)
	typed, _ := jobs.Codecs("")
	for _, info := range append(codecs.SupportedMediaTypes(), typed.SupportedMediaTypes()...) {
		if plain[info.MediaType] == nil || info.MediaType == runtime.ContentTypeYAML {
			continue
		}
		encoded := &bytes.Buffer{}
		object := []byte(`{"kind":"Job","note":"type \"a\""}`)
		event := &metav1.WatchEvent{Type: "ADDED", Object: runtime.RawExtension{Raw: object}}
		if err := plain[info.MediaType].Encode(event, encoded); err != nil {
			t.Fatal(err)
		}
		var got metav1.WatchEvent
		res, _, err := info.StreamSerializer.Decode(encoded.Bytes(), nil, &got)
		if err != nil || res != &got || got.Type != "ADDED" || !bytes.Equal(got.Object.Raw, object) {
			t.Errorf("%s: %+v, %v", info.MediaType, got, err)
		}
		at := bytes.Index(encoded.Bytes(), object)
		if encoded.Bytes()[at+2] = 'K'; got.Object.Raw[2] != 'K' {
			t.Errorf("%s: the object is a copy", info.MediaType)
		}
		status := &metav1.Status{}
		if _, _, err := info.StreamSerializer.Decode([]byte("{"), nil, status); err == nil {
			t.Errorf("%s: something else is decoded from half of it", info.MediaType)
		}
	}
}

func referrerReading() *Reading {
	r := ReferrerReading(podReferrer())
	return &r
}

// TestEventsInJSON: white space, the order of fields, and those that are not known do not matter. What is no event is an error.
func TestEventsInJSON(t *testing.T) {
	codecs := newPartialCodecs(*referrerReading())
	info := codecs.SupportedMediaTypes()[0]
	for text, want := range map[string]string{
		`{"type":"ADDED","object":{}}`:          `ADDED {}`,
		`{ "object" : {"a": 1} , "type":"X" }`:  `X {"a": 1}`,
		`{"other":[1,{"type":"Y"}],"type":"X"}`: `X `,
		`{"type":"\u0058","object":{}}`:         `X {}`,
		`{"type":"ADDED","object":{}`:           "",
		`{"type":1,"object":{}}`:                "",
		`[]`:                                    "",
	} {
		var got metav1.WatchEvent
		switch _, _, err := info.StreamSerializer.Decode([]byte(text), nil, &got); {
		case (err == nil) != (want != ""):
			t.Errorf("%s: %v", text, err)
		case err == nil && got.Type+" "+string(got.Object.Raw) != want:
			t.Errorf("%s: %s %s", text, got.Type, got.Object.Raw)
		}
	}
}
