// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package deleter

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/objects/kinds"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/observe/rights"
	"github.com/winnow-dev/winnow/pkg/controller/rules/deletion"
)

func order(f *lifecycle.Fact, propagation metav1.DeletionPropagation) *deletion.Order {
	kind, err := kinds.Builtin().For(f.Resource)
	if err != nil {
		panic(err)
	}
	return &deletion.Order{
		Kind: kind, Fact: f, Policy: types.NamespacedName{Namespace: testbuilders.Home, Name: "p"}, Rule: "keep-failures", Propagation: propagation,
		Until: testbuilders.Now.Add(time.Hour),
	}
}

func fixedClock() *clocktesting.FakePassiveClock {
	return clocktesting.NewFakePassiveClock(testbuilders.Now)
}

func newDeleter(s *server, clock clock.PassiveClock) *Deleter {
	return New(s.client, "winnow/v1.2.3", clock, rights.New(s.client, clock))
}

// rightsFor is how long package rights remembers an answer.
const rightsFor = 10 * time.Second

func TestRequest(t *testing.T) {
	for name, c := range map[string]struct {
		fact        *lifecycle.Fact
		propagation metav1.DeletionPropagation
		path        string
	}{
		"a Job in the background": {testbuilders.Job("a").Version("18446744073709551615").Fact(), metav1.DeletePropagationBackground, "/apis/batch/v1/namespaces/team-a/jobs/a"},
		"a Job in the foreground": {testbuilders.Job("a").Version("7").Fact(), metav1.DeletePropagationForeground, "/apis/batch/v1/namespaces/team-a/jobs/a"},
		"a Pod, orphaning":        {testbuilders.Pod("a").In("team-b").Version("7").Fact(), metav1.DeletePropagationOrphan, "/api/v1/namespaces/team-b/pods/a"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t)
			got := newDeleter(s, fixedClock()).Delete(context.Background(), order(c.fact, c.propagation))
			if got != (Answer{Result: deletion.Result{Outcome: deletion.Accepted}}) {
				t.Fatalf("got %+v", got)
			}
			seen := s.requests()
			if len(seen) != 1 || seen[0].method != http.MethodDelete || seen[0].path != c.path ||
				seen[0].userAgent != "winnow/v1.2.3 (policy=team-a/p; rule=keep-failures)" {
				t.Fatalf("sent %+v", seen)
			}
			o, rv := seen[0].options, strconv.FormatUint(c.fact.ResourceVersion, 10)
			if p := o.Preconditions; p == nil || p.UID == nil || *p.UID != "uid-a" || p.ResourceVersion == nil || *p.ResourceVersion != rv {
				t.Errorf("preconditions %+v", p)
			}
			if o.PropagationPolicy == nil || *o.PropagationPolicy != c.propagation || o.GracePeriodSeconds != nil || len(o.DryRun) != 0 {
				t.Errorf("options %+v", o)
			}
		})
	}
}

