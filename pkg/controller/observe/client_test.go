// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/winnow-dev/winnow/pkg/controller/internal/testkinds"
	"github.com/winnow-dev/winnow/pkg/controller/observe/decode"
)

// run is a Run in JSON, with much that nobody reads.
func run(name, annotations string) string {
	return fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":"Run","metadata":{"name":%q,"namespace":"team-a","uid":"uid-%[1]s",`+
		`"resourceVersion":"7","annotations":{%s},"managedFields":[{"manager":"m"}]},`+
		`"spec":{"template":"%s"},"status":{"phase":"Done","at":"2026-03-01T12:00:00Z","log":[1,2,3]}}`,
		name, annotations, strings.Repeat("x", 1000))
}

// serve answers one path, and fails for others.
func serve(t *testing.T, want string, answer func(http.ResponseWriter, *http.Request)) *Client {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != want {
			t.Errorf("asked for %s, want %s", r.URL.Path, want)
		}
		answer(w, r)
	}))
	t.Cleanup(server.Close)
	client, err := NewClient(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func inJSON(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", runtime.ContentTypeJSON)
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text))
}

// TestListCustom: of each object only what the lifecycle and facts read is decoded.
func TestListCustom(t *testing.T) {
	k := testkinds.Run(t, true)
	client := serve(t, "/apis/example.com/v1/namespaces/team-a/runs", func(w http.ResponseWriter, _ *http.Request) {
		inJSON(w, 200, `{"apiVersion":"example.com/v1","items":[`+run("a", "")+`,`+run("b", "")+`],"kind":"RunList",`+
			`"metadata":{"continue":"next","resourceVersion":"9"}}`)
	})
	list, err := client.Lister(decode.NewReading(k, testkinds.NoConditions), "team-a")(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	m, err := meta.ListAccessor(list)
	if err != nil || m.GetContinue() != "next" || m.GetResourceVersion() != "9" || meta.LenList(list) != 2 {
		t.Fatalf("got %v, %v", list, err)
	}
	err = meta.EachListItem(list, func(object runtime.Object) error {
		content := object.(*unstructured.Unstructured).Object
		status := content["status"].(map[string]any)
		if content["spec"] != nil || status["log"] != nil || content["metadata"].(map[string]any)["managedFields"] != nil {
			t.Errorf("decoded %v", content)
		}
		compact, err := decode.Fact(k, object)
		if err != nil || !compact.Finished || compact.Resource != "runs.example.com" || compact.FinishedAt().Hour() != 12 {
			t.Errorf("got %+v, %v", compact, err)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestWatchCustom: objects are decoded in part, and bookmarks and errors are what a reflector expects.
func TestWatchCustom(t *testing.T) {
	client := serve(t, "/apis/example.com/v1/runs", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("watch") == "" {
			t.Errorf("asked for %s", r.URL)
		}
		inJSON(w, 200, `{"type":"ADDED","object":`+run("a", "")+"}\n"+
			`{"type":"BOOKMARK","object":`+run("", `"k8s.io/initial-events-end":"true"`)+"}\n"+
			`{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","code":410,"reason":"Expired"}}`+"\n")
	})
	w, err := client.Watcher(decode.NewReading(testkinds.Run(t, true), testkinds.NoConditions))(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	added, bookmark, failed := <-w.ResultChan(), <-w.ResultChan(), <-w.ResultChan()
	if u, ok := added.Object.(*unstructured.Unstructured); added.Type != watch.Added || !ok || u.GetName() != "a" || u.Object["spec"] != nil {
		t.Errorf("added: %+v", added)
	}
	if bookmark.Type != watch.Bookmark || !endsInitialEvents(bookmark) {
		t.Errorf("bookmark: %+v", bookmark)
	}
	if s, ok := failed.Object.(*metav1.Status); failed.Type != watch.Error || !ok || s.Reason != metav1.StatusReasonExpired {
		t.Errorf("error: %+v", failed)
	}
}

// TestCustomFails: what is no list is the error that it says.
func TestCustomFails(t *testing.T) {
	for name, c := range map[string]struct {
		status     int
		text, want string
	}{
		"a status":  {403, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"no right to list runs","reason":"Forbidden","code":403}`, "no right to list runs"},
		"no object": {200, `[]`, "a JSON object was expected"},
		"cut off":   {200, `{"apiVersion":"example.com/v1","items":[` + run("a", ""), "ends too early"},
	} {
		t.Run(name, func(t *testing.T) {
			client := serve(t, "/apis/example.com/v1/runs", func(w http.ResponseWriter, _ *http.Request) { inJSON(w, c.status, c.text) })
			if list, err := client.Lister(decode.NewReading(testkinds.Run(t, true), testkinds.NoConditions), "")(t.Context(), metav1.ListOptions{}); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, %v", list, err)
			}
		})
	}
}

// TestMetadataAlone: without a lifecycle nothing but the metadata is requested.
func TestMetadataAlone(t *testing.T) {
	k := testkinds.Run(t, false)
	client := serve(t, "/apis/example.com/v1/namespaces/team-a/runs", func(w http.ResponseWriter, r *http.Request) {
		for _, accepted := range strings.Split(r.Header.Get("Accept"), ",") {
			if accepted != "application/json" && !strings.Contains(accepted, "as=PartialObjectMetadataList") {
				t.Errorf("accepts %q", accepted)
			}
		}
		inJSON(w, 200, `{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadataList","metadata":{"resourceVersion":"9"},"items":[`+
			`{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadata","metadata":{"name":"a","namespace":"team-a","uid":"uid-a","resourceVersion":"7"}}]}`)
	})
	list, err := client.Lister(decode.NewReading(k, testkinds.NoConditions), "team-a")(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	all := list.(*metav1.PartialObjectMetadataList).Items
	if len(all) != 1 {
		t.Fatalf("got %v", list)
	}
	if compact, err := decode.Fact(k, &all[0]); err != nil || compact.Name() != "a" || compact.Finished {
		t.Errorf("got %+v, %v", compact, err)
	}
}

// TestClientsStripLists: in each content type that the server may choose.
func TestClientsStripLists(t *testing.T) {
	list := &batchv1.JobList{Items: []batchv1.Job{*testkinds.TemplatedJob("a"), *testkinds.TemplatedJob("b")}}
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
		object, err := client.Lister(decode.NewReading(testkinds.Of(&batchv1.Job{}), testkinds.NoConditions), "default")(t.Context(), metav1.ListOptions{})
		got, ok := object.(*batchv1.JobList)
		if err != nil || !ok || len(got.Items) != 2 || got.Items[1].Name != "b" || len(got.Items[1].Spec.Template.Spec.Containers) != containers {
			t.Errorf("%s: %+v, %v", contentType, got, err)
		}
	}
}
