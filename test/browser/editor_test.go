// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"
)

const faulty = `apiVersion: gc.winnow.dev/v1alpha1
kind: CleanupPolicy
metadata:
  name: p
spec:
  ttl: 1h # unknown
  ttlAfterFinished: 1 h
  rules:
  - name: a
    resource: [pods]
`

// TestEditor: the editor marks the lines of all errors while one types, and takes each kind that Winnow has.
func TestEditor(t *testing.T) {
	kubectl(t, governed, "create", "namespace", "editing")
	finishedJobs(t, kube, "editing", 3)
	p := open(t, serve(t, governed.Kubeconfig(), "-n", "editing"))
	p.section("editor")
	p.shows("#preview", "Policy defaults in namespace editing")
	p.eventually("document.querySelectorAll('.CodeMirror .cm-atom').length > 3") // It highlights.

	p.write(faulty)
	p.shows("#preview", "Line 6")
	p.shows("#preview", "Line 7")
	p.shows("#preview", "Line 10")
	marked := "[...document.querySelectorAll('.CodeMirror-code > div')].filter((e) => e.querySelector('.fault')).map((e) => e.querySelector('.CodeMirror-linenumber').innerText).join()"
	p.eventually(marked + " === '6,7,9,10'")
	p.eventually("document.querySelector('.CodeMirror [role=textbox]').ariaInvalid === 'true'")
	p.click(withText("#preview button", "Line 7"))
	p.eventually("document.querySelector('.CodeMirror').CodeMirror.getCursor().line === 6 && document.activeElement.closest('.CodeMirror')")
	p.press("#", "x") // Typing is enough for another check.
	p.eventually(marked + " !== '6,7,9,10'")
	p.press(kb.Tab)
	p.eventually("!document.activeElement.closest('.CodeMirror')") // Tab leads out of the editor.
	p.write("spec: [")
	p.shows("#preview", "Not valid")

	p.write(strings.NewReplacer("CleanupPolicy", "ClusterCleanupPolicy", "name: p", "name: editing").Replace(`apiVersion: gc.winnow.dev/v1alpha1
kind: CleanupPolicy
metadata: {name: p}
spec:
  mode: Enforce
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: editing}}
  ttlAfterFinished: 30m
`))
	p.shows("#preview", "Policy editing would delete:")
	p.shows("#preview table", "jobs.batch\tdefault\t0\t3")
	p.eventually("document.querySelectorAll('.CodeMirror .fault').length === 0")

	p.write(`apiVersion: gc.winnow.dev/v1alpha1
kind: ResourceLifecycle
metadata: {name: runs.example.com}
spec: {finished: {when: "object.status.phase == 'Done'", succeeded: "object.status.ok == true", at: "object.status.at"}}
`)
	p.shows("#preview", "ResourceLifecycle runs.example.com")
	p.shows("#preview", "Valid")
	if out, _, err := governed.Kubectl(t.Context(), "get", "resourcelifecycles", "-o", "name"); err != nil || strings.Contains(out, "runs.example.com") {
		t.Errorf("the editor has stored it: %s, %v", out, err)
	}
	p.choose("template", "When custom resources have finished")
	p.shows("#preview", "ResourceLifecycle runs.example.com")
}
