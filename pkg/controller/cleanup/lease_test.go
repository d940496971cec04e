// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package cleanup

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/winnow-dev/winnow/pkg/controller/rules/freshness"
)

// TestLeaseCheck: one read covers what begins less than 900 ms after it began, and only if it has seen that this replica leads. A read that
// has failed stands for others for a moment.
func TestLeaseCheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reads, takes := 0, time.Millisecond
		var fails error
		check := &leaseCheck{clock: clock.RealClock{}, read: func(context.Context) error {
			reads++
			time.Sleep(takes)
			return fails
		}}
		confirm := func(wantReads int, want error) {
			t.Helper()
			if err := check.confirm(t.Context()); !errors.Is(err, want) || reads != wantReads {
				t.Errorf("got %v after %d reads, want %v after %d", err, reads, want, wantReads)
			}
		}
		confirm(1, nil)
		time.Sleep(freshness.For - 2*time.Millisecond)
		confirm(1, nil)
		time.Sleep(time.Millisecond)
		confirm(2, nil)
		time.Sleep(time.Second)
		fails = errNotLeading
		confirm(3, errNotLeading)
		fails = nil
		confirm(3, errNotLeading)
		time.Sleep(leaseFailedFor)
		confirm(4, nil)
		time.Sleep(time.Second)
		takes = freshness.For
		confirm(5, errSlow)
		takes = time.Millisecond
		time.Sleep(leaseFailedFor)
		confirm(6, nil)
	})
}

// TestSendOnce: client-go does not repeat a request that the server has answered.
func TestSendOnce(t *testing.T) {
	requests := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		requests++
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusTooManyRequests)
	}))
	defer server.Close()
	client, err := dynamic.NewForConfig(sendOnce(&rest.Config{Host: server.URL, QPS: -1}))
	if err != nil {
		t.Fatal(err)
	}
	resource := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "lists"}
	if err := client.Resource(resource).Delete(t.Context(), "a", metav1.DeleteOptions{}); err == nil || requests != 1 {
		t.Errorf("got %v after %d requests", err, requests)
	}
}
