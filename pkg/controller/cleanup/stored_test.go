// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package cleanup

import (
	"encoding/json"
	"net/http"
	"path"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/rules/assessment"
	"github.com/winnow-dev/winnow/pkg/controller/write/assessments"
)

// storeAssessment answers a write of an assessment. It conflicts unless it is on top of the newest version, which watches may not have
// reported yet.
func (s *apiServer) storeAssessment(r *http.Request) (*http.Response, error) {
	written, on, err := readAssessment(r)
	if err != nil {
		return nil, err
	}
	now, name := "", written.GetName()
	if object, ok := s.Get(written).(*unstructured.Unstructured); ok {
		now = object.GetResourceVersion()
	}
	code, lag := http.StatusOK, time.Duration(0)
	s.do(func() {
		switch lag = s.lag; {
		case on != now, s.storing.Has(name):
			code = http.StatusConflict
		default:
			s.storing.Insert(name)
		}
	})
	if code == http.StatusConflict {
		return answerOf(r, code, nil), nil
	}
	go func() {
		time.Sleep(lag)
		if r.Method == http.MethodDelete {
			s.Delete(written)
		} else {
			s.Set(written)
		}
		s.do(func() { s.storing.Delete(name) })
	}()
	return answerOf(r, code, written), nil
}

// readAssessment returns what a request writes, and on top of which version.
func readAssessment(r *http.Request) (written *unstructured.Unstructured, on string, err error) {
	written = &unstructured.Unstructured{}
	if r.Method == http.MethodDelete {
		var options metav1.DeleteOptions
		if err := json.NewDecoder(r.Body).Decode(&options); err != nil {
			return nil, "", err
		}
		written.SetGroupVersionKind(assessments.Resource.GroupVersion().WithKind("Assessment"))
		written.SetName(path.Base(r.URL.Path))
		return written, *options.Preconditions.ResourceVersion, nil
	}
	body := json.RawMessage{}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		return nil, "", err
	}
	err = utiljson.Unmarshal(body, &written.Object)
	return written, written.GetResourceVersion(), err
}

// stored returns a stored assessment; nil if there is none of this name.
func (s *apiServer) stored(t *testing.T, name string) *assessment.Object {
	t.Helper()
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(assessments.Resource.GroupVersion().WithKind("Assessment"))
	object.SetName(name)
	stored, ok := s.Get(object).(*unstructured.Unstructured)
	if !ok {
		return nil
	}
	out, err := assessments.Decode(stored)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// leader is who has stored last that it leads.
func (s *apiServer) leader(t *testing.T) string {
	t.Helper()
	if o := s.stored(t, assessment.ClusterName); o != nil {
		return o.Cluster.Leader
	}
	return ""
}

// TestStoresThatItLeads: a leader deletes nothing before its watch reports that it has stored that it leads.
func TestStoresThatItLeads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newAPIServer()
		const lag = 3 * time.Second
		s.do(func() { s.lag = lag })
		defer passes(lag)
		s.job("a")
		stop := start(t, s.controller(t, "replica-1", nil))
		defer stop()
		passes(lag)
		s.expect(t, 0, "replica-1")
		if got := s.leader(t); got != "" {
			t.Errorf("%q leads as the watch says", got)
		}
		passes(10 * time.Second)
		s.expect(t, 1, "replica-1")
		if got := s.leader(t); got != "replica-1" {
			t.Errorf("%q leads as the watch says", got)
		}
	})
}

// TestAssessmentsNotServed: without the CustomResourceDefinition nothing is deleted, until somebody installs it.
func TestAssessmentsNotServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newAPIServer()
		s.Undefine(assessments.Resource.Resource)
		s.job("a")
		stop := start(t, s.controller(t, "replica-1", nil))
		defer stop()
		passes(time.Minute)
		s.expect(t, 0, "replica-1")
		s.Define(assessments.Resource.GroupVersion().WithKind("Assessment"), assessments.Resource.Resource)
		passes(15 * time.Second)
		s.expect(t, 1, "replica-1")
	})
}

// TestHoldOfTheLeaderBefore: the next leader holds exactly what the leader before it has held, and deletes it once that is approved.
func TestHoldOfTheLeaderBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limit := func(c *Config) { c.HoldAbove = 2 }
		s := newAPIServer()
		s.policy("1d")
		for _, name := range []string{"a", "b", "c"} {
			s.job(name)
		}
		stop := start(t, s.controller(t, "replica-1", limit))
		passes(5 * time.Second)
		s.changePolicy("0s", 2, "")
		passes(5 * time.Second)
		s.expect(t, 0, "replica-1")
		holds := s.stored(t, assessment.HoldsPrefix+"0")
		if holds == nil || len(holds.Holds.Holds) != 1 || len(holds.Holds.Holds[0].Members) != 3 {
			t.Fatalf("stored %+v", holds)
		}
		stop()
		s.job("d") // It is due by time.
		defer start(t, s.controller(t, "replica-2", limit))()
		passes(30 * time.Second)
		if got := s.stored(t, assessment.HoldsPrefix+"0"); got == nil || !cmp.Equal(got.Holds, holds.Holds) {
			t.Errorf("the hold has changed: %s", cmp.Diff(holds, got))
		}
		for _, name := range []string{"a", "b", "c"} {
			if s.hasDeleted(name) {
				t.Errorf("%s was deleted, which the leader before has held", name)
			}
		}
		s.changePolicy("0s", 2, holds.Holds.Holds[0].ID)
		passes(30 * time.Second)
		s.expect(t, 4, "replica-2")
		if got := s.stored(t, assessment.HoldsPrefix+"0"); got != nil && len(got.Holds.Holds) > 0 {
			t.Errorf("the hold is still stored: %+v", got.Holds)
		}
	})
}

// hasDeleted reports whether a Job was deleted.
func (s *apiServer) hasDeleted(name string) (deleted bool) {
	s.do(func() { deleted = slices.Contains(s.deleted, name) })
	return deleted
}

// changePolicy changes policy p, and approves a hold.
func (s *apiServer) changePolicy(ttl string, generation int64, approved string) {
	s.Set(&unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1alpha1.SchemeGroupVersion.String(), "kind": "CleanupPolicy",
		"metadata": map[string]any{
			"namespace": testbuilders.Home, "name": "p", "uid": "uid-p", "generation": generation,
			"annotations": map[string]any{"gc.winnow.dev/approved-hold": approved},
		},
		"spec": map[string]any{"mode": "Enforce", "annotationTTL": "ExtendOnly", "ttlAfterFinished": ttl},
	}})
}
