// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
)

// There are only a few names, so that the same names occur together.
var (
	// DrawnNamespaces are all namespaces that occur. One that a world lacks has not been observed.
	DrawnNamespaces = []string{"n1", "n2", "n3"}
	// drawnHomes has most objects in one namespace, so that pools fill.
	drawnHomes = []string{"n1", "n2", "n1", "n3", "n1"}
	// DrawnPolicies are the names of policies in each namespace, DrawnClusterPolicies the names of cluster policies.
	DrawnPolicies        = []string{"a", "b", "m"}
	DrawnClusterPolicies = []string{"a", "k", "z"}
	// DrawnQuotas are the names of quotas in each namespace.
	DrawnQuotas = []string{"q1", "q2"}
	// DrawnCronJobs are the names of CronJobs in each namespace.
	DrawnCronJobs = []string{"hourly", "nightly"}
)

var (
	drawnResources = [][]string{
		nil, {gc.ResourceJobs}, {gc.ResourcePods}, {gc.ResourceJobs, gc.ResourcePods}, {DrawnWorkflows}, {DrawnConfigMaps},
		{DrawnWorkflows, gc.ResourcePods}, {gc.ResourceJobs, DrawnConfigMaps},
	}
	// drawnAges are a little more and a little less than drawnDurations, and equal to some of them.
	drawnAges = []time.Duration{
		time.Minute, time.Minute - time.Second, time.Minute + time.Second, 10 * time.Minute, 10*time.Minute - time.Second, time.Hour,
		2 * time.Hour, 0, 24 * time.Hour, -time.Second, -time.Minute,
	}
	drawnDurations = []gc.TTL{"1m", "10m", "0s", "1h"}
	drawnDeadlines = []gc.TTL{"1m", "10m", "1h"}
	drawnTTLs      = append([]gc.TTL{gc.TTLNever, "Never"}, drawnDurations...)
	// drawnSchedules are how long before now the scheduled times of Jobs and the last scheduled times of CronJobs are.
	drawnSchedules = []time.Duration{time.Hour, time.Minute, 10 * time.Minute}
	drawnCounts    = []int64{1, 0, 2, 3, 5}
	drawnTotals    = []int64{5, 0, 3, 8, 100}
)

// Workflows finish, and may own other objects. CronWorkflows need only some of what they own. ConfigMaps have no lifecycle.
const (
	DrawnWorkflows     = "workflows.argoproj.io"
	DrawnCronWorkflows = "cronworkflows.argoproj.io"
	DrawnConfigMaps    = "configmaps"
)

// DrawnObjects is how many objects a drawn world has at most.
const DrawnObjects = 40

// Draw draws a world at the time CaseNow.
func Draw(t *rapid.T) *World {
	w := &World{
		Now: CaseNow, Namespaces: map[string]Namespace{}, Recreated: map[types.UID]bool{}, Matched: map[types.UID]map[string]time.Time{},
	}
	for _, namespace := range DrawnNamespaces {
		if !rarely(t, 15) {
			w.Namespaces[namespace] = DrawNamespace(t)
		}
		for _, name := range some(t, DrawnPolicies) {
			w.Policies = append(w.Policies, DrawPolicy(t, namespace, name))
		}
		for _, name := range some(t, DrawnQuotas) {
			w.Quotas = append(w.Quotas, DrawQuota(t, namespace, name))
		}
	}
	for _, name := range some(t, DrawnClusterPolicies) {
		w.ClusterPolicies = append(w.ClusterPolicies, DrawClusterPolicy(t, name))
	}
	for i := range rapid.IntRange(0, DrawnObjects).Draw(t, "objects") {
		f := DrawObject(t, w.Now, i)
		w.Objects = append(w.Objects, f)
		w.Recreated[f.UID] = rarely(t, 10)
	}
	w.drawMatched(t)
	for _, namespace := range DrawnNamespaces {
		for _, name := range some(t, DrawnCronJobs) {
			w.CronJobs = append(w.CronJobs, DrawCronJob(t, namespace, name))
		}
	}
	return w
}

