// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package cleanup

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"path"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	componentbaseconfig "k8s.io/component-base/config"

	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/pkg/controller/internal/fakecluster"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/write/marks"
)

// apiServer is everything that a Controller of New talks to, in memory and in the time of package synctest: a cluster, with a Lease, and
// Winnow's own API.
type apiServer struct {
	*fakecluster.Cluster

	mu    sync.Mutex
	lease *coordinationv1.Lease
	// ahead is how far its clock is ahead. If undated is set, its answers have no Date.
	ahead   time.Duration
	undated bool
	// before is called before a request is answered. If it returns a code, that is the answer.
	before  func(*http.Request) int
	deleted []string // Jobs
}

func newAPIServer() *apiServer {
	home := &corev1.Namespace{ObjectMeta: testbuilders.Namespace(testbuilders.Home, "1").ObjectMeta}
	s := &apiServer{Cluster: fakecluster.New(home), before: func(*http.Request) int { return 0 }}
	for kind, plural := range map[string]string{
		"CleanupPolicy": "cleanuppolicies", "ClusterCleanupPolicy": "clustercleanuppolicies", "ResourceLifecycle": "resourcelifecycles",
	} {
		s.Define(v1alpha1.SchemeGroupVersion.WithKind(kind), plural)
	}
	s.Define(marks.Resource.GroupVersion().WithKind("UsageMarks"), marks.Resource.Resource)
	s.Define(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"},
		"customresourcedefinitions")
	s.Define(schema.GroupVersionKind{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"}, "apiservices")
	s.policy("0s")
	return s
}

// policy stores policy p, with a TTL.
func (s *apiServer) policy(ttl string) { s.policyWith(ttl, map[string]any{}) }

func (s *apiServer) policyWith(ttl string, status map[string]any) {
	s.Set(&unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1alpha1.SchemeGroupVersion.String(), "kind": "CleanupPolicy",
		"metadata": map[string]any{"namespace": testbuilders.Home, "name": "p", "uid": "uid-p", "generation": int64(1)},
		"spec":     map[string]any{"mode": "Enforce", "annotationTTL": "ExtendOnly", "ttlAfterFinished": ttl},
		"status":   status,
	}})
}

// on sets what is called before a request is answered.
func (s *apiServer) on(before func(*http.Request) int) { s.do(func() { s.before = before }) }

// job stores a Job that has finished an hour ago.
func (s *apiServer) job(name string) {
	job := testbuilders.Job(name).Complete(time.Now().Add(-time.Hour)).Obj()
	job.CreationTimestamp = metav1.NewTime(time.Now().Add(-2 * time.Hour))
	s.Set(job)
}

func (s *apiServer) do(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// holder is in whose name the Lease is.
func (s *apiServer) holder() (name string) {
	s.do(func() {
		if s.lease != nil && s.lease.Spec.HolderIdentity != nil {
			name = *s.lease.Spec.HolderIdentity
		}
	})
	return name
}

// jobsDeleted returns how many Jobs were deleted.
func (s *apiServer) jobsDeleted() (n int) {
	s.do(func() { n = len(s.deleted) })
	return n
}

// RoundTrip implements http.RoundTripper.
func (s *apiServer) RoundTrip(r *http.Request) (*http.Response, error) {
	var before func(*http.Request) int
	s.do(func() { before = s.before })
	if code := before(r); code != 0 {
		return s.dated(answerOf(r, code, nil), nil)
	}
	switch {
	case strings.Contains(r.URL.Path, "/leases"):
		return s.dated(s.serveLease(r))
	case r.Method == http.MethodDelete:
		name := path.Base(r.URL.Path)
		s.Delete(&batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: testbuilders.Home, Name: name}})
		s.do(func() { s.deleted = append(s.deleted, name) })
		return s.dated(answerOf(r, http.StatusOK, nil), nil)
	case r.URL.Path == "/api":
		return s.dated(answerOf(r, http.StatusOK, discovered("", "v1", "Pod", "pods")), nil)
	case r.URL.Path == "/apis":
		return s.dated(answerOf(r, http.StatusOK, discovered("batch", "v1", "Job", "jobs")), nil)
	case r.Method != http.MethodGet: // Status and events, which no test here is about.
		return s.dated(answerOf(r, http.StatusForbidden, nil), nil)
	}
	return s.dated(s.Cluster.RoundTrip(r))
}

