// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
)

// request is one to a cluster policy with this body, where it does not say otherwise.
type request struct {
	method, resource, contentType, query, body string
}

// answered is what such a request is answered; empty if it went on, with its whole body.
func answered(t *testing.T, r request) string {
	t.Helper()
	if r.method == "" {
		r.method = http.MethodPatch
	}
	if r.resource == "" {
		r.resource = "clustercleanuppolicies"
	}
	if r.contentType == "" {
		r.contentType = "application/merge-patch+json"
	}
	wentOn := false
	handler := withReadableErrors(http.HandlerFunc(func(_ http.ResponseWriter, got *http.Request) {
		wentOn = true
		if body, err := io.ReadAll(got.Body); err != nil || string(body) != r.body {
			t.Errorf("went on with %d bytes, %v; want %d", len(body), err, len(r.body))
		}
	}))
	name := "p"
	if r.method == http.MethodPost {
		name = ""
	}
	req := httptest.NewRequest(r.method, "/?"+r.query, strings.NewReader(r.body))
	req.Header.Set("Content-Type", r.contentType)
	req = req.WithContext(genericapirequest.WithRequestInfo(req.Context(), &genericapirequest.RequestInfo{
		IsResourceRequest: true, APIGroup: "gc.winnow.dev", APIVersion: "v1alpha1", Resource: r.resource, Name: name,
	}))
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, req)
	if wentOn {
		return ""
	}
	var status metav1.Status
	if err := json.Unmarshal(w.Body.Bytes(), &status); err != nil || int(status.Code) != w.Code {
		t.Fatalf("answered %d %s, %v", w.Code, w.Body, err)
	}
	return string(status.Reason) + " " + status.Message
}

// TestWrongTypes: each value is named by its path, with what to write instead.
func TestWrongTypes(t *testing.T) {
	for name, c := range map[string]struct{ body, want string }{
		"a number for a duration":  {`{"spec":{"ttlAfterFinished":3600}}`, `spec.ttlAfterFinished: Invalid value: 3600: must be a string with a unit, for example "3600s" or "1h"`},
		"a number for an object":   {`{"spec":{"guardrails":{"holdAbove":500}}}`, `spec.guardrails.holdAbove: Invalid value: 500: must be an object, for example {objects: 500}`},
		"a word for a number":      {`{"spec":{"capacity":{"maxObjects":"many"}}}`, `spec.capacity.maxObjects: Invalid value: "many": must be a whole number`},
		"a number in quotes":       {`{"spec":{"capacity":{"maxObjects":"20"}}}`, `spec.capacity.maxObjects: Invalid value: "20": must be a whole number, without quotes`},
		"a fraction":               {`{"spec":{"capacity":{"maxObjects":1.5}}}`, `spec.capacity.maxObjects: Invalid value: 1.5: must be a whole number`},
		"too large a number":       {`{"spec":{"capacity":{"maxObjects":99999999999999999999}}}`, `spec.capacity.maxObjects: Invalid value: 1e+20: must be a whole number`},
		"a flag in quotes":         {`{"spec":{"suspend":"true"}}`, `spec.suspend: Invalid value: "true": must be true or false, without quotes`},
		"a flag for a word":        {`{"spec":{"mode":true}}`, `spec.mode: Invalid value: true: must be a string; put it in quotes: "true"`},
		"an object for a word":     {`{"spec":{"mode":{"is":"Enforce"}}}`, `spec.mode: Invalid value: must be a string`},
		"a word for a list":        {`{"spec":{"rules":[{"resources":"jobs.batch"}]}}`, `spec.rules[0].resources: Invalid value: "jobs.batch": must be a list, for example [jobs.batch]`},
		"an object for a list":     {`{"spec":{"rules":{}}}`, `spec.rules: Invalid value: must be a list`},
		"a list for an object":     {`{"spec":[]}`, `spec: Invalid value: must be an object`},
		"a word for an object":     {`{"spec":{"namespaceSelector":true}}`, `spec.namespaceSelector: Invalid value: true: must be an object`},
		"a flag for a label":       {`{"metadata":{"labels":{"app":true}}}`, `metadata.labels[app]: Invalid value: true: must be a string; put it in quotes: "true"`},
		"a word for a time":        {`{"metadata":{"creationTimestamp":"now"}}`, `metadata.creationTimestamp: Invalid value: "now": must be a time, for example "2026-01-02T15:04:05Z"`},
		"several":                  {`{"spec":{"suspend":1,"mode":2}}`, `[spec.mode: Invalid value: 2: must be a string; put it in quotes: "2", spec.suspend: Invalid value: 1: must be true or false, without quotes]`},
		"in a rule of many fields": {`{"spec":{"rules":[{"name":"a"},{"name":"b","selector":{"matchLabels":{"app":1}}}]}}`, `spec.rules[1].selector.matchLabels[app]: Invalid value: 1: must be a string; put it in quotes: "1"`},
	} {
		t.Run(name, func(t *testing.T) {
			want := `Invalid ClusterCleanupPolicy.gc.winnow.dev "p" is invalid: ` + c.want
			for _, contentType := range []string{"application/merge-patch+json", "application/strategic-merge-patch+json", "application/apply-patch+yaml", "application/json"} {
				if got := answered(t, request{contentType: contentType, body: c.body}); got != want {
					t.Errorf("%s: got\n%s\nwant\n%s", contentType, got, want)
				}
			}
		})
	}
}

