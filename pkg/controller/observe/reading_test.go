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

	"github.com/winnow-dev/winnow/pkg/controller/facts"
	"github.com/winnow-dev/winnow/pkg/controller/kinds"
	"github.com/winnow-dev/winnow/pkg/controller/lifecycle"
	"github.com/winnow-dev/winnow/pkg/expressions"
)

// none is for readings without match conditions.
func none(string) map[string]*lifecycle.Conditions { return nil }

// inTeamA returns a reading in which the objects of namespace team-a have these match conditions.
func inTeamA(t *testing.T, k *kinds.Kind, conditions ...string) Reading {
	t.Helper()
	all := map[string]*lifecycle.Conditions{"team-a": compiled(t, conditions...)}
	return NewReading(k, func(string) map[string]*lifecycle.Conditions { return all })
}

func compiled(t *testing.T, conditions ...string) *lifecycle.Conditions {
	t.Helper()
	own := map[string]*expressions.Expression{}
	for _, text := range conditions {
		e, err := expressions.New(text, expressions.Condition)
		if err != nil {
			t.Fatal(err)
		}
		own[text] = e
	}
	return lifecycle.NewConditions(nil, own, nil)
}

// expectResults fails unless the object of team-a, and it alone, has these results.
func expectResults(t *testing.T, k *facts.Compact, want map[string]bool) {
	t.Helper()
	for text, is := range want {
		matches, failure, known := k.Conditions.Result(text)
		switch {
		case k.Namespace != "team-a":
			if known {
				t.Errorf("%s was evaluated for %s/%s", text, k.Namespace, k.Name())
			}
		case !known || failure != "" || matches != is:
			t.Errorf("%s for %s/%s: %t, %q, known: %t", text, k.Namespace, k.Name(), matches, failure, known)
		}
	}
}

// reduced returns the facts of the objects of a list, which must have this continue token.
func reduced(t *testing.T, k *kinds.Kind, list runtime.Object, next string) []*facts.Compact {
	t.Helper()
	m, err := meta.ListAccessor(list)
	if err != nil || m.GetContinue() != next || m.GetResourceVersion() != "9" {
		t.Fatalf("got %+v, %v", list, err)
	}
	var all []*facts.Compact
	if err := meta.EachListItem(list, func(object runtime.Object) error {
		compact, err := Reduce(k, object)
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
	mine, other := templated("a"), templated("b")
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
		k := kindOf(&batchv1.Job{})
		list, err := jobs(t, contentType).Lister(inTeamA(t, k, image, "object.kind == 'Job'"), "")(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		all := reduced(t, k, list, "next")
		if len(all) != 2 {
			t.Fatalf("%s: got %v", contentType, all)
		}
		for _, compact := range all {
			expectResults(t, compact, map[string]bool{image: true, "object.kind == 'Job'": true})
		}
	}
}

// TestConditionsWhereObjectsAreDecoded: the objects of other namespaces lose their unread fields all the same.
func TestConditionsWhereObjectsAreDecoded(t *testing.T) {
	k := kindOf(&batchv1.Job{})
	info, _ := runtime.SerializerInfoForMediaType(
		strippedCodecs{typedCodecs, inTeamA(t, k, "has(object.spec.template)")}.SupportedMediaTypes(), runtime.ContentTypeProtobuf)
	for namespace, whole := range map[string]bool{"team-a": true, "team-b": false} {
		job := templated("a")
		job.Namespace = namespace
		encoder := scheme.Codecs.EncoderForVersion(info.Serializer, batchv1.SchemeGroupVersion)
		data, err := runtime.Encode(encoder, job)
		if err != nil {
			t.Fatal(err)
		}
		object, _, err := info.Serializer.Decode(data, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := object.(*evaluated); ok != whole {
			t.Errorf("%s: got %T", namespace, object)
		}
	}
}

// TestConditionsOfManagedFields: a condition that may read managedFields sees them. Facts need the managers in any case.
func TestConditionsOfManagedFields(t *testing.T) {
	k := kindOf(&batchv1.Job{})
	for _, condition := range []string{
		"object.metadata.managedFields.size() == 1",
		"object.metadata.managedFields[0].manager == 'kubectl'",
		"'managedFields' in object.metadata",
		"dyn(object).metadata.managedFields.size() == 1",
		"object.metadata.name == 'a' && has(object.spec.template)",
	} {
		job := templated("a")
		job.Namespace, job.ManagedFields = "team-a", []metav1.ManagedFieldsEntry{{Manager: "kubectl", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{}}`)}}
		r := inTeamA(t, k, condition)
		object, err := r.evaluate(job, r.present(), 0)
		if err != nil {
			t.Fatal(err)
		}
		compact, err := Reduce(k, object)
		if err != nil {
			t.Fatal(err)
		}
		expectResults(t, compact, map[string]bool{condition: true})
		if len(job.ManagedFields) != 1 {
			t.Errorf("%s: managed fields are not there", condition)
		}
	}
}

// TestConditionsOfCustom: in a list and in a watch, beside what the lifecycle reads.
func TestConditionsOfCustom(t *testing.T) {
	const condition = "object.spec.template.size() == 1000"
	k := runKind(t, true)
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
	r := inTeamA(t, k, condition)
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
		compact, err := Reduce(k, e.Object)
		if err != nil || e.Type != watch.Added {
			t.Fatalf("got %+v, %v", e, err)
		}
		all = append(all, compact)
	}
	if bookmark := <-w.ResultChan(); !endsInitialEvents(bookmark) {
		t.Errorf("bookmark: %+v", bookmark)
	}
	for _, compact := range all {
		expectResults(t, compact, map[string]bool{condition: true})
		if !compact.Finished {
			t.Errorf("%s has not finished", compact.Name())
		}
	}
}

// TestConditionsOfMetadata: where no lifecycle reads more, the metadata alone is requested as long as conditions read nothing else.
func TestConditionsOfMetadata(t *testing.T) {
	const inMetadata, inSpec = "object.metadata.name == 'a' && object.kind == 'Run'", "object.spec.template.size() == 1000"
	k := runKind(t, false)
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
		r := inTeamA(t, k, conditions...)
		list, err := client.Lister(r, "team-a")(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		all := reduced(t, k, list, "")
		if len(all) != 1 || all[0].Finished {
			t.Fatalf("got %v", all)
		}
		for _, c := range conditions {
			expectResults(t, all[0], map[string]bool{c: true})
		}
	}
}

// TestSuffices: a watch of the metadata evaluates no condition that reads more, and must be started again for it.
func TestSuffices(t *testing.T) {
	k := runKind(t, false)
	present := map[string]*lifecycle.Conditions{}
	conditions := func(string) map[string]*lifecycle.Conditions { return present }
	none, inMetadata, inSpec := (*lifecycle.Conditions)(nil), compiled(t, "object.metadata.name == 'a'"), compiled(t, "has(object.spec)")
	levels := []*lifecycle.Conditions{none, inMetadata, inSpec}
	for began := range levels {
		for now := range levels {
			delete(present, "team-a")
			if levels[began] != nil {
				present["team-a"] = levels[began]
			}
			r := NewReading(k, conditions)
			if delete(present, "team-a"); levels[now] != nil {
				present["team-a"] = levels[now]
			}
			if want := began >= now; r.suffices() != want {
				t.Errorf("began with %d, now %d: suffices: %t", began, now, !want)
			}
			evaluates := r.conditionsOf("team-a", present) != nil
			if want := now > 0 && began >= now; evaluates != want {
				t.Errorf("began with %d, now %d: evaluates: %t", began, now, evaluates)
			}
		}
	}
}
