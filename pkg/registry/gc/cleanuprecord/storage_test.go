// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package cleanuprecord

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/warning"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// request is a request of the user vic, who may list some resources in some namespaces, and what the reader answers.
type request struct {
	namespace string   // empty for all
	may       string   // lines of verb, resource and namespace
	resources []string // that the reader finds
	page      gc.RecordPage
	pages     []gc.RecordPage // instead of page, one after the other
	err       error
	query     gc.RecordQuery
	asked     int // questions to the authorizer
	warnings  []string
}

// AddWarning implements warning.Recorder.
func (r *request) AddWarning(_, text string) { r.warnings = append(r.warnings, text) }

// Records implements Reader. It asks about each resource twice.
func (r *request) Records(ctx context.Context, q gc.RecordQuery) (gc.RecordPage, error) {
	r.query = q
	if len(r.pages) > 0 {
		page := r.pages[0]
		r.pages = r.pages[1:]
		return page, nil
	}
	for _, resource := range slices.Concat(r.resources, r.resources) {
		if ok, err := q.MayList(ctx, resource); err != nil {
			return gc.RecordPage{}, err
		} else if ok {
			r.page.Items = append(r.page.Items, gc.CleanupRecord{ObjectMeta: metav1.ObjectMeta{Name: resource}})
		}
	}
	return r.page, r.err
}

func (r *request) authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	r.asked++
	resource := a.GetResource()
	if a.GetAPIGroup() != "" {
		resource += "." + a.GetAPIGroup()
	}
	line := strings.TrimSpace(strings.Join([]string{a.GetUser().GetName(), a.GetVerb(), resource, a.GetNamespace()}, " "))
	if slices.Contains(strings.Split(r.may, "\n"), line) {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionNoOpinion, "", nil
}

func (r *request) context() context.Context {
	ctx := genericapirequest.WithUser(genericapirequest.WithNamespace(context.Background(), r.namespace), &user.DefaultInfo{Name: "vic"})
	return warning.WithWarningRecorder(ctx, r)
}

func (r *request) rest() *REST {
	return NewREST(r, authorizer.AuthorizerFunc(r.authorize), clocktesting.NewFakePassiveClock(now))
}

func (r *request) list(options metainternalversion.ListOptions) (*gc.CleanupRecordList, error) {
	list, err := r.rest().List(r.context(), &options)
	if err != nil {
		return nil, err
	}
	return list.(*gc.CleanupRecordList), nil
}

