// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/internal/fakecluster"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/objects/facts"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/observe"
	"github.com/winnow-dev/winnow/pkg/controller/tracker"
)

// world is a tracker and the cluster that it observes.
type world struct {
	*tracker.Tracker
	objects []runtime.Object
}

const holdAbove = 5

// newWorld returns a world with the namespaces team-a, team-b and team-c, each with its name as a label.
func newWorld(objects ...runtime.Object) *world {
	return newWorldWith(memory.Config{Protected: []string{"winnow-system"}, HoldAbove: holdAbove, HoldAboveTotal: -1}, objects...)
}

func kubeSystem() *world {
	w := newWorld()
	w.SetNamespace(testbuilders.Namespace("kube-system", "1"), testbuilders.Now)
	return w
}

func newWorldWith(c memory.Config, objects ...runtime.Object) *world {
	w := &world{begun(tracker.New(c, nil)), objects}
	for _, name := range []string{"team-a", "team-b", "team-c", "winnow-system"} {
		w.SetNamespace(testbuilders.Namespace(name, "1", "name", name), testbuilders.Now)
	}
	return w
}

// with sets policies, and lists the objects that they cover.
func (w *world) with(policies ...metav1.Object) *world {
	for _, p := range policies {
		w.set(p)
	}
	all := map[string][]*facts.Compact{gc.ResourceJobs: nil, gc.ResourcePods: nil}
	add := func(f *lifecycle.Fact, _ error) { all[f.Resource] = append(all[f.Resource], facts.Compress(f)) }
	var cronJobs []*lifecycle.CronJob
	var quotas []*memory.Quota
	for _, object := range w.objects {
		switch object := object.(type) {
		case *batchv1.Job:
			add(lifecycle.FromJob(object))
		case *corev1.Pod:
			add(lifecycle.FromPod(object))
		case *batchv1.CronJob:
			cronJobs = append(cronJobs, lifecycle.FromCronJob(object))
		case *corev1.ResourceQuota:
			quotas = append(quotas, memory.QuotaOf(object))
		}
	}
	w.ReplaceCronJobs(cronJobs, testbuilders.Now)
	w.ReplaceQuotas(quotas, testbuilders.Now)
	for name, listed := range all {
		w.list(name, listed)
	}
	return w
}

// list ends a list of all objects of a resource.
func (w *world) list(name string, all []*facts.Compact) {
	l := w.BeginList(name)
	l.Add(all, testbuilders.Now)
	l.End(1, testbuilders.Now)
}

// set sets a policy of either kind.
func (w *world) set(p metav1.Object) {
	switch p := p.(type) {
	case *gc.CleanupPolicy:
		w.SetPolicy(p, testbuilders.Now)
	case *gc.ClusterCleanupPolicy:
		w.SetClusterPolicy(p, testbuilders.Now)
	}
}

func (w *world) forecaster() *Forecaster { return w.forecasterOf(fakecluster.New(w.objects...)) }

// forecasterOf returns a forecaster that lists objects that the tracker does not know from a cluster.
func (w *world) forecasterOf(cluster *fakecluster.Cluster) *Forecaster {
	client, err := observe.NewClient(cluster.Config())
	if err != nil {
		panic(err)
	}
	return New(Config{Tracker: w.Tracker, Client: client, Clock: clocktesting.NewFakePassiveClock(testbuilders.Now)})
}

// jobs returns Jobs that finished this number of minutes ago.
func jobs(namespace string, minutes ...int) []runtime.Object {
	var out []runtime.Object
	for i, m := range minutes {
		name := fmt.Sprintf("%s-job-%d", namespace, i)
		out = append(out, testbuilders.Job(name).In(namespace).Complete(testbuilders.Now.Add(-time.Duration(m)*time.Minute)).Obj())
	}
	return out
}

func pods(namespace string, minutes ...int) []runtime.Object {
	var out []runtime.Object
	for i, m := range minutes {
		name := fmt.Sprintf("%s-pod-%d", namespace, i)
		out = append(out, testbuilders.Pod(name).In(namespace).Failed(testbuilders.Now.Add(-time.Duration(m)*time.Minute)).Obj())
	}
	return out
}