// TestRightBodiesGoOn, and those that the decoders can tell more about.
func TestRightBodiesGoOn(t *testing.T) {
	for name, r := range map[string]request{
		"right":                {body: `{"kind":"ClusterCleanupPolicy","metadata":{"labels":{"a":"b"},"creationTimestamp":"2026-01-02T15:04:05Z"},"spec":{"suspend":true,"guardrails":{"ceilings":[{"maxObjects":1}]}}}`},
		"null":                 {body: `{"metadata":null,"spec":{"ttlAfterFinished":null,"rules":[null],"suspend":null}}`},
		"a directive":          {body: `{"spec":{"$patch":"replace","$setElementOrder/rules":[1]}}`, contentType: "application/strategic-merge-patch+json", query: "fieldValidation=Strict"},
		"no JSON":              {body: `{"spec":`},
		"two objects":          {body: `{} {"spec":1}`},
		"no object":            {body: `5`},
		"nothing":              {},
		"an unknown field":     {body: `{"spec":{"new":1}}`, query: "fieldValidation=Warn"},
		"a deletion":           {method: http.MethodDelete, body: `{"spec":1}`},
		"another resource":     {resource: "others", body: `{"spec":1}`},
		"more than is decoded": {body: `{"spec":1,"x":"` + strings.Repeat("x", bodyMost) + `"}`},
		"a JSON patch":         {body: `[{"op":"test","path":"/spec/suspend","value":1},{"op":"add","path":"/spec/rules/-","value":{"ttl":"1h"}},{"op":"remove","path":"/spec/mode"}]`, contentType: "application/json-patch+json"},
	} {
		if got := answered(t, r); got != "" {
			t.Errorf("%s: answered %s", name, got)
		}
	}
}

func TestJSONPatch(t *testing.T) {
	const invalid = `Invalid ClusterCleanupPolicy.gc.winnow.dev "p" is invalid: `
	for path, want := range map[string]string{
		"/spec/ttlAfterFinished":               `spec.ttlAfterFinished: Invalid value: 5: must be a string with a unit, for example "5s" or "1h"`,
		"/spec/rules/1/ttl":                    `spec.rules[1].ttl: Invalid value: 5: must be a string with a unit, for example "5s" or "1h"`,
		"/spec/rules/-":                        `spec.rules[-]: Invalid value: 5: must be an object`,
		"/spec/guardrails/holdAbove":           `spec.guardrails.holdAbove: Invalid value: 5: must be an object, for example {objects: 5}`,
		"/metadata/labels/example.com~1app":    `metadata.labels[example.com/app]: Invalid value: 5: must be a string; put it in quotes: "5"`,
		"/spec/guardrails/holdAbove/objects":   "",
		"/spec/guardrails/holdAbove/objects/x": "",
		"/spec/nothing":                        "",
		"":                                     "",
	} {
		if want != "" {
			want = invalid + want
		}
		body := `[{"op":"replace","path":"` + path + `","value":5}]`
		if got := answered(t, request{contentType: "application/json-patch+json", body: body}); got != want {
			t.Errorf("%s: got\n%s\nwant\n%s", path, got, want)
		}
	}
}

