// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rights asks the API server what Winnow and the ServiceAccounts of policies may do.
package rights

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/rules/deletion"
)

// rememberFor is how long an answer is cached. After a refusal, only newer ones say that a right is there: it may just have been taken
// away.
const rememberFor, newFor = 10 * time.Second, time.Second

// rememberMost is how many answers are cached before those that are too old are dropped.
const rememberMost = 1000

// Asker asks what is missing for a right.
type Asker struct {
	cluster kubernetes.Interface
	clock   clock.PassiveClock

	mu         sync.Mutex
	remembered map[question]answer
}

// question is one that the API server answers with yes or no. It is about a ServiceAccount, or with an empty account about Winnow.
type question struct{ account, verb, resource, namespace, name string }

type answer struct {
	allowed bool
	at      time.Time
}

// New returns an Asker.
func New(cluster kubernetes.Interface, clock clock.PassiveClock) *Asker {
	return &Asker{cluster: cluster, clock: clock, remembered: map[question]answer{}}
}

// Missing says what is missing for a right after a request was refused, and how to grant it; empty if nothing is. It fails if the API
// server does not answer.
func (a *Asker) Missing(ctx context.Context, right deletion.Right) (string, error) {
	return a.missing(ctx, right, newFor)
}

// missing is Missing. An answer that a right is there may be as old as allowedFor.
func (a *Asker) missing(ctx context.Context, right deletion.Right, allowedFor time.Duration) (string, error) {
	r := reviews{a, allowedFor}
	if right.Account == "" {
		return r.missingHere(ctx, right)
	}
	for _, missing := range []func(context.Context, deletion.Right) (string, error){a.missingAccount, r.missingThere, r.missingImpersonation} {
		if why, err := missing(ctx, right); why != "" || err != nil {
			return why, err
		}
	}
	return "", nil
}

// reviews asks questions for one right.
type reviews struct {
	*Asker
	allowedFor time.Duration
}

// missingHere asks for a right of Winnow itself.
func (r reviews) missingHere(ctx context.Context, right deletion.Right) (string, error) {
	q := question{verb: right.Verb, resource: right.Resource, namespace: right.Namespace}
	if ok, err := r.ask(ctx, q); ok || err != nil {
		return "", err
	}
	what, grant := "delete them", gc.GrantAdvice(right.Resource)
	switch right.Verb {
	case "patch":
		what, grant = "set their activeDeadlineSeconds", "kubectl apply -f artifacts/optional/deadlines.yaml"
	case "get":
		what = "read them"
	}
	return fmt.Sprintf("Winnow may not %s. Missing permission: %s. To grant it: %s", what, q, grant), nil
}

// missingAccount asks whether the account exists. RBAC and impersonation do not ask for that.
func (a *Asker) missingAccount(ctx context.Context, right deletion.Right) (string, error) {
	_, err := a.cluster.CoreV1().ServiceAccounts(right.Namespace).Get(ctx, right.Account, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Sprintf("ServiceAccount %s/%s does not exist. To create it: kubectl create serviceaccount %s -n %s",
			right.Namespace, right.Account, right.Account, right.Namespace), nil
	case apierrors.IsForbidden(err):
		if why, err := a.olderServer(right); why != "" || err != nil {
			return why, err
		}
		return fmt.Sprintf("Winnow may not see whether ServiceAccount %s/%s exists. To grant it: %s",
			right.Namespace, right.Account, gc.GrantNameAdvice(right.Account)), nil
	}
	return "", err
}

// missingThere asks for the rights of the account. Before some requests, the object is read.
func (r reviews) missingThere(ctx context.Context, right deletion.Right) (string, error) {
	for _, verb := range []string{right.Verb, "get"} {
		q := question{account: right.Account, verb: verb, resource: right.Resource, namespace: right.Namespace}
		if ok, err := r.ask(ctx, q); err != nil {
			return "", err
		} else if !ok {
			return fmt.Sprintf("ServiceAccount %s/%s may not %s %s. Missing permission: %s --as=%s. To grant it: %s",
				right.Namespace, right.Account, verb, right.Resource, q, serviceaccount.MakeUsername(right.Namespace, right.Account),
				gc.GrantAccountAdvice(right.Resource, right.Namespace, right.Account)), nil
		}
	}
	return "", nil
}

