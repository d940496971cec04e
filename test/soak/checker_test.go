// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
	"github.com/winnow-dev/winnow/test/cluster"
)

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// play is a history that is written by hand, with the requests of a Winnow that does as the play says. Times are seconds after noon.
type play struct {
	*history
	now     change
	checker *checker
}

// newPlay has a namespace whose policy keeps for five seconds what has finished.
func newPlay() *play {
	h := newHistory()
	p := &play{history: h, now: newChange(), checker: checkerOf(h, newUses())}
	p.now.namespaces["soak"] = map[string]string{"team": "a"}
	p.policy(-60, gc.CleanupPolicySpec{TTLAfterFinished: ptr(gc.TTL("5s"))})
	return p
}

func at(seconds float64) time.Time { return noon.Add(time.Duration(seconds * float64(time.Second))) }

// change is acknowledged a hundredth of a second later.
func (p *play) change(seconds float64, what func(c *change)) {
	p.now = p.now.clone()
	what(&p.now)
	p.now.sent, p.now.acked = at(seconds), at(seconds+0.01)
	p.changed(p.now)
}

func (p *play) policy(seconds float64, spec gc.CleanupPolicySpec) {
	if spec.Mode == "" {
		spec.Mode = gc.ModeEnforce
	}
	spec.AnnotationTTL = gc.AnnotationExtendOnly
	p.change(seconds, func(c *change) {
		c.policies[policyOf("soak")] = &gc.CleanupPolicy{ObjectMeta: metaOf("soak"), Spec: spec}
	})
}

func metaOf(namespace string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: policyName}
}

func (p *play) clusterPolicy(seconds float64, spec gc.ClusterCleanupPolicySpec) {
	spec.Mode, spec.AnnotationTTL, spec.NamespaceSelector = gc.ModeEnforce, gc.AnnotationExtendOnly, &metav1.LabelSelector{}
	p.change(seconds, func(c *change) {
		c.cluster["all"] = &gc.ClusterCleanupPolicy{ObjectMeta: metav1.ObjectMeta{Name: "all"}, Spec: spec}
	})
}

func (p *play) labels(seconds float64, labels map[string]string) {
	p.change(seconds, func(c *change) { c.namespaces["soak"] = labels })
}

// job has finished at this time; its state has version 1.
func (p *play) job(name string, finished float64, more ...func(*lifecycle.Fact)) {
	f := &lifecycle.Fact{
		Resource: gc.ResourceJobs, Namespace: "soak", Name: name, UID: types.UID(name), ResourceVersion: 1,
		Created: at(finished - 1), Finished: true, Outcome: gc.OutcomeSucceeded, FinishedAt: at(finished),
	}
	for _, change := range more {
		change(f)
	}
	p.wrote(f, at(finished), at(finished+0.01))
}

// write makes a next state of an object.
func (p *play) write(seconds float64, name string, what func(*lifecycle.Fact)) {
	f := *p.objects[types.UID(name)].last()
	f.ResourceVersion++
	what(&f)
	p.wrote(&f, at(seconds), at(seconds+0.01))
}

func running(f *lifecycle.Fact) { f.Finished, f.FinishedAt = false, time.Time{} }

func ofJob(name string) func(*lifecycle.Fact) { return of("Job", name) }

func of(kind, name string) func(*lifecycle.Fact) {
	return func(f *lifecycle.Fact) {
		f.Controller = &lifecycle.Owner{GroupKind: schema.GroupKind{Group: "batch", Kind: kind}, Name: name, UID: types.UID(name)}
		if kind == "CronJob" {
			f.Scheduled = at(0)
		} else {
			f.Resource = gc.ResourcePods
		}
	}
}

func (p *play) cron(seconds float64, lastScheduled time.Time, active ...types.UID) {
	p.cronJob("cron", &lifecycle.CronJob{
		ObjectMeta: metav1.ObjectMeta{Namespace: "soak", Name: "cron", UID: "cron"}, Active: active, LastScheduled: lastScheduled,
	}, at(seconds), at(seconds+0.01))
}

