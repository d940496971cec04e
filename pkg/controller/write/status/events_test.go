// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/engine/view"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/objects/kinds"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/rules/deletion"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
	"github.com/winnow-dev/winnow/pkg/controller/rules/report"
)

// about describes events: the regarded object, and the note.
func about(all []event) []string {
	var out []string
	for _, e := range all {
		on := "policy " + e.Name
		if o := e.object; o != nil {
			on = fmt.Sprintf("%s %s %s/%s", o.APIVersion, o.Kind, o.Namespace, o.Name)
		}
		out = append(out, fmt.Sprintf("%s: %s %s: %s", on, e.kind, e.reason, e.note))
	}
	slices.Sort(out)
	return out
}

func (o *fixture) wantEvents(got []event, want ...string) {
	o.Helper()
	if got := about(got); !slices.Equal(got, want) {
		o.Errorf("events\n%q\nwant\n%q", got, want)
	}
}

// TestEventsOfClusterPoliciesInNamespaces: people who can see only one namespace get events there about what a cluster policy deletes and
// holds.
func TestEventsOfClusterPoliciesInNamespaces(t *testing.T) {
	o := &fixture{T: t}
	all := newCorrelator(kinds.Builtin)
	gone := func(namespace, name, rule string) deletion.Gone {
		f := testbuilders.Job(name).In(namespace).Fact()
		return deletion.Gone{
			Order: &deletion.Order{Fact: f, Policy: types.NamespacedName{Name: "defaults"}, PolicyUID: "uid", Rule: rule},
		}
	}
	now := testbuilders.Now
	all.addGone([]deletion.Gone{gone("team-a", "a", "default"), gone("team-a", "b", "default"), gone("team-b", "c", "")})
	o.wantEvents(all.dueDeletions(now, 1+2),
		"batch/v1 Job team-a/b: Normal Deleted: Deleted 2 jobs.batch by rule default of ClusterCleanupPolicy defaults",
		"batch/v1 Job team-b/c: Normal Deleted: Deleted 1 jobs.batch by the ceiling of ClusterCleanupPolicy defaults",
		"policy defaults: Normal Deleted: Deleted 1 jobs.batch by the ceiling, 2 jobs.batch by rule default")
	o.wantEvents(all.dueDeletions(now.Add(sumFor), 10))

	all.addGone([]deletion.Gone{gone("team-a", "d", "default"), gone("team-b", "e", "default")})
	if first, rest := all.dueDeletions(now.Add(2*sumFor), 2), all.dueDeletions(now.Add(2*sumFor), 2); len(first) != 2 || len(rest) != 1 {
		t.Errorf("%d events and then %d of three, want 2 and 1", len(first), len(rest))
	}

	p := &gc.ClusterCleanupPolicy{ObjectMeta: metav1.ObjectMeta{Name: "defaults", UID: "uid"}}
	refused := report.Group{Reason: policy.ReasonRefused, Object: "team-a/pods/p", Detail: "no", Count: 2}
	waits := report.Group{Reason: policy.ReasonHeld, Object: "team-b/jobs.batch/c", Detail: "5f3c", Count: 60}
	r := &report.Report{
		Stored: policy.StoredOf(p), HeldByReason: []report.Group{refused, waits},
		Holds: []gc.PolicyHold{
			{ID: "5f3c", Namespace: "team-b", Objects: 60, Why: "a change", Resources: []string{"pods"}},
			{ID: "7d1e", Namespace: "team-c", Objects: 1, Why: "another"},
		},
		ByNamespace: []report.NamespaceGroups{
			{Namespace: "team-a", HeldByReason: []report.Group{refused}},
			{Namespace: "team-b", HeldByReason: []report.Group{waits}},
		},
	}
	warn := func(at metav1.Time) []event {
		out, _ := all.dueWarnings(r, at.Time)
		return out
	}
	o.wantEvents(warn(metav1.NewTime(now)))
	const approve = "kubectl annotate --overwrite clustercleanuppolicies.gc.winnow.dev defaults gc.winnow.dev/approved-hold="
	b := "In namespace team-b, 60 objects wait for approval, because a change. To look at them: kubectl get pods -n team-b; to approve: " + approve + "5f3c"
	c := "In namespace team-c, 1 object waits for approval, because another. To look at them: kubectl get jobs.batch,pods -n team-c; to approve: " + approve + "7d1e"
	o.wantEvents(warn(metav1.NewTime(now.Add(warnAfter))),
		"batch/v1 Job team-b/c: Warning Held: ClusterCleanupPolicy defaults: "+b,
		"policy defaults: Warning Held: "+b+"; "+c,
		"policy defaults: Warning Refused: Held, Refused: 2 objects; events in their namespaces name them",
		"v1 Pod team-a/p: Warning Refused: ClusterCleanupPolicy defaults: Held, Refused: team-a/pods/p (no) and 1 more")
	all.forget("team-a", nil)
	o.wantEvents(warn(metav1.NewTime(now.Add(warnAfter + repeatAfter/2))))
}

