// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
	"github.com/winnow-dev/winnow/pkg/controller/rules/report"
)

var now = metav1.NewTime(testbuilders.Now)

func TestCondition(t *testing.T) {
	held := report.Group{Reason: policy.ReasonRefused, Object: "pods/a", Detail: "no", Count: 2}
	malformed := report.Group{Reason: policy.ReasonInvalidAnnotation, Object: "jobs.batch/b", Count: 1}
	going := report.Group{
		Reason: policy.ReasonTerminating,
		Object: "jobs.batch/c",
		Detail: `waits for finalizers ["example.com/f"]`,
		Count:  1,
	}
	unauthorized := func(n int64) report.Group {
		return report.Group{
			Reason: policy.ReasonUnauthorized,
			Object: "pods/a",
			Detail: "Winnow may not delete them. Missing permission: kubectl auth can-i delete pods -n team-a",
			Count:  n,
		}
	}
	waits := []gc.PolicyHold{
		{ID: "5f3c", Namespace: "team-a", Objects: 60, Why: "generation 2 of cleanuppolicies.gc.winnow.dev/p made too many due"},
	}
	const approve = "In namespace team-a, 60 objects wait for approval, because generation 2 of cleanuppolicies.gc.winnow.dev/p made too many due. " +
		"To look at them: kubectl get jobs.batch,pods -n team-a; to approve: kubectl annotate --overwrite cleanuppolicies.gc.winnow.dev p -n team-a gc.winnow.dev/approved-hold=5f3c"
	enforcing, preview := testbuilders.Policy("p").Default("1h"), testbuilders.Policy("p").Default("1h").Preview()
	for name, c := range map[string]struct {
		policy          *testbuilders.PolicyBuilder
		report          report.Report
		status          metav1.ConditionStatus
		reason, message string
	}{
		"enforcing":                   {enforcing, report.Report{}, "True", "Enforcing", "Deletes what is due."},
		"previewing":                  {preview, report.Report{}, "True", "Previewing", "Counts objects, deletes nothing."},
		"an empty spec":               {testbuilders.Policy("p"), report.Report{DoesNothing: true}, "True", "DoesNothing", "Does nothing: set ttlAfterFinished, capacity or rules."},
		"an empty spec that previews": {testbuilders.Policy("p").Preview(), report.Report{DoesNothing: true}, "True", "DoesNothing", "Does nothing: set ttlAfterFinished, capacity or rules."},
		"what is held does not make it less ready": {enforcing, report.Report{HeldByReason: []report.Group{malformed, held}, AwaitingByReason: []report.Group{going}}, "True", "Enforcing",
			`Deletes what is due. Held, InvalidAnnotation: jobs.batch/b. Held, Refused: pods/a (no) and 1 more. Being deleted, Terminating: jobs.batch/c (waits for finalizers ["example.com/f"]).`},
		"windows never open": {
			enforcing, report.Report{HeldByReason: []report.Group{{Reason: policy.ReasonWindowNeverOpens, Count: 2, Detail: "the windows never open"}}},
			"False", "WindowNeverOpens", "2 objects affected: the windows never open",
		},
		"a right is missing": {enforcing, report.Report{HeldByReason: []report.Group{held, unauthorized(1)}}, "False", "Unauthorized",
			"1 object affected: Winnow may not delete them. Missing permission: kubectl auth can-i delete pods -n team-a"},
		"a right is missing for many": {enforcing, report.Report{HeldByReason: []report.Group{unauthorized(3)}}, "False", "Unauthorized",
			"3 objects affected: Winnow may not delete them. Missing permission: kubectl auth can-i delete pods -n team-a"},
		"a right of its account is missing, and nothing is due": {enforcing, report.Report{Unauthorized: []string{"b may not", "a may not"}}, "False", "Unauthorized",
			"Will delete nothing in 2 namespaces. In one of them: a may not"},
		"a right of its account is missing in its namespace": {enforcing, report.Report{Unauthorized: []string{"a may not"}}, "False", "Unauthorized",
			"Will delete nothing: a may not"},
		"objects cannot be observed": {enforcing, report.Report{Unobserved: "pods cannot be observed: no right", HeldByReason: []report.Group{unauthorized(1)}}, "False", "Unobserved",
			"Deletes nothing: pods cannot be observed: no right"},
		"quotas cannot be observed": {enforcing, report.Report{QuotaDoubt: "resourcequotas cannot be observed: no right"}, "False", "Unobserved",
			"Deletes nothing because of percentOfQuota: resourcequotas cannot be observed: no right"},
		"all is stopped":                {enforcing, report.Report{SuspendedBy: "stop"}, "True", "Suspended", "Deletes nothing while it is suspended."},
		"a change waits for approval":   {enforcing, report.Report{Holds: waits}, "False", "Held", approve},
		"it starts suspended":           {enforcing, report.Report{Unselected: true}, "True", "Suspended", "Deletes nothing while it is suspended."},
		"it waits while all is stopped": {enforcing, report.Report{SuspendedBy: "stop", Holds: waits}, "False", "Held", approve},
		"a protected namespace": {enforcing, report.Report{Excluded: policy.ReasonNamespaceProtected}, "False", "NamespaceProtected",
			"Nothing is deleted in a protected namespace; see the label gc.winnow.dev/protected and --protected-namespaces. " +
				"Winnow's own namespace is protected too."},
		"a namespace that goes": {enforcing, report.Report{Excluded: policy.ReasonNamespaceTerminating}, "False", "NamespaceTerminating",
			"The namespace is being deleted, together with everything in it."},
		"a namespace that was not seen": {enforcing, report.Report{Excluded: policy.ReasonNamespaceUnknown}, "False", "NamespaceUnknown",
			"Winnow has not observed the namespace yet."},
		"it cannot be read": {enforcing, report.Report{Unreadable: errors.New("spec.mode: what"), Excluded: policy.ReasonNamespaceProtected}, "False", "PolicyUnreadable",
			"Winnow cannot read the stored policy, so it deletes nothing that the policy could select: spec.mode: what. Replace or delete the policy."},
	} {
		t.Run(name, func(t *testing.T) {
			c.report.Stored = policy.StoredOf(c.policy.Generation(3).Obj())
			got := Of(&c.report, now)
			want := metav1.Condition{
				Type:               "Ready",
				Status:             c.status,
				Reason:             c.reason,
				Message:            c.message,
				ObservedGeneration: 3,
				LastTransitionTime: now,
			}
			if got.ObservedGeneration != 3 || got.Conditions[0] != want {
				t.Errorf("got  %+v\nwant %+v", got.Conditions, want)
			}
		})
	}
}

