// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/test/poll"
)

// markup runs a script if anything takes it for more than text. It also changes the direction of text, and rings.
const markup = "\"'><img src=x onerror=\"window.owned=1\"><script>window.owned=1</script></td>\u202e\a{{1}}"

func name(text string, i int) string { return fmt.Sprintf("%s-%05d", text, i) }

func minutes(i int) time.Duration { return time.Duration(i%20000) * time.Minute }

// expectText fails unless markup is nothing but text on the page, and what else is hostile in it is escaped.
func (p *tab) expectText(selector string) {
	p.Helper()
	p.expectInert(selector)
	p.shows(selector, `\u202e\x07`)
}

// expectInert fails unless markup is nothing but text on the page.
func (p *tab) expectInert(selector string) {
	p.Helper()
	p.shows(selector, "<img src=x")
	if eval[bool](p, "window.owned !== undefined || document.querySelector('main img, main script, main iframe, dialog img, dialog script') !== null") {
		p.Errorf("%s has elements from text", selector)
	}
	if strings.ContainsAny(eval[string](p, "document.body.innerText"), "\u202e\a") {
		p.Errorf("%s shows characters that are not escaped", selector)
	}
}

// TestHostileTexts: every text of every answer may be markup, and stays text.
func TestHostileTexts(t *testing.T) {
	p := open(t, serveSource(t, &source{text: markup, n: 300}))
	for _, selector := range []string{"#context", "#notes", "#attention", "#resources", "#finished", "#legend"} {
		p.expectText(selector)
	}
	p.do(chromedp.Click[chromedp.CSS]("#overview summary"))
	p.expectText("#chart-table")
	p.section("candidates")
	p.expectText("#rows")
	p.expectText("#state")
	p.do(chromedp.Click[chromedp.CSS]("#rows button[tabindex='0']"))
	p.expectText("#explanation")
	p.do(chromedp.Click[chromedp.CSS]("#keep"))
	p.expectText("#done")
	p.do(chromedp.Click[chromedp.CSS]("#release-ask"))
	p.expectText("#release")
	p.press(kb.Escape)
	p.section("policies")
	p.do(chromedp.Click[chromedp.CSS]("#policies summary"))
	p.expectText("#policy-list")
	p.do(chromedp.Click[chromedp.CSS]("#policies button.primary"))
	p.expectText("#approve")
	p.press(kb.Escape)
	p.section("history")
	p.expectText("#history-table")
	p.expectText("#history-notes")
	p.section("policies")
	p.do(chromedp.Click[chromedp.CSS]("#policies details button"))
	p.eventually("location.hash.startsWith('#editor')")
	p.expectText("#preview")
	p.write("wrong")
	p.shows("#preview", "Not valid")
	p.expectText("#preview")
	picture(p, "hostile")
}

