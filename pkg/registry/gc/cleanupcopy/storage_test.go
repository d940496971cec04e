// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package cleanupcopy

import (
	"context"
	"errors"
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
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/warning"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// request is a request of the user vic, and what the reader has: a copy of the Widget w in namespace a, and of the ConfigMap c in
// namespace b.
type request struct {
	namespace string // empty for all
	may       string // lines of verb, resource, namespace, and name
	err       error
	query     gc.CopyQuery
	contents  int // that were read
	replaced  bool
	warnings  []string
}

func stored() []gc.CleanupCopy {
	of := func(namespace, uid, resource, name string) gc.CleanupCopy {
		return gc.CleanupCopy{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: uid}, Status: gc.CleanupCopyStatus{
			Object: gc.RecordObject{Resource: resource, Name: name}, Bytes: 7, ExpirationTime: metav1.NewMicroTime(now.Add(time.Hour)),
			CopyTime: metav1.NewMicroTime(now.Add(-time.Minute)),
		}}
	}
	return []gc.CleanupCopy{
		of("a", "uid-w", "widgets.example.com", "w"), of("b", "uid-c", "configmaps", "c"), of("b", "uid-x", "", ""),
	}
}

// AddWarning implements warning.Recorder.
func (r *request) AddWarning(_, text string) { r.warnings = append(r.warnings, text) }

// Copies implements Reader.
func (r *request) Copies(ctx context.Context, q gc.CopyQuery) (gc.CopyPage, error) {
	r.query = q
	page := gc.CopyPage{ListMeta: metav1.ListMeta{Continue: q.Continue}}
	for _, c := range stored() {
		if q.Namespace != "" && c.Namespace != q.Namespace {
			continue
		}
		if ok, err := q.MayList(ctx, c.Status.Object.Resource); err != nil {
			return page, err
		} else if ok {
			page.Items = append(page.Items, c)
		}
	}
	return page, r.err
}

// Copy implements Reader.
func (r *request) Copy(_ context.Context, namespace, name string) (*gc.CleanupCopy, error) {
	for _, c := range stored() {
		if c.Namespace == namespace && c.Name == name {
			return &c, r.err
		}
	}
	return nil, apierrors.NewNotFound(resource, name)
}

// CopyContent implements Reader.
func (r *request) CopyContent(ctx context.Context, namespace, name string) (*gc.CleanupCopy, error) {
	r.contents++
	c, err := r.Copy(ctx, namespace, name)
	if err == nil {
		c.Status.Content = "{}"
	}
	if r.replaced {
		c.Status.Object.Name = "another"
	}
	return c, err
}

func (r *request) authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	resource := a.GetResource()
	if a.GetAPIGroup() != "" {
		resource += "." + a.GetAPIGroup()
	}
	line := strings.Join(strings.Fields(strings.Join([]string{a.GetVerb(), resource, a.GetNamespace(), a.GetName()}, " ")), " ")
	if line == "get broken b c" || r.may == "broken" {
		return authorizer.DecisionNoOpinion, "", errors.New("no answer")
	}
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

// TestGet: only who may get the object by its name reads its content, and otherwise it is not even read from the store.
func TestGet(t *testing.T) {
	for name, c := range map[string]struct {
		namespace, uid, may string
		err                 error
		replaced            bool
		fails               func(error) bool // nil if the content is served
		contents            int
	}{
		"allowed by name":           {"a", "uid-w", "get widgets.example.com a w", nil, false, nil, 1},
		"may list, and not get":     {"a", "uid-w", "list widgets.example.com a", nil, false, apierrors.IsForbidden, 0},
		"may get another one":       {"a", "uid-w", "get widgets.example.com a x", nil, false, apierrors.IsForbidden, 0},
		"in another namespace":      {"a", "uid-w", "get widgets.example.com b w", nil, false, apierrors.IsForbidden, 0},
		"another resource":          {"b", "uid-c", "get secrets b c", nil, false, apierrors.IsForbidden, 0},
		"none":                      {"a", "uid-c", "get configmaps a c", nil, false, apierrors.IsNotFound, 0},
		"of nobody knows what":      {"b", "uid-x", "get b", nil, false, apierrors.IsNotFound, 0},
		"no answer about rights":    {"b", "uid-c", "broken", nil, false, apierrors.IsInternalError, 0},
		"replaced in the meantime":  {"b", "uid-c", "get configmaps b c", nil, true, apierrors.IsConflict, 1},
		"the store does not answer": {"b", "uid-c", "get configmaps b c", errors.New("down"), false, apierrors.IsServiceUnavailable, 0},
	} {
		t.Run(name, func(t *testing.T) {
			r := &request{namespace: c.namespace, may: c.may, err: c.err, replaced: c.replaced}
			got, err := r.rest().Get(r.context(), c.uid, nil)
			switch {
			case r.contents != c.contents:
				t.Errorf("%d contents were read", r.contents)
			case c.fails != nil && (err == nil || !c.fails(err)):
				t.Errorf("got %v, %v", got, err)
			case c.fails == nil && (err != nil || got.(*gc.CleanupCopy).Status.Content != "{}"):
				t.Errorf("got %+v, %v", got, err)
			case apierrors.IsForbidden(err) && (!strings.Contains(err.Error(), "kubectl auth can-i get") || strings.Contains(err.Error(), "/w")):
				t.Errorf("the error is %v", err)
			}
		})
	}
}

