// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/registry/gc/internal/permission"
	"github.com/winnow-dev/winnow/pkg/registry/gc/internal/testpolicy"
)

// TestApproval: it takes the verb approve on the policy, list and delete on what the hold covers, and a hold that exists.
func TestApproval(t *testing.T) {
	ofPods := gc.PolicyHold{ID: "pods", Namespace: "team-a", Resources: []string{gc.ResourcePods}, Objects: 7}
	ofJobs := gc.PolicyHold{ID: "jobs", Namespace: "team-a", Resources: []string{gc.ResourceJobs}, Objects: 3}
	older := gc.PolicyHold{ID: "older", Namespace: "team-a"}
	everywhere := gc.PolicyHold{ID: "all", Resources: []string{gc.ResourcePods}, Objects: 5000}
	others := gc.PolicyHold{ID: "theirs", Namespace: "team-a", Objects: 2, Policy: "team-a/other"}
	wide := gc.PolicyHold{ID: "wide", Namespace: "team-a", Objects: 2, Policy: "defaults"}
	approve := "approve cleanuppolicies.gc.winnow.dev/defaults team-a"
	pods := []string{"delete pods team-a", "list pods team-a"}
	jobs := []string{"delete jobs.batch team-a", "list jobs.batch team-a"}
	for name, tc := range map[string]struct {
		before, after string // the annotation
		empties       bool   // the spec, in the same write
		status        []gc.PolicyHold
		forecast      gc.PolicyForecast
		may           []string
		want          string // part of the error, "" where it may be written
	}{
		"all rights":       {after: "pods", status: []gc.PolicyHold{ofPods}, may: slices.Concat(pods, []string{approve})},
		"update alone":     {after: "pods", status: []gc.PolicyHold{ofPods}, want: "can-i approve cleanuppolicies.gc.winnow.dev/defaults -n team-a; kubectl auth can-i delete pods -n team-a; kubectl auth can-i list pods -n team-a"},
		"approve alone":    {after: "pods", status: []gc.PolicyHold{ofPods}, may: []string{approve}, want: "To check the missing permissions: kubectl auth can-i delete pods -n team-a; kubectl auth can-i list pods -n team-a"},
		"delete, no list":  {after: "pods", status: []gc.PolicyHold{ofPods}, may: []string{approve, pods[0]}, want: "To check the missing permissions: kubectl auth can-i list pods -n team-a"},
		"delete, no verb":  {after: "pods", status: []gc.PolicyHold{ofPods}, may: pods, want: "To check the missing permissions: kubectl auth can-i approve"},
		"of another kind":  {after: "jobs", status: []gc.PolicyHold{ofPods, ofJobs}, may: slices.Concat(pods, []string{approve}), want: "To check the missing permissions: kubectl auth can-i delete jobs.batch"},
		"two, one may not": {after: "pods,jobs", status: []gc.PolicyHold{ofPods, ofJobs}, may: slices.Concat(pods, []string{approve}), want: "To check the missing permissions: kubectl auth can-i delete jobs.batch"},
		"an emptied spec": { // asks for what the hold covers all the same
			after: "pods", empties: true, status: []gc.PolicyHold{ofPods}, may: append(slices.Clone(jobs), approve), want: "To check the missing permissions: kubectl auth can-i delete pods",
		},
		"a total, rights in one namespace": {
			after: "all", status: []gc.PolicyHold{everywhere}, may: slices.Concat(pods, []string{approve}), want: "can-i delete pods --all-namespaces",
		},
		"an older status": {
			after: "older", status: []gc.PolicyHold{older}, may: slices.Concat(pods, []string{approve}), want: "To check the missing permissions: kubectl auth can-i delete jobs.batch",
		},
		"waits, though no status tells": {
			after: "pods", forecast: gc.PolicyForecast{Holds: []gc.PolicyHold{ofPods}}, may: slices.Concat(pods, []string{approve}),
		},
		"waits, and may not": {
			after: "pods", forecast: gc.PolicyForecast{Holds: []gc.PolicyHold{ofPods}, Complete: true}, may: []string{approve}, want: "To check the missing permissions: kubectl auth can-i delete pods",
		},
		"more than the status tells": {
			after: "pods", status: []gc.PolicyHold{ofPods}, forecast: gc.PolicyForecast{Holds: []gc.PolicyHold{{ID: "pods", Namespace: "team-a", Resources: []string{gc.ResourceJobs}}}},
			may: slices.Concat(pods, []string{approve}), want: "To check the missing permissions: kubectl auth can-i delete jobs.batch",
		},
		"unknown": {
			after: "5f3c", status: []gc.PolicyHold{ofPods, others}, forecast: gc.PolicyForecast{Holds: []gc.PolicyHold{ofPods, ofJobs}, Complete: true}, may: []string{approve},
			want: `metadata.annotations[gc.winnow.dev/approved-hold]: Invalid value: "5f3c": is not the ID of a hold of this policy; these wait for approval: pods (7 in team-a), jobs (3 in team-a)`,
		},
		"unknown, none waits": {
			after: "5f3c", forecast: gc.PolicyForecast{Complete: true}, may: []string{approve}, want: `"5f3c": is not the ID of a hold of this policy; nothing of this policy waits for approval`,
		},
		"unknown, more than are listed": {
			after: "5f3c", forecast: gc.PolicyForecast{Complete: true, Holds: append(many(waitingMost), everywhere)}, may: []string{approve},
			want: "hold-9 (1 in team-a), and 1 more in status.holds",
		},
		"written into the status by somebody": {
			after: "pods", status: []gc.PolicyHold{ofPods}, forecast: gc.PolicyForecast{Complete: true, Leading: true},
			may: slices.Concat(pods, []string{approve}), want: `Invalid value: "pods"`,
		},
		"in the status alone, as far as one that follows knows": {
			after: "pods", status: []gc.PolicyHold{ofPods}, forecast: gc.PolicyForecast{Complete: true}, may: slices.Concat(pods, jobs, []string{approve}),
		},
		"in the status alone, which may leave out a resource": {
			after: "pods", status: []gc.PolicyHold{ofPods}, forecast: gc.PolicyForecast{Complete: true}, may: slices.Concat(pods, []string{approve}),
			want: "To check the missing permissions: kubectl auth can-i delete jobs.batch",
		},
		"unknown, beside one that waits": {
			after: "pods,5f3c", status: []gc.PolicyHold{ofPods}, forecast: gc.PolicyForecast{Complete: true}, may: slices.Concat(pods, []string{approve}), want: `Invalid value: "5f3c"`,
		},
		"unknown, and an incomplete forecast": {after: "5f3c", status: []gc.PolicyHold{ofPods}, may: []string{approve}, want: "cannot tell in time"},
		"in the status, and an incomplete forecast": {
			after: "pods", status: []gc.PolicyHold{ofPods}, may: slices.Concat(pods, []string{approve}),
		},
		"another policy's": {
			after: "theirs", status: []gc.PolicyHold{others}, may: slices.Concat(pods, jobs, []string{approve}),
			want: `is the ID of a hold of cleanuppolicies.gc.winnow.dev/other; approve it there: kubectl annotate --overwrite cleanuppolicies.gc.winnow.dev other -n team-a gc.winnow.dev/approved-hold=theirs`,
		},
		"a cluster policy's": {
			after: "wide", forecast: gc.PolicyForecast{Holds: []gc.PolicyHold{wide}}, may: []string{approve},
			want: `is the ID of a hold of clustercleanuppolicies.gc.winnow.dev/defaults; approve it there: kubectl annotate --overwrite clustercleanuppolicies.gc.winnow.dev defaults gc.winnow.dev/approved-hold=wide`,
		},
		"unknown, but there before":   {before: "5f3c", after: "5f3c,pods", status: []gc.PolicyHold{ofPods}, may: slices.Concat(pods, []string{approve})},
		"taken back":                  {before: "pods", after: "", status: []gc.PolicyHold{ofPods}},
		"one of two taken back":       {before: "jobs,pods", after: "pods", status: []gc.PolicyHold{ofPods}},
		"nothing, with another space": {before: "jobs,pods", after: "pods, jobs", status: []gc.PolicyHold{ofPods}},
	} {
		t.Run(name, func(t *testing.T) {
			a := &asking{allowed: lines("alice", "", tc.may)}
			old, p := annotated(tc.before), annotated(tc.after)
			old.Status = gc.CleanupPolicyStatus{Holds: tc.status}
			old.Spec, p.Spec = gc.CleanupPolicySpec{}, gc.CleanupPolicySpec{}
			if tc.empties {
				old.Spec.Rules = []gc.CleanupRule{{Name: "jobs", Resources: []string{gc.ResourceJobs}}}
				p.Generation++
			}
			check(t, a.write(old, p, tc.forecast), tc.want)
		})
	}
}

