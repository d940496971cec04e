// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package cleanupreview

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/warning"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/registry/gc/internal/policy"
)

// request is a review that vic asks for. It has the answers of everything that a REST asks.
type request struct {
	review *gc.CleanupReview
	may    string // the resource that vic may list
	asks   []string

	stored            policy.Policy
	errs              field.ErrorList
	checkErr, err     error
	authorizerErr     error
	draft             gc.Draft
	visible, warnings []string
}

// CheckDraft implements Policies.
func (r *request) CheckDraft(_ context.Context, p policy.Policy) (policy.Policy, []string, field.ErrorList, error) {
	if r.stored != nil {
		p.SetUID(r.stored.GetUID())
		p.SetGeneration(r.stored.GetGeneration() + 1)
	}
	return r.stored, []string{"advice"}, r.errs, r.checkErr
}

// Review implements Reviewer.
func (r *request) Review(ctx context.Context, draft gc.Draft) (gc.ClusterCleanupReviewStatus, error) {
	r.draft = draft
	for _, resource := range r.asks {
		may, err := draft.MayList(ctx, resource, "team-a")
		if err != nil {
			return gc.ClusterCleanupReviewStatus{}, err
		}
		if may {
			r.visible = append(r.visible, resource)
		}
	}
	return gc.ClusterCleanupReviewStatus{
		CleanupReviewStatus: gc.CleanupReviewStatus{Complete: true, Messages: []string{"2 Jobs"}},
		Namespaces:          []gc.ReviewedNamespace{{Namespace: "team-a"}},
	}, r.err
}

// AddWarning implements warning.Recorder.
func (r *request) AddWarning(_, text string) { r.warnings = append(r.warnings, text) }

func (r *request) authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	if a.GetUser().GetName() == "vic" && a.GetVerb() == "list" && a.GetNamespace() == "team-a" && a.GetResource() == r.may {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionNoOpinion, "", r.authorizerErr
}

func (r *request) create(validate func(context.Context, runtime.Object) error) (*gc.CleanupReview, error) {
	ctx := genericapirequest.WithUser(genericapirequest.WithNamespace(context.Background(), "team-a"), &user.DefaultInfo{Name: "vic"})
	if r.review == nil {
		r.review = reviewOf("p")
	}
	created, err := NewStorage(r, r, nil, authorizer.AuthorizerFunc(r.authorize)).Reviews.
		Create(warning.WithWarningRecorder(ctx, r), r.review, validate, &metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	return created.(*gc.CleanupReview), nil
}

func reviewOf(name string) *gc.CleanupReview {
	return &gc.CleanupReview{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{gc.AnnotationApprovedHold: "5f3c"}},
		Spec:       gc.CleanupPolicySpec{Mode: gc.ModePreview, TTLAfterFinished: new(gc.TTL("1h"))},
	}
}

// TestCreate: the draft enforces, approves nothing, and is a new policy or the next generation of the stored one.
func TestCreate(t *testing.T) {
	stored := &gc.CleanupPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "p", UID: "stored", Generation: 3}}
	for name, c := range map[string]struct {
		stored     policy.Policy
		generation int64
	}{"new": {nil, 1}, "stored": {stored, 4}} {
		t.Run(name, func(t *testing.T) {
			r := request{stored: c.stored, may: "jobs", asks: []string{"jobs.batch", "pods", "jobs.batch"}}
			created, err := r.create(nil)
			if err != nil {
				t.Fatal(err)
			}
			after := r.draft.After.(*gc.CleanupPolicy)
			switch {
			case after.Namespace != "team-a" || after.Name != "p" || after.Generation != c.generation || after.UID == "" || after.Annotations != nil:
				t.Errorf("the draft is %+v", after.ObjectMeta)
			case after.Spec.Mode != gc.ModeEnforce || *after.Spec.TTLAfterFinished != "1h":
				t.Errorf("the draft is %+v", after.Spec)
			case (r.draft.Before != nil) != (c.stored != nil) || c.stored != nil && after.UID != "stored":
				t.Errorf("it takes the place of %v, as %s", r.draft.Before, after.UID)
			}
			if created.Spec.Mode != gc.ModePreview || !created.Status.Complete {
				t.Errorf("the answer is %+v", created)
			}
			if want := []string{"jobs.batch", "jobs.batch"}; !slices.Equal(r.visible, want) {
				t.Errorf("visible are %q, want %q", r.visible, want)
			}
			if want := []string{"2 Jobs", "advice"}; !slices.Equal(r.warnings, want) {
				t.Errorf("warnings %q, want %q", r.warnings, want)
			}
		})
	}
}