// TestContentsInFlight: a content takes its place until the request ends, and an error takes none.
func TestContentsInFlight(t *testing.T) {
	r := &request{namespace: "b", may: "get configmaps b c"}
	s := r.rest()
	var ends []context.CancelFunc
	for range mostReads {
		for _, uid := range []string{"none", "uid-c"} {
			ctx, end := context.WithCancel(r.context())
			ends = append(ends, end)
			if _, err := s.Get(ctx, uid, nil); (err == nil) != (uid == "uid-c") {
				t.Fatal(err)
			}
		}
	}
	waiting, giveUp := context.WithCancel(r.context())
	giveUp()
	if _, err := s.Get(waiting, "uid-c", nil); err == nil {
		t.Error("one more content is in flight")
	}
	for _, end := range ends {
		end()
	}
	if _, err := s.Get(r.context(), "uid-c", nil); err != nil {
		t.Error(err)
	}
}

// TestTwoTenants: neither sees that the other has copies.
func TestTwoTenants(t *testing.T) {
	const both = "list widgets.example.com a\nlist configmaps b\nlist configmaps a"
	for name, c := range map[string]struct {
		namespace, may string
		want           []string
		hidden         string
	}{
		"a":          {"a", both, []string{"uid-w"}, ""},
		"b":          {"b", both, []string{"uid-c"}, ""},
		"a of b":     {"b", "list widgets.example.com a", nil, "kubectl auth can-i list configmaps -n b"},
		"get only":   {"a", "get widgets.example.com a w", nil, "kubectl auth can-i list widgets.example.com -n a"},
		"all":        {"", "list widgets.example.com\nlist configmaps", []string{"uid-w", "uid-c"}, ""},
		"one of all": {"", "list configmaps\nlist widgets.example.com a", []string{"uid-c"}, "kubectl auth can-i list widgets.example.com --all-namespaces"},
	} {
		t.Run(name, func(t *testing.T) {
			r := &request{namespace: c.namespace, may: c.may}
			list, err := r.rest().List(r.context(), &metainternalversion.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, item := range list.(*gc.CleanupCopyList).Items {
				if got = append(got, item.Name); item.Status.Content != "" {
					t.Errorf("the list has the content of %s", item.Name)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			var warnings []string
			if c.hidden != "" {
				warnings = []string{"hidden copies: you may not list their resources: " + c.hidden}
			}
			if diff := cmp.Diff(warnings, r.warnings); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}

// TestListOptions: how options become a query, and what cannot be answered.
func TestListOptions(t *testing.T) {
	for limit, want := range map[int64]int64{0: maxPage, 1: 1, 5000: maxPage} {
		r := &request{}
		list, err := r.rest().List(r.context(), &metainternalversion.ListOptions{Limit: limit, Continue: "token"})
		if err != nil || r.query.Limit != want || r.query.Continue != "token" || list.(*gc.CleanupCopyList).Continue != "token" {
			t.Errorf("limit %d: got %+v, %v", limit, r.query, err)
		}
		if told := slices.ContainsFunc(r.warnings, func(w string) bool { return strings.Contains(w, "use limit") }); told != (limit == 0) {
			t.Errorf("limit %d: warnings %q", limit, r.warnings)
		}
	}
	r := &request{}
	selected := fields.OneTermEqualSelector("object", "x")
	if _, err := r.rest().List(r.context(), &metainternalversion.ListOptions{FieldSelector: selected}); err != nil || r.query.Fields != selected {
		t.Errorf("got %v, %v", r.query.Fields, err)
	}
	byLabel := &metainternalversion.ListOptions{LabelSelector: labels.SelectorFromSet(labels.Set{"a": "b"})}
	if _, err := r.rest().List(r.context(), byLabel); !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), "use a field selector: object") {
		t.Errorf("got %v", err)
	}
	for _, c := range []struct {
		err   error
		fails func(error) bool
	}{
		{errors.New("down"), apierrors.IsServiceUnavailable},
		{apierrors.NewResourceExpired("list again"), apierrors.IsResourceExpired},
	} {
		r := &request{err: c.err}
		if _, err := r.rest().List(r.context(), &metainternalversion.ListOptions{}); !c.fails(err) {
			t.Errorf("%v became %v", c.err, err)
		}
	}
}

// TestTable: what kubectl shows.
func TestTable(t *testing.T) {
	r := &request{}
	one := stored()[0]
	table, err := r.rest().ConvertToTable(t.Context(), runtime.Object(&one), nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []any{"widgets.example.com/w", "60s ago", "in 60m", int64(7), ""}
	if diff := cmp.Diff(want, table.Rows[0].Cells); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
