// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestDiscovery(t *testing.T) {
	t.Parallel()
	const verbs = "create,delete,deletecollection,get,list,patch,update,watch"
	got := lines(kubectl(t, "api-resources", "--api-group=gc.winnow.dev", "--no-headers", "-o", "wide"))
	want := [][]string{
		{"cleanupcandidates", "cand", "gc.winnow.dev/v1alpha1", "true", "CleanupCandidate", "get,list"},
		{"cleanupcopies", "ccopy", "gc.winnow.dev/v1alpha1", "true", "CleanupCopy", "get,list"},
		{"cleanuppolicies", "cup", "gc.winnow.dev/v1alpha1", "true", "CleanupPolicy", verbs},
		{"cleanuprecords", "crec", "gc.winnow.dev/v1alpha1", "true", "CleanupRecord", "get,list"},
		{"cleanupreviews", "gc.winnow.dev/v1alpha1", "true", "CleanupReview", "create"},
		{"clustercleanuppolicies", "ccup", "gc.winnow.dev/v1alpha1", "false", "ClusterCleanupPolicy", verbs},
		{"clustercleanupreviews", "gc.winnow.dev/v1alpha1", "false", "ClusterCleanupReview", "create"},
		{"resourcelifecycles", "rlc", "gc.winnow.dev/v1alpha1", "false", "ResourceLifecycle", verbs},
	}
	if !slices.EqualFunc(got, want, slices.Equal) {
		t.Errorf("api-resources: got %v, want %v", got, want)
	}
	if all := kubectl(t, "api-resources", "--categories=all", "-o", "name"); strings.Contains(all, "cleanup") {
		t.Error("kinds of Winnow are in the category all: kubectl delete all would take policies along")
	}
	raw := kubectl(t, "get", "--raw", "/apis/gc.winnow.dev/v1alpha1")
	contains(t, raw, `"name":"cleanuppolicies/status"`, `"name":"clustercleanuppolicies/status"`, `"singularName":"clustercleanuppolicy"`,
		`"name":"resourcelifecycles/status"`, `"singularName":"resourcelifecycle"`, `"singularName":"cleanupcandidate"`, `"singularName":"cleanuprecord"`)
	if n := strings.Count(raw, `"storageVersionHash":"`); n != 3 {
		t.Errorf("%d storage version hashes, want one for each kind that is stored: %s", n, raw)
	}
}

func TestExplain(t *testing.T) {
	t.Parallel()
	for _, k := range []kind{ofNamespace, ofCluster} {
		var text string
		eventually(t, func(ctx context.Context) (err error) { // the host fetches OpenAPI of an aggregated server about once a minute
			text, _, err = shared.Kubectl(ctx, "explain", k.singular+".spec.rules")
			return err
		})
		contains(t, text, "FIELD: rules <[]CleanupRule>", "tried in order", "name\t<string> -required-", "enum: Failed, Succeeded")
		contains(t, kubectl(t, "explain", k.short+".spec.ttlAfterFinished"), `"7d", "1h30m"`)
		contains(t, kubectl(t, "explain", k.short+".status"), "nextDeletionTime", "holds")
	}
	contains(
		t,
		kubectl(t, "explain", "ccup.spec"),
		"namespaceSelector\t<LabelSelector> -required-",
		"mode\t<string> -required-",
		"suspend\t<boolean>",
	)
	contains(t, kubectl(t, "explain", "ccup.spec.guardrails"), "suspendAll\t<boolean>", "ceilings\t<[]Ceiling>")
	contains(t, kubectl(t, "explain", "ccup.spec.guardrails.ceilings"), "maxObjects\t<integer> -required-")
	contains(t, kubectl(t, "explain", "rlc"), "says when the objects of one resource have finished")
	contains(t, kubectl(t, "explain", "resourcelifecycle.spec"), "finished\t<FinishedExpressions>\n", "references\t<[]LifecycleReference>", "nativeTTL\t<string>",
		"enum: Independent, LeaveToOwner")
	contains(t, kubectl(t, "explain", "cand"), "says what Winnow does with one object, when, and why")
	contains(t, kubectl(t, "explain", "cand.status"), "policies\t<[]ConsideredPolicy>", "state\t<string> -required-", "dueTime\t<string>")
	contains(t, kubectl(t, "explain", "cand.status.state"), "Waiting", "Due", "Held", "Terminating", "Kept", "NoCandidate", "becomes due at dueTime")
	contains(t, kubectl(t, "explain", "cand.status.reason"), "- NotDue: until dueTime", "- ExpressionError: ")
	contains(t, kubectl(t, "explain", "cand.status.policies.result"), "Decides", "KeepsLess", "does not count")
	contains(t, kubectl(t, "explain", "rlc.spec.finished"), "when\t<string> -required-", "succeeded\t<string> -required-",
		"at\t<string> -required-")
}

