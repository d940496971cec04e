// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cleanupcandidate is the registry of CleanupCandidates. They are computed from what the controller of this replica knows, and
// stored nowhere. They can be neither watched nor deleted, so the garbage collector, quotas and the deletion of namespaces ignore them.
package cleanupcandidate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/utils/clock"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/registry/gc/internal/continuetoken"
	"github.com/winnow-dev/winnow/pkg/registry/gc/internal/permission"
)

// Reader computes candidates.
type Reader interface {
	// CandidateResources returns the resources that may have candidates, in a namespace or with "" in any, each with why some of them may
	// be missing or out of date; empty if none is. It fails while policies and namespaces are not known yet.
	CandidateResources(namespace string) (map[string]string, error)
	// Candidates returns a page of candidates.
	Candidates(ctx context.Context, q gc.CandidateQuery) (gc.CandidatePage, error)
}

var resource = gc.Resource("cleanupcandidates")

// maxPage is how many candidates a page may have. Requests for more, or without a limit, get that many and a token for the rest: a
// candidate takes some kilobytes, and a namespace may have a hundred thousand.
const maxPage = 1000

// REST serves the candidates.
type REST struct {
	rest.TableConvertor
	reader      Reader
	permissions permission.Checker
}

var (
	_ rest.Getter               = (*REST)(nil)
	_ rest.Lister               = (*REST)(nil)
	_ rest.Scoper               = (*REST)(nil)
	_ rest.ShortNamesProvider   = (*REST)(nil)
	_ rest.SingularNameProvider = (*REST)(nil)
)

// NewREST serves cleanupcandidates. The authorizer answers what callers may list.
func NewREST(reader Reader, authorizer authorizer.Authorizer, clock clock.PassiveClock) *REST {
	return &REST{
		TableConvertor: newTable(clock), reader: reader,
		permissions: permission.Checker{Authorizer: authorizer, Resource: resource, Noun: "candidate"},
	}
}

// New implements rest.Storage.
func (r *REST) New() runtime.Object { return &gc.CleanupCandidate{} }

// Destroy implements rest.Storage.
func (r *REST) Destroy() {}

// NewList implements rest.Lister.
func (r *REST) NewList() runtime.Object { return &gc.CleanupCandidateList{} }

// NamespaceScoped implements rest.Scoper.
func (r *REST) NamespaceScoped() bool { return true }

// GetSingularName implements rest.SingularNameProvider.
func (r *REST) GetSingularName() string { return "cleanupcandidate" }

// ShortNames implements rest.ShortNamesProvider.
func (r *REST) ShortNames() []string { return []string{"cand"} }

