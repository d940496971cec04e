// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/registry/gc/internal/permission"
	"github.com/winnow-dev/winnow/pkg/registry/gc/internal/testpolicy"
)

// TestAuthorOfAccount: who may have a policy act as which account.
func TestAuthorOfAccount(t *testing.T) {
	pods := []string{"delete pods", "list pods"}
	with := func(account, resource string) func(*gc.CleanupPolicy) {
		return func(p *gc.CleanupPolicy) {
			p.Spec = gc.CleanupPolicySpec{
				ServiceAccountName: account,
				Rules:              []gc.CleanupRule{{Name: "a", Resources: []string{resource}, TTL: testpolicy.TTL("1h")}},
			}
		}
	}
	use := func(account string) string { return "use serviceaccounts/" + account }
	const refused = `a policy that acts as a ServiceAccount takes the verb "use" on that account`
	for name, tc := range map[string]struct {
		old, change func(*gc.CleanupPolicy) // old is nil for a new policy
		may         []string
		want        string // a part of the error; empty if it may be written
	}{
		"new, and may use it":            {change: with("cleaner", "pods"), may: append([]string{use("cleaner")}, pods...)},
		"new, and may not use it":        {change: with("cleaner", "pods"), may: pods, want: refused},
		"new, and may use another":       {change: with("cleaner", "pods"), may: append([]string{use("robot")}, pods...), want: refused},
		"new, and may not delete itself": {change: with("cleaner", "pods"), may: []string{use("cleaner")}, want: "it would delete objects that"},
		"nothing, as an account": {change: func(p *gc.CleanupPolicy) {
			p.Spec = gc.CleanupPolicySpec{ServiceAccountName: "cleaner"}
		}, want: refused},
		"a stronger account": {old: with("robot", "pods"), change: with("cleaner", "pods"), may: append([]string{use("robot")}, pods...), want: refused},
		"other rules, with the account of others": {
			old: with("cleaner", "jobs.batch"), change: with("cleaner", "pods"),
			may: append([]string{"delete jobs.batch", "list jobs.batch"}, pods...), want: refused,
		},
		"suspended by one who may not use it": {old: with("cleaner", "pods"), change: func(p *gc.CleanupPolicy) { p.Spec.Suspend = true }},
		"no account any more":                 {old: with("cleaner", "pods"), change: with("", "pods"), may: pods},
		"no account any more, and may not delete": {
			old: with("cleaner", "pods"), change: with("", "pods"), may: []string{use("cleaner")}, want: "it would delete objects that",
		},
		"everything, as an account": {change: with("cleaner", "*"), may: []string{use("cleaner")}},
		"everything, without use":   {change: with("cleaner", "*"), want: refused},
		"no longer everything":      {old: with("cleaner", "*"), change: with("cleaner", "pods"), may: append([]string{use("cleaner")}, pods...)},
		"no longer everything, without use": {
			old: with("cleaner", "*"), change: with("", "pods"), may: pods, want: refused,
		},
		"no longer everything, nor as an account": {
			old: with("cleaner", "*"), change: with("", "pods"), may: append([]string{use("cleaner")}, pods...),
		},
		"everything, and no account any more": {
			old: with("cleaner", "*"), change: with("", "*"), may: []string{use("cleaner")}, want: "it would delete objects that",
		},
		"everything, which Winnow itself kept": {
			old: with("", "*"), change: with("cleaner", "pods"), may: append([]string{use("cleaner")}, pods...), want: "it would delete objects that",
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := &asking{allowed: lines("alice", "team-a", tc.may)}
			author := a.author()
			author.reach = func(p, old Policy) (sets.Set[string], error) {
				spec := &p.(*gc.CleanupPolicy).Spec
				if old == nil {
					return Reach(spec), nil
				}
				before := &old.(*gc.CleanupPolicy).Spec
				if spec.Suspend && !before.Suspend {
					return nil, nil
				}
				return Reach(spec).Union(Reach(before)), nil
			}
			p := testpolicy.Stored()
			p.Namespace = "team-a"
			var err error
			if tc.old == nil {
				tc.change(p)
				err = permission.OnCreate(author.check, nil)(by("alice"), p)
			} else {
				tc.old(p)
				old := p.DeepCopy()
				tc.change(p)
				p.Generation++
				err = permission.OnUpdate(author.check, nil)(by("alice"), p, old)
			}
			check(t, err, tc.want)
		})
	}
}

