// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/test/simulation/apiserver"
)

const policiesPath = "/apis/gc.winnow.dev/v1alpha1"

// Expressions that the model knows. The second fails for what has no such label.
const (
	ofSome          = "object.metadata.name.endsWith('1')"
	ofArchived      = "object.metadata.labels.archived == 'true'"
	perhapsArchived = "object.metadata.?labels[?'archived'].orValue('') == 'true'"
)

type content = map[string]any

// draw returns one of several values.
func draw[T any](s *simulation, of ...T) T { return of[s.random.IntN(len(of))] }

func (s *simulation) percent(n int) bool { return s.random.IntN(100) < n }

func (s *simulation) namespace() string { return draw(s, "a", "b", "c", "d") }

// try notes what a user could not do. What users do may fail, as when a namespace ends.
func (s *simulation) try(what string, err error) { s.note("user: %s: %v", what, err) }

func (s *simulation) timestamp(ago time.Duration) string {
	return time.Now().Add(-ago).UTC().Format(time.RFC3339)
}

// create creates a Job or Pod, which may have finished.
func (s *simulation) create() {
	r, ns := draw(s, jobs, jobs, pods, workflows), s.namespace()
	s.created++
	metadata := content{"namespace": ns, "name": fmt.Sprintf("%s-%d", r.Resource, s.created), "labels": content{"app": draw(s, "x", "y", "z")}}
	if s.percent(10) {
		metadata["annotations"] = s.annotations()
	}
	if s.percent(10) {
		metadata["finalizers"] = []any{"example.com/slow"}
	}
	if r == pods && s.percent(30) {
		if of := s.any(jobs, ns); of != nil {
			metadata["ownerReferences"] = []any{content{
				"apiVersion": "batch/v1", "kind": "Job", "name": of.Meta.Name, "uid": string(of.Meta.UID), "controller": true,
			}}
		}
	}
	spec := s.podSpec()
	if r == jobs {
		if spec = (content{"template": content{"spec": spec}}); s.percent(5) {
			spec["ttlSecondsAfterFinished"] = 60 * s.random.IntN(60)
		}
	}
	o := content{"metadata": metadata, "spec": spec}
	switch s.random.IntN(10) {
	case 0, 1, 2, 3:
		o["status"] = s.finished(r)
	case 4, 5, 6:
		o["status"] = content{"startTime": s.timestamp(time.Duration(s.random.IntN(3600)) * time.Second)} // Workflows have no such field.
		if r == jobs && s.percent(10) {
			spec["suspend"] = true
		}
	}
	_, err := s.store.Create(r, o)
	s.try("create "+r.Resource, err)
}

func (s *simulation) finished(r schema.GroupResource) content {
	at := s.timestamp(time.Duration(s.random.IntN(5)) * time.Second)
	if r == workflows {
		return s.ofWorkflow(at)
	}
	if r == pods {
		return ofPod(draw(s, "Succeeded", "Failed"), at)
	}
	if s.percent(30) {
		return content{"conditions": []any{content{"type": "Failed", "status": "True", "lastTransitionTime": at}}}
	}
	return content{"completionTime": at, "conditions": []any{content{"type": "Complete", "status": "True", "lastTransitionTime": at}}}
}

// ofPod is the status of a Pod that ended at a time.
func ofPod(phase, at string) content {
	return content{"phase": phase, "containerStatuses": []any{content{
		"name": "c", "ready": false, "restartCount": 0, "image": "i", "imageID": "i",
		"state": content{"terminated": content{"exitCode": 0, "finishedAt": at, "startedAt": at}},
	}}}
}

func (s *simulation) annotations() content {
	switch s.random.IntN(4) {
	case 0:
		return content{"gc.winnow.dev/keep-until": time.Now().Add(time.Duration(s.random.IntN(7200)) * time.Second).UTC().Format(time.RFC3339)}
	case 1:
		return content{"gc.winnow.dev/ttl": "never"}
	case 2:
		return content{"gc.winnow.dev/ttl": "soon"}
	}
	return content{"gc.winnow.dev/ttl": draw(s, "1m", "10m", "2h")}
}

// any returns an object; nil if there is none.
func (s *simulation) any(r schema.GroupResource, ns string) *apiserver.Object {
	var in []*apiserver.Object
	for _, o := range s.store.Objects(r) {
		if ns == "" || o.Meta.Namespace == ns {
			in = append(in, o)
		}
	}
	if len(in) == 0 {
		return nil
	}
	return draw(s, in...)
}

