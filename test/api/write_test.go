// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestDefaultsAndGeneration(t *testing.T) {
	forEachKind(t, func(t *testing.T, p scope) {
		created := p.create("a", `{ttlAfterFinished: 1h30m, rules: [{name: keep, ttl: 7d}]}`)
		spec := created.Spec
		if spec.Mode != "Enforce" || spec.AnnotationTTL != "ExtendOnly" || spec.Rules[0].Dependents != "" ||
			spec.Rules[0].PropagationPolicy != "" {
			t.Errorf("defaults: %+v", spec)
		}
		if *spec.TTLAfterFinished != "1h30m" || spec.Rules[0].Resources != nil {
			t.Errorf("not kept as written: %+v", spec)
		}
		for _, step := range []struct {
			verb       string
			args       []string
			generation int64
		}{
			{"label", []string{"team=blue"}, 1},
			{"annotate", []string{"note=kept"}, 1},
			{"patch", []string{"--subresource=status", "--type=merge", "-p", `{"status":{"candidates":7}}`}, 1},
			{"patch", []string{"--type=merge", "-p", `{"metadata":{"generation":99},"status":{"candidates":8}}`}, 1},
			{"patch", []string{"--type=merge", "-p", `{"spec":{"ttlAfterFinished":"90m"}}`}, 2},
			{"patch", []string{"--type=merge", "-p", `{"spec":{"ttlAfterFinished":"90m"}}`}, 2},
		} {
			kubectl(t, p.on(step.verb, "a", step.args...)...)
			if got := p.get("a"); got.Generation != step.generation || got.Status.Candidates == 8 {
				t.Errorf("after %v: generation %d, status %+v; want generation %d", step.args, got.Generation, got.Status, step.generation)
			}
		}
		if got := p.get("a"); got.Status.Candidates != 7 || got.UID != created.UID ||
			!got.CreationTimestamp.Equal(&created.CreationTimestamp) {
			t.Errorf("status or identity were lost: %+v", got)
		}
	})
}

func TestUpdateConflict(t *testing.T) {
	forEachKind(t, func(t *testing.T, p scope) {
		p.create("a", `{ttlAfterFinished: 1h}`)
		stale := kubectl(t, p.on("get", "a", "-o", "json")...)
		kubectl(t, p.on("label", "a", "team=blue")...)
		contains(
			t,
			refused(t, stale, "replace", "-f", "-"),
			"(Conflict)",
			"the object has been modified",
			p.plural+`.gc.winnow.dev "`+p.called("a")+`"`,
		)
		contains(t, refused(t, p.manifest("a", `{ttlAfterFinished: 1h}`), "create", "-f", "-"), "(AlreadyExists)")
		kubectlStdin(t, p.manifest("a", `{ttlAfterFinished: 3h}`), "replace", "-f", "-") // without resourceVersion it overwrites
		if got := p.get("a"); *got.Spec.TTLAfterFinished != "3h" || got.Labels["team"] != "" {
			t.Errorf("not replaced: %+v", got)
		}
		missing := refused(t, "", p.on("get", "b")...)
		contains(t, missing, p.plural+`.gc.winnow.dev "`+p.called("b")+`" not found`)
	})
}

func TestPatches(t *testing.T) {
	forEachKind(t, func(t *testing.T, p scope) {
		p.create("a", `{ttlAfterFinished: 1h, rules: [{name: one, ttl: 1d}, {name: two, ttl: 2d}]}`)
		for _, tc := range []struct{ kind, patch, path, want string }{
			{"json", `[{"op":"test","path":"/spec/rules/1/name","value":"two"},{"op":"replace","path":"/spec/rules/1/ttl","value":"3d"}]`, "{.spec.rules[*].ttl}", "1d 3d"},
			{"merge", `{"spec":{"ttlAfterFinished":null,"annotationTTL":"Any","mode":"Preview"}}`, "{.spec.mode}{.spec.ttlAfterFinished}", "Preview"},
			{"merge", `{"spec":{"annotationTTL":null,"mode":"Enforce"}}`, "{.spec.mode} {.spec.annotationTTL}", "Enforce ExtendOnly"},
			{"strategic", `{"spec":{"rules":[{"name":"three","ttl":"4d"}]}}`, "{.spec.rules[*].name}", "three"},
		} {
			kubectl(t, p.on("patch", "a", "--type="+tc.kind, "-p", tc.patch)...)
			if got := kubectl(t, p.on("get", "a", "-o", "jsonpath="+tc.path)...); got != tc.want {
				t.Errorf("%s patch %s: got %q, want %q", tc.kind, tc.patch, got, tc.want)
			}
		}
		// Conditions are merged by type, as for built-in kinds.
		for _, kind := range []string{"Ready", "Other"} {
			kubectl(t, p.on("patch", "a", "--subresource=status", "--type=strategic", "-p", condition(kind, "True"))...)
		}
		if got := kubectl(t, p.on("get", "a", "-o", "jsonpath={.status.conditions[*].type}")...); got != "Other Ready" &&
			got != "Ready Other" {
			t.Errorf("conditions %q", got)
		}
		contains(
			t,
			refused(t, "", p.on("patch", "a", "--type=json", "-p", `[{"op":"test","path":"/spec/mode","value":"Dry"}]`)...),
			"The request is invalid",
		)
		contains(
			t,
			refused(t, "", p.on("patch", "a", "--type=merge", "-p", `{"spec":{"mode":"Dry"}}`)...),
			"spec.mode",
			`"Enforce", "Preview"`,
		)
	})
}