func TestAnswers(t *testing.T) {
	failed := func(code int, message string, details *metav1.StatusDetails) http.HandlerFunc {
		return status(code, metav1.Status{Message: message, Details: details})
	}
	retry := func(seconds int32) *metav1.StatusDetails { return &metav1.StatusDetails{RetryAfterSeconds: seconds} }
	const canI = "Winnow may not delete them. Missing permission: kubectl auth can-i delete jobs.batch -n team-a"
	for name, c := range map[string]struct {
		answer               http.HandlerFunc
		allowed, reviewFails bool
		outcome              deletion.Outcome
		detail               string // a part of the detail
		retryAfter           time.Duration
		hindered             bool // RetryLater from a webhook
	}{
		"200, the Job as it was":          {answer: func(w http.ResponseWriter, _ *http.Request) { write(w, 200, testbuilders.Job("a").Obj()) }, outcome: deletion.Accepted},
		"202":                             {answer: status(202, metav1.Status{Status: metav1.StatusSuccess}), outcome: deletion.Accepted},
		"404":                             {answer: failed(404, "not found", nil), outcome: deletion.NotFound, detail: "not found"},
		"409":                             {answer: failed(409, "the object has been modified", nil), outcome: deletion.Conflict, detail: "modified"},
		"429, from the API server":        {answer: failed(429, "slow down", retry(3)), outcome: deletion.RetryLater, retryAfter: 3 * time.Second, detail: "slow down"},
		"429, from Priority and Fairness": {answer: plain(429, "Too many requests", "Retry-After", "2"), outcome: deletion.RetryLater, retryAfter: 2 * time.Second},
		"429, without a time":             {answer: plain(429, "Too many requests"), outcome: deletion.RetryLater},
		"429, with a time beyond reason":  {answer: failed(429, "slow down", retry(86400)), outcome: deletion.RetryLater, retryAfter: time.Minute},
		"429, by admission": {answer: failed(429, `admission webhook "w" denied the request: slow down`, retry(7)), outcome: deletion.RetryLater, retryAfter: 7 * time.Second,
			detail: `admission webhook "w" denied the request: slow down`, hindered: true},
		"503":                       {answer: failed(503, "shutting down", retry(5)), outcome: deletion.RetryLater, retryAfter: 5 * time.Second},
		"503, from a proxy":         {answer: plain(503, "no backend", "Retry-After", "1"), outcome: deletion.RetryLater, retryAfter: time.Second},
		"403, the right is missing": {answer: failed(403, "forbidden", nil), outcome: deletion.Unauthorized, detail: canI},
		"403, by admission":         {answer: failed(403, `admission webhook "w" denied the request: no`, nil), allowed: true, outcome: deletion.Refused, detail: `admission webhook "w" denied the request: no`},
		"403, and the review fails": {answer: failed(403, "forbidden", nil), reviewFails: true, outcome: deletion.Refused, detail: "forbidden"},
		"400":                       {answer: failed(400, "bad", nil), outcome: deletion.Refused, detail: "bad"},
		"401":                       {answer: failed(401, "who are you", nil), outcome: deletion.Refused, detail: "who are you"},
		"405":                       {answer: failed(405, "not here", nil), outcome: deletion.Refused, detail: "not here"},
		"422":                       {answer: failed(422, "invalid", nil), outcome: deletion.Refused, detail: "invalid"},
		"500, a webhook that fails": {answer: failed(500, `failed calling webhook "w"`, nil), outcome: deletion.Refused, detail: `failed calling webhook "w"`},
		"500, a timeout of the API server": {answer: status(500, metav1.Status{Reason: metav1.StatusReasonServerTimeout, Message: "try again", Details: retry(1)}),
			outcome: deletion.Unknown, detail: "try again"},
		"502":     {answer: plain(502, "bad gateway"), outcome: deletion.Refused},
		"504":     {answer: failed(504, "timed out", retry(1)), outcome: deletion.Unknown, detail: "timed out"},
		"cut off": {answer: cut, outcome: deletion.Unknown},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t)
			s.answer, s.allowed, s.reviewFails = c.answer, c.allowed, c.reviewFails
			got := newDeleter(s, fixedClock()).Delete(context.Background(), order(testbuilders.Job("a").Fact(), metav1.DeletePropagationBackground))
			if got.Outcome != c.outcome || got.RetryAfter != c.retryAfter || !strings.Contains(got.Detail, c.detail) {
				t.Errorf("got %s, retry after %v, %q", got.Outcome, got.RetryAfter, got.Detail)
			}
			if got.ServerError != (strings.HasPrefix(name, "5")) {
				t.Errorf("an error of the server: %v", got.ServerError)
			}
			if got.Overloaded != (c.outcome == deletion.RetryLater && !c.hindered) {
				t.Errorf("overloaded: %v", got.Overloaded)
			}
			if n := len(s.requests()); n != 1 {
				t.Errorf("%d requests were sent, want 1", n)
			}
			if asked := len(s.reviews); asked != 0 && !strings.HasPrefix(name, "403") {
				t.Errorf("%d reviews of permissions", asked)
			}
		})
	}
}

