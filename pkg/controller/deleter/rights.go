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
	"github.com/winnow-dev/winnow/pkg/controller/lifecycle"
)

// rightsFor is how long an answer about Winnow's own permissions is cached.
const rightsFor = 10 * time.Second

// rights caches which permissions Winnow has. It distinguishes a missing permission from a refusal by admission.
type rights struct {
	cluster kubernetes.Interface
	mu      sync.Mutex
	answers map[right]answer
}

type right struct{ resource, namespace string }

type answer struct {
	allowed bool
	until   time.Time
}

// missing returns the message about the missing permission to delete f; empty if Winnow has it, or if that is not known.
func (r *rights) missing(ctx context.Context, f *lifecycle.Fact, now time.Time) string {
	key := right{resource: f.Resource, namespace: f.Namespace}
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
func (r *rights) knownMissing(f *lifecycle.Fact, now time.Time) string {
	key := right{resource: f.Resource, namespace: f.Namespace}
	if a, ok := r.recall(key, now); ok {
		return a.missing(key)
	}
	return ""
}

func (a answer) missing(key right) string {
	if a.allowed {
		return ""
	}
	return fmt.Sprintf("Winnow may not delete them. Missing permission: kubectl auth can-i delete %s -n %s. To grant it: %s",
		key.resource, key.namespace, gc.GrantCommand(key.resource))
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
			Namespace: key.namespace, Verb: "delete", Group: gr.Group, Resource: gr.Resource,
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		return false, err
	}
	return review.Status.Allowed, nil
}