func ttl(t gc.TTL) *gc.TTL { return &t }

func quantity(s string) resource.Quantity { return resource.MustParse(s) }

func join(all ...[]runtime.Object) []runtime.Object { return slices.Concat(all...) }

func keep(n int64) *gc.Capacity { return &gc.Capacity{MaxObjects: &n, Per: gc.CapacityPerNamespace} }

func policyOf(name string, change func(*gc.CleanupPolicySpec)) *gc.CleanupPolicy {
	p := testbuilders.Policy(name).Obj()
	change(&p.Spec)
	return p
}

func ttlPolicy(name string, ttl gc.TTL) *gc.CleanupPolicy {
	return testbuilders.Policy(name).Default(ttl).Obj()
}

// clusterPolicy returns a cluster policy that selects all namespaces.
func clusterPolicy(name string, change func(*gc.ClusterCleanupPolicySpec)) *gc.ClusterCleanupPolicy {
	p := &gc.ClusterCleanupPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: testbuilders.UID(name), Generation: 1, ResourceVersion: "1"},
		Spec: gc.ClusterCleanupPolicySpec{
			Mode: gc.ModeEnforce, AnnotationTTL: gc.AnnotationExtendOnly, NamespaceSelector: &metav1.LabelSelector{},
		},
	}
	change(&p.Spec)
	return p
}

func clusterTTL(name string, ttl gc.TTL) *gc.ClusterCleanupPolicy {
	return clusterPolicy(name, func(s *gc.ClusterCleanupPolicySpec) { s.TTLAfterFinished = &ttl })
}

// next returns the next generation of a policy.
func next[P metav1.Object](p P) P {
	p.SetGeneration(p.GetGeneration() + 1)
	return p
}

// approved returns the policy with the annotation that approves these holds.
func approved[P metav1.Object](p P, ids ...string) P {
	p.SetAnnotations(map[string]string{gc.AnnotationApprovedHold: strings.Join(ids, ",")})
	return p
}

// holding returns the policy with a status that lists these holds.
func holding(p *gc.CleanupPolicy, holds ...gc.PolicyHold) *gc.CleanupPolicy {
	p.Status.Holds = holds
	return p
}

// waiting is a policy that waits after an hour for something that never is.
func waiting(name string) *testbuilders.PolicyBuilder {
	return testbuilders.Policy(name).Rules(testbuilders.Rule("r", "1h").WaitFor("object.metadata.name == ''", "7d", ""))
}

// windowed is a cluster policy with windows that open at night.
func windowed() *gc.ClusterCleanupPolicy {
	return clusterPolicy("windowed", func(s *gc.ClusterCleanupPolicySpec) {
		s.Guardrails = &gc.Guardrails{Windows: []gc.Window{{Schedule: "0 22 * * *", Duration: "6h"}}}
	})
}

// share is a cluster policy that holds changes which make more than a fifth of what a rule decides for due.
func share() *gc.ClusterCleanupPolicy {
	return clusterPolicy("share", func(s *gc.ClusterCleanupPolicySpec) {
		s.Guardrails = &gc.Guardrails{HoldAbove: &gc.HoldAbove{Percent: new(int64(20))}}
	})
}

var hour = gc.TTL("1h")

