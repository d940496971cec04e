// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package deleter

import (
	"context"
	"net/http"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
)

// TestAccount: DELETE, PATCH and GET are sent as the account of the order, and with all that they have without one.
func TestAccount(t *testing.T) {
	for account, want := range map[string][]string{"": nil, "cleaner": {"system:serviceaccount:team-a:cleaner"}} {
		s := newServer(t)
		d := newDeleter(s, fixedClock())
		o := order(testbuilders.Job("a").Version("7").Fact(), metav1.DeletePropagationBackground)
		o.Account = account
		d.Delete(context.Background(), o)
		if _, err := d.Read(context.Background(), o); err == nil {
			t.Error("read a Status as a Job")
		}
		o.Deadline = new(time.Hour)
		d.Delete(context.Background(), o)
		var methods []string
		sent := s.requests()
		for _, seen := range sent {
			methods = append(methods, seen.method)
			if !slices.Equal(seen.as, want) {
				t.Errorf("%s as %q, want %q", seen.method, seen.as, want)
			}
		}
		if !slices.Equal(methods, []string{http.MethodDelete, http.MethodGet, http.MethodPatch}) {
			t.Errorf("sent %q", methods)
		}
		if p := sent[0].options.Preconditions; p == nil || p.UID == nil || p.ResourceVersion == nil || *p.ResourceVersion != "7" {
			t.Errorf("preconditions %+v", p)
		}
	}
}