// change changes an object as its owner would.
func (s *simulation) change() {
	r := draw(s, jobs, pods, workflows)
	o := s.any(r, "")
	if o == nil {
		return
	}
	what := draw(s, "finish", "finish", "annotate", "annotate", "release", "label", "archive", "finalize", "delete", "resume", "touch")
	if what == "delete" {
		_, err := s.store.Delete(r, keyOf(o), &metav1.DeleteOptions{})
		s.try("delete "+r.Resource+" "+o.Meta.Name, err)
		return
	}
	_, err := s.store.Update(r, keyOf(o), func(c map[string]any) error {
		metadata := c["metadata"].(map[string]any)
		switch what {
		case "finish":
			if status, _ := c["status"].(map[string]any); status["phase"] == nil && status["conditions"] == nil {
				c["status"] = s.finished(r)
			}
		case "annotate":
			metadata["annotations"] = s.annotations()
		case "release":
			delete(metadata, "annotations")
		case "label":
			metadata["labels"] = content{"app": draw(s, "x", "y", "z")}
		case "archive":
			metadata["labels"].(map[string]any)["archived"] = draw(s, "true", "false")
		case "finalize":
			delete(metadata, "finalizers")
		case "resume":
			delete(c["spec"].(map[string]any), "suspend")
		case "touch":
			metadata["labels"].(map[string]any)["touched"] = fmt.Sprint(s.random.IntN(1000))
		}
		return nil
	})
	s.try(what+" "+r.Resource+" "+o.Meta.Name, err)
}

func keyOf(o *apiserver.Object) apiserver.Key {
	return apiserver.Key{Namespace: o.Meta.Namespace, Name: o.Meta.Name}
}

// label changes the labels of a namespace.
func (s *simulation) label() {
	ns := s.namespace()
	_, err := s.store.Update(namespaces, apiserver.Key{Name: ns}, func(c map[string]any) error {
		labels := content{"kubernetes.io/metadata.name": ns}
		if s.percent(10) {
			labels["gc.winnow.dev/protected"] = "true"
		}
		if s.percent(60) {
			labels["team"] = draw(s, "red", "blue")
		}
		c["metadata"].(map[string]any)["labels"] = labels
		return nil
	})
	s.try("label "+ns, err)
}

// endNamespace deletes a namespace, or creates it again.
func (s *simulation) endNamespace() {
	ns := s.namespace()
	if _, err := s.store.Delete(namespaces, apiserver.Key{Name: ns}, &metav1.DeleteOptions{}); err == nil {
		s.try("delete namespace "+ns, nil)
		s.judge.records.forget(func(d deletion) bool { return d.namespace == ns })
		return
	}
	s.try("create namespace "+ns, s.makeNamespace(ns))
}

func (s *simulation) makeNamespace(name string) error {
	_, err := s.store.Create(namespaces, content{
		"metadata": content{"name": name, "labels": content{"kubernetes.io/metadata.name": name}}, "status": content{"phase": "Active"},
	})
	return err
}

// spec draws the spec of a policy. Nulls remove what a patch finds.
func (s *simulation) spec() content {
	out := content{
		"mode": draw(s, "Enforce", "Enforce", "Enforce", "Enforce", "Preview"), "suspend": s.percent(5),
		"ttlAfterFinished": nil, "capacity": nil, "activeDeadline": nil, "annotationTTL": nil, "rules": nil,
	}
	if s.percent(80) {
		out["ttlAfterFinished"] = draw(s, "0s", "30s", "2m", "10m", "30m", "never")
	}
	if s.percent(30) {
		out["capacity"] = s.capacity()
	}
	if s.percent(20) {
		out["annotationTTL"] = draw(s, "Any", "Ignore", "ExtendOnly")
	}
	if s.percent(15) {
		out["activeDeadline"] = draw(s, "1m", "10m", "1h")
	}
	var rules []any
	for i := range 1 + s.random.IntN(3) {
		rules = append(rules, s.rule(i))
	}
	if rules != nil {
		out["rules"] = rules
	}
	return out
}

func ofApp(s *simulation) content { return content{"matchLabels": content{"app": draw(s, "x", "y")}} }

// unusedRule draws a rule for ConfigMaps and Secrets that nothing uses.
func (s *simulation) unusedRule(i int) content {
	return content{
		"name": fmt.Sprintf("r%d", i), "selector": ofApp(s), "after": "Unused",
		"resources": draw(s, []any{"configmaps"}, []any{"secrets"}, []any{"configmaps", "secrets"}),
		"ttl":       draw(s, "0s", "1m", "10m"), // No capacity: a replica may order by later times than the judge.
	}
}

