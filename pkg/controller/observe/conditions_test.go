// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/winnow-dev/winnow/pkg/controller/internal/testkinds"
	"github.com/winnow-dev/winnow/pkg/controller/objects/facts"
	"github.com/winnow-dev/winnow/pkg/controller/objects/kinds"
	"github.com/winnow-dev/winnow/pkg/controller/observe/decode"
)

// reduced returns the facts of the objects of a list, which must have this continue token.
func reduced(t *testing.T, k *kinds.Kind, list runtime.Object, next string) []*facts.Compact {
	t.Helper()
	m, err := meta.ListAccessor(list)
	if err != nil || m.GetContinue() != next || m.GetResourceVersion() != "9" {
		t.Fatalf("got %+v, %v", list, err)
	}
	var all []*facts.Compact
	if err := meta.EachListItem(list, func(object runtime.Object) error {
		compact, err := decode.Fact(k, object)
		all = append(all, compact)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return all
}

// jobs answers lists and watches with two Jobs, one of them in team-a, in a content type.
func jobs(t *testing.T, contentType string) *Client {
	t.Helper()
	mine, other := testkinds.TemplatedJob("a"), testkinds.TemplatedJob("b")
	mine.Namespace, other.Namespace = "team-a", "team-b"
	list := &batchv1.JobList{Items: []batchv1.Job{*mine, *other}, ListMeta: metav1.ListMeta{Continue: "next", ResourceVersion: "9"}}
	info, _ := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), contentType)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		if err := scheme.Codecs.EncoderForVersion(info.Serializer, batchv1.SchemeGroupVersion).Encode(list, w); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	client, err := NewClient(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// TestConditionsOfJobs: they read fields that facts do not, in each content type that the server may choose.
func TestConditionsOfJobs(t *testing.T) {
	const image = "object.spec.template.spec.containers.exists(c, c.image.startsWith('registry.example.com'))"
	for _, contentType := range []string{runtime.ContentTypeProtobuf, runtime.ContentTypeJSON} {
		k := testkinds.Of(&batchv1.Job{})
		list, err := jobs(t, contentType).Lister(decode.NewReading(k, testkinds.InTeamA(t, image, "object.kind == 'Job'")), "")(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		all := reduced(t, k, list, "next")
		if len(all) != 2 {
			t.Fatalf("%s: got %v", contentType, all)
		}
		for _, compact := range all {
			testkinds.ExpectResults(t, compact, map[string]bool{image: true, "object.kind == 'Job'": true})
		}
	}
}

// TestConditionsOfCustom: in a list and in a watch, beside what the lifecycle reads.
func TestConditionsOfCustom(t *testing.T) {
	const condition = "object.spec.template.size() == 1000"
	k := testkinds.Run(t, true)
	other := strings.ReplaceAll(run("b", ""), "team-a", "team-b")
	client := serve(t, "/apis/example.com/v1/runs", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("watch") != "" {
			inJSON(w, 200, `{"type":"ADDED","object":`+run("a", "")+"}\n"+`{"type":"ADDED","object":`+other+"}\n"+
				`{"type":"BOOKMARK","object":`+run("", `"k8s.io/initial-events-end":"true"`)+"}\n")
			return
		}
		inJSON(w, 200, `{"apiVersion":"example.com/v1","items":[`+run("a", "")+`,`+other+`],"kind":"RunList",`+
			`"metadata":{"continue":"next","resourceVersion":"9"}}`)
	})
	r := decode.NewReading(k, testkinds.InTeamA(t, condition))
	list, err := client.Lister(r, "")(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	all := reduced(t, k, list, "next")
	w, err := client.Watcher(r)(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	for range 2 {
		e := <-w.ResultChan()
		compact, err := decode.Fact(k, e.Object)
		if err != nil || e.Type != watch.Added {
			t.Fatalf("got %+v, %v", e, err)
		}
		all = append(all, compact)
	}
	if bookmark := <-w.ResultChan(); !endsInitialEvents(bookmark) {
		t.Errorf("bookmark: %+v", bookmark)
	}
	for _, compact := range all {
		testkinds.ExpectResults(t, compact, map[string]bool{condition: true})
		if !compact.Finished {
			t.Errorf("%s has not finished", compact.Name())
		}
	}
}

// TestConditionsOfMetadata: where no lifecycle reads more, the metadata alone is requested as long as conditions read nothing else.
func TestConditionsOfMetadata(t *testing.T) {
	const inMetadata, inSpec = "object.metadata.name == 'a' && object.kind == 'Run'", "object.spec.template.size() == 1000"
	k := testkinds.Run(t, false)
	client := serve(t, "/apis/example.com/v1/namespaces/team-a/runs", func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.Header.Get("Accept"), "as=PartialObjectMetadataList") {
			inJSON(w, 200, `{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadataList","metadata":{"resourceVersion":"9"},"items":[`+
				`{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadata",`+
				`"metadata":{"name":"a","namespace":"team-a","uid":"uid-a","resourceVersion":"7"}}]}`)
			return
		}
		inJSON(w, 200, `{"apiVersion":"example.com/v1","items":[`+run("a", "")+`],"kind":"RunList","metadata":{"resourceVersion":"9"}}`)
	})
	for _, conditions := range [][]string{{inMetadata}, {inMetadata, inSpec}} {
		r := decode.NewReading(k, testkinds.InTeamA(t, conditions...))
		list, err := client.Lister(r, "team-a")(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		all := reduced(t, k, list, "")
		if len(all) != 1 || all[0].Finished {
			t.Fatalf("got %v", all)
		}
		for _, c := range conditions {
			testkinds.ExpectResults(t, all[0], map[string]bool{c: true})
		}
	}
}
