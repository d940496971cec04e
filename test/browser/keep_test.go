// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"slices"
	"testing"

	"github.com/chromedp/chromedp/kb"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
)

// TestKeep: with the keyboard alone, a person keeps an object for a week and releases it, as the commands do. Who may not annotate it has no
// buttons.
func TestKeep(t *testing.T) {
	const ns, user = "keeping", "kate"
	kubectl(t, governed, "create", "namespace", ns)
	apply(t, governed, `{apiVersion: gc.winnow.dev/v1alpha1, kind: CleanupPolicy, metadata: {name: p, namespace: keeping}, spec: {ttlAfterFinished: 2h}}`)
	finishedJobs(t, kube, ns, 2)
	candidates(t, ns, 2)
	annotation := func() string {
		j, err := kube.BatchV1().Jobs(ns).Get(t.Context(), "job-00000", metav1.GetOptions{})
		must(t, err)
		return j.Annotations[gc.AnnotationKeepUntil]
	}
	p := open(t, serve(t, tenant(t, governed, user, ns, "edit", "winnow-edit"), "-n", ns)+"#candidates?search=00000")
	p.shows("#found", "1 candidate,")
	p.tabTo("job-00000")
	p.press(kb.Enter)
	p.shows("#explanation", "cup/p")
	p.tabTo("How long to keep it")
	p.press(kb.ArrowDown)
	p.eventually("document.getElementById('keep-for').value === '7d'")
	p.tabTo("Keep")
	p.press(kb.Enter)
	p.shows("#done", "jobs.batch/job-00000: It is kept.")
	p.shows("#explanation", "gc.winnow.dev/keep-until")
	if annotation() == "" {
		t.Error("the Job has no annotation")
	}
	p.eventually("document.activeElement.id === 'keep'")
	p.tabTo("Release")
	p.press(kb.Enter)
	p.eventually("document.getElementById('release').open && document.activeElement.id === 'release-cancel'")
	p.shows("#release", gc.AnnotationKeepUntil)
	p.checkLooks("release")
	p.press(kb.Escape)
	p.eventually("!document.getElementById('release').open && document.activeElement.id === 'release-ask'")
	if annotation() == "" {
		t.Error("released without the button")
	}
	p.press(kb.Enter)
	p.tabTo("Release")
	p.press(kb.Enter)
	p.shows("#done", "The policies decide again.")
	if got := annotation(); got != "" {
		t.Errorf("the Job still has the annotation %q", got)
	}
	if got := writes(t, governed, user); !slices.Equal(got, []string{"patch jobs/job-00000", "patch jobs/job-00000"}) {
		t.Errorf("the page has sent %q", got)
	}

	p = open(t, serve(t, tenant(t, governed, "kurt", ns, "view"), "-n", ns)+"#candidates?object=jobs.batch/keeping/job-00000")
	p.shows("#explanation", "cup/p")
	if eval[bool](p, "document.getElementById('keep') !== null") {
		t.Error("a person who may not annotate has the button")
	}
}
