// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/winnow-dev/winnow/pkg/controller/rules/approval"
)

// holds has the status of a policy tell of a hold with the ID 5f3c, in the namespace of the scope or in all of them.
func (p scope) holds(name string, resources ...string) {
	p.t.Helper()
	namespace := ""
	if p.namespaced {
		namespace = p.id
	}
	kubectl(p.t, p.on("patch", name, "--subresource=status", "--type=merge", "-p", fmt.Sprintf(
		`{"status":{"observedGeneration":1,"holds":[{"id":"5f3c","namespace":%q,"objects":7,"resources":["%s"]}]}}`,
		namespace,
		strings.Join(resources, `","`),
	))...)
}

// TestApproval is the matrix of roles: a hold is approved only by somebody who has the verb, and who may list and delete what waits, in
// whichever way they write it and whatever the spec says by then.
func TestApproval(t *testing.T) {
	forEachKind(t, func(t *testing.T, p scope) {
		approve := "approve " + p.plural + ".gc.winnow.dev"
		pods := []string{"delete pods", "list pods"}
		for role, rights := range map[string][]string{
			"update":                     nil,
			"update-approve":             {approve},
			"update-approve-delete":      {approve, pods[0]},
			"update-approve-delete-jobs": {approve, toDelete[0], toDelete[2]},
			"update-delete-list":         pods,
			"all":                        append([]string{approve}, toDelete...), // The server follows, and takes the status for less than all.
		} {
			t.Run(role, func(t *testing.T) {
				t.Parallel()
				p := scope{p.kind, t, p.id}
				who := p.writer(role, false, rights...)
				path, err := shared.KubeconfigFor(who.name)
				if err != nil {
					t.Fatal(err)
				}
				var lacking []string
				for _, right := range []string{approve, pods[0], pods[1]} {
					if !slices.Contains(rights, right) {
						lacking = append(lacking, right)
					}
				}
				p.approvals(role, path, lacking)
			})
		}
	})
}

// approvals tries all ways to approve, as somebody who lacks these rights.
func (p scope) approvals(role, kubeconfig string, lacking []string) {
	as := func(args ...string) string {
		_, stderr, err := shared.KubectlStdin(p.t.Context(), "", append(args, "--kubeconfig", kubeconfig)...)
		if err == nil {
			return ""
		}
		return stderr
	}
	const approval = `"metadata":{"annotations":{"gc.winnow.dev/approved-hold":"5f3c"}}`
	ways := map[string]func(name string) string{
		"annotate": func(name string) string { return as(p.on("annotate", name, "gc.winnow.dev/approved-hold=5f3c")...) },
		"emptied first": func(name string) string {
			kubectl(p.t, p.on("patch", name, "--type=merge", "-p", `{"spec":{"rules":null}}`)...)
			return as(p.on("annotate", name, "gc.winnow.dev/approved-hold=5f3c")...)
		},
		"with suspend": func(name string) string { // To suspend takes no rights to delete.
			return as(p.on("patch", name, "--type=merge", "-p", `{"spec":{"suspend":true},`+approval+`}`)...)
		},
	}
	for way, try := range ways {
		name := role + "-" + strings.ReplaceAll(way, " ", "-")
		p.create(name, `{rules: [{name: all, resources: [pods], ttl: never}]}`)
		p.holds(name, "pods")
		got := try(name)
		if len(lacking) == 0 && got != "" {
			p.t.Errorf("%s: %s", way, got)
		}
		for _, right := range lacking {
			right = strings.TrimSuffix(strings.Replace(right, ".gc.winnow.dev", ".gc.winnow.dev/"+p.called(name), 1), " ")
			contains(p.t, got, "(Forbidden)", "kubectl auth can-i "+right)
		}
		if len(lacking) > 0 && p.get(name).Annotations["gc.winnow.dev/approved-hold"] != "" {
			p.t.Errorf("%s: the approval was written", way)
		}
	}
	if !slices.ContainsFunc(lacking, func(right string) bool { return strings.HasPrefix(right, "approve ") }) {
		p.aheadOfTime(role, as)
	}
}

// aheadOfTime approves the holds of generations that are yet to come. Their IDs can be computed.
func (p scope) aheadOfTime(role string, as func(args ...string) string) {
	name := role + "-ahead"
	uid := p.create(name, `{rules: [{name: all, resources: [pods], ttl: never}]}`).UID
	var ids []string
	for generation := range int64(5) {
		for _, namespace := range []string{"", p.id} {
			ids = append(ids, approval.HoldID(uid, namespace, approval.GenerationID(uid, generation+1)))
		}
	}
	p.holds(name, "pods")
	annotation := "gc.winnow.dev/approved-hold=" + strings.Join(ids, ",")
	refused := []string{"metadata.annotations[gc.winnow.dev/approved-hold]", "is not the ID of a hold of this policy", "5f3c (7 in "}
	inTime := func(args []string) (stderr string) {
		eventually(p.t, func(context.Context) error {
			if stderr = as(args...); strings.Contains(stderr, "(ServiceUnavailable)") {
				return errors.New(stderr)
			}
			return nil
		})
		return stderr
	}
	contains(p.t, inTime(p.on("annotate", name, annotation)), append(refused, ids[0], ids[9])...)
	patch := fmt.Sprintf(`{"spec":{"suspend":true},"metadata":{"annotations":{"gc.winnow.dev/approved-hold":%q}}}`, strings.Join(ids, ","))
	contains(p.t, inTime(p.on("patch", name, "--type=merge", "-p", patch)), refused...)
}
