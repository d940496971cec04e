// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package expressions

import (
	"encoding/json"
	"strings"
	"testing"

	"k8s.io/kube-openapi/pkg/validation/spec"
)

const testSchema = `{
	"type": "object",
	"properties": {
		"metadata": {"type": "object", "properties": {
			"name": {"type": "string"}, "namespace": {"type": "string"}, "generateName": {"type": "string"}, "creationTimestamp": {"type": "string", "format": "date-time"},
			"labels": {"type": "object", "additionalProperties": {"type": "string"}}}},
		"spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
		"status": {"type": "object", "properties": {
			"any": {}, "free": {"type": "object"}, "odd": {"type": "object", "properties": {"my-field": {"type": "string"}}},
			"phase": {"type": "string"}, "runs": {"type": "integer"},
			"finishedAt": {"type": "string", "format": "date-time"},
			"conditions": {"type": "array", "items": {"type": "object", "properties": {"type": {"type": "string"}}}}}}
	}}`

func TestTypes(t *testing.T) {
	schema := &spec.Schema{}
	if err := json.Unmarshal([]byte(testSchema), schema); err != nil {
		t.Fatal(err)
	}
	types, err := NewTypes(schema)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"object.?status.phase.orValue('') == 'Done'":           "",
		"object.status.?phase.orValue('') == 'Done'":           "",
		"object.status.finishedAt":                             "",
		"object.status.finishedAt == ''":                       "",
		"timestamp(object.status.finishedAt)":                  "",
		"object.metadata.creationTimestamp":                    "",
		"object.metadata.labels['a'] == 'b'":                   "",
		"object.metadata.namespace == 'a'":                     "",
		"object.metadata.?namespace.orValue('') == 'a'":        "",
		"object.metadata['labels']['a'] == 'b'":                "",
		"'labels' in object.metadata":                          "",
		"object.metadata[?'labels'].hasValue()":                "",
		"object.metadata.lables['a'] == 'b'":                   "undefined field 'lables'",
		"object.?metadata.lables['a'].orValue('') == 'b'":      "undefined field 'lables'",
		"has(object.metadata.lables)":                          "undefined field 'lables'",
		"object.status.any.thing == 3":                         "",
		"object.status.free.thing == 3":                        "",
		"object.status.odd['my-field'] == 'a'":                 "",
		"object.spec.whatever.is > 3":                          "",
		"object.status.conditions.exists(c, c.type == 'Done')": "",
		"object.status.fase == 'Done'":                         "undefined field 'fase'",
		"object.?status.fase.orValue('') == 'Done'":            "undefined field 'fase'",
		"object.status.runs == 'three'":                        "no matching overload for '_==_'",
		"object.status.conditions.exists(c, c.kind == 'Done')": "undefined field 'kind'",
		"object.stat.phase == 'Done'":                          "undefined field 'stat'",
	} {
		err := types.Check(text)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
	if types, err = NewTypes(&spec.Schema{}); err != nil {
		t.Fatal(err)
	}
	if err := types.Check("object.what.ever == 1"); err != nil {
		t.Errorf("without a schema: %v", err)
	}
	if properties := schema.Properties["status"].Properties; properties["finishedAt"].Format != "date-time" {
		t.Error("the schema was changed")
	}
}
