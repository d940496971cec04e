// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package accounts

import (
	"net/http"
	"slices"
	"testing"

	"k8s.io/apiserver/pkg/authentication/serviceaccount"

	"github.com/winnow-dev/winnow/test/cluster"
	"github.com/winnow-dev/winnow/test/winnow"
)

// ofItself are requests to single objects in the namespaces of users that Winnow sends as itself: it says what it did, keeps its own objects,
// and looks whether an account exists.
var ofItself = []string{
	"create events.events.k8s.io", "get serviceaccounts.", "create storedcleanuppolicies.internal.gc.winnow.dev",
	"update storedcleanuppolicies.internal.gc.winnow.dev", "get storedcleanuppolicies.internal.gc.winnow.dev",
	"delete storedcleanuppolicies.internal.gc.winnow.dev", "create usagemarks.internal.gc.winnow.dev",
	"update usagemarks.internal.gc.winnow.dev", "delete usagemarks.internal.gc.winnow.dev",
	"get recordchunks.internal.gc.winnow.dev", "create recordchunks.internal.gc.winnow.dev", "update recordchunks.internal.gc.winnow.dev",
	"delete recordchunks.internal.gc.winnow.dev", "create objectcopies.internal.gc.winnow.dev", "update objectcopies.internal.gc.winnow.dev",
	"delete objectcopies.internal.gc.winnow.dev", "get objectcopies.internal.gc.winnow.dev",
}

// asAccount returns the requests for objects of users that Winnow has sent in a namespace so far. All must have been sent as an account.
func asAccount(t *testing.T, ns, account string) []cluster.AuditEvent {
	t.Helper()
	events, err := suite.Audit(func(e *cluster.AuditEvent) bool {
		if e.User.Username != winnow.User || e.ObjectRef == nil || e.ObjectRef.Namespace != ns || e.Verb == "list" || e.Verb == "watch" {
			return false
		}
		return !slices.Contains(ofItself, e.Verb+" "+e.ObjectRef.Resource+"."+e.ObjectRef.APIGroup)
	})
	must(t, err)
	for _, e := range events {
		if e.ImpersonatedUser == nil || e.ImpersonatedUser.Username != serviceaccount.MakeUsername(ns, account) {
			t.Errorf("Winnow has sent %s %s as %+v, want the ServiceAccount %s", e.Verb, e.RequestURI, e.ImpersonatedUser, account)
		}
	}
	return events
}

// succeeded returns those of some requests with a verb that changed or returned something.
func succeeded(events []cluster.AuditEvent, verb string) (out []cluster.AuditEvent) {
	for _, e := range events {
		if e.Verb == verb && e.ResponseStatus != nil && e.ResponseStatus.Code < http.StatusBadRequest {
			out = append(out, e)
		}
	}
	return out
}

// expectDeleted checks that Winnow has deleted these objects of a namespace, all as an account, and no others.
func expectDeleted(t *testing.T, ns, account string, want ...string) {
	t.Helper()
	var got []string
	for _, e := range succeeded(asAccount(t, ns, account), "delete") {
		got = append(got, e.ObjectRef.Resource+"/"+e.ObjectRef.Name)
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("deleted in %s: %q, want %q", ns, got, want)
	}
}
