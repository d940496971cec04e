// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package cleanupcandidate

import (
	"context"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/warning"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/registry/gc/internal/continuetoken"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// fakeReader returns a page, and notes the query.
type fakeReader struct {
	page           gc.CandidatePage
	notSynced, err error
	query          *gc.CandidateQuery
	doubts         map[string]string
}

func (f *fakeReader) CandidateResources(string) (map[string]string, error) {
	out := map[string]string{"jobs.batch": "", "pods": "", "secrets": ""}
	maps.Copy(out, f.doubts)
	return out, f.notSynced
}

func (f *fakeReader) Candidates(_ context.Context, q gc.CandidateQuery) (gc.CandidatePage, error) {
	f.query = &q
	return f.page, f.err
}

// request is a request of a user, who may list some resources in some namespaces.
type request struct {
	namespace string // empty for all
	may       string // lines of verb, resource and namespace
	failing   bool   // the authorizer fails
	reader    fakeReader
	warnings  []string
}

// AddWarning implements warning.Recorder.
func (r *request) AddWarning(_, text string) { r.warnings = append(r.warnings, text) }

func (r *request) authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	if r.failing {
		return authorizer.DecisionNoOpinion, "", errors.New("no answer")
	}
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
	return NewREST(&r.reader, authorizer.AuthorizerFunc(r.authorize), clocktesting.NewFakePassiveClock(now))
}

func (r *request) list(options metainternalversion.ListOptions) (*gc.CleanupCandidateList, error) {
	list, err := r.rest().List(r.context(), &options)
	if err != nil {
		return nil, err
	}
	return list.(*gc.CleanupCandidateList), nil
}

const all = "vic list jobs.batch team-a\nvic list pods team-a\nvic list secrets team-a"

// TestPermissions: the query has the resources that the caller may list in the namespace of the request, or in all namespaces.
func TestPermissions(t *testing.T) {
	hidden := func(n int) fakeReader { return fakeReader{page: gc.CandidatePage{Hidden: n}} }
	for name, c := range map[string]struct {
		request
		want     []string
		warnings []string
	}{
		"all of them": {request{namespace: "team-a", may: all}, []string{"jobs.batch", "pods", "secrets"}, nil},
		"all that were known": {
			request{namespace: "team-a", may: all, reader: hidden(1)}, []string{"jobs.batch", "pods", "secrets"}, nil},
		"some of them": {
			request{namespace: "team-a", may: "vic list jobs.batch team-a", reader: hidden(2)}, []string{"jobs.batch"},
			[]string{"hidden candidates: 2. You may not list their resources: kubectl auth can-i list pods -n team-a; kubectl auth can-i list secrets -n team-a"},
		},
		"nothing is hidden": {request{namespace: "team-a", may: "vic list jobs.batch team-a"}, []string{"jobs.batch"}, nil},
		"to get is not to list": {
			request{namespace: "team-a", may: "vic get jobs.batch team-a"}, nil, nil},
		"another namespace": {request{namespace: "team-b", may: all}, nil, nil},
		"one namespace is not all": {
			request{may: all, reader: hidden(1)}, nil,
			[]string{"hidden candidates: 1. You may not list their resources: kubectl auth can-i list jobs.batch --all-namespaces; " +
				"kubectl auth can-i list pods --all-namespaces; kubectl auth can-i list secrets --all-namespaces"},
		},
		"all namespaces": {request{may: "vic list pods"}, []string{"pods"}, nil},
		"another user":   {request{namespace: "team-a", may: "bob list pods team-a"}, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := c.list(metainternalversion.ListOptions{}); err != nil {
				t.Fatal(err)
			}
			if got := sets.List(c.reader.query.Resources); !slices.Equal(got, c.want) {
				t.Errorf("resources %q, want %q", got, c.want)
			}
			if c.reader.query.Namespace != c.namespace {
				t.Errorf("namespace %q", c.reader.query.Namespace)
			}
			if diff := cmp.Diff(c.request.warnings, c.warnings); diff != "" {
				t.Errorf("warnings (-got +want):\n%s", diff)
			}
		})
	}
}