// TestManyHolds: each message names a limited number of holds. All holds are in the status.
func TestManyHolds(t *testing.T) {
	r := report.Report{Stored: policy.StoredOf(testbuilders.Policy("p").Obj()), UnlistedHolds: 9}
	for _, id := range []string{"a", "b", "c", "d", "e"} {
		r.Holds = append(r.Holds, gc.PolicyHold{ID: id, Namespace: "team-" + id, Objects: 2, Why: "of " + id})
	}
	for most, want := range map[int]string{
		2: "3 more in status.holds, and 9 that status.holds has no room for", 4: "1 more in status.holds, and 9 that status.holds has no room for", 5: "",
	} {
		got := waiting(&r, r.Holds, most)
		if len(got) < most || strings.Join(got[most:], "") != want || !strings.HasSuffix(got[1], "gc.winnow.dev/approved-hold=b") {
			t.Errorf("of %d: %q, want %q at the end", most, got, want)
		}
	}
}

// TestSuspendedAndThrottled: the conditions Suspended and Throttled exist once they have been true.
func TestSuspendedAndThrottled(t *testing.T) {
	condition := func(kind string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
		return metav1.Condition{
			Type:               kind,
			Status:             status,
			Reason:             reason,
			Message:            message,
			ObservedGeneration: 1,
			LastTransitionTime: now,
		}
	}
	throttled := condition(
		"Throttled",
		"True",
		"Throttled",
		"Deletes as fast as guardrails.maxDeletionsPerMinute allows in team-a, team-b.",
	)
	for name, c := range map[string]struct {
		before []metav1.Condition
		change func(*report.Report)
		want   []metav1.Condition
	}{
		"neither": {change: func(*report.Report) {}},
		"all is stopped": {change: func(r *report.Report) { r.SuspendedBy = "stop" }, want: []metav1.Condition{condition("Suspended", "True", "Suspended",
			`ClusterCleanupPolicy "stop" stops all deletions; set its spec.guardrails.suspendAll to false to resume.`)}},
		"no cluster policy yet": {change: func(r *report.Report) { r.Unselected = true }, want: []metav1.Condition{condition("Suspended", "True", "Suspended",
			"Winnow runs with --start-suspended, so nothing is deleted in this namespace yet. To begin, apply a ClusterCleanupPolicy with mode Enforce "+
				"that selects the namespace, or restart Winnow without the flag.")}},
		"the policy is suspended": {change: func(r *report.Report) { r.Suspend = true }, want: []metav1.Condition{condition("Suspended", "True", "Suspended",
			"Deletes nothing; set spec.suspend to false to resume.")}},
		"it was suspended": {
			before: []metav1.Condition{{Type: "Suspended", Status: "True", LastTransitionTime: metav1.NewTime(testbuilders.Now.Add(-time.Hour))}},
			change: func(*report.Report) {}, want: []metav1.Condition{condition("Suspended", "False", "NotSuspended", "")},
		},
		"a resource is not served": {change: func(r *report.Report) { r.Unserved = []string{"a.example.com", "b.example.com"} },
			want: []metav1.Condition{condition("Established", "False", "NotServed",
				"The cluster does not serve a.example.com, b.example.com. The policy applies as soon as it does.")}},
		"a resource is misspelled": {change: func(r *report.Report) {
			r.Unserved, r.Meant = []string{"run.example.com"}, []string{"runs.example.com"}
		},
			want: []metav1.Condition{condition("Established", "False", "NotServed",
				"The cluster does not serve run.example.com. The policy applies as soon as it does. Did you mean runs.example.com?")}},
		"it waits for its turn": {change: func(r *report.Report) { r.Paced = []string{"team-a", "team-b"} }, want: []metav1.Condition{throttled}},
		"it does no more": {
			before: []metav1.Condition{{Type: "Throttled", Status: "True"}}, change: func(*report.Report) {},
			want: []metav1.Condition{condition("Throttled", "False", "NotThrottled", "")},
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := testbuilders.Policy("p").Default("1h").Status(gc.CleanupPolicyStatus{Conditions: c.before}).Obj()
			r := report.Report{Stored: policy.StoredOf(p)}
			c.change(&r)
			got := slices.DeleteFunc(Of(&r, now).Conditions, func(c metav1.Condition) bool { return c.Type == "Ready" })
			if !slices.Equal(got, c.want) {
				t.Errorf("got  %+v\nwant %+v", got, c.want)
			}
		})
	}
}