// TestApprovalOfNewPolicy: only a hold that the policy causes by being created may be approved by creating it.
func TestApprovalOfNewPolicy(t *testing.T) {
	made := gc.PolicyForecast{
		Holds:    []gc.PolicyHold{{ID: "made", Namespace: "team-a", Resources: []string{gc.ResourcePods}}},
		Complete: true,
	}
	pods := []string{"alice delete pods team-a", "alice list pods team-a"}
	approve := "alice approve cleanuppolicies.gc.winnow.dev/defaults team-a"
	for name, tc := range map[string]struct {
		id       string
		forecast gc.PolicyForecast
		may      []string
		want     string
	}{
		"made":              {id: "made", forecast: made, may: append(slices.Clone(pods), approve)},
		"made, and may not": {id: "made", forecast: made, may: []string{approve}, want: "can-i delete pods"},
		"made, and without verb": {id: "made", forecast: made, may: pods,
			want: `"alice" may not write this policy: approving a hold needs the verb "approve". To check the missing permissions: kubectl auth can-i approve cleanuppolicies.gc.winnow.dev/defaults -n team-a`},
		"unknown":                 {id: "5f3c", forecast: made, may: append(slices.Clone(pods), approve), want: `Invalid value: "5f3c"`},
		"unknown, nobody can say": {id: "5f3c", may: []string{approve}, want: "try again"},
	} {
		p := annotated(tc.id)
		p.Spec = gc.CleanupPolicySpec{}
		t.Run(name, func(t *testing.T) { check(t, (&asking{allowed: tc.may}).write(nil, p, tc.forecast), tc.want) })
	}
}

