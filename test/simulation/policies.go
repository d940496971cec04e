// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/test/simulation/apiserver"
)

const (
	policiesPath = "/apis/gc.winnow.dev/v1alpha1"
	// jane is a user who may do everything.
	jane = "jane"
)

// Expressions that the model knows. The second fails for what has no such label.
const (
	ofSome          = "object.metadata.name.endsWith('1')"
	ofArchived      = "object.metadata.labels.archived == 'true'"
	perhapsArchived = "object.metadata.?labels[?'archived'].orValue('') == 'true'"
)

// spec draws the spec of a policy. Nulls remove what a patch finds.
func (s *simulation) spec() content {
	out := content{
		"mode": draw(s, "Enforce", "Enforce", "Enforce", "Enforce", "Preview"), "suspend": s.often("suspend", 2),
		"ttlAfterFinished": nil, "capacity": nil, "activeDeadline": nil, "annotationTTL": nil, "rules": nil,
	}
	if s.percent(80) {
		out["ttlAfterFinished"] = draw(s, "0s", "0s", "30s", "2m", "10m", "30m", "never")
	}
	if s.often("capacity", 30) {
		out["capacity"] = s.capacity()
	}
	if s.often("annotationTTL", 20) {
		out["annotationTTL"] = draw(s, "Any", "Ignore", "ExtendOnly")
	}
	if s.often("activeDeadline", 15) {
		out["activeDeadline"] = draw(s, "1m", "10m", "1h")
	}
	var rules []any
	for i := range 1 + s.random.IntN(3) {
		rules = append(rules, s.rule(i))
	}
	out["rules"] = rules
	return out
}

func (s *simulation) ofApp() content {
	return content{"matchLabels": content{"app": draw(s, "x", "y")}}
}

// unusedRule draws a rule for ConfigMaps and Secrets that nothing uses.
func (s *simulation) unusedRule(i int) content {
	return content{
		"name": fmt.Sprintf("r%d", i), "selector": s.ofApp(), "after": "Unused",
		"resources": draw(s, []any{"configmaps"}, []any{"secrets"}, []any{"configmaps", "secrets"}),
		"ttl":       draw(s, "0s", "1m", "10m"), // No capacity: a replica may order by later times than the judge.
	}
}

// rule draws a rule of a policy.
func (s *simulation) rule(i int) content {
	if s.often("unused", 30) {
		return s.unusedRule(i)
	}
	rule := content{"name": fmt.Sprintf("r%d", i)}
	if s.percent(50) {
		rule["selector"] = s.ofApp()
	}
	if s.percent(30) {
		rule["outcome"] = draw(s, "Failed", "Succeeded")
	}
	if s.percent(60) {
		rule["ttl"] = draw(s, "0s", "1m", "20m", "never")
	} else {
		rule["capacity"] = s.capacity()
	}
	switch {
	case s.often("Created", 20):
		s.count(rule, "Created")
	case s.often("Matched", 20):
		s.count(rule, "Matched")
		delete(rule, "capacity") // A replica that was killed may order what it counts by later times than the judge.
		rule["ttl"] = draw(s, "0s", "1m", "10m")
	case s.percent(30):
		rule["resources"] = draw(s, []any{"workflows.argoproj.io"}, []any{"workflows.argoproj.io", "jobs.batch"})
	case s.often("activeDeadline", 20):
		rule["activeDeadline"] = draw(s, "1m", "10m", "1h")
	}
	s.conditions(rule)
	return rule
}

// conditions draws what else must be so before a rule deletes an object.
func (s *simulation) conditions(rule content) {
	if s.often("notice", 20) {
		rule["notice"] = draw(s, "1s", "1m", "3m")
	}
	if s.often("matchConditions", 20) {
		rule["matchConditions"] = []any{content{"name": "c", "expression": draw(s, ofSome, ofSome, ofArchived)}}
	}
	if s.often("waitFor", 20) {
		rule["waitFor"] = content{
			"expression": draw(s, ofArchived, perhapsArchived), "atMost": draw(s, "1m", "10m", "1h"), "onTimeout": draw(s, "Keep", "Delete"),
		}
	}
}

// count has a rule count from something else than the end, which takes no outcome and needs a resource and a selector.
func (s *simulation) count(rule content, after string) {
	delete(rule, "outcome")
	rule["after"], rule["unfinished"], rule["selector"] = after, draw(s, "Delete", "Hold"), s.ofApp()
	rule["resources"] = []any{draw(s, "jobs.batch", "pods", "workflows.argoproj.io")}
}

// capacity draws a limit. Nulls remove what a patch finds.
func (s *simulation) capacity() content {
	out := content{"maxObjects": s.random.IntN(6), "percentOfQuota": nil, "per": nil, "labelKey": nil, "minAge": nil}
	if s.often("percentOfQuota", 20) {
		out["maxObjects"], out["percentOfQuota"] = nil, draw(s, 1, 34, 50, 100)
	}
	switch s.random.IntN(4) {
	case 0:
		out["per"] = "Owner"
	case 1:
		out["per"], out["labelKey"] = "Label", "app"
	}
	if s.often("minAge", 20) {
		out["minAge"] = draw(s, "1m", "10m")
	}
	return out
}

