// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package deleter

import (
	"context"
	"fmt"
	"sync"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/deletion"
)

// rightsFor is how long an answer about Winnow's own permissions is cached.
const rightsFor = 10 * time.Second

// rights caches which permissions Winnow has. It distinguishes a missing permission from a refusal by admission.
type rights struct {
	cluster kubernetes.Interface
	mu      sync.Mutex
	answers map[right]answer
}

type right struct{ verb, resource, namespace string }

// rightFor returns the permission that an order needs.
func rightFor(o *deletion.Order) right {
	verb := "delete"
	if o.Deadline != nil {
		verb = "patch"
	}
	return right{verb: verb, resource: o.Fact.Resource, namespace: o.Fact.Namespace}
}

type answer struct {
	allowed bool
	until   time.Time
}

// missing returns the message about the missing permission for an order; empty if Winnow has it, or if that is not known.
func (r *rights) missing(ctx context.Context, o *deletion.Order, now time.Time) string {
	key := rightFor(o)
	a, ok := r.recall(key, now)
	if !ok {
		allowed, err := r.ask(ctx, key)
		if err != nil {
			return ""
		}
		a = answer{allowed: allowed, until: now.Add(rightsFor)}
		r.remember(key, a)
	}
	return a.missing(key)
}

// knownMissing is like missing, but uses only cached answers.
func (r *rights) knownMissing(o *deletion.Order, now time.Time) string {
	key := rightFor(o)
	if a, ok := r.recall(key, now); ok {
		return a.missing(key)
	}
	return ""
}

func (a answer) missing(key right) string {
	if a.allowed {
		return ""
	}
	what, grant := "delete them", gc.GrantAdvice(key.resource)
	if key.verb == "patch" {
		what, grant = "set their activeDeadlineSeconds", "kubectl apply -f artifacts/optional/deadlines.yaml"
	}
	return fmt.Sprintf("Winnow may not %s. Missing permission: kubectl auth can-i %s %s -n %s. To grant it: %s",
		what, key.verb, key.resource, key.namespace, grant)
}

func (r *rights) recall(key right, now time.Time) (answer, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	a, ok := r.answers[key]
	return a, ok && now.Before(a.until)
}

func (r *rights) remember(key right, a answer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.answers == nil {
		r.answers = map[right]answer{}
	}
	r.answers[key] = a
}

func (r *rights) ask(ctx context.Context, key right) (bool, error) {
	gr := schema.ParseGroupResource(key.resource)
	review, err := r.cluster.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: key.namespace, Verb: key.verb, Group: gr.Group, Resource: gr.Resource,
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		return false, err
	}
	return review.Status.Allowed, nil
}
