// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/apis/example"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/client-go/rest"
)

func TestLocate(t *testing.T) {
	for key, want := range map[string]struct {
		namespaced, recursive bool
		target                target
		err                   string
	}{
		"/pods/ns/" + barrierName: {namespaced: true, target: target{key: "/pods/ns/" + barrierName, neverExists: true, location: location{"ns", barrierName}}},
		"/pods/" + barrierName:    {target: target{key: "/pods/" + barrierName, neverExists: true, location: location{"", barrierName}}},
		"/pods/ns/name":           {namespaced: true, target: target{key: "/pods/ns/name", location: location{"ns", "name"}}},
		"/pods/name":              {target: target{key: "/pods/name", location: location{"", "name"}}},
		"/pods/one-segment":       {namespaced: true, target: target{key: "/pods/one-segment", neverExists: true}},
		"/pods/ns/too-deep":       {target: target{key: "/pods/ns/too-deep", neverExists: true}},
		"/pods/ns/a/b":            {namespaced: true, target: target{key: "/pods/ns/a/b", neverExists: true}},
		"/pods/ns/":               {namespaced: true, target: target{key: "/pods/ns/", neverExists: true}},
		"/pods":                   {namespaced: true, recursive: true, target: target{key: "/pods/"}},
		"/pods/":                  {recursive: true, target: target{key: "/pods/"}},
		"/pods/ns":                {namespaced: true, recursive: true, target: target{key: "/pods/ns/", location: location{namespace: "ns"}}},
		"/pods/ns/name/":          {namespaced: true, recursive: true, target: target{key: "/pods/ns/name/", neverExists: true}},
		"/pods/cluster-wide":      {recursive: true, target: target{key: "/pods/cluster-wide/", neverExists: true}},
		"":                        {err: "empty key"},
		"/":                       {err: "empty key"},
		"..":                      {err: "invalid key"},
		"/pods/../secrets/a":      {err: "invalid key"},
		"/pods/./a":               {err: "invalid key"},
		"/pods.apps/a":            {err: "lacks resource prefix"},
		"/secrets/ns/name":        {err: "lacks resource prefix"},
	} {
		s := &store{resourcePrefix: "/pods/", namespaced: want.namespaced}
		got, err := s.locate(key, want.recursive)
		if want.err != "" {
			if err == nil || !strings.Contains(err.Error(), want.err) {
				t.Errorf("locate(%q): want error %q, got %v", key, want.err, err)
			}
			continue
		}
		if err != nil || got != want.target {
			t.Errorf("locate(%q, recursive %v): want %+v, got %+v, %v", key, want.recursive, want.target, got, err)
		}
	}
}

// failingHost answers every request with one status.
func failingHost(t *testing.T, status metav1.Status) *store {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
		status.Status = metav1.StatusFailure
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(int(status.Code))
		if err := json.NewEncoder(w).Encode(&status); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	return storeAt(t, server.URL)
}

func storeAt(t testing.TB, url string) *store {
	t.Helper()
	host, err := NewHost(&rest.Config{Host: url}, "ns")
	if err != nil {
		t.Fatal(err)
	}
	served := schema.GroupResource{Group: "example.org", Resource: "pods"}
	return newStore(host, podCodec(), served, "Pod", "/pods/", true, newPod)
}