// TestCutOnAReusedConnection: on a reused connection the transport repeats some requests by itself, but no DELETE.
func TestCutOnAReusedConnection(t *testing.T) {
	for protocol, s := range map[string]*server{"HTTP/2": newServer(t), "HTTP/1.1": newServerOf(t, false)} {
		t.Run(protocol, func(t *testing.T) { testCutOnAReusedConnection(t, s) })
	}
}

func testCutOnAReusedConnection(t *testing.T, s *server) {
	d := newDeleter(s, fixedClock())
	o := order(testbuilders.Job("a").Fact(), metav1.DeletePropagationBackground)
	d.Delete(context.Background(), o)
	s.requests()
	s.answer = cut
	if got := d.Delete(context.Background(), o); got.Outcome != deletion.Unknown || got.Detail == "" {
		t.Errorf("got %+v", got)
	}
	if n := len(s.requests()); n != 1 {
		t.Errorf("%d requests were sent, want 1", n)
	}
}

// TestNothingIsSentTooLate: nothing is sent for an order that lapses while its request waits for a connection.
func TestNothingIsSentTooLate(t *testing.T) {
	for range 20 { // The order of goroutines is random.
		s := newServer(t)
		now := fixedClock()
		o := order(testbuilders.Job("a").Fact(), metav1.DeletePropagationBackground)
		o.Until = testbuilders.Now.Add(time.Second)
		d := newDeleter(s, now)
		now.SetTime(o.Until.Add(-1))
		if got := d.Delete(context.Background(), o); got.Outcome != deletion.Accepted || len(s.requests()) != 1 {
			t.Fatalf("got %+v in time", got)
		}
		now.SetTime(o.Until)
		if got := d.Delete(context.Background(), o); got.Outcome != deletion.Unknown || !strings.HasPrefix(got.Detail, "no answer") {
			t.Fatalf("got %+v", got)
		}
		if n := len(s.requests()); n != 0 {
			t.Fatalf("%d requests were sent", n)
		}
	}
}

func TestTimeOut(t *testing.T) {
	s := newServer(t)
	ctx, cancel := context.WithCancel(context.Background())
	s.answer = func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
		panic(http.ErrAbortHandler) // To return would answer 200, which may still be read while the connection is closed.
	}
	got := newDeleter(s, fixedClock()).Delete(ctx, order(testbuilders.Job("a").Fact(), metav1.DeletePropagationBackground))
	if got.Outcome != deletion.Unknown {
		t.Errorf("got %+v", got)
	}
}

