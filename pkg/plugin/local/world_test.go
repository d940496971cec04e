// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	authorizationv1 "k8s.io/api/authorization/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
)

const (
	winnowPath     = "/apis/gc.winnow.dev/v1alpha1"
	namespacesPath = "/api/v1/namespaces"
	homePath       = namespacesPath + "/team-a"
	podsPath       = homePath + "/pods"
	jobsPath       = "/apis/batch/v1/namespaces/team-a/jobs"
	cronJobsPath   = "/apis/batch/v1/namespaces/team-a/cronjobs"
	reviewsPath    = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
)

// server is a cluster without Winnow, with a Job that finished two hours ago.
type server struct {
	*testing.T
	// denied are what the caller may not do, such as "list pods".
	denied []string
	// codes are answers by path.
	codes map[string]int
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.URL.Path != reviewsPath {
		s.Errorf("%s %s: it must only read", r.Method, r.URL.Path)
	}
	w.Header().Set("Content-Type", "application/json")
	if code := s.codes[r.URL.Path]; code != 0 {
		w.WriteHeader(code)
		return
	}
	answer := s.answer(w.Header(), r)
	if answer == nil {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	if err := json.NewEncoder(w).Encode(answer); err != nil {
		s.Error(err)
	}
}

func (s *server) answer(header http.Header, r *http.Request) any {
	const discovered = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
	switch r.URL.Path {
	case "/api":
		header.Set("Content-Type", discovered)
		return serving("", "Pod", "pods")
	case "/apis":
		header.Set("Content-Type", discovered)
		return serving("batch", "Job", "jobs")
	case reviewsPath:
		return s.review(r)
	case "/apis/apiregistration.k8s.io/v1/apiservices":
		return map[string]any{"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIServiceList", "items": []any{}}
	case homePath:
		return &metav1.PartialObjectMetadata{
			TypeMeta:   metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata"},
			ObjectMeta: metav1.ObjectMeta{Name: "team-a", UID: "ns", ResourceVersion: "1"},
		}
	case podsPath:
		return &corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}}
	case cronJobsPath:
		return &batchv1.CronJobList{TypeMeta: metav1.TypeMeta{APIVersion: "batch/v1", Kind: "CronJobList"}}
	case jobsPath:
		return &batchv1.JobList{
			TypeMeta: metav1.TypeMeta{APIVersion: "batch/v1", Kind: "JobList"},
			Items:    []batchv1.Job{*jobOf(batchv1.JobComplete, 0, meta("a"))},
		}
	}
	return nil
}

func serving(group, kind, plural string) any {
	return &apidiscoveryv2.APIGroupDiscoveryList{
		TypeMeta: metav1.TypeMeta{APIVersion: "apidiscovery.k8s.io/v2", Kind: "APIGroupDiscoveryList"},
		Items: []apidiscoveryv2.APIGroupDiscovery{{
			ObjectMeta: metav1.ObjectMeta{Name: group},
			Versions: []apidiscoveryv2.APIVersionDiscovery{{Version: "v1", Resources: []apidiscoveryv2.APIResourceDiscovery{{
				Resource: plural, Scope: apidiscoveryv2.ScopeNamespace, Verbs: []string{"delete", "get", "list", "patch", "watch"},
				ResponseKind: &metav1.GroupVersionKind{Group: group, Version: "v1", Kind: kind},
			}}}},
		}},
	}
}

func (s *server) review(r *http.Request) any {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		s.Error(err)
	}
	review := &authorizationv1.SelfSubjectAccessReview{}
	if err := json.Unmarshal(body, review); err != nil {
		s.Error(err)
	}
	asked := review.Spec.ResourceAttributes
	review.Status.Allowed = !slices.Contains(s.denied, asked.Verb+" "+asked.Resource)
	return review
}

// read reads a namespace, or with "" all, with a draft that deletes all Jobs and Pods an hour after they finish.
func (s *server) read(namespace string) (*World, error) {
	endpoint := httptest.NewServer(s)
	s.Cleanup(endpoint.Close)
	cluster, err := New(&rest.Config{Host: endpoint.URL, QPS: -1, ContentConfig: rest.ContentConfig{ContentType: "application/json"}})
	if err != nil {
		s.Fatal(err)
	}
	hour := gc.TTL("1h")
	return cluster.Read(s.Context(), Options{
		Namespace: namespace, Now: finishedAt.Add(2 * time.Hour),
		Drafts: Drafts{Policies: []*gc.CleanupPolicy{{
			ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "draft"},
			Spec:       gc.CleanupPolicySpec{Mode: gc.ModeEnforce, AnnotationTTL: gc.AnnotationExtendOnly, TTLAfterFinished: &hour},
		}}},
	})
}

// TestRead: what the caller may not read is said, and what he must not miss is an error. It never writes.
func TestRead(t *testing.T) {
	for name, c := range map[string]struct {
		denied    []string
		codes     map[string]int
		all       bool // namespaces
		deletions int64
		note      string // part of the only one; empty for none
		fails     string // part of the error; empty for none
	}{
		"everything":            {deletions: 1},
		"no right to list Pods": {denied: []string{"list pods"}, deletions: 1, note: "kubectl auth can-i list pods -n team-a"},
		"no right to list Jobs": {denied: []string{"list jobs"}, note: "kubectl auth can-i list jobs.batch -n team-a"},
		"no right to the namespace": {
			denied: []string{"get namespaces"}, deletions: 1, note: `you may not read namespace "team-a", so its labels do not count`,
		},
		"no right to list namespaces": {denied: []string{"list namespaces"}, all: true, fails: "choose one: -n NAMESPACE"},
		"Winnow does not answer": {
			codes: map[string]int{winnowPath: http.StatusServiceUnavailable}, deletions: 1, note: "policies of the cluster do not count: this cluster has Winnow, but it does not answer",
		},
		"Jobs cannot be listed":      {codes: map[string]int{jobsPath: http.StatusForbidden}, fails: "listing jobs.batch: "},
		"rights cannot be asked for": {codes: map[string]int{reviewsPath: http.StatusForbidden}, fails: "asking whether you may "},
		"nothing says what there is": {codes: map[string]int{"/apis": http.StatusForbidden}, fails: "reading what the cluster serves: "},
	} {
		t.Run(name, func(t *testing.T) {
			s := &server{T: t, denied: c.denied, codes: c.codes}
			namespace := map[bool]string{false: "team-a"}[c.all]
			w, err := s.read(namespace)
			if c.fails != "" {
				if err == nil || !strings.Contains(err.Error(), c.fails) {
					t.Fatalf("got %v, want %q", err, c.fails)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var now int64
			for _, d := range w.Deletions() {
				now += d.Now
			}
			if now != c.deletions {
				t.Errorf("deletes %d objects now, want %d: %+v", now, c.deletions, w.Deletions())
			}
			notes := w.Notes()
			if len(notes) > 1 || (len(notes) == 1) != (c.note != "") || !strings.Contains(strings.Join(notes, ""), c.note) {
				t.Errorf("notes: %q, want %q", notes, c.note)
			}
		})
	}
}