func condition(kind, status string) string {
	return fmt.Sprintf(
		`{"status":{"conditions":[{"type":%q,"status":%q,"reason":"ByHand","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`,
		kind,
		status,
	)
}

func TestDryRun(t *testing.T) {
	forEachKind(t, func(t *testing.T, p scope) {
		contains(
			t,
			kubectlStdin(t, p.manifest("a", `{ttlAfterFinished: 1h}`), "create", "--dry-run=server", "-f", "-", "-o", "yaml"),
			"annotationTTL: ExtendOnly",
			"uid: ",
		)
		contains(t, refused(t, "", p.on("get", "a")...), "not found")
		contains(t, refused(t, p.manifest("a", `{ttlAfterFinished: 1}`), "apply", "--dry-run=server", "-f", "-"), "must be a string")

		before := p.create("a", `{ttlAfterFinished: 1h}`)
		kubectl(t, p.on("patch", "a", "--dry-run=server", "--type=merge", "-p", `{"spec":{"mode":"Preview"}}`)...)
		kubectl(t, p.on("delete", "a", "--dry-run=server")...)
		kubectlStdin(
			t,
			p.manifest("a", `{ttlAfterFinished: 2h}`),
			"apply",
			"--server-side",
			"--force-conflicts",
			"--dry-run=server",
			"-f",
			"-",
		)
		if after := p.get("a"); after.ResourceVersion != before.ResourceVersion {
			t.Errorf("a dry run changed resourceVersion %s to %s", before.ResourceVersion, after.ResourceVersion)
		}
	})
}

func TestDeleteWithPreconditions(t *testing.T) {
	forEachKind(t, func(t *testing.T, p scope) {
		policy := p.create("a", `{ttlAfterFinished: 1h}`)
		path := p.path() + "/" + p.called("a")
		with := func(preconditions string) string {
			return fmt.Sprintf(`{"kind":"DeleteOptions","apiVersion":"v1","preconditions":{%s}}`, preconditions)
		}
		for _, wrong := range []string{`"uid":"another"`, `"resourceVersion":"1"`} {
			contains(t, refused(t, with(wrong), "delete", "--raw", path, "-f", "-"), "(Conflict)")
		}
		right := fmt.Sprintf(`"uid":%q,"resourceVersion":%q`, policy.UID, policy.ResourceVersion)
		kubectlStdin(t, with(right), "delete", "--raw", path, "-f", "-")
		contains(t, refused(t, "", p.on("get", "a")...), "not found")
	})
}

// TestDeleteLeavesNoFinalizer: the deletion of a namespace would not wait for one.
func TestDeleteLeavesNoFinalizer(t *testing.T) {
	forEachKind(t, func(t *testing.T, p scope) {
		for _, cascade := range []string{"background", "foreground", "orphan"} {
			p.create(cascade, `{ttlAfterFinished: 1h}`)
			kubectl(t, p.on("delete", cascade, "--cascade="+cascade, "--timeout=5m")...)
			contains(t, refused(t, "", p.on("get", cascade)...), "not found")
		}
		p.create("a", `{ttlAfterFinished: 1h}`)
		p.create("b", `{ttlAfterFinished: 1h}`)
		all := p.onAll("delete", "--timeout=5m")
		if p.namespaced {
			all = append(all, "--all") // which kubectl does not take with a selector
		}
		kubectl(t, all...)
		if left := kubectl(t, p.onAll("get", "-o", "name")...); left != "" {
			t.Errorf("a deletion of all left %s", left)
		}
		p.create("c", `{ttlAfterFinished: 1h}`)
		p.create("d", `{ttlAfterFinished: 1h}`)
		err := p.client().
			DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: p.selector(), FieldSelector: "metadata.name!=" + p.called("d")})
		if err != nil {
			t.Error(err)
		}
		p.expect("d", p.where())
	})
}