// The host's messages name its internal resources; none of these names may reach the client, and of the words only those about a quota.
func TestHostErrorsAreTranslated(t *testing.T) {
	const secret = `storedpods.internal.gc.winnow.dev "name" said so`
	terminating := &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}}
	tooLarge := &metav1.StatusDetails{RetryAfterSeconds: 1, Causes: []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge}}}
	for name, c := range map[string]struct {
		status metav1.Status
		is     func(error) bool
		text   string

		onlyFor string // operations; all if empty
	}{
		"object not found": {metav1.Status{Code: 404, Reason: metav1.StatusReasonNotFound, Details: &metav1.StatusDetails{Kind: "storedpods", Name: "name"}}, storage.IsNotFound,
			"key not found", "get update delete"},
		"namespace not found": {metav1.Status{Code: 404, Reason: metav1.StatusReasonNotFound, Details: &metav1.StatusDetails{Kind: "namespaces", Name: "ns"}}, apierrors.IsNotFound,
			`namespaces "ns" not found`, ""},
		"not installed":         {metav1.Status{Code: 404, Reason: metav1.StatusReasonNotFound}, storage.IsInternalError, "the storage of pods.example.org is not installed in the cluster", ""},
		"unauthorized":          {metav1.Status{Code: 401, Reason: metav1.StatusReasonUnauthorized}, storage.IsInternalError, "credentials", ""},
		"forbidden":             {metav1.Status{Code: 403, Reason: metav1.StatusReasonForbidden}, storage.IsInternalError, "a right is missing", ""},
		"namespace terminating": {metav1.Status{Code: 403, Reason: metav1.StatusReasonForbidden, Details: terminating}, apierrors.IsForbidden, "namespace ns because it is being terminated", ""},
		"over a quota": {metav1.Status{Code: 403, Reason: metav1.StatusReasonForbidden, Message: `storedpods.internal.gc.winnow.dev "name" is forbidden: ` +
			`exceeded quota: small, requested: count/storedpods.internal.gc.winnow.dev=1, used: count/storedpods.internal.gc.winnow.dev=3, ` +
			`limited: count/storedpods.internal.gc.winnow.dev=3`}, apierrors.IsForbidden, `pods.example.org "name" is forbidden: exceeded quota: small, ` +
			`requested: count/pods.example.org=1, used: count/pods.example.org=3, limited: count/pods.example.org=3`, "create get update delete"},
		"a quota that nobody has counted": {metav1.Status{Code: 403, Reason: metav1.StatusReasonForbidden, Message: `storedpods.internal.gc.winnow.dev "name" is ` +
			`forbidden: status unknown for quota: small, resources: count/storedpods.internal.gc.winnow.dev`}, apierrors.IsForbidden,
			"status unknown for quota: small, resources: count/pods.example.org", ""},
		"a webhook that speaks of quotas": {metav1.Status{Code: 403, Reason: metav1.StatusReasonForbidden,
			Message: `admission webhook "q" denied the request: exceeded quota: storedpods`}, storage.IsInternalError, "a right is missing", ""},
		"expired":                 {metav1.Status{Code: 410, Reason: metav1.StatusReasonExpired}, apierrors.IsResourceExpired, "too old", ""},
		"too large":               {metav1.Status{Code: 413, Reason: metav1.StatusReasonRequestEntityTooLarge}, apierrors.IsRequestEntityTooLargeError, `pods.example.org "name" is too large`, "create get update delete"},
		"invalid":                 {metav1.Status{Code: 422, Reason: metav1.StatusReasonInvalid}, storage.IsInternalError, `does not take pods.example.org "name"`, "create get update delete"},
		"too many requests":       {metav1.Status{Code: 429, Reason: metav1.StatusReasonTooManyRequests}, apierrors.IsTooManyRequests, "asks to wait", ""},
		"internal":                {metav1.Status{Code: 500, Reason: metav1.StatusReasonInternalError}, storage.IsInternalError, "status 500", ""},
		"unavailable":             {metav1.Status{Code: 503, Reason: metav1.StatusReasonServiceUnavailable}, apierrors.IsServiceUnavailable, "unavailable", ""},
		"timeout":                 {metav1.Status{Code: 504, Reason: metav1.StatusReasonTimeout}, apierrors.IsTimeout, "did not answer in time", ""},
		"version from the future": {metav1.Status{Code: 504, Reason: metav1.StatusReasonTimeout, Details: tooLarge}, storage.IsTooLargeResourceVersion, "Too large resource version", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if c.status.Message == "" {
				c.status.Message = secret
			}
			s := failingHost(t, c.status)
			for operation, err := range operations(t.Context(), s) {
				if c.onlyFor != "" && !strings.Contains(c.onlyFor, operation) {
					continue
				}
				if !c.is(err) || !strings.Contains(err.Error(), c.text) {
					t.Errorf("%s: want %q, got %v", operation, c.text, err)
				}
				assertNoInternalNames(t, err)
			}
		})
	}
}

// operations are the errors of one call each.
func operations(ctx context.Context, s *store) map[string]error {
	const key = "/pods/ns/name"
	list := storage.ListOptions{Predicate: storage.Everything, Recursive: true}
	_, watchErr := s.Watch(ctx, "/pods/ns", list)
	return map[string]error{
		"create": s.Create(ctx, key, &example.Pod{}, nil, 0),
		"get":    s.Get(ctx, key, storage.GetOptions{}, &example.Pod{}),
		"list":   s.GetList(ctx, "/pods/ns", list, &example.PodList{}),
		"watch":  watchErr,
		"update": s.GuaranteedUpdate(ctx, key, &example.Pod{}, false, nil, nil, nil),
		"delete": s.Delete(ctx, key, &example.Pod{}, nil, storage.ValidateAllObjectFunc, nil, storage.DeleteOptions{}),
	}
}

func assertNoInternalNames(t *testing.T, err error) {
	t.Helper()
	text := err.Error()
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		text += fmt.Sprintf("%+v", status.Status())
	}
	if strings.Contains(text, "storedpods") || strings.Contains(text, "internal.gc") {
		t.Errorf("names the internal resource: %s", text)
	}
}

func TestUnreachableHost(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	for operation, err := range operations(t.Context(), storeAt(t, server.URL)) {
		if !storage.IsInternalError(err) || !strings.Contains(err.Error(), "cannot be reached") {
			t.Errorf("%s: got %v", operation, err)
		}
		assertNoInternalNames(t, err)
	}
}

func TestContextsAreHonoured(t *testing.T) {
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, request *http.Request) {
		select {
		case <-release:
		case <-request.Context().Done():
		}
	}))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(release) })
	s := storeAt(t, server.URL)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	for operation, err := range operations(ctx, s) {
		if !apierrors.IsTimeout(err) {
			t.Errorf("%s at its deadline: got %v", operation, err)
		}
	}
	ctx, cancel = context.WithCancel(t.Context())
	cancel()
	for operation, err := range operations(ctx, s) {
		if operation != "watch" && !errors.Is(err, context.Canceled) { // a watch is closed, see the suite
			t.Errorf("%s when canceled: got %v", operation, err)
		}
	}
}

func TestConfigOfHost(t *testing.T) {
	agents := make(chan string, 2)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, request *http.Request) {
		agents <- request.UserAgent()
	}))
	t.Cleanup(server.Close)
	for given, want := range map[string]string{"": "winnow", "winnow/v1.2.3": "winnow/v1.2.3", "curl": "winnow"} {
		host, err := NewHost(&rest.Config{Host: server.URL, UserAgent: given, QPS: 1, Timeout: time.Nanosecond}, "ns")
		if err != nil {
			t.Fatal(err)
		}
		if err := host.client.Get().Resource("x").Do(t.Context()).Error(); err != nil {
			t.Fatalf("user agent %q: %v", given, err)
		}
		if got := <-agents; got != want {
			t.Errorf("user agent: want %q, got %q", want, got)
		}
	}
}
