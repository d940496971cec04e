// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	winnow "github.com/winnow-dev/winnow/pkg/apiserver"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/oracle"
	"github.com/winnow-dev/winnow/test/simulation/apiserver"
)

const (
	// freshness is how old the policies and namespaces may be by which a DELETE is decided: promise (b) of the documentation.
	freshness = time.Second
	// underWay is how long a request is under way at most without a fault.
	underWay = 500 * time.Millisecond
)

var (
	jobs            = schema.GroupResource{Group: "batch", Resource: "jobs"}
	cronJobs        = schema.GroupResource{Group: "batch", Resource: "cronjobs"}
	pods            = schema.GroupResource{Resource: "pods"}
	namespaces      = schema.GroupResource{Resource: "namespaces"}
	policies        = schema.GroupResource{Group: "internal.gc.winnow.dev", Resource: "storedcleanuppolicies"}
	clusterPolicies = schema.GroupResource{Group: "internal.gc.winnow.dev", Resource: "storedclustercleanuppolicies"}
)

// judge says whether each DELETE was right, by the store and a model of its own.
type judge struct {
	store *apiserver.Store
	// lag is how far what a replica knows of objects may be behind.
	lag      func(replica string) time.Duration
	facts    map[*apiserver.Object]*lifecycle.Fact
	deletes  int
	byOld    int // that are right by an older view alone
	faults   []string
	holds    map[oracle.PolicyInNamespace]*hold
	held     int // changes that had to be held
	revision int64
}

// hold is a change that made so many objects due at once that they must wait for approval, until the policy changes again.
type hold struct {
	since      time.Time
	uids       map[types.UID]bool
	generation int64
	approved   string // the value of the annotation when the change was made
}

func (j *judge) fault(format string, args ...any) {
	j.faults = append(j.faults, time.Now().Format("02 15:04:05.000 ")+fmt.Sprintf(format, args...))
}

// deleted judges a DELETE that the API server has just carried out.
func (j *judge) deleted(from string, a *apiserver.Answer) {
	o := a.Deleted
	fact := j.fact(o)
	if fact == nil {
		return // Something of Winnow's own, such as a record.
	}
	j.deletes++
	what := fmt.Sprintf("%s deleted %s %s/%s (%s at %d)", from, fact.Resource, fact.Namespace, fact.Name, fact.UID, o.Revision)
	p := a.Options.Preconditions
	if p == nil || p.UID == nil || p.ResourceVersion == nil || a.Options.PropagationPolicy == nil {
		j.fault("%s without preconditions or a propagation policy: %+v", what, a.Options)
		return
	}
	now := time.Now()
	revision := j.store.Revision() - 1 // of the moment before
	answers := []oracle.Answer{}
	for i, at := range j.views(revision, now, j.lag(from)) {
		w := j.world(at.policies, at.objects, now)
		w.Objects = append(slices.DeleteFunc(w.Objects, func(f *lifecycle.Fact) bool { return f.UID == fact.UID }), fact)
		answer := w.Answers()[fact.UID]
		if answer.Action == oracle.Delete {
			if i > 0 {
				j.byOld++
			}
			j.heldBack(what, from, fact, answer)
			return
		}
		answers = append(answers, answer)
	}
	j.fault("%s: it must stay: %+v; now %+v", what, answers[0], a.Deleted.Meta)
}

// changed looks for a change of a policy that makes too many objects due at once.
func (j *judge) changed() {
	revision := j.store.Revision()
	if revision == j.revision {
		return
	}
	j.revision = revision
	now := time.Now()
	after := j.world(revision, revision, now)
	maps.DeleteFunc(j.holds, func(key oracle.PolicyInNamespace, h *hold) bool { return !h.waits(policyOf(after, key)) })
	was := map[types.UID]bool{}
	for _, uids := range j.world(revision-1, revision-1, now).DueBy() {
		for _, uid := range uids {
			was[uid] = true
		}
	}
	for key, uids := range after.DueBy() {
		h := &hold{since: now, uids: map[types.UID]bool{}}
		for _, uid := range uids {
			if !was[uid] {
				h.uids[uid] = true
			}
		}
		if p := policyOf(after, key); p != nil && len(h.uids) > holdAbove {
			h.generation, h.approved = p.GetGeneration(), p.GetAnnotations()[gc.AnnotationApprovedHold]
			j.holds[key] = h
			j.held++
		}
	}
}

// waits reports whether nobody has changed the policy, or approved what it makes due.
func (h *hold) waits(p metav1.Object) bool {
	return p != nil && p.GetGeneration() == h.generation && p.GetAnnotations()[gc.AnnotationApprovedHold] == h.approved
}

func policyOf(w *oracle.World, key oracle.PolicyInNamespace) metav1.Object {
	for _, p := range w.Policies {
		if p.Namespace == key.Policy.Namespace && p.Name == key.Policy.Name {
			return p
		}
	}
	for _, p := range w.ClusterPolicies {
		if key.Policy.Namespace == "" && p.Name == key.Policy.Name {
			return p
		}
	}
	return nil
}

