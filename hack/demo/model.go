// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/engine"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

const (
	// unexplainedAfter is how long to wait until Winnow's log names a deletion. After that, somebody else has deleted the object.
	unexplainedAfter = 2 * time.Second
	// atOnce is how long an object without finalizers may take to go; deletion timestamps are whole seconds.
	atOnce = 3 * time.Second
)

// model is what the demonstration knows. What happened, and why, comes from Winnow: its log, status and events. What is going to happen is
// a forecast by an engine of the demonstration's own.
type model struct {
	began      time.Time
	objects    map[types.UID]*object
	namespaces []*metav1.PartialObjectMetadata
	cronJobs   []*lifecycle.CronJob
	policies   []policyRow
	trouble    error // why the policies cannot be shown; nil if they can
	forecast   *engine.Engine
	extension  *extension
	approval   *approvedHold
	candidates string // what kubectl get cand showed; empty before that
	lines      []line // what happened
	sights     []sight
}

// object is an object that a policy could match. It stays in the model after it is gone.
type object struct {
	state
	finished bool // a line says that it has finished
	// deletion is the first line of Winnow's log that says that Winnow deleted the object, and deletes the number of such lines.
	deletion *logEntry
	deletes  int
	gone     time.Time // zero while it is there
	told     bool      // a line says that it is gone
}

// extension says when the demonstration extended a Job.
type extension struct {
	uid     types.UID
	at, due time.Time
}

// approvedHold is a hold that the demonstration approved.
type approvedHold struct {
	gc.PolicyHold
	at time.Time
}

// line is a line of text, with its time if it has one.
type line struct {
	at   time.Time
	text string
}

func (l line) String() string { return clock(l.at) + " " + l.text }

func newModel(now time.Time) *model {
	return &model{began: now, objects: map[types.UID]*object{}}
}

func (m *model) tell(at time.Time, format string, args ...any) {
	m.lines = append(m.lines, line{at, fmt.Sprintf(format, args...)})
}

// update adds an observation to the model.
func (m *model) update(o *observation, now time.Time) {
	before := len(m.lines)
	defer func() { slices.SortStableFunc(m.lines[before:], func(a, b line) int { return a.at.Compare(b.at) }) }()
	m.updatePolicies(o, now)
	m.namespaces, m.cronJobs = o.namespaces, o.cronJobs
	present := sets.New[types.UID]()
	slices.SortFunc(o.objects, func(a, b state) int {
		return cmp.Or(a.fact.Created.Compare(b.fact.Created), cmp.Compare(a.fact.Name, b.fact.Name))
	})
	for _, s := range o.objects {
		present.Insert(s.fact.UID)
		m.updateObject(s)
	}
	for uid, object := range m.objects {
		if object.gone.IsZero() && !present.Has(uid) {
			object.gone = now
		}
	}
	m.forecast = m.foresee(now)
	m.tellFinished(now)
	for i := range o.log {
		m.hear(&o.log[i])
	}
	for _, e := range o.events {
		m.tell(e.EventTime.Time, "%s event on policy %s/%s: %s", strings.ToLower(e.Type), e.Namespace, e.Regarding.Name, e.Note)
	}
	m.tellGone(now)
}

func (m *model) updatePolicies(o *observation, now time.Time) {
	if o.reason != nil {
		m.trouble = o.reason
	}
	if o.policies == nil {
		return
	}
	for _, p := range o.policies {
		m.tellReady(p.Stored, now)
	}
	m.policies, m.trouble = o.policies, nil
}

// tellReady adds a line if the condition Ready of a policy has changed.
func (m *model) tellReady(p policy.Stored, now time.Time) {
	ready := meta.FindStatusCondition(p.Status.Conditions, gc.ConditionReady)
	before := meta.FindStatusCondition(m.policy(p.Namespace, p.Name).Status.Conditions, gc.ConditionReady)
	if ready == nil || before != nil && before.Status == ready.Status && before.Reason == ready.Reason {
		return
	}
	m.tell(now, "policy %s: Ready is %s, %s: %s", titleOf(p), ready.Status, ready.Reason, ready.Message)
}

// titleOf names a policy as Winnow's log does. A cluster policy has no namespace.
func titleOf(p policy.Stored) string { return strings.TrimPrefix(p.Namespace+"/"+p.Name, "/") }

// policy returns the last known state of a policy; an empty policy if there is none.
func (m *model) policy(namespace, name string) policy.Stored {
	for _, p := range m.policies {
		if p.Namespace == namespace && p.Name == name {
			return p.Stored
		}
	}
	return policy.StoredOf(&gc.CleanupPolicy{})
}

// nextDeletion returns the next deletion in the status of a policy; zero if there is none.
func (m *model) nextDeletion(namespace, name string) time.Time {
	if next := m.policy(namespace, name).Status.NextDeletionTime; next != nil {
		return next.Time
	}
	return time.Time{}
}

func (m *model) updateObject(s state) {
	o := m.objects[s.fact.UID]
	if o == nil {
		o = &object{}
		m.objects[s.fact.UID] = o
		m.tell(s.fact.Created, "%s created", nameOf(s.fact))
	}
	o.state = s
}