// TestApprovalOfAHoldElsewhere: whoever may read the other policy is told of it, and nobody else.
func TestApprovalOfAHoldElsewhere(t *testing.T) {
	rights := []string{
		"alice approve cleanuppolicies.gc.winnow.dev/defaults team-a",
		"alice delete jobs.batch team-a",
		"alice list jobs.batch team-a",
		"alice delete pods team-a",
		"alice list pods team-a",
	}
	nothing := `"5f3c": is not the ID of a hold of this policy; nothing of this policy waits for approval`
	for name, tc := range map[string]struct {
		owner types.NamespacedName
		may   string
		want  string
	}{
		"of the namespace": {types.NamespacedName{Namespace: "team-a", Name: "other"}, "alice get cleanuppolicies.gc.winnow.dev/other team-a",
			`"5f3c": is the ID of a hold of cleanuppolicies.gc.winnow.dev/other; approve it there: kubectl annotate --overwrite cleanuppolicies.gc.winnow.dev other -n team-a gc.winnow.dev/approved-hold=5f3c`},
		"of the cluster": {types.NamespacedName{Name: "wide"}, "alice get clustercleanuppolicies.gc.winnow.dev/wide",
			`"5f3c": is the ID of a hold of clustercleanuppolicies.gc.winnow.dev/wide; approve it there: kubectl annotate --overwrite clustercleanuppolicies.gc.winnow.dev wide gc.winnow.dev/approved-hold=5f3c`},
		"of another namespace": {types.NamespacedName{Namespace: "team-b", Name: "other"}, "alice get cleanuppolicies.gc.winnow.dev/other team-a", nothing},
		"not to be read":       {types.NamespacedName{Name: "wide"}, "", nothing},
	} {
		t.Run(name, func(t *testing.T) {
			forecast := gc.PolicyForecast{Complete: true, Leading: true, Elsewhere: map[string]types.NamespacedName{"5f3c": tc.owner}}
			p := annotated("5f3c")
			p.Spec = gc.CleanupPolicySpec{}
			check(t, (&asking{allowed: append(slices.Clone(rights), tc.may)}).write(nil, p, forecast), tc.want)
		})
	}
}

// many are n holds.
func many(n int) []gc.PolicyHold {
	var out []gc.PolicyHold
	for i := range n {
		out = append(out, gc.PolicyHold{ID: fmt.Sprint("hold-", i), Namespace: "team-a", Objects: 1})
	}
	return out
}

func annotated(ids string) *gc.CleanupPolicy {
	p := testpolicy.Stored()
	p.Annotations[gc.AnnotationApprovedHold] = ids
	return p
}

// write is what stands between a request of alice and the store; old is nil for a new policy.
func (a *asking) write(old, p *gc.CleanupPolicy, forecast gc.PolicyForecast) error {
	o := (&REST{author: a.author(), forecast: func(context.Context, gc.PolicyChange) gc.PolicyForecast { return forecast }, advise: advice}).forecastWarnings(
		nil,
	)
	if old == nil {
		return o.onCreate(permission.OnCreate(a.author().check, nil))(by("alice"), p)
	}
	return o.onUpdate(permission.OnUpdate(a.author().check, nil))(by("alice"), p, old)
}

// check fails unless the error contains this, and has the code that goes with it.
func check(t *testing.T, err error, want string) {
	t.Helper()
	code := apierrors.IsForbidden
	switch {
	case strings.Contains(want, "hold of") || strings.Contains(want, "of this policy") || strings.Contains(want, "Invalid") || strings.Contains(want, "wait for approval") || strings.Contains(want, "more in status.holds"):
		code = apierrors.IsInvalid
	case strings.Contains(want, "try again") || strings.Contains(want, "in time"):
		code = apierrors.IsServiceUnavailable
	}
	switch {
	case want == "" && err != nil:
		t.Error(err)
	case want != "" && (err == nil || !code(err) || !strings.Contains(err.Error(), want)):
		t.Errorf("got %v, want %s", err, want)
	}
}