// DrawNamespace draws a namespace, most often an ordinary one.
func DrawNamespace(t *rapid.T) Namespace {
	ns := Namespace{Labels: drawLabels(t), Terminating: rarely(t, 20), Protected: rarely(t, 20)}
	if rarely(t, 15) {
		ns.Labels[gc.LabelProtected] = pick(t, "true", "false", "True", "")
	}
	return ns
}

// DrawnUID returns the UID of object number i.
func DrawnUID(i int) types.UID { return types.UID(fmt.Sprintf("uid-%02d", i)) }

// DrawObject draws a state of object number i. All states of one number have the same resource, namespace, name and UID.
func DrawObject(t *rapid.T, now time.Time, i int) *lifecycle.Fact {
	f := &lifecycle.Fact{
		Resource: DrawnResource(i), Namespace: drawnHome(i), Name: fmt.Sprintf("o%02d", i), UID: DrawnUID(i),
		ResourceVersion: uint64(i + 1), Labels: labels.Set(drawLabels(t)), Created: now.Add(-48 * time.Hour),
		Finishes: DrawnResource(i) != DrawnConfigMaps && DrawnResource(i) != DrawnCronWorkflows, Controller: drawController(t, i),
	}
	if f.Resource == gc.ResourceJobs && rarely(t, 3) {
		f.Rereads = pick(t, lifecycle.RereadFailed, lifecycle.RereadByOwner, lifecycle.RereadByManager)
	}
	if f.Controller != nil && f.Controller.Kind == "CronJob" && !rarely(t, 3) {
		f.Scheduled = now.Add(-pick(t, drawnSchedules...))
	}
	if f.Finishes {
		drawFinish(t, f, now)
	}
	switch f.Resource {
	case DrawnConfigMaps:
		f.Usage = DrawUsage(t, now)
	case DrawnCronWorkflows:
		drawNeeds(t, f)
	}
	drawNativeTTL(t, f)
	drawTimes(t, f, now)
	drawMarks(t, f)
	return f
}

// drawNativeTTL draws the TTL of a Job or Workflow in its own spec, most often none.
func drawNativeTTL(t *rapid.T, f *lifecycle.Fact) {
	if (f.Resource == gc.ResourceJobs || f.Resource == DrawnWorkflows) && rarely(t, 6) {
		ttl := pick(t, time.Minute, 0, 10*time.Minute, time.Hour)
		f.NativeTTL = &ttl
	}
}

// drawTimes draws the annotations that say how long an object is kept.
func drawTimes(t *rapid.T, f *lifecycle.Fact, now time.Time) {
	if rarely(t, 5) {
		f.TTL = new(pick(t, "10m", "0s", "1h", string(gc.TTLNever), "1m", "2 hours"))
	}
	if rarely(t, 5) {
		f.KeepUntil = new(pick(t, now.Format(time.RFC3339), now.Add(time.Second).Format(time.RFC3339),
			now.Add(-30*time.Second).Format(time.RFC3339), now.Add(time.Hour).Format(time.RFC3339), "tomorrow"))
	}
}

// drawNeeds draws which objects a CronWorkflow needs, or that nobody knows.
func drawNeeds(t *rapid.T, f *lifecycle.Fact) {
	if rarely(t, 6) {
		f.Failed = "spec.needs: no such key: name"
		return
	}
	for i := range DrawnObjects {
		if rarely(t, 4) {
			f.Needs = append(f.Needs, fmt.Sprintf("o%02d", i))
		}
	}
}

