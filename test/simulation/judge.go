// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/watch"

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
	// overCeiling is the reason of what is above a ceiling.
	overCeiling = "OverCeiling"
	// lately is for how long a deletion may count in a share.
	lately = 30 * time.Minute
	// collectedWorlds is after how many worlds garbage is collected.
	collectedWorlds = 1000
)

var (
	jobs            = schema.GroupResource{Group: "batch", Resource: "jobs"}
	cronJobs        = schema.GroupResource{Group: "batch", Resource: "cronjobs"}
	quotas          = schema.GroupResource{Resource: "resourcequotas"}
	pods            = schema.GroupResource{Resource: "pods"}
	namespaces      = schema.GroupResource{Resource: "namespaces"}
	policies        = schema.GroupResource{Group: "internal.gc.winnow.dev", Resource: "storedcleanuppolicies"}
	clusterPolicies = schema.GroupResource{Group: "internal.gc.winnow.dev", Resource: "storedclustercleanuppolicies"}
	marks           = schema.GroupResource{Group: "internal.gc.winnow.dev", Resource: "usagemarks"}
)

// judgedResources are those that policies name.
var judgedResources = []schema.GroupResource{jobs, pods, workflows, configMaps, secrets}

// judge says whether each DELETE was right, by the store and a model of its own.
type judge struct {
	store *apiserver.Store
	// lag is how far what a replica knows of objects may be behind, and sees since when it is not.
	lag       func(replica string) time.Duration
	sees      func(replica string) time.Time
	facts     map[*apiserver.Object]*lifecycle.Fact
	policies  map[*apiserver.Object]runtime.Object
	deletes   map[string]int // by resource
	deadlines int            // that were changed
	byOld     int            // of both, those that are right by an older view alone
	faults    []string
	holdAbove int // how many objects in a namespace one change may make due at once without a guardrail
	holds     map[oracle.PolicyInNamespace]*hold
	// listed are the holds that the status of a policy has ever listed, by their IDs.
	listed map[string]gc.PolicyHold
	// approved are the objects that somebody has approved.
	approved sets.Set[types.UID]
	records  records
	// gone are all deletions that may count in a share.
	gone    records
	matched matched
	uses    uses
	returns returns
	worlds  int // how many were built
	// edited is set if somebody has changed a policy since changed has looked.
	edited bool
	// ruled is when a policy, namespace or quota has changed last, and around when each namespace or its quota has.
	ruled  time.Time
	around map[string]time.Time
	// wentBack is when the store went back last.
	wentBack time.Time
}

func newJudge() *judge {
	return &judge{
		facts: map[*apiserver.Object]*lifecycle.Fact{}, policies: map[*apiserver.Object]runtime.Object{},
		holds: map[oracle.PolicyInNamespace]*hold{}, listed: map[string]gc.PolicyHold{}, around: map[string]time.Time{},
		matched: matched{spells: map[types.UID]map[string]*spell{}}, uses: uses{of: map[contentKey]*use{}},
		returns:  returns{of: map[objectName]*returned{}, made: map[objectName][]byte{}, deleted: map[types.UID]bool{}},
		approved: sets.Set[types.UID]{}, records: records{}, gone: records{}, deletes: map[string]int{},
	}
}

// observe takes in a change of the store. It is called with the lock of the store.
func (j *judge) observe(r apiserver.Resource, e apiserver.Event) {
	isPolicy := r.GroupResource() == policies || r.GroupResource() == clusterPolicies
	edits := isPolicy && (e.Type == watch.Deleted || j.meant(e.Before) != j.meant(e.Object)) // Otherwise only the status has changed.
	j.edited = j.edited || edits
	switch meta := e.Object.Meta; r.GroupResource() {
	case namespaces:
		j.ruled, j.around[meta.Name] = e.Time, e.Time
	case quotas:
		j.ruled, j.around[meta.Namespace] = e.Time, e.Time
	}
	if edits {
		j.ruled = e.Time
	}
	if isPolicy {
		j.noteHolds(e.Object)
	}
	if edits || !isPolicy {
		j.matched.observe(r, e)
	}
	j.uses.observe(r, e)
	j.returns.observe(r, e)
	j.records.observe(r, e)
}

