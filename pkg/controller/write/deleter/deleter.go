// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package deleter sends the DELETE requests, the PATCH requests for deadlines, and the GET that some of them need first. Only this package
// deletes and changes objects of users.
package deleter

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/winnow-dev/winnow/pkg/controller/rules/deletion"
)

// RequestTimeout bounds one request. After this time the outcome is unknown.
const RequestTimeout = 30 * time.Second

// Deleter sends one request for each order: a DELETE, or the PATCH of a deadline, of exactly the state that was decided on.
type Deleter struct {
	cluster   kubernetes.Interface
	userAgent string
	clock     clock.PassiveClock
	rights    Rights
}

// Rights says what is missing for a right, and how to grant it; empty if nothing is. It distinguishes a missing permission from a refusal
// by admission.
type Rights interface {
	Missing(ctx context.Context, right deletion.Right) (string, error)
}

// New returns a Deleter. The User-Agent of its requests is userAgent, such as "winnow/v1.0.0", followed by the policy and rule.
func New(cluster kubernetes.Interface, userAgent string, clock clock.PassiveClock, rights Rights) *Deleter {
	return &Deleter{cluster: cluster, userAgent: userAgent, clock: clock, rights: rights}
}

// Answer is the result of an order.
type Answer struct {
	deletion.Result
	// Right is the right that is missing, for the outcome Unauthorized.
	Right deletion.Right
}

// Delete sends the DELETE or PATCH of an order, unless the outcome is clear without it.
func (d *Deleter) Delete(ctx context.Context, o *deletion.Order) Answer {
	ctx, cancel := context.WithTimeout(ctx, RequestTimeout)
	defer cancel()
	var lapsed atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		// A request may wait for its connection, or be sent again on another one, and the order may lapse in the meantime.
		GotConn: func(httptrace.GotConnInfo) {
			if o.Lapsed(d.clock.Now()) {
				lapsed.Store(true)
				cancel()
			}
		},
	})
	request, err := d.requestFor(o)
	if err != nil {
		return notSent(deletion.Refused, err.Error())
	}
	result := request.SetHeader("User-Agent", fmt.Sprintf("%s (%s)", d.userAgent, comment(o))).Do(ctx)
	switch err := result.Error(); {
	case err != nil && lapsed.Load(): // The transport may have written some of the request before it noticed.
		return answered(deletion.Unknown, "no answer: the request was canceled, because it waited too long for a connection")
	case err == nil && o.Deadline != nil:
		return patched(o, result)
	default:
		return d.result(ctx, o.Right(), err)
	}
}

// requestFor returns the DELETE or PATCH of an order.
func (d *Deleter) requestFor(o *deletion.Order) (*rest.Request, error) {
	version := fmt.Sprint(o.Fact.ResourceVersion)
	if o.Deadline != nil {
		return d.patchRequest(o, version)
	}
	return d.request(http.MethodDelete, o).Body(&metav1.DeleteOptions{
		Preconditions:     &metav1.Preconditions{UID: &o.Fact.UID, ResourceVersion: &version},
		PropagationPolicy: &o.Propagation,
	}), nil
}

// comment returns what the User-Agent says in parentheses: it names the policy and rule that decided, for the audit log.
func comment(o *deletion.Order) string {
	name := strings.TrimPrefix(o.Policy.String(), "/")
	if name == "" {
		return "deadline=withdrawn" // No policy matches the object any more.
	}
	if o.Rule == "" {
		return "ceiling=" + name
	}
	return fmt.Sprintf("policy=%s; rule=%s", name, o.Rule)
}

// request returns a request for the object of an order, without retries: the engine decides when to try again. It is sent as the account
// of the order, over the same connections as all others.
func (d *Deleter) request(verb string, o *deletion.Order) *rest.Request {
	r := d.cluster.CoreV1().RESTClient().Verb(verb).AbsPath(o.Kind.Path(o.Fact.Namespace, o.Fact.Name)...).MaxRetries(0)
	if o.Account != "" {
		r.SetHeader(authenticationv1.ImpersonateUserHeader, serviceaccount.MakeUsername(o.Fact.Namespace, o.Account))
	}
	if accept := acceptFor(o); accept != "" && verb != http.MethodDelete {
		r.SetHeader("Accept", accept)
	}
	return r
}

// noAnswer returns why there was no answer, without the addresses of the connection. They differ each time, so the status of the policy
// would be written each time too.
func noAnswer(err error) string {
	var op *net.OpError
	if errors.As(err, &op) {
		return "no answer from the API server: " + op.Err.Error()
	}
	return err.Error()
}

// result translates the answer of the API server to a request that needs a right.
func (d *Deleter) result(ctx context.Context, right deletion.Right, err error) Answer {
	if err == nil {
		return answered(deletion.Accepted, "")
	}
	status, ok := err.(apierrors.APIStatus)
	if !ok {
		return answered(deletion.Unknown, noAnswer(err))
	}
	out := answered(deletion.Refused, err.Error())
	out.ServerError = status.Status().Code >= http.StatusInternalServerError
	if apierrors.IsServerTimeout(err) { // Its code is 500.
		out.Outcome = deletion.Unknown
		return out
	}
	if later, ok := deletion.Throttled(err); ok {
		return Answer{Result: later}
	}
	switch status.Status().Code {
	case http.StatusNotFound:
		out.Outcome = deletion.NotFound
	case http.StatusConflict:
		out.Outcome = deletion.Conflict
	case http.StatusGatewayTimeout:
		out.Outcome = deletion.Unknown
	case http.StatusForbidden:
		if missing, _ := d.rights.Missing(ctx, right); missing != "" { // An error leaves the answer as it is.
			out.Outcome, out.Detail, out.Right = deletion.Unauthorized, missing, right
		}
	}
	return out
}

func answered(outcome deletion.Outcome, detail string) Answer {
	return Answer{Result: deletion.Result{Outcome: outcome, Detail: detail}}
}

func notSent(outcome deletion.Outcome, detail string) Answer {
	return Answer{Result: deletion.Result{Outcome: outcome, NotSent: true, Detail: detail}}
}