func TestPermissionsAreReviewedOnce(t *testing.T) {
	s := newServer(t)
	s.answer = status(403, metav1.Status{Message: "forbidden"})
	now := fixedClock()
	d := newDeleter(s, now)
	sent := 0
	remove := func(f *lifecycle.Fact, at time.Time) deletion.Outcome {
		now.SetTime(at)
		answer := d.Delete(context.Background(), order(f, metav1.DeletePropagationBackground))
		if !answer.NotSent {
			sent++
		}
		return answer.Outcome
	}
	check := func(what string, requests, reviews int) {
		t.Helper()
		if r, n := len(s.requests()), len(s.reviews); r != requests || sent != requests || n != reviews {
			t.Errorf("%s: %d requests, counted as %d, and %d reviews, want %d and %d", what, r, sent, n, requests, reviews)
		}
		sent = 0
	}
	job := testbuilders.Job("a").Fact()
	if got := remove(job, testbuilders.Now); got != deletion.Unauthorized {
		t.Fatalf("got %s", got)
	}
	check("the first", 1, 1)
	if a := s.reviews[0]; a.Verb != "delete" || a.Group != "batch" || a.Resource != "jobs" || a.Namespace != testbuilders.Home ||
		a.Name != "" {
		t.Errorf("asked for %+v", a)
	}
	if got := remove(job, testbuilders.Now.Add(rightsFor-1)); got != deletion.Unauthorized {
		t.Errorf("got %s", got)
	}
	check("while the review is valid, it is not repeated", 1, 1)
	remove(testbuilders.Pod("a").Fact(), testbuilders.Now)
	check("another resource", 1, 2)
	remove(testbuilders.Job("a").In("team-b").Fact(), testbuilders.Now)
	check("another namespace", 1, 3)
	s.answer, s.allowed = status(200, metav1.Status{Status: metav1.StatusSuccess}), true
	if got := remove(job, testbuilders.Now.Add(rightsFor)); got != deletion.Accepted {
		t.Errorf("got %s after the permission was granted", got)
	}
	check("no review is needed", 1, 3)
	s.answer = status(403, metav1.Status{Message: "no"})
	if got := remove(job, testbuilders.Now.Add(rightsFor)); got != deletion.Refused {
		t.Errorf("got %s although the permission is there", got)
	}
	if got := remove(job, testbuilders.Now.Add(rightsFor)); got != deletion.Refused {
		t.Errorf("got %s although the permission is there", got)
	}
	check("a permission that is there is remembered too, and the request is sent", 2, 4)
}

func TestRead(t *testing.T) {
	for name, c := range map[string]struct {
		asked  *lifecycle.Fact
		answer http.HandlerFunc
		found  bool
		fails  bool
		path   string
	}{
		"a Job": {testbuilders.Job("a").Fact(), func(w http.ResponseWriter, _ *http.Request) {
			write(w, 200, testbuilders.Job("a").Version("9").Complete(testbuilders.Now).Obj())
		},
			true, false, "/apis/batch/v1/namespaces/team-a/jobs/a"},
		"a Pod": {testbuilders.Pod("a").Fact(), func(w http.ResponseWriter, _ *http.Request) {
			write(w, 200, testbuilders.Pod("a").Version("9").Succeeded(testbuilders.Now).Obj())
		},
			true, false, "/api/v1/namespaces/team-a/pods/a"},
		"another of its name": {testbuilders.Job("a").Fact(), func(w http.ResponseWriter, _ *http.Request) {
			write(w, 200, testbuilders.Job("a").WithUID("uid-2").Obj())
		},
			false, false, "/apis/batch/v1/namespaces/team-a/jobs/a"},
		"none":           {testbuilders.Job("a").Fact(), status(404, metav1.Status{Reason: metav1.StatusReasonNotFound}), false, false, "/apis/batch/v1/namespaces/team-a/jobs/a"},
		"no right":       {testbuilders.Job("a").Fact(), status(403, metav1.Status{Reason: metav1.StatusReasonForbidden}), false, true, "/apis/batch/v1/namespaces/team-a/jobs/a"},
		"no good answer": {testbuilders.Pod("a").Fact(), func(w http.ResponseWriter, _ *http.Request) { write(w, 200, testbuilders.Pod("a").Version("x").Obj()) }, false, true, "/api/v1/namespaces/team-a/pods/a"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t)
			s.answer = c.answer
			read, err := newDeleter(s, fixedClock()).Read(context.Background(), order(c.asked, ""))
			if (err != nil) != c.fails || (read != nil) != c.found {
				t.Fatalf("got %+v, %v", read, err)
			}
			if read != nil && (read.ResourceVersion != 9 || !read.Finished || read.Resource != c.asked.Resource) {
				t.Errorf("got %+v", read)
			}
			if seen := s.requests(); len(seen) != 1 || seen[0].method != http.MethodGet || seen[0].path != c.path {
				t.Errorf("sent %+v", seen)
			}
		})
	}
}