// delete is a request of Winnow for the state with this version, that is answered with OK.
func (p *play) delete(seconds float64, name string, version int) {
	p.send(seconds, name, fmt.Sprintf(`{"preconditions":{"uid":%q,"resourceVersion":"%d"}}`, name, version))
}

func (p *play) send(seconds float64, name, body string) {
	e := &cluster.AuditEvent{
		UserAgent: "winnow-apiserver", ObjectRef: &auditv1.ObjectReference{Resource: "jobs", Namespace: "soak", Name: name},
		RequestReceivedTimestamp: metav1.NewMicroTime(at(seconds)), StageTimestamp: metav1.NewMicroTime(at(seconds + 0.01)),
		RequestObject: &runtime.Unknown{Raw: []byte(body)}, ResponseStatus: &metav1.Status{Code: http.StatusOK},
	}
	p.checker.take(e)
}

// TestChecker: the checker finds whatever Winnow may do wrong, and reports nothing that is right.
func TestChecker(t *testing.T) {
	capacity := &gc.Capacity{PercentOfQuota: ptr(int64(50))}
	stop := gc.ClusterCleanupPolicySpec{Guardrails: &gc.Guardrails{SuspendAll: true}}
	for name, c := range map[string]struct {
		play func(p *play)
		want string // what the fault says; empty when there is none
	}{
		"when it is due":              {func(p *play) { p.job("a", 0); p.delete(5, "a", 1) }, ""},
		"too early":                   {func(p *play) { p.job("a", 0); p.delete(4.9, "a", 1) }, "NotDue"},
		"what has not finished":       {func(p *play) { p.job("a", 0, running); p.delete(9, "a", 1) }, "NotFinished"},
		"what its annotation keeps":   {func(p *play) { p.job("a", 0, keep); p.delete(9, "a", 1) }, "NotDue"},
		"what was annotated before":   {func(p *play) { p.job("a", 0); p.write(4, "a", keep); p.delete(9, "a", 1) }, "newer one"},
		"what is annotated meanwhile": {func(p *play) { p.job("a", 0); p.write(8.995, "a", keep); p.delete(9, "a", 1) }, ""},
		"a state that never was":      {func(p *play) { p.job("a", 0); p.delete(9, "a", 7) }, "nobody wrote"},
		"without preconditions":       {func(p *play) { p.job("a", 0); p.send(9, "a", `{}`) }, "lacks preconditions"},
		"without resourceVersion":     {func(p *play) { p.job("a", 0); p.send(9, "a", `{"preconditions":{"uid":"a"}}`) }, "lacks preconditions"},
		"twice":                       {func(p *play) { p.job("a", 0); p.delete(6, "a", 1); p.delete(7, "a", 1) }, "second time"},
		"by an old policy":            {func(p *play) { p.job("a", 0); p.policy(4, keepAll()); p.delete(5.5, "a", 1) }, "NotDue"},
		"by an old policy, at once":   {func(p *play) { p.job("a", 0); p.policy(5, keepAll()); p.delete(5.9, "a", 1) }, ""},
		"by a policy yet to come":     {func(p *play) { p.policy(-9, keepAll()); p.job("a", 0); p.delete(6, "a", 1); p.policy(7, five()) }, "NotDue"},
		"by a deleted policy":         {func(p *play) { p.job("a", 0); p.change(4, noPolicies); p.delete(6, "a", 1) }, "NoPolicy"},
		"by a preview":                {func(p *play) { p.job("a", 0); p.policy(4, preview()); p.delete(6, "a", 1) }, "NoPolicy"},
		"by a rule for others":        {func(p *play) { p.job("a", 0); p.policy(4, ofOthers()); p.delete(6, "a", 1) }, "NoPolicy"},
		"before any policy":           {func(p *play) { p.history.changes = nil; p.job("a", 0); p.delete(6, "a", 1) }, "before there was any policy"},
		"what is protected":           {func(p *play) { p.job("a", 0); p.labels(2, protected); p.delete(6, "a", 1) }, "NamespaceProtected"},
		"what was protected once":     {func(p *play) { p.job("a", 0); p.labels(2, protected); p.labels(4, nil); p.delete(6, "a", 1) }, ""},
		"what is suspended":           {func(p *play) { p.job("a", 0); p.clusterPolicy(2, stop); p.delete(6, "a", 1) }, "Suspended"},
		"what is not, any more": {func(p *play) {
			p.job("a", 0)
			p.clusterPolicy(2, stop)
			p.clusterPolicy(4, none())
			p.delete(6, "a", 1)
		}, ""},
		"before minTTL":           {func(p *play) { p.job("a", 0); p.clusterPolicy(2, minTTL("1m")); p.delete(6, "a", 1) }, "NotDue"},
		"what is held":            {func(p *play) { p.job("a", 0); p.hold(at(4), "a"); p.delete(6, "a", 1) }, "waits for approval"},
		"what was approved":       {func(p *play) { p.job("a", 0); p.hold(at(4), "a"); p.release(at(5.5), "a"); p.delete(6, "a", 1) }, ""},
		"what was approved later": {func(p *play) { p.job("a", 0); p.hold(at(4), "a"); p.delete(6, "a", 1); p.release(at(6.5), "a") }, "waits for approval"},
		"a Pod of a running Job":  {func(p *play) { p.job("j", 0, running); p.job("a", 0, ofJob("j")); p.delete(6, "a", 1) }, "LeftToOwner"},
		"a Pod of a finished Job": {func(p *play) { p.job("j", 0); p.job("a", 0, ofJob("j")); p.delete(6, "a", 1) }, "LeftToOwner"},
		"a Pod whose Job is gone": {func(p *play) { p.job("a", 0, ofJob("j")); p.delete(6, "a", 1) }, "LeftToOwner"},
		"a Job that is listed":    {func(p *play) { p.cron(0, at(0), "a"); p.job("a", 0, of("CronJob", "cron")); p.delete(6, "a", 1) }, "LeftToOwner"},
		"a Job that is yet to be": {func(p *play) { p.cron(0, at(-60)); p.job("a", 0, of("CronJob", "cron")); p.delete(6, "a", 1) }, "LeftToOwner"},
		"a Job that is no more": {func(p *play) {
			p.cron(0, at(0), "a")
			p.cron(2, at(0))
			p.job("a", 0, of("CronJob", "cron"))
			p.delete(6, "a", 1)
		}, ""},
		"a Job of a gone CronJob":    {func(p *play) { p.job("a", 0, of("CronJob", "cron")); p.delete(6, "a", 1) }, "LeftToOwner"},
		"one within the limit":       {func(p *play) { p.policy(-9, limit(capacity)); p.quotaOf(-9, 4); p.crowd(3); p.delete(6, "job-1", 1) }, "WithinCapacity"},
		"one beyond the limit":       {func(p *play) { p.policy(-9, limit(capacity)); p.quotaOf(-9, 4); p.crowd(3); p.delete(6, "job-0", 1) }, ""},
		"the newest, not the oldest": {func(p *play) { p.policy(-9, limit(capacity)); p.quotaOf(-9, 4); p.crowd(3); p.delete(6, "job-2", 1) }, "WithinCapacity"},
		"by a quota of long ago": {func(p *play) {
			p.policy(-29, limit(capacity))
			p.quotaOf(-29, 2)
			p.quotaOf(-20, 9)
			p.crowd(3)
			p.delete(6, "job-0", 1)
		}, "WithinCapacity"},
		"by a quota of just now": {func(p *play) {
			p.policy(-9, limit(capacity))
			p.quotaOf(-9, 2)
			p.quotaOf(5.8, 9)
			p.crowd(3)
			p.delete(6, "job-0", 1)
		}, ""},
		"while the annotation of another ends":      {func(p *play) { p.annotatedUnderCeiling(); p.delete(20.05, "a", 1) }, ""},
		"after the annotation of another has ended": {func(p *play) { p.annotatedUnderCeiling(); p.delete(21, "a", 1) }, "Never"},
		"one that a ceiling leaves": {func(p *play) {
			p.policy(-9, never())
			p.clusterPolicy(-8, ceiling(2))
			p.crowd(3)
			p.delete(6, "job-1", 1)
		}, "Never"},
		"one over the ceiling": {func(p *play) {
			p.policy(-9, never())
			p.clusterPolicy(-8, ceiling(2))
			p.crowd(3)
			p.delete(6, "job-0", 1)
		}, ""},
		"within the capacity of a suspended policy": {func(p *play) {
			p.suspendedUnderCeiling()
			p.job("newer", 7)
			p.delete(6, "job-2", 1)
		}, ""},
		"within it by what was seen": {func(p *play) {
			p.suspendedUnderCeiling()
			p.job("newer", 4, running)
			p.write(5.2, "newer", func(f *lifecycle.Fact) { f.Finished, f.FinishedAt = true, at(5.2) })
			p.delete(6, "job-2", 1)
		}, ""},
		"above it": {func(p *play) { p.suspendedUnderCeiling(); p.delete(6, "job-1", 1) }, "Suspended"},
		"two for one over it": {func(p *play) {
			p.policy(-9, never())
			p.clusterPolicy(-8, ceiling(2))
			p.crowd(3)
			p.delete(6, "job-0", 1)
			p.delete(30, "job-1", 1)
		}, "Never"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlay()
			c.play(p)
			p.checker.check(at(60), time.Now().Add(time.Hour))
			switch {
			case c.want == "" && len(p.checker.faults) > 0:
				t.Errorf("right, but found: %v", p.checker.faults)
			case c.want != "" && p.checker.verdict.faults != 1:
				t.Errorf("found %d faults, want one of %q: %v", p.checker.verdict.faults, c.want, p.checker.faults)
			case c.want != "" && !strings.Contains(p.checker.faults[0], c.want):
				t.Errorf("found %q, want one of %q", p.checker.faults[0], c.want)
			}
		})
	}
}