// rule draws a rule of a policy.
func (s *simulation) rule(i int) content {
	if s.percent(35) {
		return s.unusedRule(i)
	}
	rule := content{"name": fmt.Sprintf("r%d", i)}
	if s.percent(50) {
		rule["selector"] = ofApp(s)
	}
	if s.percent(30) {
		rule["outcome"] = draw(s, "Failed", "Succeeded")
	}
	if s.percent(60) {
		rule["ttl"] = draw(s, "0s", "1m", "20m", "never")
	} else {
		rule["capacity"] = s.capacity()
	}
	if s.percent(40) {
		rule["resources"] = draw(s, []any{"workflows.argoproj.io"}, []any{"workflows.argoproj.io", "jobs.batch"})
	}
	if s.percent(20) {
		rule["notice"] = draw(s, "1s", "1m", "3m")
	}
	if s.percent(20) && rule["resources"] == nil {
		rule["activeDeadline"] = draw(s, "1m", "10m", "1h")
	}
	if s.percent(20) {
		s.count(rule, "Created")
	}
	if s.percent(20) {
		s.count(rule, "Matched")
		delete(rule, "capacity") // A replica that was killed may order what it counts by later times than the judge.
		rule["ttl"] = draw(s, "0s", "1m", "10m")
	}
	if s.percent(20) {
		rule["matchConditions"] = []any{content{"name": "c", "expression": draw(s, ofSome, ofArchived)}}
	}
	if s.percent(20) {
		rule["waitFor"] = content{
			"expression": draw(s, ofArchived, perhapsArchived), "atMost": draw(s, "1m", "10m", "1h"), "onTimeout": draw(s, "Keep", "Delete"),
		}
	}
	return rule
}

// count has a rule count from something else than the end, which takes no outcome and needs a resource.
func (s *simulation) count(rule content, after string) {
	rule["selector"] = ofApp(s)
	delete(rule, "outcome")
	delete(rule, "activeDeadline")
	rule["after"], rule["unfinished"], rule["resources"] = after, draw(s, "Delete", "Hold"), []any{draw(s, "jobs.batch", "pods", "workflows.argoproj.io")}
}

// capacity draws a limit. Nulls remove what a patch finds.
func (s *simulation) capacity() content {
	out := content{"maxObjects": s.random.IntN(6), "percentOfQuota": nil, "per": nil, "labelKey": nil, "minAge": nil}
	if s.percent(20) {
		out["maxObjects"], out["percentOfQuota"] = nil, draw(s, 1, 34, 50, 100)
	}
	switch s.random.IntN(4) {
	case 0:
		out["per"] = "Owner"
	case 1:
		out["per"], out["labelKey"] = "Label", "app"
	}
	if s.percent(20) {
		out["minAge"] = draw(s, "1m", "10m")
	}
	return out
}

// guardrails draws what a cluster policy demands of others.
func (s *simulation) guardrails() content {
	out := content{
		"minTTL": nil, "maxTTL": nil, "allowNever": nil, "suspendAll": s.percent(5), "holdAbove": nil, "windows": nil, "minNotice": nil,
		"maxDeletionsPerMinute": nil, "ceilings": nil,
	}
	switch s.random.IntN(7) {
	case 0:
		out["minTTL"] = "2m"
	case 1:
		out["maxTTL"], out["allowNever"] = "30m", false
	case 2:
		above := content{"objects": 2 + s.random.IntN(10)}
		if s.percent(30) {
			above["percent"] = 5 + s.random.IntN(90)
		}
		out["holdAbove"] = above
	case 3:
		schedule, duration := draw(s, "*/10 * * * *", "0,30 * * * *", "5 * * * *"), draw(s, "2m", "7m")
		out["windows"] = []any{content{"schedule": schedule, "duration": duration}}
	case 4:
		out["maxDeletionsPerMinute"] = 1 + s.random.IntN(20)
	case 5:
		out["minNotice"] = draw(s, "1s", "1m", "3m")
	case 6:
		out["ceilings"] = []any{content{"resources": []any{draw(s, "jobs.batch", "workflows.argoproj.io")}, "maxObjects": 5 + s.random.IntN(10)}}
	}
	return out
}

// quota creates, changes or deletes the quota of a namespace.
func (s *simulation) quota() {
	key := apiserver.Key{Namespace: s.namespace(), Name: "quota"}
	if s.percent(20) {
		_, err := s.store.Delete(quotas, key, &metav1.DeleteOptions{})
		s.try("delete the quota of "+key.Namespace, err)
		return
	}
	hard := content{"pods": fmt.Sprint(2 + s.random.IntN(20))}
	for _, r := range []schema.GroupResource{jobs, workflows} {
		hard["count/"+r.String()] = fmt.Sprint(2 + s.random.IntN(20))
	}
	object := content{
		"metadata": content{"namespace": key.Namespace, "name": key.Name}, "spec": content{"hard": hard}, "status": content{"hard": hard},
	}
	if _, err := s.store.Create(quotas, object); err == nil {
		return
	}
	_, err := s.store.Update(quotas, key, func(c map[string]any) error {
		c["spec"], c["status"] = object["spec"], object["status"]
		return nil
	})
	s.try("change the quota of "+key.Namespace, err)
}