// drawMarks draws annotations, finalizers, and marks of other control planes. Some marks count although there is a controller.
func drawMarks(t *rapid.T, f *lifecycle.Fact) {
	if rarely(t, 8) {
		f.Applied = pick(t, `Helm release "web"`, `MultiKueue of "multikueue"`, `Open Cluster Management work "w"`)
	}
	f.Uncounted = f.Resource == gc.ResourcePods && rarely(t, 10)
	if f.Terminating = rarely(t, 10); f.Terminating {
		f.Finalizers = []string{"example.com/finalizer"}
	}
	if rarely(t, 8) {
		f.Propagation = pick(t, metav1.DeletePropagationOrphan, metav1.DeletePropagationForeground, "")
		f.Contradictory = f.Propagation == ""
	}
}

// DrawUsage draws whether anything refers to an object.
func DrawUsage(t *rapid.T, now time.Time) lifecycle.Usage {
	u := lifecycle.Usage{State: pick(t, lifecycle.Unused, lifecycle.InUse, lifecycle.UsageUnknown)}
	if u.State == lifecycle.Unused || u.State == lifecycle.UsageUnknown && rarely(t, 2) {
		u.Since = now.Add(-pick(t, drawnAges...))
	}
	return u
}

func drawnHome(i int) string { return drawnHomes[i/2%len(drawnHomes)] }

// DrawnResource returns the resource of object number i: a Job if i is even, most often, or a Pod.
func DrawnResource(i int) string {
	if i%20 == 11 {
		return DrawnCronWorkflows
	}
	switch i % 10 {
	case 8:
		return DrawnWorkflows
	case 9:
		return DrawnConfigMaps
	}
	return []string{gc.ResourceJobs, gc.ResourcePods}[i%2]
}

func drawFinish(t *rapid.T, f *lifecycle.Fact, now time.Time) {
	if rarely(t, 6) {
		if rarely(t, 4) {
			f.Failed = "spec.finished.when: no such key: phase"
			return // Whether it runs is not known.
		}
		if f.Resource != DrawnWorkflows {
			drawDeadline(t, f, now)
		}
		return // It runs.
	}
	f.Finished, f.Outcome = true, pick(t, gc.OutcomeSucceeded, gc.OutcomeFailed)
	if rarely(t, 8) {
		f.FirstSeen = &lifecycle.FirstSeen{Why: "nothing tells when it finished", Version: f.ResourceVersion}
	}
	f.FinishedAt = now.Add(-pick(t, drawnAges...))
}

// drawDeadline draws the deadline of a running object, most often none.
func drawDeadline(t *rapid.T, f *lifecycle.Fact, now time.Time) {
	if !rarely(t, 4) {
		f.Deadline.StartedAt = now.Add(-pick(t, drawnAges...))
	}
	switch pick(t, 0, 0, 1, 2) {
	case 1:
		f.Deadline.Set = pick(t, time.Minute, time.Hour)
	case 2:
		f.Deadline.Fixed = rarely(t, 2)
	}
}

// drawController draws a controller, most often none. It may be of any kind, whatever the object is, and may be one that does not exist.
func drawController(t *rapid.T, i int) *lifecycle.Owner {
	switch pick(t, 0, 0, 0, 1, 2, 3, 1, 0, 4) {
	case 1:
		if DrawnResource(i) == gc.ResourceJobs || rarely(t, 3) {
			name, namespace := pick(t, DrawnCronJobs...), drawnHome(i)
			if rarely(t, 8) {
				namespace = pick(t, DrawnNamespaces...) // Owners across namespaces do not exist, but anybody can write them.
			}
			return own("batch", "CronJob", name, cronJobUID(namespace, name))
		}
		j := 2 * pick(t, i/2, i/2, 0, 1, 3, 99) // Its neighbour, one of some namespace, or one that is not there.
		return own("batch", "Job", fmt.Sprintf("o%02d", j), DrawnUID(j))
	case 2:
		kind := pick(t, "ReplicaSet", "StatefulSet", "DaemonSet", "Deployment", "ReplicationController", "Service")
		return own(coreKinds[kind], kind, "s", pick[types.UID](t, "uid-s1", "uid-s2"))
	case 4:
		return drawAnother(t, i)
	case 3:
		switch rapid.IntRange(0, 5).Draw(t, "kind") {
		case 2, 3:
			return own("jobset.x-k8s.io", "JobSet", "s", "uid-jobset")
		case 4:
			return own("keda.sh", "ScaledJob", "s", "uid-scaledjob")
		}
	}
	return nil
}