// TestDeletedBeforeItWasRecorded: the driver records a state after the audit event of its DELETE was read. It does not come back, neither
// as a new object nor as a new state of one, so that it is not found to be missing after the API server was killed.
func TestDeletedBeforeItWasRecorded(t *testing.T) {
	for _, first := range []bool{true, false} {
		p := newPlay()
		version := 1
		if !first {
			p.job("a", 0, running)
			version = 2
		}
		p.delete(8, "a", version)
		p.job("a", 0, func(f *lifecycle.Fact) { f.ResourceVersion = uint64(version) })
		if left := p.left(); len(left) != 0 {
			t.Errorf("left are %v", left)
		}
		if p.checker.check(at(60), time.Now().Add(time.Hour)); p.checker.verdict.faults != 0 {
			t.Errorf("right, but found: %v", p.checker.faults)
		}
	}
}

// TestOverdue: what is due and still there is found, unless something forbids to delete it.
func TestOverdue(t *testing.T) {
	for name, c := range map[string]struct {
		play func(p *play)
		want bool
	}{
		"due and there":             {func(p *play) { p.job("a", 0) }, true},
		"gone by now":               {func(p *play) { p.job("a", 0); p.delete(8, "a", 1) }, false},
		"not due":                   {func(p *play) { p.job("a", 6) }, false},
		"held":                      {func(p *play) { p.job("a", 0); p.hold(at(0), "a") }, false},
		"approved, and still there": {func(p *play) { p.job("a", 0); p.hold(at(0), "a"); p.release(at(4), "a") }, true},
		"protected":                 {func(p *play) { p.job("a", 0); p.labels(1, protected) }, false},
		"suspended": {func(p *play) {
			p.job("a", 0)
			p.clusterPolicy(1, gc.ClusterCleanupPolicySpec{Guardrails: &gc.Guardrails{SuspendAll: true}})
		}, false},
		"no longer suspended": {func(p *play) {
			p.job("a", 0)
			p.clusterPolicy(1, gc.ClusterCleanupPolicySpec{Guardrails: &gc.Guardrails{SuspendAll: true}})
			p.clusterPolicy(3, none())
		}, true},
		"a Pod of a gone Job":     {func(p *play) { p.job("a", 0, ofJob("j")) }, false},
		"a Job, no longer listed": {func(p *play) { p.cron(0, at(0)); p.job("a", 0, of("CronJob", "cron")) }, true},
		"beyond the share of a quota": {func(p *play) {
			p.policy(-9, limit(&gc.Capacity{PercentOfQuota: ptr(int64(50))}))
			p.quotaOf(-9, 1)
			p.job("a", 0)
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlay()
			c.play(p)
			there := map[types.UID]bool{}
			for uid := range p.left() {
				there[uid] = true
			}
			missed := inBoth(p.overdue(at(10), p.now, there), p.overdue(at(15), p.now, there))
			if (len(missed) == 1) != c.want || len(missed) > 1 {
				t.Errorf("missed are %v, want some: %v", missed, c.want)
			}
		})
	}
}