// Get returns the candidate of an object, by its UID. It returns an object that is no candidate too, and says why it is none.
func (r *REST) Get(ctx context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	l, err := r.List(ctx, &metainternalversion.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", name)})
	if err != nil {
		return nil, err
	}
	if items := l.(*gc.CleanupCandidateList).Items; len(items) == 1 {
		return &items[0], nil
	}
	warning.AddWarning(ctx, "", fmt.Sprintf("the name of a candidate is the UID of its object; to ask by the name of the object: "+
		"kubectl get %s -n %s --field-selector %s=jobs.batch/NAME", resource, genericapirequest.NamespaceValue(ctx), gc.FieldObject))
	return nil, apierrors.NewNotFound(resource, name)
}

// List returns the candidates of resources that the caller may list. Who asks for an object by name gets it also if it is no candidate.
func (r *REST) List(ctx context.Context, options *metainternalversion.ListOptions) (runtime.Object, error) {
	q, err := queryOf(ctx, options)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	doubts, err := r.reader.CandidateResources(q.Namespace)
	if err != nil {
		return nil, apierrors.NewServiceUnavailable(err.Error())
	}
	known := sets.KeySet(doubts)
	denied, err := r.denied(ctx, known, q.Namespace)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	q.Resources = known.Difference(sets.KeySet(denied))
	page, err := r.reader.Candidates(ctx, q)
	if err != nil {
		return nil, apierrors.NewTimeoutError(err.Error(), 1)
	}
	if options.Limit == 0 && page.Next != nil {
		warning.AddWarning(ctx, "", fmt.Sprintf("the list has the first %d candidates; use limit and continue for the others", maxPage))
	}
	if message := missing(q, known, denied, page); message != "" {
		warning.AddWarning(ctx, "", message)
	}
	for _, message := range unobserved(q, doubts) {
		warning.AddWarning(ctx, "", message)
	}
	out := &gc.CleanupCandidateList{Items: page.Items}
	if page.Next != nil {
		out.Continue = continuetoken.Encode(*page.Next)
	}
	return out, nil
}

// denied returns the resources that the caller may not list in a namespace, or with "" in all namespaces, each with the command that asks
// for the permission.
func (r *REST) denied(ctx context.Context, resources sets.Set[string], namespace string) (map[string]string, error) {
	who, ok := genericapirequest.UserFrom(ctx)
	if !ok {
		return nil, errors.New("the request has no user")
	}
	lines := map[string]string{}
	var needed []permission.Permission
	for resource := range resources {
		p := permission.Permission{Verb: "list", Resource: resource, Namespace: namespace}
		lines[resource], needed = p.String(), append(needed, p)
	}
	missing, err := r.permissions.Missing(ctx, who, needed)
	maps.DeleteFunc(lines, func(_, line string) bool { return !slices.Contains(missing, line) })
	return lines, err
}

// missing says what is hidden from the caller, and why an object that the caller has asked for is not there; empty if nothing is missing.
func missing(q gc.CandidateQuery, known sets.Set[string], denied map[string]string, page gc.CandidatePage) string {
	object, byObject := q.Fields.RequiresExactMatch(gc.FieldObject)
	asked := askedResource(q)
	switch line, isDenied := denied[asked]; {
	case isDenied:
		return fmt.Sprintf("you may not list %s: %s", asked, line)
	case asked != "" && !known.Has(asked):
		return gc.NoPolicyAbout(asked, q.Namespace)
	case byObject && len(page.Items) == 0:
		return gc.UnknownObject(object, q.Namespace)
	case asked == "" && min(page.Hidden, len(denied)) > 0: // A resource that was not known a moment ago is not denied.
		return gc.HiddenCandidates(page.Hidden, strings.Join(slices.Sorted(maps.Values(denied)), "; "))
	}
	return ""
}

// askedResource returns the resource that a query is about; empty if it may be about several.
func askedResource(q gc.CandidateQuery) string {
	if object, ok := q.Fields.RequiresExactMatch(gc.FieldObject); ok {
		resource, _, _ := strings.Cut(object, "/")
		return resource
	}
	resource, _ := q.Fields.RequiresExactMatch(gc.FieldResource)
	return resource
}

// unobserved returns why candidates that the caller may see can be missing or out of date, sorted.
func unobserved(q gc.CandidateQuery, doubts map[string]string) []string {
	var out []string
	asked := askedResource(q)
	for resource, why := range doubts {
		if why != "" && q.Resources.Has(resource) && (asked == "" || asked == resource) {
			out = append(out, fmt.Sprintf("candidates of %s may be missing or out of date: %s", resource, why))
		}
	}
	slices.Sort(out)
	return out
}

// queryOf returns the query for the options of a request. Its errors are for the caller.
func queryOf(ctx context.Context, options *metainternalversion.ListOptions) (gc.CandidateQuery, error) {
	q := gc.CandidateQuery{
		Namespace: genericapirequest.NamespaceValue(ctx), Labels: labels.Everything(), Fields: fields.Everything(), Limit: maxPage,
	}
	if options.Limit > 0 {
		q.Limit = int(min(options.Limit, maxPage))
	}
	if options.LabelSelector != nil {
		q.Labels = options.LabelSelector
	}
	if options.FieldSelector != nil {
		q.Fields = options.FieldSelector
	}
	for _, requirement := range q.Fields.Requirements() {
		if err := checkField(requirement.Field, requirement.Value); err != nil {
			return q, err
		}
	}
	_, byObject := q.Fields.RequiresExactMatch(gc.FieldObject)
	_, byUID := q.Fields.RequiresExactMatch("metadata.name")
	q.All = byObject || byUID
	var err error
	q.After, err = continuetoken.Decode[gc.CandidatePosition](options.Continue, "candidates")
	return q, err
}

// checkField returns an error about a value that a field cannot have.
func checkField(name, value string) error {
	switch name {
	case gc.FieldState:
		if !slices.Contains(gc.CandidateStates, gc.CandidateState(value)) {
			return fmt.Errorf("field selector %s: %q is not the state of a candidate; use one of %q", name, value, gc.CandidateStates)
		}
	case gc.FieldObject:
		if resource, object, ok := strings.Cut(value, "/"); !ok || resource == "" || object == "" {
			return fmt.Errorf("field selector %s: %q must be a resource and a name, for example jobs.batch/report", name, value)
		}
	}
	return nil
}
