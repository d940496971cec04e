// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/pkg/plugin/ui"
)

// bigSource is a cluster in which a change waits for approval, a policy is not ready, and objects are held for other reasons. It has all in
// one namespace, or some of it in others.
type bigSource struct {
	*policySource
	namespaces []string
}

const held = 25

func newBigSource(namespaces ...string) *bigSource {
	p := waiting("big", "reports", 5000)
	p.Holds[0] = ui.Hold{ID: "x", Namespace: "big", Objects: 5000, Resources: []string{"jobs.batch"}, Since: new(metav1.Now())}
	unready := ui.Policy{Namespace: "big", Name: "broken", Mode: "Enforce", Conditions: []metav1.Condition{
		{Type: "Ready", Status: metav1.ConditionFalse, Reason: "Unauthorized", Message: "the account may not delete Jobs"},
	}}
	return &bigSource{newPolicySource(p, unready), namespaces}
}

func (s *bigSource) Place(context.Context) (ui.Place, error) {
	return ui.Place{Default: "big", Namespaces: s.namespaces, Winnow: true}, nil
}

func (s *bigSource) Read(_ context.Context, namespace string, add func(*v1alpha1.CleanupCandidate, bool)) (ui.Reading, error) {
	for _, ns := range append([]string{"big"}, s.namespaces...) {
		if namespace != "" && namespace != ns {
			continue
		}
		each := func(name string, n int, state v1alpha1.CandidateState, reason string, in time.Duration, suspended bool) {
			for i := range n {
				add(&v1alpha1.CleanupCandidate{ObjectMeta: metav1.ObjectMeta{Namespace: ns}, Status: v1alpha1.CleanupCandidateStatus{
					Object: v1alpha1.CandidateObject{Resource: "jobs.batch", Name: fmt.Sprintf("%s-%02d", name, i)}, State: state, Reason: reason,
					DecidedBy: &v1alpha1.CandidatePolicy{Kind: "CleanupPolicy", Name: "reports", Rule: "r"}, DueTime: new(metav1.NewTime(time.Now().Add(in))),
				}}, suspended)
			}
		}
		each("waits", held, v1alpha1.CandidateHeld, "Held", -time.Hour, false)
		each("refused", 2, v1alpha1.CandidateHeld, "Refused", -time.Hour, false)
		each("soon", 3, v1alpha1.CandidateWaiting, "NotDue", 90*time.Minute, false)
		each("suspended", 4, v1alpha1.CandidateWaiting, "NotDue", 150*time.Minute, true)
	}
	return ui.Reading{}, nil
}

// click clicks what an expression finds, in one step: the page may draw it anew between finding and clicking.
func (p *tab) click(expression string) {
	p.Helper()
	p.eventually(expression)
	eval[bool](p, "("+expression+").click() || true")
}

// named finds a button or a link by its text.
func withText(selector, text string) string {
	return fmt.Sprintf("[...document.querySelectorAll('%s')].find((e) => e.innerText.includes('%s'))", selector, text)
}

// TestAttention: the page begins with what needs a person. The dialog shows what waits, and some of the objects that would go.
func TestAttention(t *testing.T) {
	p := open(t, serveSource(t, newBigSource()))
	p.shows("#attention", "1 change waits for approval")
	p.shows("#attention", "5,000 Jobs in big")
	p.shows("#attention", "cup/broken in big: the account may not delete Jobs")
	p.shows("#attention", "2 objects are held until somebody acts")
	if first := eval[string](p, "document.querySelector('#overview > :nth-child(2)').id"); first != "attention" {
		t.Errorf("the page begins with %s", first)
	}
	p.click(withText("#attention button", "Review"))
	p.shows("#approve", "5,000 objects")
	p.shows("#approve-sample", "The first 10 of 25 objects")
	p.shows("#approve-sample", "jobs.batch/waits-09")
	if text := eval[string](p, "document.getElementById('approve-sample').innerText"); strings.Contains(text, "refused") {
		t.Errorf("the sample has objects that are held for another reason: %s", text)
	}
	p.click(withText("#approve-sample a", "25 objects"))
	p.shows("#found", "25 candidates")
	if eval[bool](p, "document.getElementById('approve').open") {
		t.Error("the dialog is still open")
	}
	p.section("overview")
	p.click(withText("#attention a", "2"))
	p.shows("#found", "2 candidates")
	p.shows("#chosen", "Reason: Refused")
	p.click("document.querySelector('#chosen button')")
	p.shows("#found", "27 candidates")
	p = open(t, serveSource(t, &source{text: "x"}))
	p.shows("#attention", "change")
}