// tellFinished adds a line for each object that has finished since the last call, with its prospect.
func (m *model) tellFinished(now time.Time) {
	for _, o := range m.sorted() {
		if o.fact.Finished && !o.finished {
			o.finished = true
			prospect := m.prospect(o, now)
			m.tell(now, "%s %s; %s: %s", nameOf(o.fact), strings.ToLower(string(o.fact.Outcome)), prospect.state, prospect.why)
		}
	}
}

// hear adds a line of Winnow's log to the model.
func (m *model) hear(e *logEntry) {
	at := e.at()
	o := m.objects[e.UID]
	switch {
	case e.Message == "Leading":
		m.tell(at, "Winnow has become the leader and starts to delete")
	case o == nil:
	case e.Message == "Not deleted":
		m.tell(at, "%s not deleted by %s, rule %s: %s: %s", nameOf(o.fact), e.Policy, e.Rule, e.Outcome, e.Detail)
	case e.Message == "Deleted":
		o.deletes++
		if o.deletion == nil {
			o.deletion = e
		}
		if len(o.finalizers) > 0 {
			m.tell(at, "%s is being deleted %s, and waits for its finalizers", nameOf(o.fact), e.why())
		} else {
			m.tell(at, "%s deleted %s", nameOf(o.fact), e.why())
		}
	}
}

// at returns when the line was written.
func (e *logEntry) at() time.Time { return time.UnixMilli(int64(e.Milliseconds)) }

// why says by which policy and when Winnow deleted the object.
func (e *logEntry) why() string {
	by := byRule(e.Policy, e.Rule)
	if e.late() {
		return fmt.Sprintf("by %s, %s", by, e.delay())
	}
	return fmt.Sprintf("by %s, %s after it finished, %s", by, e.Due.Sub(e.FinishedAt).Round(time.Second), e.delay())
}

// short is why for a table.
func (e *logEntry) short() string {
	return fmt.Sprintf("at %s by %s, %s", clock(e.Due.Add(time.Duration(e.Delay))), byRule(e.Policy, e.Rule), e.delay())
}

// late reports whether something held the object when it was due.
func (e *logEntry) late() bool { return time.Duration(e.Delay) >= time.Second }

func (e *logEntry) delay() string {
	if e.late() {
		return seconds(time.Duration(e.Delay)) + " after it was due"
	}
	return fmt.Sprintf("%d ms late", time.Duration(e.Delay).Milliseconds())
}

// tellGone adds a line for each object that is gone, except those that went as soon as Winnow deleted them.
func (m *model) tellGone(now time.Time) {
	for _, o := range m.sorted() {
		if o.gone.IsZero() || o.told {
			continue
		}
		switch {
		case o.deletion != nil && (o.deleting.IsZero() || o.gone.Sub(o.deleting) < atOnce):
		case o.deletion != nil:
			m.tell(o.gone, "%s gone, %s after it was deleted", nameOf(o.fact), o.gone.Sub(o.deleting).Round(time.Second))
		case now.Sub(o.gone) < unexplainedAfter:
			continue
		default:
			m.tell(o.gone, "%s gone, not by Winnow", nameOf(o.fact))
		}
		o.told = true
	}
}

// extend records that the demonstration extended the Job, just before it was due.
func (m *model) extend(uid types.UID, due, at time.Time) {
	m.extension = &extension{uid: uid, at: at, due: due}
	if o := m.objects[uid]; o != nil {
		m.tell(at, "%s extended by this demo, %s before it was due: %s=%s", nameOf(o.fact), seconds(due.Sub(at)), gc.AnnotationTTL, longerTTL)
	}
}

// approve records that the demonstration approved a hold.
func (m *model) approve(hold gc.PolicyHold, command string, at time.Time) {
	m.approval = &approvedHold{PolicyHold: hold, at: at}
	m.tell(at, "hold %s of %d objects approved by this demo: %s", hold.ID, hold.Objects, command)
}

// tellWarnings adds a line for each line that kubectl wrote to its standard error.
func (m *model) tellWarnings(at time.Time, stderr string) {
	for line := range strings.Lines(stderr) {
		m.tell(at, "kubectl apply: %s", strings.TrimSpace(line))
	}
}

// within returns all objects of a namespace. Those that finished first come first.
func (m *model) within(namespace string) []*object {
	out := slices.DeleteFunc(m.sorted(), func(o *object) bool { return o.fact.Namespace != namespace })
	slices.SortStableFunc(out, func(a, b *object) int { return a.fact.FinishedAt.Compare(b.fact.FinishedAt) })
	return out
}

// sorted returns all objects. The oldest come first.
func (m *model) sorted() []*object {
	out := make([]*object, 0, len(m.objects))
	for _, o := range m.objects {
		out = append(out, o)
	}
	slices.SortFunc(out, func(a, b *object) int {
		return cmp.Or(a.fact.Created.Compare(b.fact.Created), cmp.Compare(nameOf(a.fact), nameOf(b.fact)))
	})
	return out
}
