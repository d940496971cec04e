// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package deleter sends the deletes, and reads what must be read before one. Nothing else in Winnow deletes objects of others.
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

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/winnow-dev/winnow/pkg/controller/deletion"
	"github.com/winnow-dev/winnow/pkg/controller/kinds"
	"github.com/winnow-dev/winnow/pkg/controller/lifecycle"
)

// requestTimeout bounds one request; after it the outcome is unknown.
const requestTimeout = 30 * time.Second

// retryAfterMost bounds what a server, or a webhook of somebody else behind it, may ask for.
const retryAfterMost = time.Minute

// byWebhook begins the message of every refusal by an admission webhook, whatever its status
// (apiserver/pkg/admission/plugin/webhook/errors).
// The headers of Priority and Fairness tell nothing: they are on all answers.
const byWebhook = "admission webhook "

// Deleter sends one request for each order: a DELETE of exactly the state that was judged.
type Deleter struct {
	cluster   kubernetes.Interface
	userAgent string
	clock     clock.PassiveClock
	rights    rights
}

// New returns a Deleter whose requests name themselves by userAgent, such as "winnow/v1.0.0", and their policy and rule.
func New(cluster kubernetes.Interface, userAgent string, clock clock.PassiveClock) *Deleter {
	return &Deleter{cluster: cluster, userAgent: userAgent, clock: clock, rights: rights{cluster: cluster}}
}

// Answer is what became of an order.
type Answer struct {
	deletion.Result
	// Overloaded tells, of one that was throttled, that the API server itself asked to be spared, and not somebody behind it who has a
	// say in the deletion of this object.
	Overloaded bool
}

// Delete carries out an order, and tells what the API server answered.
func (d *Deleter) Delete(ctx context.Context, o *deletion.Order) Answer {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	var expired atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		// A request may have waited for its connection, or be sent again on another one, until it is no longer allowed.
		GotConn: func(httptrace.GotConnInfo) {
			if o.Lapsed(d.clock.Now()) {
				expired.Store(true)
				cancel()
			}
		},
	})
	if missing := d.rights.known(o.Fact, d.clock.Now()); missing != "" {
		return answered(deletion.Unauthorized, missing)
	}
	kind, err := kinds.For(o.Fact.Resource)
	if err != nil {
		return answered(deletion.Refused, err.Error())
	}
	version := fmt.Sprint(o.Fact.ResourceVersion)
	err = d.request(http.MethodDelete, kind, o.Fact).
		SetHeader("User-Agent", fmt.Sprintf("%s (%s)", d.userAgent, reason(o))).
		Body(&metav1.DeleteOptions{
			Preconditions:     &metav1.Preconditions{UID: &o.Fact.UID, ResourceVersion: &version},
			PropagationPolicy: &o.Propagation,
		}).
		Do(ctx).Error()
	if err != nil && expired.Load() {
		return answered(deletion.Unknown, "not sent: it waited too long for a connection")
	}
	return d.result(ctx, o.Fact, err)
}

// reason names who decided, for the audit log.
func reason(o *deletion.Order) string {
	name := strings.TrimPrefix(o.Policy.String(), "/")
	if o.Rule == "" {
		return "ceiling=" + name
	}
	return fmt.Sprintf("policy=%s; rule=%s", name, o.Rule)
}

// Read gets the newest state of an object. Nil without an error says that there is none of that name and UID.
func (d *Deleter) Read(ctx context.Context, f *lifecycle.Fact) (*lifecycle.Fact, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	kind, err := kinds.For(f.Resource)
	if err != nil {
		return nil, err
	}
	object := kind.New()
	if err := d.request(http.MethodGet, kind, f).Do(ctx).Into(object); apierrors.IsNotFound(err) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	read, err := kinds.Fact(object)
	if err != nil || read.UID != f.UID {
		return nil, err
	}
	return read, nil
}

// request addresses the object of f. It is sent once: when to try again is the tracker's to say.
func (d *Deleter) request(verb string, k *kinds.Kind, f *lifecycle.Fact) *rest.Request {
	return d.cluster.CoreV1().RESTClient().Verb(verb).AbsPath(k.Path(f.Namespace, f.Name)...).MaxRetries(0)
}

// noAnswer says why there was no answer, without the addresses of the connection: they differ each time, and so would the status
// that tells of it.
func noAnswer(err error) string {
	var op *net.OpError
	if errors.As(err, &op) {
		return "no answer from the API server: " + op.Err.Error()
	}
	return err.Error()
}

// result sorts the answers of the API server.
func (d *Deleter) result(ctx context.Context, f *lifecycle.Fact, err error) Answer {
	if err == nil {
		return answered(deletion.Accepted, "")
	}
	status, ok := err.(apierrors.APIStatus)
	if !ok {
		return answered(deletion.Unknown, noAnswer(err))
	}
	out := answered(deletion.Refused, err.Error())
	switch status.Status().Code {
	case http.StatusNotFound:
		out.Outcome = deletion.NotFound
	case http.StatusConflict:
		out.Outcome = deletion.Conflict
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		out.Outcome, out.Overloaded = deletion.Throttled, !strings.HasPrefix(status.Status().Message, byWebhook)
		if seconds, ok := apierrors.SuggestsClientDelay(err); ok {
			out.RetryAfter = min(time.Duration(seconds)*time.Second, retryAfterMost)
		}
	case http.StatusGatewayTimeout:
		out.Outcome = deletion.Unknown
	case http.StatusForbidden:
		if missing := d.rights.missing(ctx, f, d.clock.Now()); missing != "" {
			out.Outcome, out.Detail = deletion.Unauthorized, missing
		}
	}
	return out
}

func answered(outcome deletion.Outcome, detail string) Answer {
	return Answer{Result: deletion.Result{Outcome: outcome, Detail: detail}}
}