func TestFieldValidation(t *testing.T) {
	forEachKind(t, func(t *testing.T, p scope) {
		unknown := p.manifest("a", `{ttlAfterFinish: 7d}`)
		contains(t, refused(t, unknown, "create", "-f", "-"), `strict decoding error: unknown field "spec.ttlAfterFinish"`)
		contains(
			t,
			refused(t, unknown, "apply", "--server-side", "-f", "-"),
			`unknown field "spec.ttlAfterFinish"; did you mean "ttlAfterFinished"?`,
		)
		contains(
			t,
			refused(t, p.manifest("a", `{rules: [{name: a, ttl: 7d, window: []}]}`), "create", "-f", "-"),
			`unknown field "spec.rules[0].window"`,
		)
		// A message tells the author of an old word the new one.
		contains(t, refused(t, p.manifest("a", `{rules: [{name: a, ttl: 7d, gitOpsManaged: Delete}]}`), "create", "-f", "-"),
			`unknown field "spec.rules[0].gitOpsManaged": it was renamed to "managedElsewhere"`)
		if !p.namespaced {
			contains(t, refused(t, p.manifest("a", `{guardrails: {capacity: [{maxObjects: 5}]}}`), "create", "-f", "-"),
				`unknown field "spec.guardrails.capacity": it was renamed to "spec.guardrails.ceilings"`)
		}
		contains(
			t,
			refused(t, p.manifest("a", `{ttlAfterFinished: 30}`), "create", "-f", "-"),
			"spec.ttlAfterFinished: Invalid value: 30: must be a string",
		)

		// kubectl drops duplicates itself, so they are sent as they are.
		path := p.path() + "?fieldValidation="
		twice := fmt.Sprintf(`{"apiVersion":"gc.winnow.dev/v1alpha1","kind":%q,"metadata":{"name":%q},`+
			`"spec":{"mode":"Enforce","namespaceSelector":{},"ttlAfterFinished":"7d","ttlAfterFinished":"1d"}}`, p.name, p.called("twice"))
		if p.namespaced {
			twice = strings.Replace(twice, `"namespaceSelector":{},`, "", 1)
		}
		contains(t, refused(t, twice, "create", "--raw", path+"Strict", "-f", "-"), `duplicate field "spec.ttlAfterFinished"`)
		_, warnings, err := shared.KubectlStdin(t.Context(), twice, "create", "--raw", path+"Warn", "-f", "-")
		if err != nil {
			t.Fatal(err)
		}
		contains(t, warnings, `Warning: duplicate field "spec.ttlAfterFinished"`)

		out, warnings, err := shared.KubectlStdin(t.Context(), unknown, "create", "--validate=warn", "-f", "-")
		if err != nil || !strings.Contains(warnings, `unknown field "spec.ttlAfterFinish"`) {
			t.Errorf("--validate=warn: %s%s %v", out, warnings, err)
		}
	})
}

func TestWarnings(t *testing.T) {
	forEachKind(t, func(t *testing.T, p scope) {
		for name, tc := range map[string]struct{ spec, want string }{
			"short":       {`{ttlAfterFinished: 59s}`, "Warning: spec.ttlAfterFinished: 59s is under a minute: objects may be gone before anyone looks at them"},
			"short-rule":  {`{rules: [{name: a, ttl: 0s}]}`, "Warning: spec.rules[0].ttl: 0s is under a minute"},
			"empty":       {`{}`, "Warning: spec: " + map[bool]string{true: "is empty", false: "has no defaults, rules or guardrails"}[p.namespaced] + ", so the policy does nothing"},
			"unreachable": {`{rules: [{name: a, ttl: 1h}, {name: b, ttl: 7d, outcome: Failed}]}`, `Warning: spec.rules[1]: never applies: rule "a"`},
			"fine":        {`{ttlAfterFinished: 1m}`, ""},
		} {
			_, warnings, err := shared.KubectlStdin(t.Context(), p.manifest(name, tc.spec), "create", "-f", "-")
			if err != nil || !strings.HasPrefix(warnings, tc.want) || (tc.want == "") != (warnings == "") {
				t.Errorf("%s: got %q, %v, want %q", name, warnings, err, tc.want)
			}
		}
		_, warnings, err := shared.Kubectl(t.Context(), p.on("label", "short", "team=blue")...)
		if err != nil || warnings != "" {
			t.Errorf("a label was warned about: %q, %v", warnings, err)
		}
		_, warnings, err = shared.Kubectl(
			t.Context(),
			p.on("patch", "fine", "--type=merge", "-p", `{"spec":{"ttlAfterFinished":"10s"}}`)...)
		if err != nil || !strings.Contains(warnings, "10s is under a minute") {
			t.Errorf("an update to 10s: %q, %v", warnings, err)
		}
	})
}