// TestSchema looks at what editors and clients read: both versions of OpenAPI, with pattern and length of durations.
func TestSchema(t *testing.T) {
	t.Parallel()
	for path, reference := range map[string]string{
		"/openapi/v2": "#/definitions/", "/openapi/v3/apis/gc.winnow.dev/v1alpha1": "#/components/schemas/",
	} {
		var text string
		eventually(t, func(ctx context.Context) (err error) {
			text, _, err = shared.Kubectl(ctx, "get", "--raw", path)
			if err == nil && !strings.Contains(text, "dev.winnow.gc.v1alpha1.CleanupPolicySpec") {
				err = fmt.Errorf("no CleanupPolicySpec in %s", path)
			}
			return err
		})
		contains(
			t,
			text,
			reference+"dev.winnow.gc.v1alpha1.CleanupPolicy",
			reference+"dev.winnow.gc.v1alpha1.ClusterCleanupPolicy",
			reference+"dev.winnow.gc.v1alpha1.ResourceLifecycle",
			reference+"dev.winnow.gc.v1alpha1.CleanupCandidate",
			`([0-9]+w)?([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?`,
			`"maxLength":32`,
		)
	}
}

func TestColumns(t *testing.T) {
	forEachKind(t, func(t *testing.T, p scope) {
		p.create(
			"defaults",
			`{ttlAfterFinished: 1h, rules: [{name: keep-failures, outcome: Failed, ttl: 7d}, {name: nightly, ttl: never}]}`,
		)
		p.create("held", `{mode: Preview, rules: [{name: all, ttl: 2d}]}`)
		status := fmt.Sprintf(`{"status":{"candidates":132,"due":4,"held":3,"deleted":9841,"nextDeletionTime":%q,`+
			`"holds":[{"id":"5f3c","namespace":"team-a","objects":3,"why":"the policy was created"}],`+
			`"conditions":[{"type":"Ready","status":"False","reason":"Held","message":"m","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`,
			time.Now().Add(20*time.Hour+30*time.Minute).UTC().Format(time.RFC3339))
		kubectl(t, p.on("patch", "held", "--subresource=status", "--type=merge", "-p", status)...)

		header := strings.Fields("NAME MODE SUSPENDED TTL CANDIDATES DUE DELETED NEXT READY AGE")
		want := [][]string{
			{p.called("defaults"), "Enforce", "false", "1h", "0", "0", "0", "-", "Unknown"},
			{p.called("held"), "Preview", "false", "<none>", "132", "4", "9841", "in", "20h", "False", "(Held)"},
		}
		if !p.namespaced {
			header = slices.Insert(header, 3, "NAMESPACES")
			for i := range want {
				want[i] = slices.Insert(want[i], 3, "<all>")
			}
		}
		got := lines(kubectl(t, p.onAll("get")...))
		if !slices.Equal(got[0], header) {
			t.Errorf("got %v, want %v", got[0], header)
		}
		for i, row := range got[1:] {
			if last := len(row) - 1; !slices.Equal(row[:last], want[i]) { // the last is its age
				t.Errorf("row %d: got %v, want %v", i, row, want[i])
			}
		}
		wide := lines(kubectl(t, p.onAll("get", "-o", "wide")...))
		for i, suffix := range []string{"AGE HELD HOLDS RULES", " 0 0 2 (keep-failures,nightly)", " 3 1 (team-a:5f3c) 1 (all)"} {
			if row := strings.Join(wide[i], " "); !strings.HasSuffix(row, suffix) {
				t.Errorf("-o wide: got %s, want %s at its end", row, suffix)
			}
		}
		contains(t, kubectl(t, p.on("describe", "defaults")...), "keep-failures", "Ttl After Finished:", "1h")
	})
}