// TestNoEventsAboutDeletedEvents: the rule that deleted Events would match an Event about it.
func TestNoEventsAboutDeletedEvents(t *testing.T) {
	o, now := &fixture{T: t}, testbuilders.Now
	c := newCorrelator(kinds.Builtin)
	gone := func(resource, ns string) deletion.Gone {
		f := testbuilders.Job("a").In("team-a").Fact()
		f.Resource = resource
		return deletion.Gone{Order: &deletion.Order{Fact: f, Policy: types.NamespacedName{Namespace: ns, Name: "p"}, PolicyUID: "uid", Rule: "r"}}
	}
	c.addGone([]deletion.Gone{gone(gc.ResourceEvents, "team-a"), gone(gc.ResourceEvents, "")})
	o.wantEvents(c.dueDeletions(now, 10))
	c.addGone([]deletion.Gone{gone(gc.ResourceEvents, "team-a"), gone(gc.ResourceJobs, "team-a")})
	o.wantEvents(c.dueDeletions(now, 10), "policy p: Normal Deleted: Deleted 1 jobs.batch by rule r")
}

// TestEventsNameNoSecrets: everybody who may read a namespace reads its events, and the names of Secrets and of custom resources are not in
// them.
func TestEventsNameNoSecrets(t *testing.T) {
	o, now := &fixture{T: t}, testbuilders.Now
	c := newCorrelator(kinds.Builtin)
	secret := testbuilders.Job("private").In("team-a").Fact()
	secret.Resource = "secrets"
	defaults := subject{types.NamespacedName{Name: "defaults"}, "uid"}
	c.addGone([]deletion.Gone{{Order: &deletion.Order{Fact: secret, Policy: defaults.NamespacedName, PolicyUID: defaults.uid, Rule: "old"}}})
	o.wantEvents(c.dueDeletions(now, 2),
		"policy defaults: Normal Deleted: Deleted 1 secrets by rule old",
		"v1 Namespace team-a/team-a: Normal Deleted: Deleted 1 secrets by rule old of ClusterCleanupPolicy defaults")

	held := report.Group{Reason: policy.ReasonRefused, Object: "team-a/secrets/private", Detail: `secret "private"`, Unnamed: true, Count: 2}
	r := &report.Report{
		Stored:      policy.StoredOf(&gc.ClusterCleanupPolicy{ObjectMeta: metav1.ObjectMeta{Name: "defaults", UID: "uid"}}),
		ByNamespace: []report.NamespaceGroups{{Namespace: "team-a", HeldByReason: []report.Group{held}}},
	}
	c.dueWarnings(r, now)
	warnings, _ := c.dueWarnings(r, now.Add(warnAfter))
	o.wantEvents(warnings, "v1 Namespace team-a/team-a: Warning Refused: "+
		"ClusterCleanupPolicy defaults: Held, Refused: 2 objects (kubectl get cand names them)")

	noticed := func(f *lifecycle.Fact) event {
		return c.noticeEvent(&view.Notice{Fact: f, Policy: defaults.NamespacedName, Reason: policy.ReasonInvalidAnnotation, Text: "s3cret"})
	}
	other := *secret
	other.Name, other.UID = "other", "another"
	first := noticed(secret)
	o.wantEvents([]event{first}, "v1 Namespace team-a/team-a: Warning InvalidAnnotation: Annotations of secrets that Winnow reads have no "+
		"effect, or cannot be read (kubectl get cand -o yaml explains each)")
	if second := noticed(&other); second.id != first.id {
		t.Errorf("there are events %s and %s for the Secrets of a namespace", first.id, second.id)
	}
}