func TestTransitionTimeIsKept(t *testing.T) {
	before := metav1.NewTime(testbuilders.Now.Add(-time.Hour))
	ready := metav1.Condition{
		Type:               "Ready",
		Status:             "True",
		Reason:             "Enforcing",
		Message:            "Deletes what is due.",
		ObservedGeneration: 1,
		LastTransitionTime: before,
	}
	other := metav1.Condition{Type: "Other", Status: "True", Reason: "Because", LastTransitionTime: before}
	stored := policy.StoredOf(
		testbuilders.Policy("p").Default("1h").Status(gc.CleanupPolicyStatus{Conditions: []metav1.Condition{other, ready}}).Obj(),
	)

	same := Of(&report.Report{Stored: stored}, now)
	if !apiequality.Semantic.DeepEqual(same.Conditions, []metav1.Condition{other, ready}) {
		t.Errorf("nothing changed, but got %+v", same.Conditions)
	}
	reworded := Of(&report.Report{Stored: stored, HeldByReason: []report.Group{{Reason: "Refused", Object: "pods/a", Count: 1}}}, now)
	if c := reworded.Conditions[1]; !c.LastTransitionTime.Equal(&before) || c.Message == ready.Message {
		t.Errorf("another message alone is no transition: %+v", c)
	}
	changed := Of(&report.Report{Stored: stored, Excluded: policy.ReasonNamespaceProtected}, now)
	if c := changed.Conditions[1]; !c.LastTransitionTime.Equal(&now) {
		t.Errorf("it became false, but got %+v", c)
	}
	if stored.Status.Conditions[1] != ready {
		t.Error("the stored policy was changed")
	}
}

func TestNumbersAndTimes(t *testing.T) {
	at := metav1.NewTime(testbuilders.Now.Add(123456789))
	r := report.Report{
		Stored:       policy.StoredOf(testbuilders.Policy("p").Obj()),
		Candidates:   4,
		Due:          3,
		Held:         2,
		Deleted:      1,
		NextDeletion: &at,
		LastDeletion: &at,
		Ceilings:     []gc.CeilingStatus{{Resource: "pods", Objects: 5, MaxObjects: 2, Over: 3}},
		Namespaces:   []gc.NamespaceStatus{{Namespace: "a", Candidates: 4, Due: 3, Held: 2}}, UnlistedNamespaces: 6,
	}
	got := Of(&r, now)
	if !slices.Equal(got.Namespaces, r.Namespaces) || got.UnlistedNamespaces != 6 {
		t.Errorf("namespaces %+v, and %d more", got.Namespaces, got.UnlistedNamespaces)
	}
	if !slices.Equal(got.Ceilings, r.Ceilings) {
		t.Errorf("ceilings %+v", got.Ceilings)
	}
	if got.Candidates != 4 || got.Due != 3 || got.Held != 2 || got.Deleted != 1 {
		t.Errorf("got %+v", got)
	}
	// Times are kept to the second, so that they equal what comes back from the API.
	if !got.NextDeletionTime.Equal(&now) || !got.LastDeletionTime.Equal(&now) {
		t.Errorf("next %v, last %v", got.NextDeletionTime, got.LastDeletionTime)
	}
	none := Of(&report.Report{Stored: r.Stored}, now)
	if none.NextDeletionTime != nil || none.LastDeletionTime != nil {
		t.Errorf("next %v, last %v", none.NextDeletionTime, none.LastDeletionTime)
	}
}