func own(group, kind, name string, uid types.UID) *lifecycle.Owner {
	return &lifecycle.Owner{GroupKind: schema.GroupKind{Group: group, Kind: kind}, Name: name, UID: uid}
}

// drawAnother draws another object as the controller, or one that is not there.
func drawAnother(t *rapid.T, i int) *lifecycle.Owner {
	j := pick(t, 8, 18, 28, 98, 1, 21, 11, 31, 91)
	name, uid := fmt.Sprintf("o%02d", j), DrawnUID(j)
	switch {
	case j == i:
		return nil
	case j%10 == 8:
		return own("argoproj.io", "Workflow", name, uid)
	case j%20 == 11:
		return own("argoproj.io", "CronWorkflow", name, uid)
	}
	return own("", "Pod", name, uid)
}

// coreKinds are the groups of kinds of Kubernetes that do not finish.
var coreKinds = map[string]string{"ReplicaSet": "apps", "StatefulSet": "apps", "DaemonSet": "apps", "Deployment": "apps"}

// DrawCronJob draws a CronJob that lists some of the objects as active.
func DrawCronJob(t *rapid.T, namespace, name string) *lifecycle.CronJob {
	cj := &lifecycle.CronJob{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name, UID: cronJobUID(namespace, name), ResourceVersion: "1",
	}}
	if !rarely(t, 4) {
		cj.LastScheduled = CaseNow.Add(-pick(t, drawnSchedules...))
	}
	for i := 0; i < DrawnObjects; i += 2 {
		if rarely(t, 4) {
			cj.Active = append(cj.Active, DrawnUID(i))
		}
	}
	return cj
}

func cronJobUID(namespace, name string) types.UID {
	return types.UID("uid-cronjob-" + namespace + "-" + name)
}

// DrawQuota draws a quota, most often one that percentOfQuota uses.
func DrawQuota(t *rapid.T, namespace, name string) *corev1.ResourceQuota {
	q := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name, UID: types.UID("uid-quota-" + namespace + "-" + name), ResourceVersion: "1",
	}}
	q.Spec.Hard = corev1.ResourceList{}
	for _, what := range some(t, []string{"count/" + gc.ResourceJobs, "count/" + gc.ResourcePods, "pods", "count/" + DrawnWorkflows}) {
		q.Spec.Hard[corev1.ResourceName(what)] = *resource.NewQuantity(int64(rapid.IntRange(0, 9).Draw(t, "hard")), resource.DecimalSI)
	}
	if rarely(t, 6) {
		q.Spec.Scopes = []corev1.ResourceQuotaScope{corev1.ResourceQuotaScopeBestEffort}
	}
	return q
}

// drawLabels draws labels from a few keys and values.
func drawLabels(t *rapid.T) map[string]string {
	out := map[string]string{}
	for _, key := range some(t, []string{"app", "run"}) {
		out[key] = pick(t, "x", "y", "")
	}
	return out
}

// rarely is true about once in n times. It compares with a number in the middle, because rapid prefers the ends, and shrinks to 0.
func rarely(t *rapid.T, n int) bool { return rapid.IntRange(0, n-1).Draw(t, "rarely") == n/2 }

func pick[T any](t *rapid.T, from ...T) T { return rapid.SampledFrom(from).Draw(t, "pick") }

// some draws a part of all, in their order, most often a small part.
func some[T any](t *rapid.T, all []T) []T {
	var out []T
	for _, v := range all {
		if rarely(t, 2) {
			out = append(out, v)
		}
	}
	return out
}