func TestForecast(t *testing.T) {
	old := join(jobs("team-a", 10, 70, 80), pods("team-a", 5, 90))
	many := jobs("team-a", 70, 71, 72, 73, 74, 75)
	everywhere := join(jobs("team-a", 70, 80), jobs("team-b", 70), jobs("team-c", 10), jobs("winnow-system", 70))
	annotated := testbuilders.Job("kept").Complete(testbuilders.Now.Add(-2 * time.Hour)).TTL("1d").Obj()
	ofCronJob := testbuilders.Job("ticked").Complete(testbuilders.Now.Add(-2*time.Hour)).ControlledBy("batch/v1", "CronJob", "tick").Obj()
	quota := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: testbuilders.Home, Name: "q", UID: "q", ResourceVersion: "1"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"count/jobs.batch": quantity("4")}},
	}
	runs := []runtime.Object{
		testbuilders.Job("long").Started(testbuilders.Now.Add(-2 * time.Hour)).Obj(), testbuilders.Job("short").Started(testbuilders.Now).Obj(),
		testbuilders.Job("own").Deadline(60).Obj(), testbuilders.Pod("of-a").ControlledBy("batch/v1", "Job", "long").Obj(),
	}
	percent := int64(50)
	stop := clusterPolicy("stop", func(s *gc.ClusterCleanupPolicySpec) { s.Guardrails = &gc.Guardrails{SuspendAll: true} })
	const (
		tooMany     = " made more objects due at once than --default-hold-above allows (5 in ten minutes)"
		approveJobs = "To look at them: kubectl get jobs.batch -n team-a; to approve: kubectl annotate --overwrite "
	)
	id := func(policy, namespace string) string { return holdID(policy, 1, namespace) }
	for name, tc := range map[string]struct {
		world  *world
		change gc.PolicyChange
		want   []string
	}{
		"created where nothing was covered": {
			world: newWorld(old...), change: gc.PolicyChange{After: ttlPolicy("p", "1h")},
			want: []string{"2 Jobs and 1 Pod in team-a are past this TTL and will be deleted now"},
		},
		"created in a dry run": {
			world: newWorld(jobs("team-a", 70)...), change: gc.PolicyChange{After: ttlPolicy("p", "1h"), DryRun: true},
			want: []string{"1 Job in team-a is past this TTL and would be deleted now"},
		},
		"created, what is due waits": {
			world: newWorld(jobs("team-a", 70, 80)...), change: gc.PolicyChange{After: waiting("p").Obj()},
			want: []string{"2 Jobs in team-a are due, and wait until waitFor is true"},
		},
		"created in a dry run, what is due waits": {
			world: newWorld(jobs("team-a", 70)...), change: gc.PolicyChange{After: waiting("p").Obj(), DryRun: true},
			want: []string{"1 Job in team-a is due, and would wait until waitFor is true"},
		},
		"created outside of windows": {
			world: newWorld(jobs("team-a", 70, 80)...).with(windowed()), change: gc.PolicyChange{After: ttlPolicy("p", "1h")},
			want: []string{"2 Jobs in team-a are due, and wait until a window opens (the windows in spec.guardrails of " +
				"clustercleanuppolicies.gc.winnow.dev/windowed open next at 2026-03-01T22:00:00Z)"},
		},
		"windows are removed": {
			world:  newWorld(jobs("team-a", 70, 80)...).with(ttlPolicy("p", "1h"), windowed()),
			change: gc.PolicyChange{Before: windowed(), After: next(clusterTTL("windowed", "1d"))},
			want:   []string{`with this change, policy "team-a/p" makes 2 Jobs in team-a due`},
		},
		"too large a share of a rule": {
			world:  newWorld(jobs("team-a", append(minutesAgo(70, 5), minutesAgo(10, 15)...)...)...).with(ttlPolicy("p", "1d"), share()),
			change: gc.PolicyChange{Before: ttlPolicy("p", "1d"), After: next(ttlPolicy("p", "1h")), DryRun: true},
			want: []string{
				"5 Jobs in team-a would wait for approval, because generation 2 of cleanuppolicies.gc.winnow.dev/p made more objects due at once than " +
					"spec.guardrails.holdAbove.percent of clustercleanuppolicies.gc.winnow.dev/share allows " +
					`(20 % of the candidates of rule "default", in ten minutes). ` + approveJobs + "cleanuppolicies.gc.winnow.dev p -n team-a " +
					"gc.winnow.dev/approved-hold=" + holdID("p", 2, "team-a"),
			},
		},
		"created, too many would wait": {
			world: newWorld(many...), change: gc.PolicyChange{After: waiting("p").Obj(), DryRun: true},
			want: []string{"6 Jobs in team-a would wait for approval, because generation 1 of cleanuppolicies.gc.winnow.dev/p" + tooMany},
		},
		"updated to wait for nothing": {
			world:  newWorld(jobs("team-a", 70, 80)...).with(waiting("p").Obj()),
			change: gc.PolicyChange{Before: waiting("p").Obj(), After: next(ttlPolicy("p", "1h"))},
			want:   []string{"2 Jobs in team-a are past this TTL and will be deleted now"},
		},
		"updated to wait": {
			world:  newWorld(jobs("team-a", 70, 80)...).with(ttlPolicy("p", "1h")),
			change: gc.PolicyChange{Before: ttlPolicy("p", "1h"), After: next(waiting("p").Obj())},
		},
		"created, nothing due": {world: newWorld(old...), change: gc.PolicyChange{After: ttlPolicy("p", "1d")}},
		"created in a namespace that is not known": {
			world: newWorld(old...), change: gc.PolicyChange{After: testbuilders.Policy("p").In("new").Default("0s").Obj()},
		},
		"created next to a policy that keeps objects longer": {
			world: newWorld(old...).with(ttlPolicy("longer", "75m")), change: gc.PolicyChange{After: ttlPolicy("p", "1h")},
		},
		"created, annotations and owners count": {
			world: newWorld(annotated, ofCronJob, testbuilders.CronJob("tick")), change: gc.PolicyChange{After: ttlPolicy("p", "1h")},
			want: []string{"1 Job in team-a is past this TTL and will be deleted now"},
		},
		"created in Preview": {
			world: newWorld(old...), change: gc.PolicyChange{After: testbuilders.Policy("p").Default("1h").Preview().Obj()},
			want: []string{"2 Jobs and 1 Pod in team-a are past this TTL and would be deleted now with mode: Enforce"},
		},
		"a deadline where nothing was covered": {
			world: newWorld(runs...), change: gc.PolicyChange{After: testbuilders.Policy("p").Deadline("1h").Obj()},
			want: []string{"2 Jobs in team-a will get an activeDeadline; 1 of these will end at once, having run for longer"},
		},
		"a deadline in Preview": {
			world:  newWorld(runs...).with(ttlPolicy("q", "1h")),
			change: gc.PolicyChange{After: testbuilders.Policy("p").Deadline("1d").Preview().Obj()},
		},
		"a deadline in a dry run": {
			world: newWorld(runs...), change: gc.PolicyChange{After: testbuilders.Policy("p").Deadline("1d").Obj(), DryRun: true},
			want: []string{"2 Jobs in team-a would get an activeDeadline"},
		},
		"a deadline that is withdrawn": {
			world:  newWorld(testbuilders.Job("a").Deadline(60).RecordsDeadline("60").Obj()).with(testbuilders.Policy("p").Deadline("1m").Obj()),
			change: gc.PolicyChange{Before: testbuilders.Policy("p").Deadline("1m").Obj()},
			want:   []string{"1 Job in team-a will lose the activeDeadline that Winnow has set"},
		},
		"updated to a shorter TTL": {
			world:  newWorld(old...).with(ttlPolicy("p", "75m")),
			change: gc.PolicyChange{Before: ttlPolicy("p", "75m"), After: next(ttlPolicy("p", "1h"))},
			want:   []string{"1 Job in team-a is past this TTL and will be deleted now"},
		},
		"updated before the watch delivered it": {
			world: newWorld(old...), change: gc.PolicyChange{Before: ttlPolicy("p", "75m"), After: next(ttlPolicy("p", "1h"))},
			want: []string{"1 Job in team-a is past this TTL and will be deleted now"},
		},
		"updated to a longer TTL": {
			world:  newWorld(old...).with(ttlPolicy("p", "1h")),
			change: gc.PolicyChange{Before: ttlPolicy("p", "1h"), After: next(ttlPolicy("p", "75m"))},
		},
		"updated to keep fewer": {
			world: newWorld(old...).with(ttlPolicy("p", "1d")),
			change: gc.PolicyChange{Before: ttlPolicy("p", "1d"), After: next(policyOf("p", func(s *gc.CleanupPolicySpec) {
				s.Capacity = keep(2)
			}))},
			want: []string{"1 Job in team-a is over this capacity and will be deleted now"},
		},
		"updated to both": {
			world: newWorld(old...).with(ttlPolicy("p", "1d")),
			change: gc.PolicyChange{Before: ttlPolicy("p", "1d"), After: next(policyOf("p", func(s *gc.CleanupPolicySpec) {
				s.TTLAfterFinished, s.Capacity = ttl("65m"), keep(2)
			}))},
			want: []string{"2 Jobs and 1 Pod in team-a are past this TTL or over this capacity and will be deleted now"},
		},
		"a percentage of a quota that is not observed yet": {
			world: newWorld(append(slices.Clone(old), quota)...),
			change: gc.PolicyChange{After: policyOf("p", func(s *gc.CleanupPolicySpec) {
				s.Capacity = &gc.Capacity{PercentOfQuota: &percent, Per: gc.CapacityPerNamespace}
			})},
			want: []string{
				"1 Job in team-a is over this capacity and will be deleted now",
				`no ResourceQuota in namespace "team-a" limits count/pods, so percentOfQuota has no effect there`,
			},
		},
		"a percentage without a quota": {
			world: newWorld(), change: gc.PolicyChange{After: policyOf("p", func(s *gc.CleanupPolicySpec) {
				s.Rules = []gc.CleanupRule{{Name: "a", Resources: []string{gc.ResourceJobs}, Capacity: &gc.Capacity{PercentOfQuota: &percent, Per: gc.CapacityPerNamespace}}}
			})},
			want: []string{`no ResourceQuota in namespace "team-a" limits count/jobs.batch, so percentOfQuota has no effect there`},
		},
		"a protected namespace": {
			world: newWorld(jobs("winnow-system", 70)...), change: gc.PolicyChange{After: testbuilders.Policy("p").In("winnow-system").Default("1h").Obj()},
			want: []string{`namespace "winnow-system" is protected: this policy deletes nothing in it`},
		},
		"a namespace of Kubernetes": {
			world: kubeSystem(), change: gc.PolicyChange{After: testbuilders.Policy("p").In("kube-system").Default("1h").Obj()},
			want: []string{`namespace "kube-system" is protected: this policy deletes nothing in it`},
		},
		"deleted from a protected namespace": {
			world:  newWorld(jobs("winnow-system", 70)...).with(testbuilders.Policy("p").In("winnow-system").Default("1h").Obj()),
			change: gc.PolicyChange{Before: testbuilders.Policy("p").In("winnow-system").Default("1h").Obj()},
		},
		"deleted before a cluster policy": {
			world: newWorld(old...).with(clusterTTL("defaults", "1h"), ttlPolicy("p", "1d")), change: gc.PolicyChange{Before: ttlPolicy("p", "1d")},
			want: []string{`without this policy, cluster policy "defaults" makes 2 Jobs and 1 Pod in team-a due`},
		},
		"deleted next to a policy that keeps objects for less time": {
			world:  newWorld(old...).with(ttlPolicy("shorter", "75m"), ttlPolicy("p", "1d")),
			change: gc.PolicyChange{Before: ttlPolicy("p", "1d")},
			want:   []string{`without this policy, policy "team-a/shorter" makes 1 Job and 1 Pod in team-a due`},
		},
		"deleted, no other policy applies": {
			world: newWorld(old...).with(ttlPolicy("p", "1d")), change: gc.PolicyChange{Before: ttlPolicy("p", "1d")},
		},
		"too many are held": {
			world: newWorld(many...), change: gc.PolicyChange{After: ttlPolicy("p", "1h")},
			want: []string{"6 Jobs in team-a wait for approval, because generation 1 of cleanuppolicies.gc.winnow.dev/p" + tooMany + ". " + approveJobs +
				"cleanuppolicies.gc.winnow.dev p -n team-a gc.winnow.dev/approved-hold=" + holdID("p", 1, testbuilders.Home)},
		},
		"too many, in a dry run of a create": {
			world: newWorld(many...), change: gc.PolicyChange{After: ttlPolicy("p", "1h"), DryRun: true},
			want: []string{"6 Jobs in team-a would wait for approval, because generation 1 of cleanuppolicies.gc.winnow.dev/p" + tooMany},
		},
		"too many, in a dry run of an update": {
			world:  newWorld(many...).with(ttlPolicy("p", "1d")),
			change: gc.PolicyChange{Before: ttlPolicy("p", "1d"), After: next(ttlPolicy("p", "1h")), DryRun: true},
			want: []string{"6 Jobs in team-a would wait for approval, because generation 2 of cleanuppolicies.gc.winnow.dev/p" + tooMany + ". " + approveJobs +
				"cleanuppolicies.gc.winnow.dev p -n team-a gc.winnow.dev/approved-hold=" + holdID("p", 2, testbuilders.Home)},
		},
		"held already": {
			world:  newWorld(many...).with(ttlPolicy("p", "1h")),
			change: gc.PolicyChange{Before: ttlPolicy("p", "1h"), After: next(ttlPolicy("p", "65m"))},
			want: []string{"6 Jobs in team-a still wait for approval, because generation 1 of cleanuppolicies.gc.winnow.dev/p" + tooMany + ". " + approveJobs +
				"cleanuppolicies.gc.winnow.dev p -n team-a gc.winnow.dev/approved-hold=" + holdID("p", 1, testbuilders.Home)},
		},
		"approved": {
			world:  newWorld(many...).with(ttlPolicy("p", "1h")),
			change: gc.PolicyChange{Before: ttlPolicy("p", "1h"), After: approved(ttlPolicy("p", "1h"), id("p", testbuilders.Home)), DryRun: true},
			want:   []string{"6 Jobs in team-a are past this TTL and would be deleted now"},
		},
		"another ID approved": {
			world:  newWorld(many...).with(ttlPolicy("p", "1h")),
			change: gc.PolicyChange{Before: ttlPolicy("p", "1h"), After: approved(ttlPolicy("p", "1h"), "5f3c")},
		},
		"approved in one namespace of two": {
			world:  newWorld(join(many, jobs("team-b", minutesAgo(70, 7)...))...).with(clusterTTL("defaults", "1h")),
			change: gc.PolicyChange{Before: clusterTTL("defaults", "1h"), After: approved(clusterTTL("defaults", "1h"), id("defaults", "team-b"))},
			want:   []string{"7 Jobs in team-b are past this TTL and will be deleted now"},
		},
		"approved in two namespaces": {
			world: newWorld(join(many, jobs("team-b", minutesAgo(70, 7)...))...).with(clusterTTL("defaults", "1h")),
			change: gc.PolicyChange{
				Before: clusterTTL("defaults", "1h"),
				After:  approved(clusterTTL("defaults", "1h"), id("defaults", "team-a"), id("defaults", "team-b")),
			},
			want: []string{"13 Jobs in 2 namespaces are past this TTL and will be deleted now: team-b (7), team-a (6)"},
		},
		"approved while all is stopped": {
			world: newWorld(many...).with(ttlPolicy("p", "1h"), stop),
			change: gc.PolicyChange{
				Before: holding(ttlPolicy("p", "1h"), gc.PolicyHold{ID: "5f3c", Namespace: testbuilders.Home, Objects: 6}, gc.PolicyHold{ID: "other"}),
				After:  approved(ttlPolicy("p", "1h"), "5f3c"),
			},
			want: []string{"this approval will delete 6 objects in team-a once nothing else holds them"},
		},
		"approved in the same request": {
			world: newWorld(many...), change: gc.PolicyChange{After: testbuilders.Policy("p").Default("1h").
				Annotation(gc.AnnotationApprovedHold, holdID("p", 1, testbuilders.Home)).Obj()},
			want: []string{"6 Jobs in team-a are past this TTL and will be deleted now"},
		},
		"deleted, too many for the cluster policy": {
			world:  newWorld(many...).with(clusterTTL("defaults", "1h"), ttlPolicy("p", "1d")),
			change: gc.PolicyChange{Before: ttlPolicy("p", "1d")},
			want: []string{`without this policy, cluster policy "defaults" makes 6 Jobs in team-a due; ` +
				"they wait for approval, because the deletion of cleanuppolicies.gc.winnow.dev/p" + tooMany + ". " + approveJobs +
				"clustercleanuppolicies.gc.winnow.dev defaults gc.winnow.dev/approved-hold="},
		},
		"too many in two namespaces": {
			world:  newWorld(join(many, jobs("team-b", minutesAgo(70, 7)...))...),
			change: gc.PolicyChange{After: clusterTTL("defaults", "1h")},
			want: []string{"13 Jobs in 2 namespaces wait for approval, because generation 1 of clustercleanuppolicies.gc.winnow.dev/defaults" + tooMany +
				": team-b (7), team-a (6). To look at them: kubectl get jobs.batch --all-namespaces; to approve: kubectl annotate --overwrite " +
				"clustercleanuppolicies.gc.winnow.dev defaults gc.winnow.dev/approved-hold=" + id("defaults", "team-b") + "," + id("defaults", "team-a")},
		},
		"a cluster policy created": {
			world: newWorld(everywhere...), change: gc.PolicyChange{After: clusterTTL("defaults", "1h")},
			want: []string{"3 Jobs in 2 namespaces are past this TTL and will be deleted now: team-a (2), team-b (1)"},
		},
		"a cluster policy where a policy decides": {
			world: newWorld(everywhere...).with(ttlPolicy("own", "1d")), change: gc.PolicyChange{After: clusterTTL("defaults", "1h")},
			want: []string{"1 Job in team-b is past this TTL and will be deleted now"},
		},
		"a ceiling": {
			world: newWorld(everywhere...), change: gc.PolicyChange{After: clusterPolicy("bounds", func(s *gc.ClusterCleanupPolicySpec) {
				most := int64(3)
				s.Guardrails = &gc.Guardrails{Ceilings: []gc.Ceiling{{Resources: []string{gc.ResourceJobs}, MaxObjects: &most}}}
			})},
			want: []string{"1 Job in team-a is over this ceiling and will be deleted now"},
		},
		"maxTTL shortens others": {
			world: newWorld(everywhere...).with(ttlPolicy("own", "1d")), change: gc.PolicyChange{
				After: clusterPolicy("bounds", func(s *gc.ClusterCleanupPolicySpec) { s.Guardrails = &gc.Guardrails{MaxTTL: &hour} }),
			},
			want: []string{`with this policy, policy "team-a/own" makes 2 Jobs in team-a due`},
		},
		"no longer suspended": {
			world: newWorld(everywhere...).with(ttlPolicy("own", "1h"), clusterPolicy("stop", func(s *gc.ClusterCleanupPolicySpec) { s.Guardrails = &gc.Guardrails{SuspendAll: true} })),
			change: gc.PolicyChange{
				Before: clusterPolicy("stop", func(s *gc.ClusterCleanupPolicySpec) { s.Guardrails = &gc.Guardrails{SuspendAll: true} }),
				After:  next(clusterPolicy("stop", func(*gc.ClusterCleanupPolicySpec) {})),
			},
			want: []string{`with this change, policy "team-a/own" makes 2 Jobs in team-a due`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := tc.world.forecaster().Forecast(t.Context(), tc.change).Lines
			if !slices.EqualFunc(got, tc.want, strings.HasPrefix) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(tc.want, "\n"))
			}
			if again := tc.world.Totals(testbuilders.Now); tc.world.forecaster().Forecast(t.Context(), tc.change).Lines == nil != (tc.want == nil) ||
				!reflect.DeepEqual(tc.world.Totals(testbuilders.Now), again) {
				t.Error("the forecast changed the tracker")
			}
		})
	}
}

// begun ends the lists of the policies and namespaces of an empty cluster.
func begun(t *tracker.Tracker) *tracker.Tracker {
	t.ReplaceNamespaces(nil, "", testbuilders.Now)
	t.ReplacePolicies(nil, "", testbuilders.Now)
	t.ReplaceClusterPolicies(nil, "", testbuilders.Now)
	return t
}