// TestPermissions: the caller sees the records of resources that they may list in the namespace of the request, or in all namespaces.
func TestPermissions(t *testing.T) {
	const jobs, pods = "jobs.batch", "pods"
	for name, c := range map[string]struct {
		namespace, may string
		want           string // resources
		hidden         string
	}{
		"all":                      {"a", "vic list jobs.batch a\nvic list pods a", "jobs.batch pods", ""},
		"some":                     {"a", "vic list pods a", "pods", "kubectl auth can-i list jobs.batch -n a"},
		"to get is not to list":    {"a", "vic list pods a\nvic get jobs.batch a", "pods", "kubectl auth can-i list jobs.batch -n a"},
		"none":                     {"b", "vic list pods a", "", "kubectl auth can-i list jobs.batch -n b; kubectl auth can-i list pods -n b"},
		"everywhere":               {"", "vic list jobs.batch\nvic list pods", "jobs.batch pods", ""},
		"one namespace is not all": {"", "vic list jobs.batch\nvic list pods a", "jobs.batch", "kubectl auth can-i list pods --all-namespaces"},
	} {
		t.Run(name, func(t *testing.T) {
			r := &request{namespace: c.namespace, may: c.may, resources: []string{jobs, pods}}
			list, err := r.list(metainternalversion.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for i := range list.Items {
				got = append(got, list.Items[i].Name)
			}
			if got = slices.Compact(slices.Sorted(slices.Values(got))); strings.Join(got, " ") != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			var warnings []string
			if c.hidden != "" {
				warnings = []string{"hidden records: you may not list their resources: " + c.hidden}
			}
			if diff := cmp.Diff(warnings, r.warnings); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
			if r.asked != 2 {
				t.Errorf("asked %d times about 2 resources", r.asked)
			}
		})
	}
}

// TestPages: how limits and tokens become a query.
func TestPages(t *testing.T) {
	at := gc.RecordPosition{Namespace: "a", Time: now, UID: "u"}
	for limit, want := range map[int64]int{0: defaultPage, 1: 1, 1000: 1000, 5000: maxPage} {
		r := &request{page: gc.RecordPage{Next: &at}}
		list, err := r.list(metainternalversion.ListOptions{Limit: limit})
		if err != nil || r.query.Limit != want || r.query.After != (gc.RecordPosition{}) {
			t.Errorf("limit %d: got %+v, %v", limit, r.query, err)
		}
		if told := len(r.warnings) > 0; told != (limit == 0) {
			t.Errorf("limit %d: warnings %q", limit, r.warnings)
		}
		if _, err := r.list(metainternalversion.ListOptions{Limit: limit, Continue: list.Continue}); err != nil || r.query.After != at {
			t.Errorf("limit %d: the next page begins after %+v, %v", limit, r.query.After, err)
		}
	}
	r := &request{}
	if list, err := r.list(metainternalversion.ListOptions{}); err != nil || list.Continue != "" {
		t.Errorf("the last page has the token %q, %v", list.Continue, err)
	}
}

// TestBadRequests: what cannot be answered says why.
func TestBadRequests(t *testing.T) {
	for _, token := range []string{"?", "e30", "bnVsbA"} {
		if _, err := (&request{}).list(metainternalversion.ListOptions{Continue: token}); !apierrors.IsBadRequest(err) ||
			!strings.Contains(err.Error(), "list again without it") {
			t.Errorf("token %q: got %v", token, err)
		}
	}
	byLabel := metainternalversion.ListOptions{LabelSelector: labels.SelectorFromSet(labels.Set{"a": "b"})}
	if _, err := (&request{}).list(byLabel); !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), "use a field selector: object, policy, resource, since") {
		t.Errorf("got %v", err)
	}
	for _, selector := range []string{"since=yesterday", "since!=2026-03-01T12:00:00Z"} {
		options := metainternalversion.ListOptions{FieldSelector: fields.ParseSelectorOrDie(selector)}
		if _, err := (&request{}).list(options); !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), "since=TIME") {
			t.Errorf("%s: got %v", selector, err)
		}
	}
	since := &request{}
	options := metainternalversion.ListOptions{FieldSelector: fields.OneTermEqualSelector(gc.FieldSince, now.Format(time.RFC3339))}
	if _, err := since.list(options); err != nil || !since.query.Since.Equal(now) {
		t.Errorf("since %v, %v", since.query.Since, err)
	}
	if _, err := (&request{err: errors.New("no storage")}).list(metainternalversion.ListOptions{}); !apierrors.IsServiceUnavailable(err) {
		t.Errorf("got %v", err)
	}
	r := &request{page: gc.RecordPage{Missing: []string{"chunk 1 cannot be read"}}}
	if _, err := r.list(metainternalversion.ListOptions{}); err != nil || !slices.Equal(r.warnings, r.page.Missing) {
		t.Errorf("warnings %q, %v", r.warnings, err)
	}
}

// TestTooManyReads: a few requests read at once, and others are told to come back.
func TestTooManyReads(t *testing.T) {
	begun, end := make(chan struct{}), make(chan struct{})
	r := &request{namespace: "a"}
	rest := NewREST(readerFunc(func(context.Context, gc.RecordQuery) (gc.RecordPage, error) {
		begun <- struct{}{}
		<-end
		return gc.RecordPage{}, nil
	}), authorizer.AuthorizerFunc(r.authorize), clocktesting.NewFakePassiveClock(now))
	var reading sync.WaitGroup
	for range mostReads {
		reading.Go(func() {
			if _, err := rest.List(r.context(), &metainternalversion.ListOptions{}); err != nil {
				t.Error(err)
			}
		})
		<-begun
	}
	ctx, cancel := context.WithCancel(r.context())
	cancel()
	if _, err := rest.List(ctx, &metainternalversion.ListOptions{}); !apierrors.IsTooManyRequests(err) {
		t.Errorf("got %v", err)
	}
	close(end)
	reading.Wait()
}

