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

	"github.com/winnow-dev/winnow/test/simulation/apiserver"
)

type content = map[string]any

// draw returns one of several values.
func draw[T any](s *simulation, of ...T) T { return of[s.random.IntN(len(of))] }

func (s *simulation) percent(n int) bool { return s.random.IntN(100) < n }

// often draws whether something happens. Each seed leaves some things out, and does others more often, because what happens often hides
// what happens seldom: A. Groce et al., Swarm Testing, 2012.
func (s *simulation) often(what string, n int) bool {
	times, ok := s.times[what]
	if !ok {
		times = draw(s, 0, 1, 1, 3)
		s.times[what] = times
	}
	return s.percent(min(n*times, 90))
}

func (s *simulation) namespace() string { return draw(s, s.names...) }

// try notes what a user could not do. What users do may fail, as when a namespace ends.
func (s *simulation) try(what string, err error) { s.note("user: %s: %v", what, err) }

func (s *simulation) timestamp(ago time.Duration) string {
	return time.Now().Add(-ago).UTC().Format(time.RFC3339)
}

// create creates a Job, Pod or Workflow, and createMany several of them in one namespace.
func (s *simulation) create() { s.createOne(s.kind(), s.namespace()) }

func (s *simulation) createMany() {
	r, ns := s.kind(), s.namespace()
	for range 3 + s.random.IntN(20) {
		s.createOne(r, ns)
	}
}

func (s *simulation) kind() schema.GroupResource { return draw(s, jobs, jobs, pods, workflows) }

// createOne creates an object, which may have finished.
func (s *simulation) createOne(r schema.GroupResource, ns string) {
	s.created++
	metadata := content{"namespace": ns, "name": fmt.Sprintf("%s-%d", r.Resource, s.created), "labels": content{"app": draw(s, "x", "y", "z")}}
	if s.often("annotations", 10) {
		metadata["annotations"] = s.annotations()
	}
	if s.often("finalizers", 20) {
		metadata["finalizers"] = []any{"example.com/slow"}
	}
	if r == pods && s.often("owner", 30) {
		if of := s.any(jobs, ns); of != nil {
			metadata["ownerReferences"] = controlledBy("Job", &of.Meta)
		}
	}
	spec := s.podSpec()
	if r == jobs {
		if spec = specOfJob(spec); s.often("ttlSecondsAfterFinished", 15) {
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

// controlledBy are the owner references of what a Job or CronJob controls.
func controlledBy(kind string, owner *metav1.ObjectMeta) []any {
	return []any{content{"apiVersion": "batch/v1", "kind": kind, "name": owner.Name, "uid": string(owner.UID), "controller": true}}
}

// specOfJob is the spec of a Job whose Pods have a spec.
func specOfJob(pod content) content { return content{"template": content{"spec": pod}} }

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
	what := draw(s, "finish", "finish", "finish", "finish", "finish", "annotate", "annotate", "release", "label", "label", "archive",
		"finalize", "delete", "resume", "touch")
	if what == "delete" {
		_, err := s.store.Delete(r, keyOf(o), &metav1.DeleteOptions{})
		s.try("delete "+r.Resource+" "+o.Meta.Name, err)
		return
	}
	_, err := s.store.Update(r, keyOf(o), func(c map[string]any) error {
		s.edit(r, what, c)
		return nil
	})
	s.try(what+" "+r.Resource+" "+o.Meta.Name, err)
}

// edit changes the content of an object.
func (s *simulation) edit(r schema.GroupResource, what string, c content) {
	metadata := c["metadata"].(content)
	switch what {
	case "finish":
		if status, _ := c["status"].(content); status["phase"] == nil && status["conditions"] == nil {
			c["status"] = s.finished(r)
		}
	case "annotate":
		metadata["annotations"] = s.annotations()
	case "release":
		delete(metadata, "annotations")
	case "label":
		metadata["labels"] = content{"app": draw(s, "x", "y", "z")}
	case "archive":
		metadata["labels"].(content)["archived"] = draw(s, "true", "false")
	case "finalize":
		delete(metadata, "finalizers")
	case "resume":
		delete(c["spec"].(content), "suspend")
	case "touch":
		metadata["labels"].(content)["touched"] = fmt.Sprint(s.random.IntN(1000))
	}
}

func keyOf(o *apiserver.Object) apiserver.Key {
	return apiserver.Key{Namespace: o.Meta.Namespace, Name: o.Meta.Name}
}

// label changes the labels of a namespace.
func (s *simulation) label() {
	ns := s.namespace()
	_, err := s.store.Update(namespaces, apiserver.Key{Name: ns}, func(c map[string]any) error {
		labels := content{"kubernetes.io/metadata.name": ns}
		if s.often("protected", 2) {
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

// endNamespace deletes a namespace.
func (s *simulation) endNamespace() {
	if !s.often("end of a namespace", 30) { // Its objects go with it.
		return
	}
	ns := s.namespace()
	_, err := s.store.Delete(namespaces, apiserver.Key{Name: ns}, &metav1.DeleteOptions{})
	s.try("delete namespace "+ns, err)
	s.judge.records.forget(func(d deletion) bool { return d.namespace == ns })
}

// makeNamespaces creates the namespaces that are not there.
func (s *simulation) makeNamespaces() {
	for _, ns := range s.names {
		if err := s.makeNamespace(ns); err == nil {
			s.try("create namespace "+ns, nil)
		}
	}
}

func (s *simulation) makeNamespace(name string) error {
	_, err := s.store.Create(namespaces, content{
		"metadata": content{"name": name, "labels": content{"kubernetes.io/metadata.name": name}}, "status": content{"phase": "Active"},
	})
	return err
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

// request sends a request of a user to a replica, which may be cut off. Nobody waits for the answer. A replica is asked to create one
// policy at a time, because it holds a mutex meanwhile: a bubble of synctest does not go on while a goroutine waits for a mutex.
func (s *simulation) request(user, method, path string, object any) {
	r := draw(s, s.replicas...)
	if method == http.MethodPost && !r.creates.CompareAndSwap(false, true) {
		return
	}
	go func() {
		if method == http.MethodPost {
			defer r.creates.Store(false)
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		code, data, err := r.client.do(ctx, user, method, path, object)
		if err != nil {
			return
		}
		if user == apiserver.NoDeleter && code < http.StatusBadRequest {
			s.unexpected(fmt.Sprintf("%s may delete nothing, and could %s %s: %d", user, method, path, code))
		}
		late := strings.Contains(string(data), "the ID of a hold") // It ended, or another policy has it, before somebody approved it.
		if code == http.StatusBadRequest || code == http.StatusUnprocessableEntity && !late {
			body, _ := json.Marshal(object)
			s.unexpected(fmt.Sprintf("%s %s %s: %d %s", method, path, body, code, data))
		}
	}()
}
