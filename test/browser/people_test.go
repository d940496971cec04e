// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes"

	"github.com/winnow-dev/winnow/pkg/plugin"
	"github.com/winnow-dev/winnow/pkg/plugin/local"
	"github.com/winnow-dev/winnow/test/cluster"
	"github.com/winnow-dev/winnow/test/poll"
)

// writes returns the requests with which the plugin has changed something as a user. It fails if the plugin was refused anything.
func writes(t *testing.T, c *cluster.Cluster, user string) []string {
	t.Helper()
	events, err := c.Audit(func(e *cluster.AuditEvent) bool {
		return e.User.Username == user && strings.HasPrefix(e.UserAgent, "kubectl-winnow/")
	})
	must(t, err)
	if len(events) < 5 {
		t.Errorf("the audit log has only %d requests of %s", len(events), user)
	}
	var out []string
	for _, e := range events {
		if e.ResponseStatus.Code == 403 {
			t.Errorf("%s was refused %s %s", user, e.Verb, e.RequestURI)
		}
		asks := e.Verb == "create" && slices.Contains([]string{"selfsubjectaccessreviews", "cleanupreviews"}, e.ObjectRef.Resource)
		if e.Verb != "get" && e.Verb != "list" && !asks {
			out = append(out, e.Verb+" "+e.ObjectRef.Resource+"/"+e.ObjectRef.Name)
		}
	}
	return out
}

// TestTenants: each of two tenants sees his own namespace and nothing of the other one, and the page asks for nothing that he may not do.
func TestTenants(t *testing.T) {
	for _, ns := range []string{"ann", "bob"} {
		kubectl(t, governed, "create", "namespace", ns)
		apply(t, governed, fmt.Sprintf(`{apiVersion: gc.winnow.dev/v1alpha1, kind: CleanupPolicy, metadata: {name: of-%s, namespace: %[1]s},
			spec: {ttlAfterFinished: 2h}}`, ns))
		finishedJobs(t, kube, ns, 3, named("job-of-"+ns))
		candidates(t, ns, 3)
	}
	for mine, theirs := range map[string]string{"ann": "bob", "bob": "ann"} {
		t.Run(mine, func(t *testing.T) {
			p := open(t, serve(t, tenant(t, governed, mine, mine, "view"), "-n", mine))
			p.shows("#tiles", "3")
			p.shows("#notes", "do not count, because you may not list them: kubectl auth can-i list clustercleanuppolicies")
			p.section("candidates")
			p.shows("#rows", "job-of-"+mine+"-00002")
			p.do(chromedp.Click[chromedp.CSS]("#rows button[tabindex='0']"))
			p.shows("#explanation", "cup/of-"+mine)
			p.section("policies")
			p.shows("#policy-list", "cup/of-"+mine)
			p.section("history")
			p.shows("#history-found", "There are no records")
			p.section("editor")
			p.shows("#preview", "Policy defaults in namespace "+mine)
			p.section("history")
			if text := eval[string](p, "document.body.innerText"); strings.Contains(text, theirs) {
				t.Errorf("%s sees something of %s: %s", mine, theirs, text)
			}
			for _, elsewhere := range []string{theirs, ""} {
				p.choose("namespace", elsewhere)
				p.shows("#failure", "you may not list them: kubectl auth can-i list cleanupcandidates.gc.winnow.dev")
				p.shows("#history-found", "cleanuprecords")
				picture(p, "tenant-"+mine)
			}
			p.choose("namespace", "x/../y")
			p.shows("#failure", "is no namespace")
			if got := writes(t, governed, mine); len(got) > 0 {
				t.Errorf("the page has sent %q", got)
			}
		})
	}
}