func (j *judge) fault(format string, args ...any) {
	j.faults = append(j.faults, time.Now().Format("02 15:04:05.000 ")+fmt.Sprintf(format, args...))
}

// deleted judges a DELETE that the API server has just carried out.
func (j *judge) deleted(from string, a *apiserver.Answer) {
	o := a.Deleted
	fact := j.fact(o)
	if fact == nil {
		if !winnows(o) {
			j.fault("%s deleted this, which no policy can name: %s", from, o.JSON)
		}
		return
	}
	what := fmt.Sprintf("%s deleted %s %s/%s (%s at %d)", from, fact.Resource, fact.Namespace, fact.Name, fact.UID, o.Revision)
	j.deletes[fact.Resource]++
	d := deletion{at: time.Now(), from: from, namespace: fact.Namespace, what: what}
	if p := a.Options.PropagationPolicy; len(o.Meta.Finalizers) == 0 && (p == nil || *p == metav1.DeletePropagationBackground) {
		d.gone = d.at
	}
	j.records[fact.UID], j.gone[fact.UID] = d, d
	j.gone.forget(func(d deletion) bool { return time.Since(d.at) > lately })
	j.returns.take(fact)
	if j.returns.surely(fact, j.sees(from)) {
		j.fault("%s, which has come back again and again", what)
	}
	p := a.Options.Preconditions
	if p == nil || p.UID == nil || p.ResourceVersion == nil || a.Options.PropagationPolicy == nil {
		j.fault("%s without preconditions or a propagation policy: %+v", what, a.Options)
		return
	}
	right := func(answer oracle.Answer) bool { return answer.Action == oracle.Delete }
	if answer, ok := j.decided(what, from, fact, right); ok {
		j.heldBack(what, from, fact, answer)
	}
}

// winnows reports whether an object is Winnow's own, such as a record.
func winnows(o *apiserver.Object) bool {
	var kind metav1.TypeMeta
	mustDecode(o, &kind)
	return strings.HasSuffix(kind.GroupVersionKind().Group, gc.GroupName)
}

// decided judges what a replica does to an object in a state: by what it may have known, the answer must have been right. It returns this
// answer; false if there is nothing more to judge.
func (j *judge) decided(what, from string, fact *lifecycle.Fact, right func(oracle.Answer) bool) (oracle.Answer, bool) {
	now := time.Now()
	if now.Sub(j.wentBack) < freshness+underWay { // Nobody can know yet.
		j.byOld++
		return oracle.Answer{}, false
	}
	j.follow()
	matched := j.matched.times()
	revision := j.store.Revision() - 1 // of the moment before
	forgotten := j.forgotten(fact, revision)
	answers := []oracle.Answer{}
	for i, at := range j.views(revision, now, j.lag(from)) {
		w := j.worldOf(at, j.lag(from))
		w.Matched = matched
		w.Objects = slices.DeleteFunc(w.Objects, func(f *lifecycle.Fact) bool {
			return f.UID == fact.UID || f.Namespace != fact.Namespace && !hasCeilings(w) // Which are all that connects namespaces.
		})
		w.Objects = append(w.Objects, j.uses.in(fact, at.now, j.lag(from)))
		answer := w.Answers()[fact.UID]
		if answer.Reason == notified && forgotten() {
			delete(w.Notices, fact.UID)
			answer = w.Answers()[fact.UID]
		}
		if !right(answer) {
			again := j.returns.mayLoop(w)
			delete(again.Recreated, fact.UID)
			answer = again.Answers()[fact.UID]
		}
		if right(answer) {
			if i > 1 {
				j.byOld++
			}
			return answer, true
		}
		answers = append(answers, answer)
	}
	j.fault("%s: it must not: %+v; now %+v", what, answers[0], *fact)
	return oracle.Answer{}, false
}

func hasCeilings(w *oracle.World) bool {
	return slices.ContainsFunc(w.ClusterPolicies, func(p *gc.ClusterCleanupPolicy) bool {
		return p.Spec.Guardrails != nil && len(p.Spec.Guardrails.Ceilings) > 0
	})
}