// TestErrors: what is wrong with a draft is an error about the review, and an error never comes with a part of an answer.
func TestErrors(t *testing.T) {
	elsewhere := reviewOf("p")
	elsewhere.Namespace = "team-b"
	invalid := field.ErrorList{field.Invalid(field.NewPath("spec", "ttlAfterFinished"), "soon", "no")}
	for name, c := range map[string]struct {
		request
		admission error
		want      metav1.StatusReason
		says      string
	}{
		"another namespace": {request{review: elsewhere}, nil, metav1.StatusReasonBadRequest, "namespace"},
		"an invalid draft":  {request{errs: invalid}, nil, metav1.StatusReasonInvalid, `CleanupReview.gc.winnow.dev "p" is invalid: spec.ttlAfterFinished`},
		"admission":         {request{}, apierrors.NewForbidden(gc.Resource("x"), "p", errors.New("webhook")), metav1.StatusReasonForbidden, "webhook"},
		"the storage": {
			request{checkErr: apierrors.NewServiceUnavailable("no storage")}, nil, metav1.StatusReasonServiceUnavailable, "no storage"},
		"not synced": {request{err: errors.New("starting")}, nil, metav1.StatusReasonServiceUnavailable, "starting"},
		"busy": {
			request{err: apierrors.NewTooManyRequests("busy", 5)}, nil, metav1.StatusReasonTooManyRequests, "busy"},
		"permissions": {
			request{authorizerErr: errors.New("no answer"), asks: []string{"pods"}}, nil, metav1.StatusReasonInternalError, "no answer"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := c.create(func(context.Context, runtime.Object) error { return c.admission })
			if apierrors.ReasonForError(err) != c.want || !strings.Contains(err.Error(), c.says) || len(c.warnings) > 0 {
				t.Errorf("got %v with %q, want %s with %q", err, c.warnings, c.want, c.says)
			}
		})
	}
}

// TestCreateOfCluster: the draft of a cluster policy is in no namespace, and the answer has what only cluster policies have.
func TestCreateOfCluster(t *testing.T) {
	stored := &gc.ClusterCleanupPolicy{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "stored", Generation: 3}}
	r := request{stored: stored, may: "jobs", asks: []string{"jobs.batch", "pods"}}
	ctx := genericapirequest.WithUser(genericapirequest.WithNamespace(context.Background(), ""), &user.DefaultInfo{Name: "vic"})
	reviews := NewStorage(&r, nil, &r, authorizer.AuthorizerFunc(r.authorize)).ClusterReviews
	if reviews.NamespaceScoped() || reviews.GetSingularName() != "clustercleanupreview" {
		t.Errorf("%s is in namespaces: %v", reviews.GetSingularName(), reviews.NamespaceScoped())
	}
	review := reviews.New().(*gc.ClusterCleanupReview)
	review.Name, review.Spec.Mode, review.Spec.NamespaceSelector = "p", gc.ModePreview, &metav1.LabelSelector{}
	created, err := reviews.Create(warning.WithWarningRecorder(ctx, &r), review, nil, &metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	after, answer := r.draft.After.(*gc.ClusterCleanupPolicy), created.(*gc.ClusterCleanupReview)
	switch {
	case after.Namespace != "" || after.UID != "stored" || after.Generation != 4 || after.Spec.Mode != gc.ModeEnforce:
		t.Errorf("the draft is %+v", after)
	case r.draft.Before != stored || !r.draft.DryRun:
		t.Errorf("it takes the place of %v", r.draft.Before)
	case answer.Spec.Mode != gc.ModePreview || !answer.Status.Complete || len(answer.Status.Namespaces) != 1:
		t.Errorf("the answer is %+v", answer)
	case !slices.Equal(r.visible, []string{"jobs.batch"}) || !slices.Equal(r.warnings, []string{"2 Jobs", "advice"}):
		t.Errorf("visible are %q, warnings %q", r.visible, r.warnings)
	}
	r.errs = field.ErrorList{field.Required(field.NewPath("spec", "namespaceSelector"), "no")}
	_, err = reviews.Create(ctx, review, nil, &metav1.CreateOptions{})
	if want := `ClusterCleanupReview.gc.winnow.dev "p" is invalid: spec.namespaceSelector`; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}
