// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package deleter

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/rules/deletion"
)

// TestDeadline: what is sent to change a deadline, and what follows from the answer.
func TestDeadline(t *testing.T) {
	const metadata = `{"metadata":{"uid":"uid-a","resourceVersion":"7","annotations":{"gc.winnow.dev/active-deadline-seconds":`
	set, withdrawn := metadata+`"21600"}},"spec":{"activeDeadlineSeconds":21600}}`, metadata+`null}},"spec":{"activeDeadlineSeconds":null}}`
	ours := testbuilders.Job("a").Version("8").Deadline(21600).RecordsDeadline("21600").Obj()
	plain := testbuilders.Job("a").Version("8").Obj()
	const missing = "Winnow may not set their activeDeadlineSeconds. Missing permission: kubectl auth can-i patch jobs.batch -n team-a"
	for name, c := range map[string]struct {
		deadline time.Duration
		nobody   bool
		body     string
		status   int
		answer   runtime.Object
		allowed  bool
		want     deletion.Outcome
		detail   string
	}{
		"set":                     {deadline: 6 * time.Hour, body: set, status: 200, answer: ours, want: deletion.Accepted},
		"withdrawn":               {body: withdrawn, nobody: true, status: 200, answer: plain, want: deletion.Accepted},
		"finished in between":     {deadline: 6 * time.Hour, body: set, status: 200, answer: testbuilders.Job("a").Complete(testbuilders.Now).Obj(), want: deletion.Accepted},
		"changed back by others":  {deadline: 6 * time.Hour, body: set, status: 200, answer: plain, want: deletion.Refused, detail: "webhook"},
		"an answer without sense": {deadline: 6 * time.Hour, body: set, status: 200, answer: testbuilders.Pod("a").Obj(), want: deletion.Unknown, detail: "cannot be read"},
		"a conflict":              {deadline: 6 * time.Hour, body: set, status: 409, answer: &metav1.Status{Code: 409}, want: deletion.Conflict},
		"gone":                    {deadline: 6 * time.Hour, body: set, status: 404, answer: &metav1.Status{Code: 404}, want: deletion.NotFound},
		"a missing right":         {deadline: 6 * time.Hour, body: set, status: 403, answer: &metav1.Status{Code: 403}, want: deletion.Unauthorized, detail: missing},
		"refused by a webhook":    {deadline: 6 * time.Hour, body: set, status: 403, answer: &metav1.Status{Code: 403}, allowed: true, want: deletion.Refused},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t)
			s.allowed = c.allowed
			var contentType string
			s.answer = func(w http.ResponseWriter, r *http.Request) {
				contentType = r.Header.Get("Content-Type")
				kinds, _, _ := scheme.Scheme.ObjectKinds(c.answer)
				c.answer.GetObjectKind().SetGroupVersionKind(kinds[0])
				write(w, c.status, c.answer)
			}
			o := order(testbuilders.Job("a").Version("7").Fact(), "")
			agent := "winnow/v1.2.3 (policy=team-a/p; rule=keep-failures)"
			if o.Deadline = &c.deadline; c.nobody {
				o.Policy, o.Rule, agent = types.NamespacedName{}, "", "winnow/v1.2.3 (deadline=withdrawn)"
			}
			got := newDeleter(s, fixedClock()).Delete(context.Background(), o)
			if got.Outcome != c.want || !strings.Contains(got.Detail, c.detail) || (got.Changed != nil) != (c.want == deletion.Accepted) {
				t.Errorf("got %+v", got)
			}
			seen := s.requests()
			if len(seen) != 1 || seen[0].method != http.MethodPatch || seen[0].path != "/apis/batch/v1/namespaces/team-a/jobs/a" ||
				seen[0].userAgent != agent || seen[0].patch != c.body || contentType != string(types.MergePatchType) {
				t.Errorf("sent %+v as %s", seen, contentType)
			}
			if c.want == deletion.Unauthorized && s.reviews[0].Verb != "patch" {
				t.Errorf("asked for %+v", s.reviews)
			}
		})
	}
}
