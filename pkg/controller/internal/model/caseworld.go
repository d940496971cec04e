// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/apis/gc/install"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
)

// caseNamespace is the default namespace of objects.
const caseNamespace = "team-a"

// protectedNames are the namespaces that Winnow always protects.
var protectedNames = []string{metav1.NamespaceSystem, metav1.NamespacePublic, corev1.NamespaceNodeLease, "winnow-system"}

// ownerGroups are the API groups of the controllers in examples.
var ownerGroups = map[string]string{
	"CronJob": "batch", "Job": "batch", "ReplicaSet": "apps", "StatefulSet": "apps", "DaemonSet": "apps", "Deployment": "apps",
	"JobSet": "jobset.x-k8s.io",
}

// world returns the objects of the example under these manifests.
func (e *example) world(manifests string) (*World, error) {
	w := &World{
		Now: CaseNow, Namespaces: map[string]Namespace{}, Recreated: map[types.UID]bool{}, Notices: map[types.UID]Notice{},
		Matched: map[types.UID]map[string]time.Time{},
	}
	if err := w.read(manifests); err != nil {
		return nil, err
	}
	for _, o := range e.Objects {
		for _, f := range o.facts() {
			f.ResourceVersion = uint64(len(w.Objects) + 1)
			w.Objects = append(w.Objects, f)
			w.Recreated[f.UID] = o.Recreated
			w.setMatched(f.UID, o.Matched)
			if o.Announced != "" {
				n := Notice{Given: must(moments(o.Announced)), At: must(moments(o.Named))}
				if o.Acknowledged != "" {
					n.Delivered = must(moments(o.Acknowledged))
				}
				w.Notices[f.UID] = n
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(e.CronJobs)) {
		cj := &lifecycle.CronJob{
			ObjectMeta: metav1.ObjectMeta{Namespace: caseNamespace, Name: name, UID: uidOf(name), ResourceVersion: "1"},
			Active:     uids(e.CronJobs[name]),
		}
		if last := e.LastScheduled[name]; last != "" {
			cj.LastScheduled = must(moments(last))
		}
		w.CronJobs = append(w.CronJobs, cj)
	}
	w.nameNamespaces(e.Unobserved)
	return w, nil
}

// setMatched sets since when all rules match an object, if they do.
func (w *World) setMatched(uid types.UID, since string) {
	if since == "" {
		return
	}
	w.Matched[uid] = map[string]time.Time{}
	for _, identities := range w.MatchedRules() {
		for _, identity := range identities {
			w.Matched[uid][identity] = must(moments(since))
		}
	}
}

var documentEnd = regexp.MustCompile(`(?m)^---$`)

// read adds the policies, quotas and namespaces of the manifests, with the defaults of the API.
func (w *World) read(manifests string) error {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	if err := corev1.AddToScheme(scheme); err != nil {
		return err
	}
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDecoder(gc.SchemeGroupVersion, corev1.SchemeGroupVersion)
	for i, document := range documentEnd.Split(manifests, -1) {
		if strings.TrimSpace(document) == "" {
			continue
		}
		obj, _, err := decoder.Decode([]byte(document), nil, nil)
		if err != nil {
			return err
		}
		uid, version := types.UID(fmt.Sprintf("uid-given-%d", i)), "1"
		switch obj := obj.(type) {
		case *gc.CleanupPolicy:
			obj.UID, obj.ResourceVersion, obj.Generation = uid, version, 1
			w.Policies = append(w.Policies, obj)
		case *gc.ClusterCleanupPolicy:
			obj.UID, obj.ResourceVersion, obj.Generation = uid, version, 1
			w.ClusterPolicies = append(w.ClusterPolicies, obj)
		case *corev1.ResourceQuota:
			obj.UID, obj.ResourceVersion = uid, version
			w.Quotas = append(w.Quotas, obj)
		case *corev1.Namespace:
			w.Namespaces[obj.Name] = Namespace{Labels: obj.Labels, Terminating: obj.Status.Phase == corev1.NamespaceTerminating}
		default:
			return fmt.Errorf("a world has no %T", obj)
		}
	}
	return nil
}

// nameNamespaces adds the namespaces that have no manifest.
func (w *World) nameNamespaces(unobserved []string) {
	names := []string{caseNamespace}
	for _, p := range w.Policies {
		names = append(names, p.Namespace)
	}
	for _, f := range w.Objects {
		names = append(names, f.Namespace)
	}
	for _, name := range names {
		if slices.Contains(unobserved, name) {
			continue
		}
		ns := w.Namespaces[name]
		ns.Protected = slices.Contains(protectedNames, name)
		w.Namespaces[name] = ns
	}
}

// facts returns the objects that one entry stands for.
func (o *object) facts() []*lifecycle.Fact {
	if o.Count == 0 {
		return []*lifecycle.Fact{o.fact(o.Job + o.Pod + o.ConfigMap)}
	}
	var out []*lifecycle.Fact
	for i := range o.Count {
		out = append(out, o.fact(o.Job+o.Pod+"-"+strconv.Itoa(i+1)))
	}
	return out
}

func (o *object) fact(name string) *lifecycle.Fact {
	f := &lifecycle.Fact{
		Resource: gc.ResourceJobs, Namespace: o.Namespace, Name: name, UID: uidOf(name), Labels: labels.Set(o.Labels),
		Created: CaseNow.Add(-24 * time.Hour), Finishes: true, Terminating: o.Terminating, Applied: o.Applied,
	}
	if o.Pod != "" {
		f.Resource = gc.ResourcePods
	}
	if o.ConfigMap != "" {
		f.Resource, f.Finishes = gc.ResourceConfigMaps, false
		f.Usage = o.usage()
	}
	if o.Namespace == "" {
		f.Namespace = caseNamespace
	}
	if o.Created != "" {
		f.Created = must(moments(o.Created))
	}
	if o.Scheduled != "" {
		f.Scheduled = must(moments(o.Scheduled))
	}
	o.finish(f)
	if o.TTLSecondsAfterFinished != nil {
		ttl := time.Duration(*o.TTLSecondsAfterFinished) * time.Second
		f.NativeTTL = &ttl
	}
	if v, ok := o.Annotations[gc.AnnotationTTL]; ok {
		f.TTL = &v
	}
	if v, ok := o.Annotations[gc.AnnotationKeepUntil]; ok {
		f.KeepUntil = &v
	}
	if kind, name, ok := strings.Cut(o.Controller, "/"); ok {
		f.Controller = &lifecycle.Owner{GroupKind: schema.GroupKind{Group: ownerGroups[kind], Kind: kind}, Name: name, UID: uidOf(name)}
	}
	if o.Job != "" {
		f.Rereads = o.rereads()
	}
	o.finalize(f)
	return f
}

// rereads says which counted Pods of a Job must stay while it runs.
func (o *object) rereads() lifecycle.Rereads {
	switch {
	case o.ManagedBy != "":
		return lifecycle.RereadByManager
	case o.Controller != "" && !strings.HasPrefix(o.Controller, "CronJob/"):
		return lifecycle.RereadByOwner
	case o.PodFailurePolicy == "FailJob":
		return lifecycle.RereadFailed
	}
	return lifecycle.RereadNone
}

func (o *object) usage() lifecycle.Usage {
	u := lifecycle.Usage{State: lifecycle.InUse}
	if o.Unused != "" {
		u = lifecycle.Usage{State: lifecycle.Unused, Since: must(moments(o.Unused))}
	}
	if o.ReferrersUnknown {
		u.State = lifecycle.UsageUnknown
	}
	return u
}

func (o *object) finish(f *lifecycle.Fact) {
	if o.Finished == "" {
		o.limit(f)
		return
	}
	f.Finished, f.Outcome = true, gc.OutcomeSucceeded
	if o.Outcome != "" {
		f.Outcome = o.Outcome
	}
	if seen, unknown := strings.CutPrefix(o.Finished, "first seen "); unknown {
		f.FirstSeen, o.Finished = &lifecycle.FirstSeen{Why: "nothing tells when it finished", Version: 1}, seen
	}
	f.FinishedAt = must(moments(o.Finished))
}

// limit sets the deadline of an object that runs.
func (o *object) limit(f *lifecycle.Fact) {
	if o.Started != "" {
		f.Deadline.StartedAt = must(moments(o.Started))
	}
	recorded, ours := o.Annotations[gc.AnnotationActiveDeadline]
	switch {
	case o.ActiveDeadlineSeconds == nil:
		f.Deadline.Fixed = ours
	case recorded == strconv.FormatInt(*o.ActiveDeadlineSeconds, 10):
		f.Deadline.Set = time.Duration(*o.ActiveDeadlineSeconds) * time.Second
	default:
		f.Deadline.Fixed = true
	}
}

func (o *object) finalize(f *lifecycle.Fact) {
	for _, finalizer := range o.Finalizers {
		switch finalizer {
		case metav1.FinalizerOrphanDependents:
			f.Propagation = metav1.DeletePropagationOrphan
		case metav1.FinalizerDeleteDependents:
			f.Propagation = metav1.DeletePropagationForeground
		case "batch.kubernetes.io/job-tracking":
			f.Uncounted = true
		}
	}
	both := []string{metav1.FinalizerOrphanDependents, metav1.FinalizerDeleteDependents}
	f.Contradictory = sets.New(o.Finalizers...).HasAll(both...)
	if f.Terminating {
		f.Finalizers = o.Finalizers
	}
}

// must is for times in the files of this package.
func must(t time.Time, err error) time.Time {
	if err != nil {
		panic(err)
	}
	return t
}