var protected = map[string]string{gc.LabelProtected: "true"}

func keep(f *lifecycle.Fact) { f.TTL = ptr("1h") }

func keepAll() gc.CleanupPolicySpec { return gc.CleanupPolicySpec{TTLAfterFinished: ptr(gc.TTL("1h"))} }

func five() gc.CleanupPolicySpec { return gc.CleanupPolicySpec{TTLAfterFinished: ptr(gc.TTL("5s"))} }

func never() gc.CleanupPolicySpec {
	return gc.CleanupPolicySpec{TTLAfterFinished: ptr(gc.TTL(gc.TTLNever))}
}

func limit(c *gc.Capacity) gc.CleanupPolicySpec { return gc.CleanupPolicySpec{Capacity: c} }

func preview() gc.CleanupPolicySpec {
	return gc.CleanupPolicySpec{Mode: gc.ModePreview, TTLAfterFinished: ptr(gc.TTL("5s"))}
}

func ofOthers() gc.CleanupPolicySpec {
	return gc.CleanupPolicySpec{Rules: []gc.CleanupRule{{Name: "pods", Resources: []string{gc.ResourcePods}, TTL: ptr(gc.TTL("0s"))}}}
}

func noPolicies(c *change) { c.policies = nil }

func none() gc.ClusterCleanupPolicySpec { return gc.ClusterCleanupPolicySpec{} }

