// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/objects/kinds"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/observe/decode"
)

// TestPages: all objects of all pages, with the sizes in which they were sent, whatever the encoding. One that cannot be read is skipped
// with its size.
func TestPages(t *testing.T) {
	job := func(name, version string) batchv1.Job {
		return batchv1.Job{ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: "team-a", UID: "u", ResourceVersion: version, Labels: map[string]string{"app": name},
		}}
	}
	pages := map[string]*batchv1.JobList{
		"": {
			ListMeta: metav1.ListMeta{ResourceVersion: "9", Continue: "more", RemainingItemCount: new(int64(1))},
			Items:    []batchv1.Job{job("a", "1"), job("unreadable", "none"), job("abcdef", "2")},
		},
		"more": {ListMeta: metav1.ListMeta{ResourceVersion: "9"}, Items: []batchv1.Job{job("abc", "3")}},
	}
	size := map[string]func(j *batchv1.Job) int{
		runtime.ContentTypeProtobuf: func(j *batchv1.Job) int { return j.Size() },
		runtime.ContentTypeJSON: func(j *batchv1.Job) int {
			encoded, _ := json.Marshal(j)
			return len(encoded)
		},
	}
	for contentType, sizeOf := range size {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			info, _ := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), contentType)
			w.Header().Set("Content-Type", contentType)
			encoder := scheme.Codecs.EncoderForVersion(info.Serializer, batchv1.SchemeGroupVersion)
			if err := encoder.Encode(pages[r.URL.Query().Get("continue")], w); err != nil {
				t.Error(err)
			}
		}))
		defer server.Close()
		client, err := NewClient(&rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{ContentType: contentType}})
		if err != nil {
			t.Fatal(err)
		}
		kind, err := kinds.Builtin().For(gc.ResourceJobs)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		var sizes []int
		var remaining []int64
		reading := decode.NewReading(kind, func(string) map[string]*lifecycle.Conditions { return nil })
		err = client.Pages(t.Context(), reading, "team-a", func(p Page) {
			for _, k := range p.Facts {
				names = append(names, k.Name())
			}
			sizes, remaining = append(sizes, p.Sizes...), append(remaining, p.Remaining)
		})
		if err != nil || !slices.Equal(names, []string{"a", "abcdef", "abc"}) || !slices.Equal(remaining, []int64{1, 0}) {
			t.Errorf("%s: %q, then %d remain, %v", contentType, names, remaining, err)
		}
		all := []*batchv1.Job{&pages[""].Items[0], &pages[""].Items[2], &pages["more"].Items[0]}
		for i, j := range all {
			if i >= len(sizes) || sizes[i] != sizeOf(j) {
				t.Errorf("%s: sizes %d, want %d for %s", contentType, sizes, sizeOf(j), j.Name)
			}
		}
	}
}