// TestNumbersLead: each number of the overview is a link to as many candidates.
func TestNumbersLead(t *testing.T) {
	p := open(t, serveSource(t, newBigSource("other")))
	p.choose("namespace", "")
	p.shows("#namespace-table", "other")
	for _, c := range []struct{ selector, found string }{
		{"#tiles > :nth-child(3) a", "6 candidates"},                       // within a day
		{"#tiles > :nth-child(5) a", "62 candidates"},                      // held
		{"#tiles > :nth-child(6) a", "68 candidates"},                      // all
		{"#resources tbody tr td:nth-child(6) a", "62 candidates"},         // held
		{"#legend li:first-child a", "6 candidates"},                       // the bars of the chart
		{"#legend li:last-child a", "8 candidates"},                        // what is held when it is due
		{"#chart-table tbody tr:nth-child(2) td a", "6 candidates"},        // one bar
		{"#namespace-table tbody tr:last-child td:nth-child(5) a", "3 ca"}, // of one namespace
	} {
		p.section("overview")
		if strings.HasPrefix(c.selector, "#chart-table") {
			p.do(chromedp.Click[chromedp.CSS]("#overview summary"))
		}
		p.click("document.querySelector('" + c.selector + "')")
		p.eventually("document.activeElement.id === 'candidates-title'")
		p.shows("#found", c.found)
	}
	if ns := eval[string](p, "document.getElementById('namespace').value"); ns != "other" {
		t.Errorf("the link of a namespace leads to %q", ns)
	}
	p.section("policies")
	p.shows("#policy-list", "cup/reports")
}

// TestAddress: the address has the section, the namespace, the filter, the order and the selection, so that it can be shared.
func TestAddress(t *testing.T) {
	address := serveSource(t, newBigSource("other"))
	p := open(t, address)
	p.section("candidates")
	p.choose("namespace", "other")
	p.choose("search", "soon")
	p.choose("when", "day")
	p.click("document.querySelector('#table button[data-column=object]')")
	p.click("document.querySelector('#table button[data-column=object]')")
	p.eventually("document.querySelector('#rows button')?.innerText === 'soon-02'")
	p.click("document.querySelector('#rows button')")
	p.eventually("location.hash.includes('object=')")
	shared := eval[string](p, "location.hash")

	p = open(t, address+shared)
	p.shows("#found", "3 candidates")
	p.eventually("document.querySelector('#rows button').innerText === 'soon-02'")
	p.eventually("document.querySelector('#rows tr.chosen button')?.innerText === 'soon-02'")
	p.eventually("document.getElementById('explanation').getAttribute('aria-busy') === 'false'")
	for _, is := range []string{
		"document.getElementById('namespace').value === 'other'", "document.getElementById('search').value === 'soon'",
		"document.getElementById('when').value === 'day'", "document.querySelector('#table .c-object').ariaSort === 'descending'",
		"!document.getElementById('candidates').hidden",
	} {
		p.eventually(is)
	}
	p.section("overview") // What was chosen stays, and so does the way back.
	p.section("candidates")
	p.shows("#found", "3 candidates")
	p.do(chromedp.Navigate(address + "#history?search=past&within=604800"))
	p.eventually("!document.getElementById('history').hidden && document.getElementById('history-search').value === 'past'")
	p.eventually("document.getElementById('history-within').value === '604800'")
	for _, hostile := range []string{"#constructor", "#overview?span=constructor", "#candidates?state=%3Cimg%20src=x%3E&object=a/b/c&sort=constructor"} {
		p.do(chromedp.Navigate(address + hostile))
		p.eventually("document.getElementById('updated').innerText.startsWith('Read at')")
	}
	p.shows("#state", "<img src=x>")
}

// TestClickWhileReading: what the page writes into the address does not take back a click that it has not seen yet, as while it starts.
func TestClickWhileReading(t *testing.T) {
	p := open(t, serveSource(t, newBigSource("other")))
	p.section("candidates")
	eval[bool](p, `(() => { const e = document.getElementById('namespace'); location.hash = '#history'; e.value = 'other';
		return e.dispatchEvent(new Event('change')); })()`)
	p.eventually("!document.getElementById('history').hidden && location.hash.startsWith('#history') && location.hash.includes('namespace=other')")
}

// TestChart: the axis has whole numbers, each label says how long from now a bar begins, and what is held has bars of its own.
func TestChart(t *testing.T) {
	p := open(t, serveSource(t, newBigSource()))
	p.eventually("document.querySelector('#chart rect.series-held')")
	for _, span := range []string{"hour", "day", "week"} {
		p.click("document.getElementById('span-" + span + "')")
		for _, text := range eval[[]string](p, "[...document.querySelectorAll('#chart .count')].map((e) => e.textContent)") {
			if strings.Trim(text, "0123456789,") != "" {
				t.Errorf("the axis has %q", text)
			}
		}
	}
	p.click("document.getElementById('span-day')")
	labels := eval[[]string](p, "[...document.querySelectorAll('#chart .time')].map((e) => e.textContent)")
	if want := []string{"now", "6h", "12h", "18h", "24h"}; !slices.Equal(labels, want) {
		t.Errorf("labels %q, want %q", labels, want)
	}
	// What is due in an hour and a half is in the second of the bars, and so is its title.
	if title := eval[string](p, "document.querySelector('#chart a title').textContent"); !strings.HasSuffix(title, "3 jobs.batch") {
		t.Errorf("the first bar is %q", title)
	}
	p.shows("#legend", "Held when due (4)")
	p.do(chromedp.Click[chromedp.CSS]("#chart rect")) // A bar leads to what it counts.
	p.shows("#found", "3 candidates")
	p.section("overview")
	for most, want := range map[int]string{1: "0,1", 3: "0,1,2,3", 5: "0,2,4,6", 10: "0,5,10", 101: "0,50,100,150", 4000: "0,1000,2000,3000,4000"} {
		if got := eval[string](p, fmt.Sprintf("import('./chart.js').then((m) => m.scale(%d).join())", most)); got != want {
			t.Errorf("the scale for %d is %s, want %s", most, got, want)
		}
	}
}