func minTTL(ttl gc.TTL) gc.ClusterCleanupPolicySpec {
	return gc.ClusterCleanupPolicySpec{Guardrails: &gc.Guardrails{MinTTL: &ttl}}
}

func ceiling(n int64) gc.ClusterCleanupPolicySpec {
	return gc.ClusterCleanupPolicySpec{
		Guardrails: &gc.Guardrails{Ceilings: []gc.Ceiling{{Resources: []string{gc.ResourceJobs}, MaxObjects: &n}}},
	}
}

func (p *play) quotaOf(seconds float64, allows int64) {
	p.quota("soak", allows, at(seconds), at(seconds+0.01))
}

// annotatedUnderCeiling are three Jobs under a ceiling of two, all kept by annotations: b until the time 20, the others for longer.
func (p *play) annotatedUnderCeiling() {
	p.policy(-9, five())
	p.clusterPolicy(-8, ceiling(2))
	for i, ttl := range []string{"never", "19s", "1h"} {
		p.job(string(rune('a'+i)), float64(i), func(f *lifecycle.Fact) { f.TTL = &ttl })
	}
}

// suspendedUnderCeiling are three Jobs under a ceiling of none, all but the last of which are above the capacity of a suspended policy.
func (p *play) suspendedUnderCeiling() {
	spec := limit(&gc.Capacity{MaxObjects: ptr(int64(1))})
	spec.Suspend = true
	p.policy(-9, spec)
	p.clusterPolicy(-8, ceiling(0))
	p.crowd(3)
}

// crowd are Jobs that finish one after the other.
func (p *play) crowd(n int) {
	for i := range n {
		p.job(fmt.Sprintf("job-%d", i), float64(i)/10)
	}
}