// TestDeletedPolicyOfAccount: who may write a policy that deletes everything as an account may delete it again.
func TestDeletedPolicyOfAccount(t *testing.T) {
	for name, tc := range map[string]struct{ account, may, want string }{
		"with use":        {account: "cleaner", may: "use serviceaccounts/cleaner"},
		"without use":     {account: "cleaner", may: "delete pods", want: "To check the missing permissions: kubectl auth can-i use serviceaccounts/cleaner -n team-a"},
		"without account": {may: "use serviceaccounts/cleaner", want: "kubectl auth can-i delete '*' -n team-a"},
	} {
		t.Run(name, func(t *testing.T) {
			p := testpolicy.Stored()
			p.Namespace, p.Spec = "team-a", gc.CleanupPolicySpec{
				ServiceAccountName: tc.account, Rules: []gc.CleanupRule{{Name: "a", Resources: []string{gc.ResourceAll}, TTL: testpolicy.TTL("1h")}},
			}
			a := &asking{allowed: lines("alice", "team-a", []string{tc.may})}
			check(t, a.author().checkDelete(by("alice"), p), tc.want)
		})
	}
}

// TestAuthorOfAccountsEverywhere: a cluster policy names accounts in all namespaces.
func TestAuthorOfAccountsEverywhere(t *testing.T) {
	p := testpolicy.Stored()
	p.Namespace, p.Spec = "", gc.CleanupPolicySpec{ServiceAccountName: "cleaner"}
	a := &asking{}
	check(t, permission.OnCreate(a.author().check, nil)(by("alice"), p),
		"To check the missing permissions: kubectl auth can-i use serviceaccounts/cleaner --all-namespaces")
}

// TestAccountWarnings: the author is told at once what the account may not do.
func TestAccountWarnings(t *testing.T) {
	p := testpolicy.Stored()
	p.Namespace, p.Spec = "team-a", gc.CleanupPolicySpec{ServiceAccountName: "robot"}
	a := &asking{allowed: []string{robot + " delete pods team-a", robot + " patch pods team-a", "alice use serviceaccounts/robot team-a"}}
	reached := sets.New(gc.ResourceJobs, gc.ResourcePods, "workflows.argoproj.io", gc.ResourceAll)
	got := a.author().accountWarnings(by("alice"), p, reached, sets.New(gc.ResourceJobs))
	for i, want := range []string{
		"kubectl auth can-i delete jobs.batch -n team-a --as=system:serviceaccount:team-a:robot",
		"kubectl auth can-i delete workflows.argoproj.io -n team-a --as=",
		"kubectl auth can-i patch jobs.batch -n team-a --as=",
	} {
		if i >= len(got) || !strings.Contains(got[i], want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if len(got) != 3 || slices.Contains(a.asked, robot+" delete * team-a") {
		t.Errorf("got %q, asked for %q", got, a.asked)
	}
	got = a.author().accountWarnings(by("bob"), p, reached, nil)
	if len(got) != 1 || !strings.Contains(got[0], "kubectl auth can-i use serviceaccounts/robot -n team-a") {
		t.Errorf("one who may not use the account is told %q", got)
	}
	p.Spec.ServiceAccountName = ""
	if got := a.author().accountWarnings(by("alice"), p, reached, nil); got != nil {
		t.Errorf("without an account: %q", got)
	}
}