// TestHostileObjects: what the API server lets people write into objects and messages is text on the page.
func TestHostileObjects(t *testing.T) {
	kubectl(t, governed, "create", "namespace", "hostile")
	apply(t, governed, `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: hostile.winnow.dev}
spec:
  failurePolicy: Fail
  matchConstraints:
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: hostile}}
    resourceRules: [{apiGroups: [batch], apiVersions: [v1], operations: [DELETE], resources: [jobs]}]
  validations: [{expression: "false", message: "<img src=x onerror=window.owned=1> \u202e\a"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: hostile.winnow.dev}
spec: {policyName: hostile.winnow.dev, validationActions: [Deny]}
`)
	finishedJobs(t, kube, "hostile", 1, named("refused"))
	must(t, poll.Until(t.Context(), waitMost, 100*time.Millisecond, func(ctx context.Context) error {
		if _, stderr, err := governed.Kubectl(ctx, "delete", "job", "refused-00000", "-n", "hostile", "--dry-run=server"); err == nil {
			return fmt.Errorf("the admission policy lets it be deleted: %s", stderr)
		}
		return nil
	}))
	finishedJobs(t, kube, "hostile", 1, named("annotated"), annotated(gc.AnnotationTTL, markup))
	apply(t, governed, `
apiVersion: gc.winnow.dev/v1alpha1
kind: CleanupPolicy
metadata: {name: p, namespace: hostile, annotations: {note: "<img src=x onerror=window.owned=1>"}}
spec: {ttlAfterFinished: 0s}
`)
	candidates(t, "hostile", 2)
	p := open(t, serve(t, governed.Kubeconfig(), "-n", "hostile"))
	p.section("candidates")
	for search, said := range map[string]string{"refused": "Refused", "annotated": "InvalidAnnotation"} {
		p.choose("search", search)
		p.shows("#found", "1 candidate,")
		// Until the first attempt to delete it was refused.
		must(t, poll.Until(t.Context(), waitMost, 100*time.Millisecond, func(context.Context) error {
			p.do(chromedp.Click[chromedp.CSS]("#rows button[tabindex='0']"))
			p.eventually("document.getElementById('explanation').getAttribute('aria-busy') === 'false'")
			if text := eval[string](p, "document.getElementById('explanation').innerText"); !strings.Contains(text, said) {
				return fmt.Errorf("%s does not say %q", text, said)
			}
			return nil
		}))
		p.expectInert("#explanation")
	}
	p.section("policies")
	p.do(chromedp.Click[chromedp.CSS]("#policies summary"))
	p.expectInert("#policy-list")

	client, err := kubernetes.NewForConfig(bare.RESTConfig())
	must(t, err)
	kubectl(t, bare, "create", "namespace", "hostile")
	finishedJobs(t, client, "hostile", 1, func(j *batchv1.Job) {
		j.OwnerReferences = []metav1.OwnerReference{{APIVersion: "x/v1", Kind: "Kind" + markup, Name: markup, UID: "x", Controller: new(true)}}
	})
	open(t, serve(t, bare.Kubeconfig(), "-n", "hostile")).expectText("#finished")
}

// stranger is a page of another origin that knows the address with its token, and tries what a page may try.
const stranger = `<!DOCTYPE html><title>stranger</title><body><script>
const target = %q, tried = {};
const load = (name, element) => new Promise((done) => {
	element.onload = () => done(tried[name] = 'loaded'); element.onerror = () => done(tried[name] = 'refused'); document.body.append(element);
});
const ask = (name, path, options) => fetch(target + path, options).then((r) => r.type === 'opaque' ? 'opaque' : 'answered', () => 'refused')
	.then((result) => { tried[name] = result; });
const body = JSON.stringify({ namespace: 'team-a', name: 'p', holds: ['x'] });
(async () => {
	await ask('read', 'api/place');
	await ask('read without an answer', 'api/overview', { mode: 'no-cors' });
	await ask('approve', 'api/approve', { method: 'POST', body, headers: { 'Content-Type': 'application/json' } });
	await ask('approve as a form', 'api/approve', { method: 'POST', body, mode: 'no-cors' });
	await load('picture', Object.assign(new Image(), { src: target + 'icon.svg' }));
	await load('script', Object.assign(document.createElement('script'), { src: target + 'dom.js', type: 'module' }));
	await load('style', Object.assign(document.createElement('link'), { href: target + 'style.css', rel: 'stylesheet' }));
	const form = Object.assign(document.createElement('form'), { method: 'POST', action: target + 'api/approve', enctype: 'text/plain', target: 'frame' });
	const frame = Object.assign(document.createElement('iframe'), { name: 'frame', src: target });
	await load('frame', frame);
	form.append(Object.assign(document.createElement('input'), { name: body.slice(0, -1) + ',"x":"', value: '"}' }));
	document.body.append(form);
	const answered = new Promise((done) => { frame.onload = done; });
	form.submit();
	await answered;
	window.tried = tried;
})();
</script>`

