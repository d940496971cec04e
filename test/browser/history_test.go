// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/winnow-dev/winnow/test/poll"
)

// TestHistory: what Winnow deleted in a namespace can be looked up and searched, and other namespaces do not appear.
func TestHistory(t *testing.T) {
	for _, ns := range []string{"past", "other-past"} {
		kubectl(t, governed, "create", "namespace", ns)
		apply(t, governed, fmt.Sprintf(`{apiVersion: gc.winnow.dev/v1alpha1, kind: CleanupPolicy, metadata: {name: soon, namespace: %s},
			spec: {rules: [{name: done, resources: [jobs.batch], ttl: 0s}]}}`, ns))
	}
	finishedJobs(t, kube, "past", 3, named("past"))
	finishedJobs(t, kube, "other-past", 2, named("other"))
	records(t, "past", 3)
	records(t, "other-past", 2)
	p := open(t, serve(t, governed.Kubeconfig(), "-n", "past"))
	p.section("history")
	p.shows("#history-found", "3 objects")
	p.shows("#history-table", "past-00002")
	p.shows("#history-table", "cup/soon, rule done")
	p.checkLooks("history-light")
	// What has happened is never in the future, although the clock of the browser may be slow.
	if got := eval[string](p, "import('./dom.js').then(({ past }) => past(Date.now() / 1000 + 60).textContent)"); got != "0s ago" {
		t.Errorf("a deletion in the future is shown as %q", got)
	}
	object := eval[string](p, "document.querySelector('#history-table tbody a').getAttribute('href')")
	p.click("document.querySelector('#history-table tbody a')")
	p.shows("#explanation", "Winnow deleted it at")
	p.shows("#explanation", "by cup/soon, rule done")
	if !strings.Contains(object, "object=jobs.batch%2Fpast%2Fpast-0000") {
		t.Errorf("the link of a deleted object is %s", object)
	}
	p.section("history")
	p.choose("history-search", "00001")
	p.shows("#history-found", "1 object")
	p.choose("history-search", "other")
	p.shows("#history-found", "No deleted objects match")
	p.choose("history-search", "")
	p.choose("namespace", "")
	p.shows("#history-table", "other-00001")
}

// records waits until there are so many records in a namespace. They are written some seconds after the deletions.
func records(t *testing.T, ns string, n int) {
	t.Helper()
	must(t, poll.Until(t.Context(), waitMost, 100*time.Millisecond, func(ctx context.Context) error {
		all, err := policies.GcV1alpha1().CleanupRecords(ns).List(ctx, metav1.ListOptions{})
		if err == nil && len(all.Items) != n {
			err = fmt.Errorf("%d records, want %d", len(all.Items), n)
		}
		return err
	}))
}
