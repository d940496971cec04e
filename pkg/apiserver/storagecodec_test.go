// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/apiserver"
)

const storedPolicy = `{"kind":"CleanupPolicy","apiVersion":"gc.winnow.dev/v1alpha1",
"metadata":{"name":"p","namespace":"team-a","uid":"u","generation":3,"creationTimestamp":"2026-01-02T03:04:05Z","annotations":{"a":"b"}},
"spec":{"mode":"Enforce","ttlAfterFinished":"1h","annotationTTL":"ExtendOnly","rules":[{"name":"r","ttl":"2h"}]},
"status":{"observedGeneration":3,"deleted":7,"conditions":[{"type":"Ready","status":"True","reason":"Enforcing","message":"m","lastTransitionTime":"2026-02-02T03:04:05Z"}]}}`

// TestStorageCodecReadsWhatItCan: what is not understood is reported, and everything else is there.
func TestStorageCodecReadsWhatItCan(t *testing.T) {
	for name, c := range map[string]struct {
		old, replacement string
		why              string // empty where all is understood
		lost             string // TTL, rules, spec, status or all
	}{
		"all of it":                    {},
		"a field of the spec":          {`"mode"`, `"schedule":"nightly","mode"`, `unknown field "spec.schedule"`, ""},
		"a field of a rule":            {`"name":"r"`, `"name":"r","window":[]`, `unknown field "spec.rules[0].window"`, ""},
		"a field of the status":        {`"deleted"`, `"more":[],"deleted"`, "", ""},
		"of the status and the spec":   {"},\n\"status\":{", `,"more":1},"status":{"more":1,`, `unknown field "spec.more"`, ""},
		"a field of the object":        {`"spec"`, `"more":{},"spec"`, `unknown field "more"`, ""},
		"a field twice":                {`"mode"`, `"mode":"Preview","mode"`, `duplicate field "spec.mode"`, ""},
		"another type":                 {`"1h"`, `{"seconds":3600}`, "ttlAfterFinished", "TTL"},
		"another type in a rule":       {`"2h"`, `["2h"]`, "cannot unmarshal array", "rules"},
		"a spec of another type":       {`"spec":{`, `"spec":"none","was":{`, "cannot unmarshal string", "spec"},
		"a status of another type":     {`"deleted":7`, `"deleted":{"jobs":7}`, "cannot unmarshal object", "status"},
		"another version of the group": {`v1alpha1`, `v9`, `no kind "CleanupPolicy" is registered for version "gc.winnow.dev/v9"`, "all"},
	} {
		t.Run(name, func(t *testing.T) {
			encoded := []byte(strings.Replace(storedPolicy, c.old, c.replacement, 1))
			for _, into := range []runtime.Object{nil, &gc.CleanupPolicy{Spec: gc.CleanupPolicySpec{Rules: make([]gc.CleanupRule, 9)}}} {
				object, _, err := apiserver.StorageCodec().Decode(encoded, nil, into)
				if err != nil {
					t.Fatal(err)
				}
				p := object.(*gc.CleanupPolicy)
				expectPart(t, p, c.lost)
				if c.why == "" {
					if gc.Unreadable(p) != "" || !meta.IsStatusConditionTrue(p.Status.Conditions, gc.ConditionReady) {
						t.Errorf("got %+v", p)
					}
					continue
				}
				if got := gc.Unreadable(p); !strings.Contains(got, c.why) {
					t.Errorf("it says %q, want %q", got, c.why)
				}
				ready := meta.FindStatusCondition(p.Status.Conditions, gc.ConditionReady)
				if ready == nil || ready.Status != metav1.ConditionFalse || ready.Reason != gc.ReasonUnreadable ||
					!strings.Contains(ready.Message, c.why) || !ready.LastTransitionTime.Equal(&p.CreationTimestamp) {
					t.Errorf("the condition is %+v", ready)
				}
			}
		})
	}
}

func expectPart(t *testing.T, p *gc.CleanupPolicy, lost string) {
	t.Helper()
	if p.Name != "p" || p.Namespace != "team-a" || p.UID != "u" || p.Generation != 3 || p.Annotations["a"] != "b" {
		t.Errorf("metadata is %+v", p.ObjectMeta)
	}
	for part, there := range map[string]bool{
		"TTL":    p.Spec.TTLAfterFinished != nil && *p.Spec.TTLAfterFinished == "1h",
		"rules":  len(p.Spec.Rules) == 1 && *p.Spec.Rules[0].TTL == "2h",
		"status": p.Status.Deleted == 7,
	} {
		if want := lost != part && lost != "all" && (lost != "spec" || part == "status"); there != want {
			t.Errorf("%s is there: %v, want %v; it is %+v, %+v", part, there, want, p.Spec, p.Status)
		}
	}
}

// TestStorageCodecRefuses what is no object at all, as storage without separate metadata does.
func TestStorageCodecRefuses(t *testing.T) {
	for name, encoded := range map[string]string{
		"no JSON":      "{",
		"another kind": strings.Replace(storedPolicy, "CleanupPolicy", "Lease", 1),
		"no metadata":  strings.Replace(storedPolicy, `"metadata":{`, `"metadata":["a"],"was":{`, 1),
	} {
		if object, _, err := apiserver.StorageCodec().Decode([]byte(encoded), nil, &gc.CleanupPolicy{}); err == nil {
			t.Errorf("%s: got %+v", name, object)
		}
	}
}

// TestUnreadableConditionIsStable: every replica tells the same, and what was not Ready before stays so since then.
func TestUnreadableConditionIsStable(t *testing.T) {
	since := metav1.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	p := &gc.ClusterCleanupPolicy{}
	p.Status.Conditions = []metav1.Condition{{Type: "Other", Status: metav1.ConditionTrue}, {
		Type: gc.ConditionReady, Status: metav1.ConditionFalse, Reason: "Held", LastTransitionTime: since,
	}}
	gc.MarkUnreadable(p, bytes.ErrTooLarge)
	ready := meta.FindStatusCondition(p.Status.Conditions, gc.ConditionReady)
	if len(p.Status.Conditions) != 2 || ready.Reason != gc.ReasonUnreadable || !ready.LastTransitionTime.Equal(&since) {
		t.Errorf("got %+v", p.Status.Conditions)
	}
}