// write creates, replaces or deletes a policy.
func (s *simulation) write() {
	name, ns := draw(s, "p", "q"), s.namespace()
	kind, path := "CleanupPolicy", policiesPath+"/namespaces/"+ns+"/cleanuppolicies"
	metadata := content{"name": name, "namespace": ns}
	spec := s.spec()
	if s.percent(25) {
		kind, path = "ClusterCleanupPolicy", policiesPath+"/clustercleanuppolicies"
		metadata = content{"name": name}
		spec["namespaceSelector"] = draw(s, content{}, content{"matchLabels": content{"team": draw(s, "red", "blue")}})
		if spec["guardrails"] = nil; s.percent(50) {
			spec["guardrails"] = s.guardrails()
		}
	}
	if s.percent(15) {
		s.request(http.MethodDelete, path+"/"+name, nil)
		return
	}
	object := content{"apiVersion": "gc.winnow.dev/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec}
	s.request(http.MethodPost, path, object)
	s.request(http.MethodPatch, path+"/"+name, content{"spec": spec})
}

// approveAny approves what waits of one policy, and approveAll of all policies.
func (s *simulation) approveAny() {
	if o := s.any(draw(s, policies, clusterPolicies), ""); o != nil {
		s.approve(o)
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
	path, annotation := policiesPath+"/clustercleanuppolicies/"+o.Meta.Name, []string{}
	switch p := stored(o).(type) {
	case *gc.CleanupPolicy:
		path, annotation = policiesPath+"/namespaces/"+p.Namespace+"/cleanuppolicies/"+p.Name, idsOf(p.Status.Holds)
	case *gc.ClusterCleanupPolicy:
		annotation = idsOf(p.Status.Holds)
	}
	if len(annotation) > 0 {
		annotations := content{gc.AnnotationApprovedHold: strings.Join(annotation, ",")}
		s.request(http.MethodPatch, path, content{"metadata": content{"annotations": annotations}})
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

// request sends a request of a user to a replica, which may be cut off. Nobody waits for the answer.
func (s *simulation) request(method, path string, object any) {
	r := draw(s, s.replicas...)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		code, data, err := r.client.do(ctx, "jane", method, path, object)
		if err != nil {
			return
		}
		ended := strings.Contains(string(data), "is not the ID of a hold") // It ended before somebody approved it.
		if code == http.StatusBadRequest || code == http.StatusUnprocessableEntity && !ended {
			body, _ := json.Marshal(object)
			s.unexpected(fmt.Sprintf("%s %s %s: %d %s", method, path, body, code, data))
		}
	}()
}

// controlled are the resources that the controllers of Kubernetes delete.
var controlledResources = []schema.GroupResource{
	jobs, pods, workflows, configMaps, secrets, serviceAccounts, replicaSets, cronJobs, quotas, policies, {Resource: "events"}, {Group: "events.k8s.io", Resource: "events"},
}

// collectGarbage does what the controllers of Kubernetes do: it deletes what has lost its owner, or whose namespace ends.
func (s *simulation) collectGarbage() {
	owners, ending, left := map[types.UID]bool{}, map[string]bool{}, map[string]bool{}
	for _, r := range controlledResources {
		for _, o := range s.store.Objects(r) {
			owners[o.Meta.UID] = true
		}
	}
	for _, ns := range s.store.Objects(namespaces) {
		ending[ns.Meta.Name] = ns.Meta.DeletionTimestamp != nil
	}
	for _, r := range controlledResources {
		for _, o := range s.store.Objects(r) {
			ends := ending[o.Meta.Namespace]
			left[o.Meta.Namespace] = left[o.Meta.Namespace] || ends
			s.collect(r, o, ends, ends || len(o.Meta.OwnerReferences) > 0 && !owners[o.Meta.OwnerReferences[0].UID])
		}
	}
	for name := range ending {
		if ending[name] && !left[name] {
			s.store.Finish(name)
		}
	}
}

// collect deletes an object that has to go, or removes its finalizers, in time, if its namespace ends.
func (s *simulation) collect(r schema.GroupResource, o *apiserver.Object, ends, goes bool) {
	if goes && o.Meta.DeletionTimestamp == nil {
		_, err := s.store.Delete(r, keyOf(o), &metav1.DeleteOptions{})
		s.try("collect "+o.Meta.Name, err)
	} else if ends && s.percent(20) {
		s.finalize(r, o)
	}
}

// finalize removes the finalizers of an object, as their controller does.
func (s *simulation) finalize(r schema.GroupResource, o *apiserver.Object) {
	_, err := s.store.Update(r, keyOf(o), func(c map[string]any) error {
		delete(c["metadata"].(map[string]any), "finalizers")
		return nil
	})
	s.try("finalize "+o.Meta.Name, err)
}