func (s *apiServer) dated(response *http.Response, err error) (*http.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil && !s.undated {
		response.Header.Set("Date", time.Now().Add(s.ahead).UTC().Format(http.TimeFormat))
	}
	return response, err
}

func (s *apiServer) serveLease(r *http.Request) (*http.Response, error) {
	written := &coordinationv1.Lease{}
	if r.Body != nil {
		body, err := io.ReadAll(r.Body)
		if err == nil {
			err = runtime.DecodeInto(scheme.Codecs.UniversalDeserializer(), body, written)
		}
		if err != nil {
			return nil, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case r.Method != http.MethodGet:
		s.lease = written
	case s.lease == nil:
		return answerOf(r, http.StatusNotFound, nil), nil
	}
	out := s.lease.DeepCopy()
	out.APIVersion, out.Kind = "coordination.k8s.io/v1", "Lease"
	return answerOf(r, http.StatusOK, out), nil
}

// discovered is what the API server says of the versions of a group that has one resource.
func discovered(group, version, kind, plural string) any {
	return &apidiscoveryv2.APIGroupDiscoveryList{
		TypeMeta: metav1.TypeMeta{APIVersion: "apidiscovery.k8s.io/v2", Kind: "APIGroupDiscoveryList"},
		Items: []apidiscoveryv2.APIGroupDiscovery{{
			ObjectMeta: metav1.ObjectMeta{Name: group},
			Versions: []apidiscoveryv2.APIVersionDiscovery{{Version: version, Resources: []apidiscoveryv2.APIResourceDiscovery{{
				Resource: plural, Scope: apidiscoveryv2.ScopeNamespace, Verbs: []string{"delete", "get", "list", "patch", "watch"},
				ResponseKind: &metav1.GroupVersionKind{Group: group, Version: version, Kind: kind},
			}}}},
		}},
	}
}

// answerOf is an answer in JSON: an object, or a Status if there is none.
func answerOf(r *http.Request, code int, object any) *http.Response {
	contentType := "application/json"
	if _, ok := object.(*apidiscoveryv2.APIGroupDiscoveryList); ok {
		contentType += ";g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
	}
	if object == nil {
		result := map[bool]string{true: metav1.StatusSuccess, false: metav1.StatusFailure}[code < http.StatusBadRequest]
		object = metav1.Status{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: result, Code: int32(code),
			Reason: map[int]metav1.StatusReason{
				http.StatusNotFound: metav1.StatusReasonNotFound, http.StatusForbidden: metav1.StatusReasonForbidden,
			}[code],
		}
	}
	body, err := json.Marshal(object)
	if err != nil {
		panic(err)
	}
	return &http.Response{
		StatusCode: code, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {contentType}}, Body: io.NopCloser(bytes.NewReader(body)),
	}
}

// controller returns a replica of this name.
func (s *apiServer) controller(t *testing.T, instance string, change func(*Config)) *Controller {
	t.Helper()
	config := &rest.Config{Host: "http://cluster.test", QPS: -1, Transport: s}
	c := Config{
		Cluster: config, Loopback: config, UserAgent: "winnow/test", Instance: instance, ConcurrentDeletions: 4,
		HoldAbove: -1, HoldAboveTotal: -1,
		LeaderElection: componentbaseconfig.LeaderElectionConfiguration{
			LeaderElect: true, ResourceNamespace: "winnow-system", ResourceName: "winnow",
			LeaseDuration: metav1.Duration{Duration: 15 * time.Second}, RenewDeadline: metav1.Duration{Duration: 10 * time.Second},
			RetryPeriod: metav1.Duration{Duration: 2 * time.Second},
		},
	}
	if change != nil {
		change(&c)
	}
	out, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// start runs a controller. stop ends it, and returns once it has ended.
func start(t *testing.T, c *Controller) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return stop
}

// passes lets time pass, and all goroutines do what they have to do.
func passes(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}