// TestUnknownFields: in strict mode, with the name that was meant.
func TestUnknownFields(t *testing.T) {
	for field, want := range map[string]string{
		`"spec":{"ttlAfterFinish":"1h"}`:                          `unknown field "spec.ttlAfterFinish"; did you mean "ttlAfterFinished"?`,
		`"spec":{"guardrails":{"maxTtl":"1h"}}`:                   `unknown field "spec.guardrails.maxTtl"; did you mean "maxTTL"?`,
		`"spec":{"guardrails":{"capacity":[]}}`:                   `unknown field "spec.guardrails.capacity": it was renamed to "spec.guardrails.ceilings"`,
		`"spec":{"rules":[{"gitOpsManaged":"Delete"}]}`:           `unknown field "spec.rules[0].gitOpsManaged": it was renamed to "managedElsewhere"`,
		`"spec":{"rules":[{"schedule":"x"}]}`:                     `unknown field "spec.rules[0].schedule"`,
		`"spec":{"ttlSecondsAfterFinished":60}`:                   `unknown field "spec.ttlSecondsAfterFinished"; did you mean "ttlAfterFinished", with a unit, such as "1h"?`,
		`"spec":{"rules":[{"ttlSecondsAfterFinished":60}]}`:       `unknown field "spec.rules[0].ttlSecondsAfterFinished"; did you mean "ttl", with a unit, such as "1h"?`,
		`"spec":{"maxTTL":"1h"}`:                                  `unknown field "spec.maxTTL"; it is a field of spec.guardrails of a ClusterCleanupPolicy`,
		`"spec":{"selector":{}}`:                                  `unknown field "spec.selector"; it is a field of a rule, in spec.rules`,
		`"spec":{"rules":[{"maxObjects":3}]}`:                     `unknown field "spec.rules[0].maxObjects"; it is a field of capacity`,
		`"spec":{"rules":[{"guardrails":{}}]}`:                    `unknown field "spec.rules[0].guardrails"; it is a field of the spec of a ClusterCleanupPolicy`,
		`"rules":[]`:                                              `unknown field "rules"; it is a field of the spec of a policy`,
		`"metadata":{"ttl":"1h"}`:                                 `unknown field "metadata.ttl"`,
		`"spec":{"namespaceSelector":{"names":["a"]}}`:            `unknown field "spec.namespaceSelector.names"; did you mean matchExpressions: [{key: kubernetes.io/metadata.name, operator: In, values: [...]}]?`,
		`"spec":{"namespaceSelector":{"team":"a"}}`:               `unknown field "spec.namespaceSelector.team"; did you mean matchLabels: {team: ...}?`,
		`"spec":{"suspended":true,"mode":1}`:                      `unknown field "spec.suspended"; did you mean "suspend"?, spec.mode: Invalid value: 1: must be a string; put it in quotes: "1"`,
		`"apiversion":"x"`:                                        `unknown field "apiversion"; did you mean "apiVersion"?`,
		`"spec":{"rules":[{"selector":{"matchLabel":{}}}]},"x":1`: `unknown field "spec.rules[0].selector.matchLabel"; did you mean "matchLabels"?, unknown field "x"`,
	} {
		got := answered(t, request{body: "{" + field + "}", query: "fieldValidation=Strict"})
		if want = `BadRequest ClusterCleanupPolicy "p" cannot be written: strict decoding error: ` + want; got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	}
}

// TestUnknownFieldsWithWrongValues: one answer has both, if the request has the whole object.
func TestUnknownFieldsWithWrongValues(t *testing.T) {
	const values = `spec.mode: Unsupported value: "enforce": supported values: "Enforce", "Preview"; did you mean "Enforce"?`
	body := `{"apiVersion":"gc.winnow.dev/v1alpha1","kind":"ClusterCleanupPolicy","metadata":{"generateName":"p-"},` +
		`"spec":{"mode":"enforce","namespaceSelector":{},"ttlAfterFinish":"1h"}}`
	for method, more := range map[string]string{http.MethodPost: ", " + values, http.MethodPut: ", " + values, http.MethodPatch: ""} {
		got := answered(t, request{method: method, contentType: "application/json", body: body, query: "fieldValidation=Strict"})
		if _, errs, _ := strings.Cut(got, "decoding error: "); errs != `unknown field "spec.ttlAfterFinish"; did you mean "ttlAfterFinished"?`+more {
			t.Errorf("%s: got %s", method, got)
		}
	}
}

// TestUnknownFieldsOfReviews: they are errors in any mode.
func TestUnknownFieldsOfReviews(t *testing.T) {
	for resource, kind := range map[string]string{"cleanupreviews": "CleanupReview", "clustercleanupreviews": "ClusterCleanupReview"} {
		for _, mode := range []string{"", "Ignore", "Warn", "Strict"} {
			got := answered(t, request{
				method: http.MethodPost, resource: resource, contentType: "application/json", query: "fieldValidation=" + mode,
				body: `{"metadata":{"name":"p"},"spec":{"ttlAfterFinish":"1h"}}`,
			})
			want := `BadRequest ` + kind + ` "p" cannot be written: strict decoding error: unknown field "spec.ttlAfterFinish"; did you mean "ttlAfterFinished"?`
			if got != want {
				t.Errorf("%s: got\n%s\nwant\n%s", mode, got, want)
			}
		}
	}
}

// TestCreatedByName: a request that creates has the name in its body.
func TestCreatedByName(t *testing.T) {
	body := "metadata: {name: new}\nspec: {suspend: 1}\n"
	got := answered(t, request{method: http.MethodPost, contentType: "application/yaml; charset=utf-8", body: body})
	if !strings.Contains(got, `"new" is invalid: spec.suspend: Invalid value: 1`) {
		t.Errorf("got %s", got)
	}
}
