// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/apis/example"
	"k8s.io/apiserver/pkg/storage"
)

// FuzzPayload: whatever is stored for an object, it is decoded as this very object or not at all.
func FuzzPayload(f *testing.F) {
	s := storeAt(f, "http://127.0.0.1:0")
	s.checksPlace = true // as the server has it
	payload, err := s.encode(&example.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(payload)
	f.Add(`{"kind":"Pod","apiVersion":"example.apiserver.k8s.io/v1","metadata":{"name":"b","namespace":"ns"}}`)
	f.Fuzz(func(t *testing.T, payload string) {
		stored := &storedObject{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", ResourceVersion: "7"}, Payload: payload}
		pod := &example.Pod{}
		if err := s.decode(stored, "/pods/ns/a", pod); err != nil {
			if !storage.IsInternalError(err) {
				t.Fatalf("%q: %v", payload, err)
			}
			return
		}
		if pod.Name != "a" || pod.Namespace != "ns" || pod.ResourceVersion != "7" {
			t.Fatalf("%q is decoded as %s/%s in version %s", payload, pod.Namespace, pod.Name, pod.ResourceVersion)
		}
	})
}

// FuzzContinue: a token is refused or passed on as it is, and only within the namespace of the request.
func FuzzContinue(f *testing.F) {
	s := storeAt(f, "http://127.0.0.1:0")
	token, err := storage.EncodeContinue("/pods/ns/a\x00", "/pods/ns/", 7)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(token)
	f.Add("eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiIuLi9vdGhlciJ9")
	f.Fuzz(func(t *testing.T, token string) {
		at, err := s.locate("/pods/ns/", true)
		if err != nil {
			t.Fatal(err)
		}
		opts := storage.ListOptions{Recursive: true, Predicate: storage.SelectionPredicate{Limit: 1, Continue: token}}
		query, err := s.listQuery(at, opts)
		if err == nil && (query.continueToken != token || query.location != at.location) {
			t.Fatalf("%q became %+v", token, query)
		}
	})
}