// TestStrangers: no other page can read anything or approve, even if it knows the token; and nobody can without it, or by another name.
func TestStrangers(t *testing.T) {
	s := &source{text: "x", n: 1}
	address := serveSource(t, s)
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, stranger, address)
	}))
	defer other.Close()
	for _, of := range []string{other.URL, strings.Replace(other.URL, "127.0.0.1", reboundName, 1)} {
		p := browse(t, of)
		p.eventually("window.tried")
		tried := eval[map[string]string](p, "window.tried")
		for name, result := range tried {
			if result != "refused" && (name != "frame" || result != "loaded") { // A frame loads, but shows only the refusal.
				t.Errorf("%s, from %s: %s", name, of, result)
			}
		}
		if len(tried) != 8 {
			t.Errorf("tried only %v", tried)
		}
	}
	parsed, err := url.Parse(address)
	must(t, err)
	browse(t, "http://"+parsed.Host+"/").shows("body", "Nothing is here")
	browse(t, "http://"+parsed.Host+"/api/place").shows("body", "Nothing is here")
	browse(t, strings.Replace(address, "127.0.0.1", reboundName, 1)).shows("body", "served only to a browser on the same machine")
	if n := s.calls.Load(); n > 0 {
		t.Errorf("the cluster was asked %d times", n)
	}
}

// TestManyCandidates: the page stays fluid with a hundred thousand candidates. What it draws does not depend on their number, and nothing
// blocks it for long.
func TestManyCandidates(t *testing.T) {
	p := open(t, serveSource(t, &source{text: "nightly", n: 100_000}))
	eval[bool](p, `(() => { window.longest = 0; window.gap = 0; let last = performance.now();
		new PerformanceObserver((list) => { for (const e of list.getEntries()) window.longest = Math.max(window.longest, e.duration); })
			.observe({ type: 'longtask', buffered: true });
		requestAnimationFrame(function frame(now) { window.gap = Math.max(window.gap, now - last); last = now; requestAnimationFrame(frame); });
		return true; })()`)
	p.shows("#tiles", "100,000")
	p.section("candidates")
	p.shows("#found", "100,000 candidates")
	// A person scrolls through all of it in two seconds.
	eval[bool](p, `new Promise((done) => { const v = document.getElementById('viewport'), begin = performance.now();
		requestAnimationFrame(function step(now) { const part = Math.min(1, (now - begin) / 2000); v.scrollTop = part * v.scrollHeight;
			if (part < 1) requestAnimationFrame(step); else done(true); }); })`)
	p.eventually("document.querySelector('#rows tr:nth-last-child(2)').getAttribute('aria-rowindex') === '100001'")
	p.shows("#rows", "nightly-")
	p.choose("search", "99999")
	p.shows("#found", "1 candidate,")
	p.choose("search", "")
	p.choose("state", "Held")
	p.shows("#found", "33,333 candidates")
	// In one step: while the machine is busy, the row could be drawn anew between finding it and the click of a mouse.
	eval[bool](p, `(() => { const row = document.querySelector("#rows button[tabindex='0']"); row.focus(); row.click(); return true; })()`)
	p.press(kb.End)
	p.eventually("document.activeElement.closest('tr').getAttribute('aria-rowindex') === '33334'")
	p.do(chromedp.Click[chromedp.CSS]("#refresh"))
	p.eventually("document.getElementById('updated').innerText.startsWith('Read at')")
	longest, gap := eval[float64](p, "window.longest"), eval[float64](p, "window.gap")
	elements := eval[int](p, "document.querySelectorAll('*').length")
	t.Logf("the longest task took %.0f ms, the longest pause between two frames %.0f ms, %d elements", longest, gap, elements)
	eval[bool](p, `new Promise((done) => setTimeout(() => { const begin = performance.now(); while (performance.now() - begin < 200); done(true); }))`)
	p.eventually("window.longest >= 200 || window.gap >= 200") // The page is indeed measured.
	if longest > 500 || gap > 1000 || elements > 1500 {
		t.Errorf("the longest task took %.0f ms, the longest pause between two frames %.0f ms, and there are %d elements", longest, gap, elements)
	}
}