// TestSort: the headings of tables sort them, with the keyboard too, and the order stays when the page is read again.
func TestSort(t *testing.T) {
	p := open(t, serveSource(t, newBigSource("a", "b")))
	p.choose("namespace", "")
	p.shows("#namespace-table", "b")
	order := "[...document.querySelectorAll('#namespace-table tbody th')].map((e) => e.innerText).join()"
	p.click("document.querySelector('#namespace-table button')")
	p.eventually(order + " === 'a,b,big'")
	p.eventually("document.querySelector('#namespace-table th').ariaSort === 'ascending'")
	eval[bool](p, "(document.querySelector('#namespace-table button').focus(), true)")
	p.press(kb.Enter)
	p.eventually(order + " === 'big,b,a'")
	eval[bool](p, "((window.was = document.activeElement), document.getElementById('refresh').click(), true)")
	p.eventually("!window.was.isConnected")
	p.eventually(order + " === 'big,b,a' && document.activeElement.innerText === 'Namespace'")
}

// TestScreens: a large screen shows more rows, and a narrow one shows all columns.
func TestScreens(t *testing.T) {
	p := open(t, serveSource(t, newBigSource()))
	p.section("candidates")
	p.shows("#rows", "waits-00")
	rows := func(width, height int64) int {
		p.resize(width, height)
		return eval[int](p, `[...document.querySelectorAll('#rows tr:not(.space)')].filter((e) =>
			e.getBoundingClientRect().bottom <= document.getElementById('viewport').getBoundingClientRect().bottom).length`)
	}
	if normal, large := rows(1200, 800), rows(2000, 1400); large < normal+10 {
		t.Errorf("%d rows on a normal screen, and %d on a large one", normal, large)
	}
	rows(400, 800)
	p.eventually("[...document.querySelector('#rows tr:not(.space)').cells].every((e) => e.checkVisibility())")
	p.do(chromedp.Click[chromedp.CSS]("#rows button[tabindex='0']"))
	p.press(kb.End)
	p.eventually("document.activeElement.closest('tr').getAttribute('aria-rowindex') === '35'")
	p.eventually(`(() => { const row = document.activeElement.closest('tr').getBoundingClientRect(), v = document.getElementById('viewport').getBoundingClientRect();
		return row.top >= v.top && row.bottom <= v.bottom + 1; })()`)
}

// TestNothingYet: where there is nothing, the page says what to do next.
func TestNothingYet(t *testing.T) {
	p := open(t, serveSource(t, &policySource{}))
	p.shows("#attention", "Nothing waits for a person here.")
	p.eventually("document.querySelector('#chart .empty') && !document.querySelector('#chart + details').checkVisibility()")
	for section, link := range map[string]string{"overview": "#resources a", "candidates": "#found a", "policies": "#policies-said a"} {
		p.section(section)
		p.click("document.querySelector('" + link + "')")
		p.eventually("document.activeElement.id === 'editor-title'")
	}
	p.section("candidates")
	p.eventually("document.getElementById('viewport').clientHeight < 100") // There is no empty table.
	p.choose("search", "x")
	p.shows("#found", "No candidates match.")
	p.click("document.querySelector('#found a')")
	p.shows("#found", "No policy decides for any object here.")
}

// TestMistypedNamespace: the page says so, and does not show another namespace in its place.
func TestMistypedNamespace(t *testing.T) {
	kubectl(t, governed, "create", "namespace", "mistyped")
	p := open(t, serve(t, governed.Kubeconfig(), "-n", "mistyped"))
	p.shows("#attention", "Nothing waits")
	p.choose("namespace", "mistypd")
	p.shows("#failure", `there is no namespace "mistypd"; did you mean "mistyped"?`)
	if eval[bool](p, "document.getElementById('tiles').checkVisibility()") {
		t.Error("the page still shows the numbers of the other namespace")
	}
	p.choose("namespace", "mistyped")
	p.eventually("document.getElementById('failure').hidden && document.getElementById('tiles').checkVisibility()")
}