// heldBack judges whether an object that is due may go without approval. A replica that knew less than all when the policy changed may have
// counted fewer objects.
func (j *judge) heldBack(what, from string, fact *lifecycle.Fact, answer oracle.Answer) {
	for key, h := range j.holds {
		if h.uids[fact.UID] && key.Namespace == fact.Namespace && strings.HasPrefix(answer.By, key.Policy.String()+" ") && j.lag(from) == 0 {
			j.fault("%s: a change of %v at %s made %d objects due at once, which wait for approval",
				what, key.Policy, h.since.Format(time.TimeOnly), len(h.uids))
		}
	}
}

// view is what a replica may have known.
type view struct{ policies, objects int64 }

// views returns what a replica may have known when it sent a DELETE, the newest first.
func (j *judge) views(revision int64, now time.Time, lag time.Duration) []view {
	past := func(within time.Duration, resources ...schema.GroupResource) []int64 {
		out := []int64{revision}
		for _, r := range resources {
			for _, change := range j.store.Changes(r, now.Add(-within)) {
				if change <= revision {
					out = append(out, change-1)
				}
			}
		}
		slices.Sort(out)
		slices.Reverse(out)
		return slices.Compact(out)
	}
	var out []view
	for _, p := range past(freshness+underWay, policies, clusterPolicies, namespaces) {
		for _, o := range past(lag+underWay, jobs, pods, cronJobs) {
			out = append(out, view{p, min(o, p+1<<40)})
		}
	}
	return out
}

// world is what the model needs, by policies and namespaces of one revision, and objects of another.
func (j *judge) world(byPolicies, byObjects int64, now time.Time) *oracle.World {
	w := &oracle.World{Now: now, Namespaces: map[string]oracle.Namespace{}}
	for _, o := range j.store.At(namespaces, byPolicies) {
		w.Namespaces[o.Meta.Name] = oracle.Namespace{
			Labels: o.Meta.Labels, Terminating: o.Meta.DeletionTimestamp != nil,
			Protected: slices.Contains([]string{"kube-system", "kube-public", "kube-node-lease", "winnow-system"}, o.Meta.Name),
		}
	}
	for _, o := range j.store.At(policies, byPolicies) {
		if p, ok := stored(o).(*gc.CleanupPolicy); ok {
			w.Policies = append(w.Policies, p)
		}
	}
	for _, o := range j.store.At(clusterPolicies, byPolicies) {
		if p, ok := stored(o).(*gc.ClusterCleanupPolicy); ok {
			w.ClusterPolicies = append(w.ClusterPolicies, p)
		}
	}
	for _, r := range []schema.GroupResource{jobs, pods} {
		for _, o := range j.store.At(r, byObjects) {
			w.Objects = append(w.Objects, j.fact(o))
		}
	}
	for _, o := range j.store.At(cronJobs, byObjects) {
		cj := &batchv1.CronJob{}
		mustDecode(o, cj)
		w.CronJobs = append(w.CronJobs, lifecycle.FromCronJob(cj))
	}
	return w
}

// left returns what is due, and may go, by the newest state.
func (j *judge) left() (out []string) {
	revision := j.store.Revision()
	w := j.world(revision, revision, time.Now())
	answers := w.Answers()
	for _, f := range w.Objects {
		if a := answers[f.UID]; a.Action == oracle.Delete {
			out = append(out, fmt.Sprintf("%s %s/%s: %+v", f.Resource, f.Namespace, f.Name, a))
		}
	}
	return out
}

// fact returns what matters of an object; nil if no policy can name it.
func (j *judge) fact(o *apiserver.Object) *lifecycle.Fact {
	if f, ok := j.facts[o]; ok {
		return f
	}
	var kind metav1.TypeMeta
	mustDecode(o, &kind)
	var f *lifecycle.Fact
	var err error
	switch kind.Kind {
	case "Job":
		job := &batchv1.Job{}
		mustDecode(o, job)
		f, err = lifecycle.FromJob(job)
	case "Pod":
		pod := &corev1.Pod{}
		mustDecode(o, pod)
		f, err = lifecycle.FromPod(pod)
	}
	if err != nil {
		panic(err)
	}
	j.facts[o] = f
	return f
}

// stored returns the policy that an object of the storage holds; nil if it holds none.
func stored(o *apiserver.Object) runtime.Object {
	var host struct {
		Payload string `json:"payload"`
	}
	mustDecode(o, &host)
	if host.Payload == "" {
		return nil
	}
	out, err := runtime.Decode(winnow.StorageCodec(), []byte(host.Payload))
	if err != nil {
		panic(err)
	}
	return out
}

func mustDecode(o *apiserver.Object, out any) {
	if err := json.Unmarshal(o.JSON, out); err != nil {
		panic(err)
	}
}