// TestColumnsOfClusterPolicies: whom a cluster policy concerns, and whether it stops everything there.
func TestColumnsOfClusterPolicies(t *testing.T) {
	t.Parallel()
	p := scoped(t, ofCluster)
	const selector = `namespaceSelector: {matchLabels: {team: a}, matchExpressions: [{key: sandbox, operator: DoesNotExist}]}`
	p.create("stop", `{guardrails: {suspendAll: true}, `+selector+`}`)
	contains(t, kubectl(t, p.on("get", "stop")...), "Enforce   all         !sandbox,team=a")
	p.create("rest", `{suspend: true, `+selector+`}`)
	contains(t, kubectl(t, p.on("get", "rest")...), "Enforce   true        !sandbox,team=a")
}

func TestSelectors(t *testing.T) {
	forEachKind(t, func(t *testing.T, p scope) {
		p.create("a", `{ttlAfterFinished: 1h}`)
		p.create("b", `{ttlAfterFinished: 1h, mode: Preview}`)
		kubectl(t, p.on("label", "b", "team=blue")...)
		name := "--field-selector=metadata.name=" + p.called("a")
		for selector, want := range map[string]string{
			name: "a", "--field-selector=spec.mode=Preview": "b", "--field-selector=spec.mode!=Preview": "a",
			name + ",spec.mode=Preview": "", name + ",spec.mode=Enforce": "a",
		} {
			p.expect(want, p.where(), selector)
		}
		for selector, want := range map[string]string{"team=blue": "b", "!team": "a", "team in (red)": ""} {
			where := []string{"--selector=" + strings.TrimPrefix(p.selector()+","+selector, ",")}
			if p.namespaced {
				where = append(where, p.where())
			}
			p.expect(want, where...)
		}
		contains(
			t,
			refused(t, "", p.onAll("get", "--field-selector=spec.ttl=1h")...),
			`"spec.ttl" is not a field selector of `+p.name,
			"spec.mode",
		)
		if p.namespaced {
			p.expect("a b", "--all-namespaces", "--field-selector=metadata.namespace="+p.id)
		}
	})
}

// expect compares the names of the policies that are selected.
func (p scope) expect(names string, selectors ...string) {
	p.t.Helper()
	var want []string
	for _, name := range strings.Fields(names) {
		want = append(want, p.called(name))
	}
	got := kubectl(p.t, append([]string{"get", p.short, "-o", "jsonpath={.items[*].metadata.name}"}, selectors...)...)
	if got != strings.Join(want, " ") {
		p.t.Errorf("%s: got %q, want %q", selectors, got, want)
	}
}

func TestPaging(t *testing.T) {
	forEachKind(t, func(t *testing.T, p scope) {
		const count, limit = 23, 10
		var many strings.Builder
		for i := range count {
			many.WriteString("---\n" + p.manifest(fmt.Sprintf("p%02d", i), "{ttlAfterFinished: 1h}"))
		}
		kubectlStdin(t, many.String(), "create", "-f", "-")
		if got := len(lines(kubectl(t, p.onAll("get", "--no-headers", "--chunk-size", fmt.Sprint(limit))...))); got != count {
			t.Errorf("--chunk-size=%d shows %d policies, want %d", limit, got, count)
		}
		var pages []int
		first := fmt.Sprintf("%s?limit=%d&labelSelector=%s", p.path(), limit, url.QueryEscape(p.selector()))
		for path := first; path != ""; {
			var page struct {
				Metadata metav1.ListMeta
				Items    []json.RawMessage
			}
			if err := json.Unmarshal([]byte(kubectl(t, "get", "--raw", path)), &page); err != nil {
				t.Fatal(err)
			}
			pages = append(pages, len(page.Items))
			path = ""
			if next := page.Metadata.Continue; next != "" {
				path = first + "&continue=" + next
			}
		}
		if want := []int{10, 10, 3}; !slices.Equal(pages, want) {
			t.Errorf("pages of %v, want %v", pages, want)
		}
	})
}