// TestEventOnAnObject: the policy is the related object of the event.
func TestEventOnAnObject(t *testing.T) {
	o := newFixture(t)
	e := event{
		subject: subject{types.NamespacedName{Name: "defaults"}, "uid"}, object: o.correlator.reference(gc.ResourceJobs, "team-a", "a", "uid-a"),
		kind: corev1.EventTypeNormal, reason: "Deleted", note: "Deleted",
	}
	if err := o.createEvent(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	got := o.cluster.Actions()[0].(clienttesting.CreateAction).GetObject().(*eventsv1.Event)
	if got.Namespace != "team-a" || got.Regarding.Name != "a" || got.Regarding.Kind != "Job" ||
		got.Related == nil || got.Related.Kind != "ClusterCleanupPolicy" || got.Related.Name != "defaults" {
		t.Errorf("got %+v", got)
	}
}

// TestNoticesAreWrittenOnce: a notice is an event on the object. The name of the event is the same on all replicas, so that it exists once.
func TestNoticesAreWrittenOnce(t *testing.T) {
	o := newFixture(t, testbuilders.Policy("p").Default("1h"))
	short := testbuilders.Job("short").TTL("10m").Fact()
	o.upsert(short)
	_, events := o.after(time.Second)
	if len(events) != 1 {
		t.Fatalf("wrote %+v", events)
	}
	e := events[0]
	if e.Namespace != testbuilders.Home || e.Regarding.Kind != "Job" || e.Regarding.UID != short.UID || e.Related == nil || e.Related.Name != "p" ||
		e.Related.Kind != "CleanupPolicy" || e.Type != corev1.EventTypeWarning || e.Reason != "AnnotationIgnored" ||
		!strings.Contains(e.Note, `ttl: "10m" has no effect`) {
		t.Errorf("wrote %+v", e)
	}
	o.upsert(testbuilders.Job("short").TTL("10m").Complete(testbuilders.Now).Fact()) // The engine decides for the object again.
	if _, events := o.after(time.Minute); len(events) != 1 || events[0].Name != e.Name {
		t.Errorf("wrote %+v, not the same as before", events)
	}
	if list, err := o.cluster.EventsV1().Events(testbuilders.Home).List(t.Context(), metav1.ListOptions{}); err != nil ||
		len(list.Items) != 1 {
		t.Errorf("there are %+v, %v", list, err)
	}
	o.writes(time.Minute, nil, nil)
}

// TestNoticesLeaveTheBudgetToOthers: however many objects are annotated in however many namespaces, only a part of the budget is spent on
// notices.
func TestNoticesLeaveTheBudgetToOthers(t *testing.T) {
	o := newFixture(t)
	o.Tracker.SetClusterPolicy(&gc.ClusterCleanupPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "all", UID: "uid", Generation: 1, ResourceVersion: "1"},
		Spec: gc.ClusterCleanupPolicySpec{
			Mode: gc.ModeEnforce, AnnotationTTL: gc.AnnotationExtendOnly, NamespaceSelector: &metav1.LabelSelector{}, TTLAfterFinished: new(gc.TTL("1h")),
		},
	}, testbuilders.Now)
	for n := range 2 * noticesMost {
		team := fmt.Sprintf("team-%d", n)
		o.Tracker.SetNamespace(testbuilders.Namespace(team, "2"), testbuilders.Now)
		for i := range 50 {
			o.upsert(testbuilders.Job(fmt.Sprint(team, "-", i)).In(team).TTL("10 m").Fact())
		}
	}
	notices := map[string]int{}
	for range 2 {
		_, events := o.after(time.Second)
		if len(events) != noticesMost {
			t.Errorf("wrote %d events, want %d", len(events), noticesMost)
		}
		for _, e := range events {
			notices[e.Namespace]++
		}
	}
	if len(notices) != 2*noticesMost {
		t.Errorf("notices are %v, want each namespace once", notices)
	}
}