type readerFunc func(context.Context, gc.RecordQuery) (gc.RecordPage, error)

func (f readerFunc) Records(ctx context.Context, q gc.RecordQuery) (gc.RecordPage, error) {
	return f(ctx, q)
}

// TestGet: a record is asked for by UID.
func TestGet(t *testing.T) {
	r := &request{namespace: "a", page: gc.RecordPage{Items: []gc.CleanupRecord{{ObjectMeta: metav1.ObjectMeta{Name: "u"}}}}}
	got, err := r.rest().Get(r.context(), "u", nil)
	if err != nil || got.(*gc.CleanupRecord).Name != "u" || r.query.Fields.String() != "metadata.name=u" {
		t.Errorf("got %+v for %s, %v", got, r.query.Fields, err)
	}
	twice := &request{namespace: "a", pages: []gc.RecordPage{
		{Next: &gc.RecordPosition{Namespace: "a", Time: now}}, // The request has read too much to find it.
		{Items: []gc.CleanupRecord{{Status: gc.CleanupRecordStatus{Reason: "newer"}}, {Status: gc.CleanupRecordStatus{Reason: "older"}}}},
	}}
	if got, err := twice.rest().Get(twice.context(), "u", nil); err != nil || got.(*gc.CleanupRecord).Status.Reason != "newer" {
		t.Errorf("of two records: got %+v, %v", got, err)
	}
	r = &request{namespace: "a"}
	if _, err := r.rest().Get(r.context(), "job", nil); !apierrors.IsNotFound(err) || len(r.warnings) != 1 ||
		!strings.Contains(r.warnings[0], "-n a --field-selector object=jobs.batch/NAME") {
		t.Errorf("got %v, %q", err, r.warnings)
	}
}

// TestTable: what kubectl shows.
func TestTable(t *testing.T) {
	full := gc.CleanupRecord{ObjectMeta: metav1.ObjectMeta{Name: "uid"}, Status: gc.CleanupRecordStatus{
		Object: gc.RecordObject{Resource: "jobs.batch", Name: "j"}, Owner: &gc.RecordOwner{Kind: "CronJob.batch", Name: "c"},
		Policy: gc.RecordPolicy{Kind: gc.KindClusterCleanupPolicy, Name: "p", Generation: 3, Rule: "r"}, After: gc.AfterFinished,
		Reason: "Expired", DeletionTime: metav1.NewMicroTime(now.Add(-5 * time.Minute)), ServiceAccountName: "cleaner",
		Lateness: &metav1.Duration{Duration: 12345 * time.Microsecond},
	}}
	bare := gc.CleanupRecord{ObjectMeta: metav1.ObjectMeta{Name: "uid"}, Status: gc.CleanupRecordStatus{
		Object: gc.RecordObject{Resource: "pods", Name: "j"}, Policy: gc.RecordPolicy{Kind: gc.KindCleanupPolicy, Name: "p"},
		Reason: "OverCeiling", DeletionTime: metav1.NewMicroTime(now.Add(time.Second)), // The clocks of replicas differ.
	}}
	late := *bare.DeepCopy()
	late.Status.Lateness = &metav1.Duration{Duration: 90 * time.Second}
	rest := (&request{}).rest()
	table, err := rest.ConvertToTable(context.Background(), &gc.CleanupRecordList{Items: []gc.CleanupRecord{full, bare, late}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := [][]any{
		{"jobs.batch/j", "5m ago", "ccup/p", "r", "Expired", "12ms", "CronJob.batch/c", "Finished", "cleaner", "3", "uid"},
		{"pods/j", "0s ago", "cup/p", "-", "OverCeiling", "-", "-", "-", "-", "0", "uid"},
		{"pods/j", "0s ago", "cup/p", "-", "OverCeiling", "90s", "-", "-", "-", "0", "uid"},
	}
	for i, row := range table.Rows {
		if diff := cmp.Diff(want[i], row.Cells); diff != "" {
			t.Errorf("row %d (-want +got):\n%s", i, diff)
		}
	}
	if !rest.NamespaceScoped() || rest.GetSingularName() != "cleanuprecord" || !slices.Equal(rest.ShortNames(), []string{"crec"}) {
		t.Error("the resource has other names")
	}
}