// TestAbsent: a request for one object or resource that is not answered says why. The answer does not depend on whether a hidden object
// exists.
func TestAbsent(t *testing.T) {
	one := []gc.CleanupCandidate{{}}
	for name, c := range map[string]struct {
		selector string
		page     gc.CandidatePage
		want     string
	}{
		"there":              {"object=jobs.batch/a", gc.CandidatePage{Items: one}, ""},
		"there, and others":  {"object=jobs.batch/a", gc.CandidatePage{Items: one, Hidden: 3}, ""},
		"unknown":            {"object=jobs.batch/a", gc.CandidatePage{Hidden: 3}, "Winnow knows no jobs.batch/a in namespace team-a: it is gone, or not observed yet"},
		"of no policy":       {"object=configmaps/a", gc.CandidatePage{}, "Winnow deletes no configmaps in namespace team-a: no policy is about them, or the cluster does not serve them"},
		"hidden":             {"object=secrets/a", gc.CandidatePage{}, "you may not list secrets: kubectl auth can-i list secrets -n team-a"},
		"hidden, and there":  {"object=secrets/a", gc.CandidatePage{Hidden: 1}, "you may not list secrets: kubectl auth can-i list secrets -n team-a"},
		"a resource":         {"resource=jobs.batch", gc.CandidatePage{Hidden: 3}, ""},
		"a hidden resource":  {"resource=secrets", gc.CandidatePage{Hidden: 3}, "you may not list secrets: kubectl auth can-i list secrets -n team-a"},
		"an unused resource": {"resource=configmaps", gc.CandidatePage{}, "Winnow deletes no configmaps in namespace team-a: no policy is about them, or the cluster does not serve them"},
		"a state":            {"state=Due", gc.CandidatePage{Hidden: 3}, "hidden candidates: 3. You may not list their resources: kubectl auth can-i list secrets -n team-a"},
	} {
		t.Run(name, func(t *testing.T) {
			r := request{namespace: "team-a", may: "vic list jobs.batch team-a\nvic list pods team-a", reader: fakeReader{page: c.page}}
			if _, err := r.list(metainternalversion.ListOptions{FieldSelector: fields.ParseSelectorOrDie(c.selector)}); err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(r.warnings, "\n"); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// TestUnobserved: a warning says why candidates can be missing, if the caller has asked for their resource and may list it.
func TestUnobserved(t *testing.T) {
	const jobs, pods = "candidates of jobs.batch may be missing or out of date: no answer", "candidates of pods may be missing or out of date: no right"
	one := []gc.CleanupCandidate{{}}
	for selector, want := range map[string][]string{
		"": {jobs, pods}, "state=Due": {jobs, pods}, "resource=pods": {pods}, "object=jobs.batch/a": {jobs}, "object!=jobs.batch/a": {jobs, pods},
		"resource=secrets": {"you may not list secrets: kubectl auth can-i list secrets -n team-a"},
	} {
		r := request{namespace: "team-a", may: "vic list jobs.batch team-a\nvic list pods team-a", reader: fakeReader{
			page: gc.CandidatePage{Items: one}, doubts: map[string]string{"jobs.batch": "no answer", "pods": "no right", "secrets": "no right"},
		}}
		if _, err := r.list(metainternalversion.ListOptions{FieldSelector: fields.ParseSelectorOrDie(selector)}); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, r.warnings); diff != "" {
			t.Errorf("%q (-want +got):\n%s", selector, diff)
		}
	}
}

func TestQueries(t *testing.T) {
	at := gc.CandidatePosition{Namespace: "team-a", UID: "uid-1"}
	for name, c := range map[string]struct {
		options metainternalversion.ListOptions
		want    gc.CandidateQuery
	}{
		"none":             {metainternalversion.ListOptions{}, gc.CandidateQuery{Limit: maxPage}},
		"a limit":          {metainternalversion.ListOptions{Limit: 7}, gc.CandidateQuery{Limit: 7}},
		"a high limit":     {metainternalversion.ListOptions{Limit: 1 << 40}, gc.CandidateQuery{Limit: maxPage}},
		"a negative limit": {metainternalversion.ListOptions{Limit: -1}, gc.CandidateQuery{Limit: maxPage}},
		"a token":          {metainternalversion.ListOptions{Continue: continuetoken.Encode(at)}, gc.CandidateQuery{Limit: maxPage, After: at}},
		"a label": {
			metainternalversion.ListOptions{LabelSelector: labels.SelectorFromSet(labels.Set{"app": "x"})},
			gc.CandidateQuery{Limit: maxPage, Labels: labels.SelectorFromSet(labels.Set{"app": "x"})},
		},
		"a field": {
			metainternalversion.ListOptions{FieldSelector: fields.ParseSelectorOrDie("state!=Held")},
			gc.CandidateQuery{Limit: maxPage, Fields: fields.ParseSelectorOrDie("state!=Held")},
		},
		"an object": {
			metainternalversion.ListOptions{FieldSelector: fields.ParseSelectorOrDie("object=jobs.batch/a")},
			gc.CandidateQuery{Limit: maxPage, Fields: fields.ParseSelectorOrDie("object=jobs.batch/a"), All: true},
		},
		"all but an object": {
			metainternalversion.ListOptions{FieldSelector: fields.ParseSelectorOrDie("object!=jobs.batch/a")},
			gc.CandidateQuery{Limit: maxPage, Fields: fields.ParseSelectorOrDie("object!=jobs.batch/a")},
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := request{namespace: "team-a", may: all}
			if _, err := r.list(c.options); err != nil {
				t.Fatal(err)
			}
			got, text := r.reader.query, func(s interface{ String() string }) string { return s.String() }
			if c.want.Labels == nil {
				c.want.Labels = labels.Everything()
			}
			if c.want.Fields == nil {
				c.want.Fields = fields.Everything()
			}
			if got.Limit != c.want.Limit || got.After != c.want.After || got.All != c.want.All ||
				text(got.Labels) != text(c.want.Labels) || text(got.Fields) != text(c.want.Fields) {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestBadRequests(t *testing.T) {
	selector := func(text string) metainternalversion.ListOptions {
		return metainternalversion.ListOptions{FieldSelector: fields.ParseSelectorOrDie(text)}
	}
	const example = "must be a resource and a name, for example jobs.batch/report"
	for name, c := range map[string]struct {
		options metainternalversion.ListOptions
		want    string
	}{
		"no such state":      {selector("state=due"), `"due" is not the state of a candidate; use one of ["Waiting" "Notified" "Due" "Held" "Terminating" "Kept"]`},
		"no candidates":      {selector("state=NoCandidate"), "is not the state of a candidate"},
		"not even excluded":  {selector("state!=due"), "is not the state of a candidate"},
		"a name alone":       {selector("object=report"), `"report" ` + example},
		"no name":            {selector("object=jobs.batch/"), example},
		"no resource":        {selector("object=/report"), example},
		"a token of another": {metainternalversion.ListOptions{Continue: "eyJ2IjoibWV0YS5rOHMuaW8vdjEifQ"}, "list again without it"},
		"no token":           {metainternalversion.ListOptions{Continue: "%"}, "list again without it"},
	} {
		t.Run(name, func(t *testing.T) {
			r := request{namespace: "team-a", may: all}
			_, err := r.list(c.options)
			if !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want a bad request with %q", err, c.want)
			}
			if r.reader.query != nil {
				t.Error("candidates were searched")
			}
		})
	}
}

func TestErrors(t *testing.T) {
	for name, c := range map[string]struct {
		request request
		want    func(error) bool
	}{
		"not synced":           {request{reader: fakeReader{notSynced: errors.New("try again")}}, apierrors.IsServiceUnavailable},
		"the authorizer fails": {request{failing: true}, apierrors.IsInternalError},
		"the request ends":     {request{reader: fakeReader{err: context.DeadlineExceeded}}, apierrors.IsTimeout},
	} {
		if _, err := c.request.list(metainternalversion.ListOptions{}); !c.want(err) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	r := request{}
	if _, err := r.rest().List(genericapirequest.WithNamespace(context.Background(), "team-a"), &metainternalversion.ListOptions{}); !apierrors.IsInternalError(err) {
		t.Errorf("without a user: %v", err)
	}
}

// TestPages: the token of a page is where it ends. A request without a limit learns that there are more.
func TestPages(t *testing.T) {
	next := gc.CandidatePosition{Namespace: "team-a", UID: "uid-1"}
	r := request{namespace: "team-a", may: all, reader: fakeReader{page: gc.CandidatePage{Items: make([]gc.CleanupCandidate, 2), Next: &next}}}
	list, err := r.list(metainternalversion.ListOptions{Limit: 2})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := continuetoken.Decode[gc.CandidatePosition](list.Continue, "candidates"); err != nil || got != next || len(list.Items) != 2 || len(r.warnings) != 0 {
		t.Errorf("continue at %+v, %v, with %d items and the warnings %q", got, err, len(list.Items), r.warnings)
	}
	if _, err := r.list(metainternalversion.ListOptions{}); err != nil || len(r.warnings) != 1 || !strings.Contains(r.warnings[0], "use limit and continue") {
		t.Errorf("without a limit: %v, the warnings %q", err, r.warnings)
	}
	r.reader.page.Next = nil
	if list, err := r.list(metainternalversion.ListOptions{Limit: 2}); err != nil || list.Continue != "" {
		t.Errorf("the last page continues at %q, %v", list.Continue, err)
	}
}

func TestGet(t *testing.T) {
	r := request{namespace: "team-a", may: all, reader: fakeReader{page: gc.CandidatePage{Items: []gc.CleanupCandidate{{ObjectMeta: metav1.ObjectMeta{Name: "uid-1"}}}}}}
	got, err := r.rest().Get(r.context(), "uid-1", &metav1.GetOptions{})
	if err != nil || got.(*gc.CleanupCandidate).Name != "uid-1" {
		t.Errorf("got %+v, %v", got, err)
	}
	if q := r.reader.query; !q.All || q.Fields.String() != "metadata.name=uid-1" {
		t.Errorf("the query was for %s, all: %v", q.Fields, q.All)
	}
	r.reader.page = gc.CandidatePage{}
	_, err = r.rest().Get(r.context(), "report", &metav1.GetOptions{})
	if !apierrors.IsNotFound(err) || len(r.warnings) != 1 || !strings.Contains(r.warnings[0], "-n team-a --field-selector object=jobs.batch/NAME") {
		t.Errorf("a name: %v, warnings %q", err, r.warnings)
	}
	r.reader.notSynced = errors.New("try again")
	if _, err := r.rest().Get(r.context(), "uid-1", &metav1.GetOptions{}); !apierrors.IsServiceUnavailable(err) {
		t.Errorf("not synced: %v", err)
	}
}

// TestVerbs: without watch and delete, the garbage collector, quotas and the deletion of namespaces ignore candidates.
func TestVerbs(t *testing.T) {
	for _, method := range []string{"Watch", "Create", "Update", "Delete", "DeleteCollection"} {
		if _, served := reflect.TypeFor[*REST]().MethodByName(method); served {
			t.Errorf("candidates have the method %s", method)
		}
	}
}

// TestTableIsSorted: what is due first comes first, in each namespace. The list itself keeps its order, in which people page through it.
func TestTableIsSorted(t *testing.T) {
	item := func(namespace, name string, due *metav1.Time) gc.CleanupCandidate {
		return gc.CleanupCandidate{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
			Status:     gc.CleanupCandidateStatus{Object: gc.CandidateObject{Name: name}, DueTime: due},
		}
	}
	at := func(d time.Duration) *metav1.Time { return new(metav1.NewTime(now.Add(d))) }
	list := &gc.CleanupCandidateList{Items: []gc.CleanupCandidate{
		item("b", "b1", at(-time.Hour)), item("a", "never", nil), item("a", "later", at(time.Hour)), item("a", "at-once", at(0)),
		item("a", "also-never", nil), item("a", "also-later", at(time.Hour)),
	}}
	before := list.DeepCopy()
	table, err := (&request{}).rest().ConvertToTable(t.Context(), list, nil)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, row := range table.Rows {
		got = append(got, row.Object.Object.(*gc.CleanupCandidate).Name)
	}
	if diff := cmp.Diff([]string{"at-once", "also-later", "later", "also-never", "never", "b1"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(before, list); diff != "" {
		t.Errorf("the list has changed (-want +got):\n%s", diff)
	}
}

func TestTable(t *testing.T) {
	at := func(d time.Duration) *metav1.Time { return new(metav1.NewTime(now.Add(d))) }
	job := func(s gc.CleanupCandidateStatus) gc.CleanupCandidate {
		s.Object = gc.CandidateObject{Resource: "jobs.batch", Name: "report"}
		return gc.CleanupCandidate{ObjectMeta: metav1.ObjectMeta{Name: "uid-1"}, Status: s}
	}
	list := &gc.CleanupCandidateList{
		ListMeta: metav1.ListMeta{Continue: "token"},
		Items: []gc.CleanupCandidate{
			job(gc.CleanupCandidateStatus{
				State: gc.CandidateWaiting, TTL: "7d", DueTime: at(90 * time.Minute), Reason: "NotDue", Message: "It is kept until it is due",
				DecidedBy: &gc.CandidatePolicy{Kind: gc.KindCleanupPolicy, Name: "p", Mode: gc.ModeEnforce, Rule: "keep"},
			}),
			job(gc.CleanupCandidateStatus{
				State: gc.CandidateDue, DueTime: at(-5 * time.Minute), Reason: "OverCeiling",
				DecidedBy: &gc.CandidatePolicy{Kind: gc.KindClusterCleanupPolicy, Name: "c", Mode: gc.ModeEnforce},
			}),
			job(gc.CleanupCandidateStatus{
				State: gc.CandidateDue, TTL: "1h", DueTime: at(time.Second), Reason: "Expired", // Rounded up.
				DecidedBy: &gc.CandidatePolicy{Kind: gc.KindCleanupPolicy, Name: "p", Mode: gc.ModePreview, Rule: "default"},
			}),
			job(gc.CleanupCandidateStatus{State: gc.CandidateNone, Reason: "NoPolicy"}),
			job(gc.CleanupCandidateStatus{State: gc.CandidateHeld, Reason: "Held"}),
		},
	}
	table, err := (&request{}).rest().ConvertToTable(context.Background(), list, nil)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	var header []string
	for _, c := range table.ColumnDefinitions {
		if c.Priority == 0 {
			header = append(header, strings.ToUpper(c.Name))
		}
	}
	got = append(got, strings.Join(header, " | "))
	for _, row := range table.Rows {
		var cells []string
		for _, cell := range row.Cells {
			cells = append(cells, cell.(string))
		}
		got = append(got, strings.Join(cells, " | "))
	}
	want := []string{
		"OBJECT | STATE | TTL | POLICY | RULE | DUE | REASON",
		"jobs.batch/report | Due | - | ccup/c | - | 5m ago | OverCeiling | uid-1 | ",
		"jobs.batch/report | Due | 1h | cup/p (Preview) | default | 0s ago | Expired | uid-1 | ",
		"jobs.batch/report | Waiting | 7d | cup/p | keep | in 90m | NotDue | uid-1 | It is kept until it is due",
		"jobs.batch/report | NoCandidate | - | - | - | - | NoPolicy | uid-1 | ",
		"jobs.batch/report | Held | - | - | - | - | needs approval | uid-1 | ",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if table.Continue != "token" {
		t.Errorf("continue %q", table.Continue)
	}
}