// TestKeyboard: with the keyboard alone, a person finds out why an object is held, and approves its deletion. Until the button is pressed,
// the page only reads.
func TestKeyboard(t *testing.T) {
	const ns, user = "keyboard", "kim"
	kubectl(t, governed, "create", "namespace", ns)
	hold(t, ns, 3)
	p := open(t, serve(t, tenant(t, governed, user, ns, "edit", "winnow-edit"), "-n", ns))
	p.shows("#count-policies", "1 waiting")

	p.press(kb.Tab)
	if !strings.Contains(p.focused(), "Skip to content") {
		t.Errorf("the first Tab leads to %q", p.focused())
	}
	p.tabTo("Review 3 Jobs of cup/reports")
	p.press(kb.Enter)
	p.eventually("document.getElementById('approve').open && document.activeElement.id === 'approve-cancel'")
	p.shows("#approve-sample", "jobs.batch/old-report-00002")
	p.press(kb.Escape)
	p.eventually("!document.getElementById('approve').open && document.activeElement.innerText === 'Review'")
	p.tabTo("Next day")
	p.press(kb.ArrowRight)
	p.eventually("document.getElementById('span-week').checked")

	p.press(kb.Home)
	p.backTo("Candidates")
	p.press(kb.Enter)
	p.eventually("document.activeElement.id === 'candidates-title'")
	p.tabTo("Search by name")
	p.press("report")
	p.eventually("document.getElementById('table').ariaBusy === 'false'")
	p.shows("#found", "3 candidates")
	p.tabTo("old-report-00000")
	p.press(kb.ArrowDown, kb.ArrowDown, kb.ArrowUp, kb.End, kb.Home, kb.ArrowDown, kb.Enter)
	p.shows("#explanation", "old-report-00001 in namespace keyboard")
	p.shows("#explanation", "waits for approval")
	p.eventually("document.activeElement.innerText.includes('old-report-00001')")

	p.backTo("Policies")
	p.press(kb.Enter)
	p.tabTo("Approve 3 deletions")
	p.press(kb.Enter)
	p.eventually("document.getElementById('approve').open && document.activeElement.id === 'approve-cancel'")
	p.shows("#approve", "generation 1 of cleanuppolicies.gc.winnow.dev/reports")
	picture(p, "approve")
	p.press(kb.Escape)
	p.eventually("!document.getElementById('approve').open && document.activeElement.innerText.startsWith('Approve 3')")
	if got := writes(t, governed, user); len(got) > 0 {
		t.Errorf("before the button is pressed, the page has sent %q", got)
	}

	p.tabTo("YAML")
	p.press(kb.Enter)
	p.shows("#policy-list pre", "kind: CleanupPolicy")
	p.do(chromedp.Click[chromedp.CSS]("#refresh")) // What is open stays open, and the focus where it is.
	p.eventually("document.getElementById('updated').innerText.startsWith('Read at')")
	p.shows("#policy-list pre", "kind: CleanupPolicy")
	p.backTo("Approve 3 deletions")
	p.press(kb.Enter)
	p.eventually("document.activeElement.id === 'approve-cancel'")
	p.tabTo("Approve 3 deletions")
	p.press(kb.Enter)
	p.shows("#done", "cup/reports is approved.")
	must(t, poll.Until(t.Context(), waitMost, 100*time.Millisecond, func(ctx context.Context) error {
		all, err := kube.BatchV1().Jobs(ns).List(ctx, metav1.ListOptions{})
		if err == nil && len(all.Items) > 0 {
			err = fmt.Errorf("there are still %d Jobs", len(all.Items))
		}
		return err
	}))
	if got := writes(t, governed, user); !slices.Equal(got, []string{"patch cleanuppolicies/reports"}) {
		t.Errorf("the page has sent %q", got)
	}
}

// backTo presses Shift and Tab until the element with the focus has a text.
func (p *tab) backTo(text string) {
	p.Helper()
	const most = 60
	for range most {
		p.do(chromedp.KeyEvent(kb.Tab, chromedp.KeyModifiers(chromedp.ModifierShift)))
		if strings.Contains(p.focused(), text) {
			return
		}
	}
	p.Fatalf("Shift and Tab do not lead to %q; the focus is on %q", text, p.focused())
}

// TestScreenReader: in each section, the accessibility tree has landmarks and headings, and everything that a person uses has a name.
func TestScreenReader(t *testing.T) {
	p := open(t, serveSource(t, &source{text: "nightly", n: 50}))
	p.shows("#tiles", "50")
	p.expectNames("overview")
	p.section("candidates")
	p.do(chromedp.Click[chromedp.CSS]("#rows button[tabindex='0']"))
	p.shows("#explanation", "nightly")
	p.expectNames("candidates")
	p.section("policies")
	p.expectNames("policies")
	p.do(chromedp.Click[chromedp.CSS]("#policies button.primary"))
	p.expectNames("dialog")
	p.press(kb.Escape)
	p.section("history")
	p.shows("#history-found", "1 object")
	p.expectNames("history")
	p.section("editor")
	p.shows("#preview", "would delete")
	p.expectNames("editor")
}

func (p *tab) expectNames(section string) {
	p.Helper()
	tree, err := chromedp.Call(p.ctx, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{})
	must(p.T, err)
	roles := map[string]int{}
	for _, node := range tree.Nodes {
		if node.Ignored || node.Role == nil {
			continue
		}
		role, name := text(node.Role), text(node.Name)
		roles[role]++
		if slices.Contains([]string{
			"button", "link", "textbox", "searchbox", "combobox", "radio", "img", "image", "dialog", "table", "navigation", "region", "group", "columnheader",
			"heading", "search",
		}, role) && strings.TrimSpace(name) == "" && role != "group" {
			p.Errorf("%s: a %s has no name", section, role)
		}
	}
	if section == "dialog" { // The rest of the page is inert.
		if roles["dialog"] != 1 || roles["button"] != 2 {
			p.Errorf("%s: %v", section, roles)
		}
		return
	}
	if roles["banner"] != 1 || roles["main"] != 1 || roles["navigation"] != 1 || roles["heading"] < 2 || roles["link"] < 4 {
		p.Errorf("%s: %v", section, roles)
	}
	if ones := eval[int](p, "[...document.querySelectorAll('h1')].filter((e) => e.checkVisibility()).length"); ones != 1 {
		p.Errorf("%s has %d first headings", section, ones)
	}
	if current := eval[string](p, "document.querySelector('nav a[aria-current=page]').getAttribute('href')"); current != "#"+section {
		p.Errorf("the current section is %s, want %s", current, section)
	}
}

