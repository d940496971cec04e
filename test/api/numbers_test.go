// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
)

// writeNumber are the ways to write the spec of a policy, as JSON.
var writeNumber = map[string]func(p scope, name, spec string) error{
	"create": func(p scope, _, spec string) error {
		return p.send("POST", p.path(), "application/json", p.raw("new", spec))
	},
	"update": func(p scope, name, spec string) error {
		return p.send("PUT", p.path()+"/"+p.called(name), "application/json", p.raw(name, spec))
	},
	"apply": func(p scope, name, spec string) error {
		return p.send("PATCH", p.path()+"/"+p.called(name), types.ApplyYAMLPatchType, p.raw(name, spec))
	},
	"apply anew": func(p scope, _, spec string) error {
		return p.send("PATCH", p.path()+"/"+p.called("new"), types.ApplyYAMLPatchType, p.raw("new", spec))
	},
	"strategic patch": func(p scope, name, spec string) error {
		return p.send("PATCH", p.path()+"/"+p.called(name), types.StrategicMergePatchType, `{"spec":`+spec+`}`)
	},
	"merge patch": func(p scope, name, spec string) error {
		return p.send("PATCH", p.path()+"/"+p.called(name), types.MergePatchType, `{"spec":`+spec+`}`)
	},
	"JSON patch": func(p scope, name, spec string) error {
		return p.send("PATCH", p.path()+"/"+p.called(name), types.JSONPatchType, `[{"op":"replace","path":"/spec","value":`+spec+`}]`)
	},
}

// TestNumbersAreNeverStoredAsOthers: what a field has no room for is refused and never cut down to what it has room for, whichever of the
// decoders of Kubernetes reads it: 4294967296 would be 0 in 32 bits, and keep nothing.
func TestNumbersAreNeverStoredAsOthers(t *testing.T) {
	t.Parallel()
	p := scoped(t, ofCluster)
	p.create("a", `{}`)
	for field, spec := range map[string]string{
		"spec.capacity.maxObjects":               `"capacity":{"maxObjects":%s}`,
		"spec.capacity.percentOfQuota":           `"capacity":{"percentOfQuota":%s}`,
		"spec.rules[0].capacity.maxObjects":      `"rules":[{"name":"r","capacity":{"maxObjects":%s}}]`,
		"spec.guardrails.maxDeletionsPerMinute":  `"guardrails":{"maxDeletionsPerMinute":%s}`,
		"spec.guardrails.holdAbove.objects":      `"guardrails":{"holdAbove":{"objects":%s}}`,
		"spec.guardrails.ceilings[0].maxObjects": `"guardrails":{"ceilings":[{"maxObjects":%s}]}`,
	} {
		for way, write := range writeNumber {
			for _, number := range []string{"2147483648", "4294967296", "4294967346", "1e10", "-4294967246", "18446744073709551666", "1e19", "1e300", "50.5"} {
				err := write(p, "a", fmt.Sprintf(`{"mode":"Enforce","namespaceSelector":{},`+spec+`}`, number))
				name := field[strings.LastIndex(field, ".")+1:]
				if err == nil || number != "50.5" && !strings.Contains(err.Error(), name) {
					t.Errorf("%s: %s by %s: got %v, want a refusal with the name", field, number, way, err)
				}
			}
		}
	}
	if got := p.get("a"); got.Generation != 1 {
		t.Errorf("generation %d after refusals: %+v", got.Generation, got.Spec)
	}
	if err := p.send("GET", p.path()+"/"+p.called("new"), "", ""); !apierrors.IsNotFound(err) {
		t.Errorf("a refused policy is there: %v", err)
	}
}

// TestLargestNumber is kept as it was written, whatever the way.
func TestLargestNumber(t *testing.T) {
	t.Parallel()
	p := scoped(t, ofNamespace)
	for way, write := range writeNumber {
		name := strings.ToLower(strings.ReplaceAll(way, " ", "-"))
		p.create(name, `{capacity: {maxObjects: 1}}`)
		if err := write(p, name, `{"capacity":{"maxObjects":2147483647}}`); err != nil {
			t.Errorf("%s: %v", way, err)
		}
		if way == "create" || way == "apply anew" {
			name = "new"
		}
		if got := *p.get(name).Spec.Capacity.MaxObjects; got != 2147483647 {
			t.Errorf("%s: %d is stored", way, got)
		}
		if name == "new" {
			kubectl(t, p.on("delete", name)...)
		}
	}
}

// raw is a policy in JSON, numbers as they are written in spec.
func (p scope) raw(name, spec string) string {
	return fmt.Sprintf(`{"apiVersion":"gc.winnow.dev/v1alpha1","kind":%q,"metadata":{"name":%q},"spec":%s}`, p.name, p.called(name), spec)
}

// send sends a body as it is.
func (p scope) send(verb, path string, contentType types.PatchType, body string) error {
	request := client.GcV1alpha1().RESTClient().Verb(verb).AbsPath(path)
	if verb != "GET" {
		request.SetHeader("Content-Type", string(contentType)).Param("fieldManager", "numbers").Body([]byte(body))
	}
	if contentType == types.ApplyYAMLPatchType {
		request.Param("force", "true")
	}
	return request.Do(p.t.Context()).Error()
}