// restored takes in that the store went back to a revision. What people had approved or changed may not be there any more.
func (j *judge) restored(revision int64) {
	j.wentBack = time.Now()
	clear(j.holds)
	j.uses.restored(j.store, revision)
	j.returns.restored()
	j.matched.restored(change{revision: revision, at: j.wentBack})
}

// view is what a replica may have known, and when it decided.
type view struct {
	policies, objects int64
	now               time.Time
}

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
		for _, o := range past(lag+underWay, append([]schema.GroupResource{cronJobs, quotas}, judgedResources...)...) {
			out = append(out, view{p, o, now}, view{p, o, now.Add(-underWay)}) // A window may have closed meanwhile.
		}
	}
	return out
}

// present is the world of now.
func (j *judge) present() *oracle.World { return j.world(j.store.Revision(), time.Now()) }

// world is what the model needs at a revision.
func (j *judge) world(revision int64, now time.Time) *oracle.World {
	return j.worldOf(view{revision, revision, now}, 0)
}

// worldOf is what the model needs for a view of a replica that may not see what has happened for some time.
func (j *judge) worldOf(v view, unseen time.Duration) *oracle.World {
	j.worlds++
	if j.worlds%collectedWorlds == 0 {
		freeMemory()
	}
	w := j.rules(v.policies, v.now)
	w.Objects, w.Notices = j.objects(v, unseen), j.notices(v.objects)
	for _, o := range j.store.At(cronJobs, v.objects) {
		cj := &batchv1.CronJob{}
		mustDecode(o, cj)
		w.CronJobs = append(w.CronJobs, lifecycle.FromCronJob(cj))
	}
	for _, o := range j.store.At(quotas, v.objects) {
		q := &corev1.ResourceQuota{}
		mustDecode(o, q)
		w.Quotas = append(w.Quotas, q)
	}
	return w
}

// rules is the world without objects.
func (j *judge) rules(revision int64, now time.Time) *oracle.World {
	w := &oracle.World{Now: now, Namespaces: map[string]oracle.Namespace{}, Validated: true}
	for _, o := range j.store.At(namespaces, revision) {
		w.Namespaces[o.Meta.Name] = oracle.Namespace{
			Labels: o.Meta.Labels, Terminating: o.Meta.DeletionTimestamp != nil,
			Protected: slices.Contains([]string{"kube-system", "kube-public", "kube-node-lease", "winnow-system"}, o.Meta.Name),
		}
	}
	for _, o := range j.store.At(policies, revision) {
		if p, ok := j.stored(o).(*gc.CleanupPolicy); ok {
			w.Policies = append(w.Policies, p)
		}
	}
	for _, o := range j.store.At(clusterPolicies, revision) {
		if p, ok := j.stored(o).(*gc.ClusterCleanupPolicy); ok {
			w.ClusterPolicies = append(w.ClusterPolicies, p)
		}
	}
	return w
}

// objects are the objects that policies name, for a view of a replica that may not see what has happened for some time.
func (j *judge) objects(v view, unseen time.Duration) (out []*lifecycle.Fact) {
	for _, r := range judgedResources {
		for _, o := range j.store.At(r, v.objects) {
			out = append(out, j.uses.in(j.fact(o), v.now, unseen))
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
	case "Workflow":
		f, err = factOfWorkflow(o)
	case "ConfigMap", "Secret":
		f, err = lifecycle.FromMetadata(strings.ToLower(kind.Kind)+"s", schema.GroupKind{Kind: kind.Kind}, &o.Meta)
	case "Pod":
		pod := &corev1.Pod{}
		mustDecode(o, pod)
		f, err = lifecycle.FromPod(pod)
	}
	if err != nil {
		panic(err)
	}
	if f != nil {
		f.Finishes = kind.Kind != "ConfigMap" && kind.Kind != "Secret"
	}
	j.facts[o] = f
	return f
}

// stored is the function stored, which takes long, with a memory.
func (j *judge) stored(o *apiserver.Object) runtime.Object {
	p, ok := j.policies[o]
	if !ok {
		p = stored(o)
		j.policies[o] = p
	}
	return p
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