// missingImpersonation asks whether Winnow may act as the account: by constrained impersonation (KEP-5284), or by the older verb, which
// allows it every request. The API server tries both, in this order.
func (r reviews) missingImpersonation(ctx context.Context, right deletion.Right) (string, error) {
	older := question{verb: "impersonate", resource: "serviceaccounts", name: right.Account, namespace: right.Namespace}
	if ok, err := r.askWide(ctx, older); ok || err != nil {
		return "", err
	}
	if why, err := r.olderServer(right); why != "" || err != nil {
		return why, err
	}
	name := question{
		verb: "impersonate:serviceaccount", resource: "serviceaccounts.authentication.k8s.io", name: right.Account, namespace: right.Namespace,
	}
	if ok, err := r.askWide(ctx, name); err != nil {
		return "", err
	} else if !ok { // There is no command that asks for it, because no such resource is served.
		return mayNotAct(right, name.verb+" on "+name.resource, gc.GrantNameAdvice(right.Account)), nil
	}
	for _, verb := range []string{right.Verb, "get"} {
		on := question{verb: "impersonate-on:serviceaccount:" + verb, resource: right.Resource, namespace: right.Namespace}
		if ok, err := r.askWide(ctx, on); err != nil {
			return "", err
		} else if !ok {
			return mayNotAct(right, on.String(), gc.GrantOnAdvice(right.Resource)), nil
		}
	}
	return "", nil
}

func mayNotAct(right deletion.Right, missing, grant string) string {
	return fmt.Sprintf("Winnow may not act as ServiceAccount %s/%s. Missing permission of Winnow: %s. To grant it: %s",
		right.Namespace, right.Account, missing, grant)
}

// constrainedSince is the first minor version of Kubernetes with constrained impersonation switched on.
const constrainedSince = 36

// olderServer says what is missing if the API server has no constrained impersonation; empty if it has.
func (a *Asker) olderServer(right deletion.Right) (string, error) {
	server, err := a.cluster.Discovery().ServerVersion()
	if err != nil {
		return "", err
	}
	minor, err := strconv.Atoi(strings.TrimRight(server.Minor, "+"))
	if err != nil || minor >= constrainedSince {
		return "", nil // Then the API server decides.
	}
	return fmt.Sprintf("Winnow may not act as ServiceAccount %s/%s. Kubernetes %s.%s has only the verb impersonate for that. To grant it: %s",
		right.Namespace, right.Account, server.Major, server.Minor, gc.GrantOlderAdvice(right.Account)), nil
}

// String returns the command that asks the question, without the account.
func (q question) String() string {
	return fmt.Sprintf("kubectl auth can-i %s %s -n %s", q.verb, q.resource, q.namespace)
}

// askWide asks for all namespaces before it asks for one, because the answer for all is remembered for all.
func (r reviews) askWide(ctx context.Context, q question) (bool, error) {
	wide := q
	wide.namespace = ""
	if ok, err := r.ask(ctx, wide); ok || err != nil {
		return ok, err
	}
	return r.ask(ctx, q)
}

// ask returns a remembered answer, or asks.
func (r reviews) ask(ctx context.Context, q question) (bool, error) {
	now := r.clock.Now()
	r.mu.Lock()
	remembered, ok := r.remembered[q]
	r.mu.Unlock()
	switch age := now.Sub(remembered.at); {
	case ok && !remembered.allowed && age < rememberFor, ok && remembered.allowed && age < r.allowedFor:
		return remembered.allowed, nil
	}
	allowed, err := r.review(ctx, q)
	if err != nil {
		return false, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.remembered) >= rememberMost {
		for q, old := range r.remembered {
			if now.Sub(old.at) >= rememberFor {
				delete(r.remembered, q)
			}
		}
	}
	r.remembered[q] = answer{allowed: allowed, at: now}
	return allowed, nil
}
