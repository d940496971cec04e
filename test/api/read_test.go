// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const startup = 90 * time.Second // the host fetches OpenAPI of an aggregated server about once a minute

func TestDiscovery(t *testing.T) {
	t.Parallel()
	got := lines(kubectl(t, "api-resources", "--api-group=gc.winnow.dev", "--no-headers", "-o", "wide"))
	want := []string{"cleanuppolicies", "cup", "gc.winnow.dev/v1alpha1", "true", "CleanupPolicy", "create,delete,deletecollection,get,list,patch,update,watch"}
	if len(got) != 1 || !slices.Equal(got[0], want) {
		t.Errorf("api-resources: got %v, want %v", got, want)
	}
	if all := kubectl(t, "api-resources", "--categories=all", "-o", "name"); strings.Contains(all, "cleanup") {
		t.Error("cleanup policies are in the category all: kubectl delete all would take them along")
	}
	raw := kubectl(t, "get", "--raw", "/apis/gc.winnow.dev/v1alpha1")
	contains(t, raw, `"name":"cleanuppolicies/status"`, `"storageVersionHash":"`)
}

func TestExplain(t *testing.T) {
	t.Parallel()
	var text string
	eventually(t, startup, func(ctx context.Context) (err error) {
		text, _, err = shared.Kubectl(ctx, "explain", "cleanuppolicy.spec.rules")
		return err
	})
	contains(t, text, "FIELD: rules <[]CleanupRule>", "tried in order", "ttl\t<string> -required-", "enum: Failed, Succeeded")
	contains(t, kubectl(t, "explain", "cup.spec.ttlAfterFinished"), `"7d", "1h30m"`)
	contains(t, kubectl(t, "explain", "cup.status"), "nextDeletionTime")
}

// TestSchema looks at what editors and clients read: both versions of OpenAPI, with pattern and length of durations.
func TestSchema(t *testing.T) {
	t.Parallel()
	for path, reference := range map[string]string{
		"/openapi/v2": "#/definitions/", "/openapi/v3/apis/gc.winnow.dev/v1alpha1": "#/components/schemas/",
	} {
		var text string
		eventually(t, startup, func(ctx context.Context) (err error) {
			text, _, err = shared.Kubectl(ctx, "get", "--raw", path)
			if err == nil && !strings.Contains(text, "dev.winnow.gc.v1alpha1.CleanupPolicySpec") {
				err = fmt.Errorf("no CleanupPolicySpec in %s", path)
			}
			return err
		})
		contains(t, text, reference+"dev.winnow.gc.v1alpha1.CleanupPolicy", `([0-9]+w)?([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?`, `"maxLength":32`)
	}
}

func TestColumns(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	create(t, ns, "defaults", `{ttlAfterFinished: 1h, rules: [{name: keep-failures, outcome: Failed, ttl: 7d}, {name: nightly, ttl: never}]}`)
	create(t, ns, "preview", `{mode: Preview, rules: [{name: all, ttl: 2d}]}`)
	status := fmt.Sprintf(`{"status":{"candidates":132,"due":4,"deleted":9841,"nextDeletionTime":%q,`+
		`"conditions":[{"type":"Ready","status":"False","reason":"Unauthorized","message":"m","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`,
		time.Now().Add(20*time.Hour+30*time.Minute).UTC().Format(time.RFC3339))
	kubectl(t, "patch", "cup", "preview", "-n", ns, "--subresource=status", "--type=merge", "-p", status)

	got := lines(kubectl(t, "get", "cup", "-n", ns))
	age := got[1][len(got[1])-1]
	want := [][]string{
		{"NAME", "MODE", "TTL", "CANDIDATES", "DUE", "DELETED", "NEXT", "READY", "AGE"},
		{"defaults", "Enforce", "1h", "0", "0", "0", "-", "Unknown", age},
		{"preview", "Preview", "<none>", "132", "4", "9841", "in", "20h", "False", "(Unauthorized)", age},
	}
	for i, row := range want {
		if row[len(row)-1] == age {
			got[i][len(got[i])-1] = age // the second may have changed between the rows
		}
		if !slices.Equal(got[i], row) {
			t.Errorf("row %d: got %v, want %v", i, got[i], row)
		}
	}
	wide := lines(kubectl(t, "get", "cleanuppolicies", "defaults", "-n", ns, "-o", "wide"))
	if !strings.HasSuffix(strings.Join(wide[0], " "), "AGE RULES") || !strings.HasSuffix(strings.Join(wide[1], " "), "2 (keep-failures,nightly)") {
		t.Errorf("-o wide: %v", wide)
	}
	contains(t, kubectl(t, "describe", "cup", "defaults", "-n", ns), "keep-failures", "Ttl After Finished:    1h")
}

func TestSelectors(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	create(t, ns, "a", `{ttlAfterFinished: 1h}`)
	create(t, ns, "b", `{ttlAfterFinished: 1h, mode: Preview}`)
	kubectl(t, "label", "cup", "b", "-n", ns, "team=blue")
	for selector, want := range map[string]string{
		"-l=team=blue": "b", "-l=!team": "a", "-l=team in (red)": "",
		"--field-selector=metadata.name=a": "a", "--field-selector=spec.mode=Preview": "b", "--field-selector=spec.mode!=Preview": "a",
		"--field-selector=metadata.namespace=" + ns: "a b", "--field-selector=spec.mode=Preview,metadata.name=a": "",
	} {
		if got := kubectl(t, "get", "cup", "-n", ns, selector, "-o", "jsonpath={.items[*].metadata.name}"); got != want {
			t.Errorf("%s: got %q, want %q", selector, got, want)
		}
	}
	contains(t, refused(t, "", "get", "cup", "-n", ns, "--field-selector=spec.ttl=1h"), `"spec.ttl" is not a field selector of CleanupPolicy`, "spec.mode")
}

func TestPaging(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	const count, limit = 23, 10
	var many strings.Builder
	for i := range count {
		many.WriteString("---\n" + manifest(ns, fmt.Sprintf("p%02d", i), "{ttlAfterFinished: 1h}"))
	}
	kubectlStdin(t, many.String(), "create", "-f", "-")
	if got := len(lines(kubectl(t, "get", "cup", "-n", ns, "--no-headers", "--chunk-size", fmt.Sprint(limit)))); got != count {
		t.Errorf("--chunk-size=%d shows %d policies, want %d", limit, got, count)
	}
	var pages []int
	for path := fmt.Sprintf("/apis/gc.winnow.dev/v1alpha1/namespaces/%s/cleanuppolicies?limit=%d", ns, limit); path != ""; {
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
			path = fmt.Sprintf("/apis/gc.winnow.dev/v1alpha1/namespaces/%s/cleanuppolicies?limit=%d&continue=%s", ns, limit, next)
		}
	}
	if want := []int{10, 10, 3}; !slices.Equal(pages, want) {
		t.Errorf("pages of %v, want %v", pages, want)
	}
}