func text(v *accessibility.Value) string {
	var out string
	if v != nil {
		_ = json.Unmarshal(v.Value, &out) // Not every value is a text.
	}
	return out
}

const barePolicies = `
{apiVersion: gc.winnow.dev/v1alpha1, kind: CleanupPolicy, metadata: {name: p, namespace: bare}, spec: {ttlAfterFinished: 30m}}
---
apiVersion: gc.winnow.dev/v1alpha1
kind: CleanupPolicy
metadata: {name: s, namespace: bare}
spec: {suspend: true, rules: [{name: kept, resources: [jobs.batch], selector: {matchLabels: {app: kept}}, ttl: 1h}]}
`

// TestWithoutWinnow: the page of a cluster without Winnow has the numbers of report and the words of why, and only reads.
func TestWithoutWinnow(t *testing.T) {
	const user = "bea"
	client, err := kubernetes.NewForConfig(bare.RESTConfig())
	must(t, err)
	kubectl(t, bare, "create", "namespace", "bare")
	finishedJobs(t, client, "bare", 4)
	kubectl(t, bare, "label", "job", "-n", "bare", "job-00003", "app=kept")
	kubectl(t, bare, "create", "role", user, "-n", "bare", "--verb=get,list", "--resource=jobs.batch,cronjobs.batch")
	kubectl(t, bare, "create", "rolebinding", user, "-n", "bare", "--role="+user, "--user="+user)
	kubeconfig := tenant(t, bare, user, "bare")
	file := filepath.Join(t.TempDir(), "policies.yaml")
	must(t, os.WriteFile(file, []byte(barePolicies), 0o600))

	p := open(t, serve(t, kubeconfig, "-n", "bare"))
	p.shows("#notes", "There is no Winnow in this cluster")
	p.shows("#notes", "are not counted, because you may not list them: kubectl auth can-i list pods")
	p.shows("#finished", "jobs.batch")
	p.shows("#resources", "No policy decides for any object here.")
	p.section("editor")
	p.shows("#preview", "jobs.batch")
	first, _, _ := strings.Cut(barePolicies, "---")
	p.write(strings.Replace(first, "30m", "30 m", 1))
	p.shows("#preview", "spec.ttlAfterFinished")
	picture(p, "without-winnow")
	p.do(chromedp.Click[chromedp.CSS]("#copy"))
	p.shows("#copied", "Copied.")

	p = open(t, serve(t, kubeconfig, "-n", "bare", "-f", file))
	p.shows("#notes", "The policies of the files given with -f count")
	streams, _, out, _ := genericiooptions.NewTestIOStreams()
	args := []string{"-n", "bare", "-f", file, "--kubeconfig", kubeconfig, "--cache-dir", filepath.Join(t.TempDir(), "cache")}
	if code := plugin.Run(t.Context(), append([]string{"report", "-o", "json"}, args...), streams); code != 0 {
		t.Fatal(code)
	}
	var report struct{ Deletions []local.Deletions }
	must(t, json.Unmarshal(out.Bytes(), &report))
	var hour, held int64
	for _, d := range report.Deletions {
		hour, held = hour+d.Hour, held+d.Held
	}
	if hour != 3 || held != 1 {
		t.Errorf("report: %+v", report.Deletions)
	}
	p.shows("#resources tbody tr", fmt.Sprintf("jobs.batch\t0\t%d\t3\t3\t%d", hour, held))
	p.section("candidates")
	p.choose("search", "00001")
	p.shows("#found", "1 candidate,")
	p.do(chromedp.Click[chromedp.CSS]("#rows button[tabindex='0']"))
	p.shows("#explanation", "job-00001 in namespace bare")
	streams, _, out, _ = genericiooptions.NewTestIOStreams()
	if code := plugin.Run(t.Context(), append([]string{"why", "job/job-00001"}, args...), streams); code != 0 {
		t.Fatal(code)
	}
	why := strings.Join(strings.Fields(out.String()), " ")
	for _, part := range eval[[]string](p, "[...document.querySelectorAll('#explanation .message, #explanation dt')].map((e) => e.innerText)") {
		if !strings.Contains(why, strings.Join(strings.Fields(part), " ")) {
			t.Errorf("the page says %q, and kubectl winnow why says %s", part, out)
		}
	}
	if got := writes(t, bare, user); len(got) > 0 {
		t.Errorf("the page has sent %q", got)
	}
}
