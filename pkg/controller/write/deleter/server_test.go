// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package deleter

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

// request is a request that arrived at the server.
type request struct {
	method, path, userAgent string
	as                      []string             // whom it impersonates
	options                 metav1.DeleteOptions // of a DELETE
	patch                   string               // of a PATCH
}

// server gives the answers that a test sets, and records the requests.
type server struct {
	*testing.T
	client kubernetes.Interface
	// answer answers requests for objects. allowed is the result of reviews of permissions, which fail if reviewFails is set.
	answer               http.HandlerFunc
	allowed, reviewFails bool

	mu      sync.Mutex
	seen    []request
	reviews []authorizationv1.ResourceAttributes
}

func newServer(t *testing.T) *server { return newServerOf(t, true) }

func newServerOf(t *testing.T, http2 bool) *server {
	s := &server{T: t, answer: status(200, metav1.Status{Status: metav1.StatusSuccess})}
	endpoint := httptest.NewUnstartedServer(http.HandlerFunc(s.serve))
	endpoint.EnableHTTP2 = http2 // API servers use HTTP/2.
	endpoint.StartTLS()
	t.Cleanup(endpoint.Close)
	client, err := kubernetes.NewForConfig(&rest.Config{
		Host: endpoint.URL, QPS: -1, UserAgent: "winnow/v1.2.3",
		TLSClientConfig: rest.TLSClientConfig{Insecure: true},
		ContentConfig:   rest.ContentConfig{ContentType: runtime.ContentTypeProtobuf, AcceptContentTypes: "application/json"},
	})
	if err != nil {
		t.Fatal(err)
	}
	s.client = client
	return s
}

func (s *server) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		s.Error(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.URL.Path == "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews" {
		s.review(w, body)
		return
	}
	seen := request{method: r.Method, path: r.URL.Path, userAgent: r.Header.Get("User-Agent"), as: r.Header.Values("Impersonate-User")}
	switch r.Method {
	case http.MethodDelete:
		s.decode(body, &seen.options)
	case http.MethodPatch:
		seen.patch = string(body)
	}
	s.seen = append(s.seen, seen)
	s.answer(w, r)
}

func (s *server) review(w http.ResponseWriter, body []byte) {
	var review authorizationv1.SelfSubjectAccessReview
	s.decode(body, &review)
	s.reviews = append(s.reviews, *review.Spec.ResourceAttributes)
	if s.reviewFails {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	review.Status.Allowed = s.allowed
	review.APIVersion, review.Kind = "authorization.k8s.io/v1", "SelfSubjectAccessReview"
	write(w, http.StatusCreated, review)
}

func (s *server) decode(body []byte, into runtime.Object) {
	if _, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, into); err != nil {
		s.Errorf("cannot read the body %q: %v", body, err)
	}
}

// requests returns the requests since the last call.
func (s *server) requests() []request {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.seen
	s.seen = nil
	return out
}

func write(w http.ResponseWriter, code int, object any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(object)
}

// status answers as the API server does.
func status(code int, st metav1.Status) http.HandlerFunc {
	st.APIVersion, st.Kind, st.Code = "v1", "Status", int32(code)
	if st.Status == "" {
		st.Status = metav1.StatusFailure
	}
	return func(w http.ResponseWriter, _ *http.Request) { write(w, code, st) }
}

// plain answers with text, as filters and proxies in front of the API server do.
func plain(code int, words string, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		http.Error(w, words, code)
	}
}

// cut ends the connection without an answer.
func cut(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