// guardrails draws what a cluster policy demands of others.
func (s *simulation) guardrails() content {
	out := content{
		"minTTL": nil, "maxTTL": nil, "allowNever": nil, "suspendAll": s.often("suspendAll", 3), "holdAbove": nil, "windows": nil,
		"minNotice": nil, "maxDeletionsPerMinute": nil, "ceilings": nil,
	}
	if s.often("minTTL", 25) {
		out["minTTL"] = "2m"
	}
	if s.often("maxTTL", 25) {
		out["maxTTL"], out["allowNever"] = "30m", false
	}
	if s.often("holdAbove", 25) {
		above := content{"objects": draw(s, 2, 5, 10, 100)} // With the last one, only the share counts.
		if s.percent(50) {
			above["percent"] = draw(s, 5, 10, 20, 40, 80)
		}
		out["holdAbove"] = above
	}
	if s.often("windows", 25) {
		schedule, duration := draw(s, "*/10 * * * *", "0,30 * * * *", "5 * * * *"), draw(s, "2m", "7m")
		out["windows"] = []any{content{"schedule": schedule, "duration": duration}}
	}
	if s.often("maxDeletionsPerMinute", 25) {
		out["maxDeletionsPerMinute"] = 1 + s.random.IntN(20)
	}
	if s.often("minNotice", 25) {
		out["minNotice"] = draw(s, "1s", "1m", "3m")
	}
	if s.often("ceilings", 25) {
		resource := draw(s, "jobs.batch", "workflows.argoproj.io")
		out["ceilings"] = []any{content{"resources": []any{resource}, "maxObjects": 5 + s.random.IntN(10)}}
	}
	return out
}

// write creates, replaces or deletes a policy.
func (s *simulation) write() {
	name, ns := draw(s, "p", "q"), s.namespace()
	kind, path := "CleanupPolicy", policiesPath+"/namespaces/"+ns+"/cleanuppolicies"
	metadata := content{"name": name, "namespace": ns}
	spec := s.spec()
	if s.percent(45) {
		kind, path = "ClusterCleanupPolicy", policiesPath+"/clustercleanuppolicies"
		metadata = content{"name": name}
		spec["namespaceSelector"] = draw(s, content{}, content{"matchLabels": content{"team": draw(s, "red", "blue")}})
		spec["guardrails"] = s.guardrails()
	}
	if s.percent(15) {
		s.request(jane, http.MethodDelete, path+"/"+name, nil)
		return
	}
	if s.often("tighten", 25) { // It may make much due at once.
		s.request(jane, http.MethodPatch, path+"/"+name, content{"spec": content{"mode": "Enforce", "ttlAfterFinished": "0s", "rules": nil}})
		return
	}
	object := content{"apiVersion": "gc.winnow.dev/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec}
	user := jane
	if s.often("without rights", 5) {
		user = apiserver.NoDeleter
	}
	s.request(user, http.MethodPost, path, object)
	s.request(user, http.MethodPatch, path+"/"+name, content{"spec": spec})
}

// approveAny approves what waits of one policy, and approveAll of all policies. Soon afterwards a replica may be killed: another one must
// know.
func (s *simulation) approveAny() {
	if o := s.any(draw(s, policies, clusterPolicies), ""); o != nil {
		s.approve(o)
		if s.often("kill after an approval", 10) {
			s.run(time.Now().Add(s.upTo(2 * time.Second)))
			s.disturb(s.random.IntN(len(s.replicas)), "kill", 0)
		}
	}
}

func (s *simulation) approveAll() {
	for _, r := range []schema.GroupResource{policies, clusterPolicies} {
		for _, o := range s.store.Objects(r) {
			s.approve(o)
		}
	}
}

func (s *simulation) approve(o *apiserver.Object) {
	path := policiesPath + "/clustercleanuppolicies/" + o.Meta.Name
	if ns := o.Meta.Namespace; ns != "" {
		path = policiesPath + "/namespaces/" + ns + "/cleanuppolicies/" + o.Meta.Name
	}
	if ids := idsOf(gc.HoldsOf(s.judge.stored(o))); len(ids) > 0 {
		annotations := content{gc.AnnotationApprovedHold: strings.Join(ids, ",")}
		s.request(jane, http.MethodPatch, path, content{"metadata": content{"annotations": annotations}})
	}
}

func idsOf(holds []gc.PolicyHold) (out []string) {
	for i := range holds {
		if holds[i].Policy == "" { // Otherwise somebody must approve another policy.
			out = append(out, holds[i].ID)
		}
	}
	return out
}
