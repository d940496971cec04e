// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/oracle"
)

// history is all that was ever true in the cluster, in the order in which it became so. Nobody but the driver and Winnow writes
// Jobs and Pods, and nobody but the driver CronJobs, quotas, labels of namespaces and the specs of policies, so it is complete.
type history struct {
	lock     sync.Mutex
	objects  map[types.UID]*object
	cronJobs map[types.UID]timeline[*lifecycle.CronJob]
	quotas   map[string]timeline[int64] // by namespace: how many Jobs it may have, noQuota without one
	held     map[types.UID]*hold
	changes  []change
}

// noQuota is more than any quota allows.
const noQuota = int64(1) << 40

// timeline are the states that something was in, the oldest first.
type timeline[T any] []state[T]

// state became true between sent and acked.
type state[T any] struct {
	sent, acked time.Time
	is          T
}

// possible are the states that something may have been in at any time from lag before now until now.
func (t timeline[T]) possible(now time.Time, lag time.Duration) (out []T) {
	for i, s := range t {
		if s.sent.After(now) {
			break
		}
		if i+1 == len(t) || !t[i+1].acked.Before(now.Add(-lag)) {
			out = append(out, s.is)
		}
	}
	return out
}

// object are the states of a Job or Pod; the last one is nil when it is gone.
type object struct {
	namespace, name string
	states          timeline[*lifecycle.Fact]
}

// hold is of objects that a change made due, and that wait for somebody to approve it.
type hold struct {
	from, until time.Time // until is zero while they wait
	changed     time.Time // when the change was acknowledged
}

func (h *hold) at(t time.Time) bool {
	return h != nil && !t.Before(h.from) && (h.until.IsZero() || t.Before(h.until))
}

// change is one of what nobody may act against for longer than a second: all policies and labels as they were after it.
type change struct {
	sent, acked time.Time
	policies    map[types.NamespacedName]*gc.CleanupPolicy
	cluster     map[string]*gc.ClusterCleanupPolicy
	namespaces  map[string]map[string]string // their labels
}

// clone can be changed without changing c.
func (c change) clone() change {
	c.policies, c.cluster, c.namespaces = maps.Clone(c.policies), maps.Clone(c.cluster), maps.Clone(c.namespaces)
	return c
}

// countTogether reports whether one limit may count the objects of two namespaces: it is one namespace, or both are under the ceiling.
func (c change) countTogether(a, b string) bool {
	return a == b || c.namespaces[a][boundLabel] == "yes" && c.namespaces[b][boundLabel] == "yes"
}

func newChange() change {
	return change{
		policies: map[types.NamespacedName]*gc.CleanupPolicy{}, cluster: map[string]*gc.ClusterCleanupPolicy{},
		namespaces: map[string]map[string]string{},
	}
}

func newHistory() *history {
	return &history{
		objects: map[types.UID]*object{}, cronJobs: map[types.UID]timeline[*lifecycle.CronJob]{},
		quotas: map[string]timeline[int64]{}, held: map[types.UID]*hold{},
	}
}

// wrote records what the API server answered to a write. A write that changed nothing is none. The audit event of a DELETE may be read
// before the driver has recorded the state that was deleted.
func (h *history) wrote(fact *lifecycle.Fact, sent, acked time.Time) {
	h.lock.Lock()
	defer h.lock.Unlock()
	o := h.object(fact.UID)
	o.namespace, o.name = fact.Namespace, fact.Name
	n := len(o.states)
	if o.isGone() {
		n--
	}
	if n == 0 || o.states[n-1].is.ResourceVersion != fact.ResourceVersion {
		o.states = slices.Insert(o.states, n, state[*lifecycle.Fact]{sent, acked, fact})
	}
}

// gone records that a Job or Pod was deleted by a request.
func (h *history) gone(uid types.UID, sent, acked time.Time) {
	h.lock.Lock()
	defer h.lock.Unlock()
	if o := h.object(uid); !o.isGone() {
		o.states = append(o.states, state[*lifecycle.Fact]{sent: sent, acked: acked})
	}
}

// object returns the object with this UID, and creates it if it is not known.
func (h *history) object(uid types.UID) *object {
	o := h.objects[uid]
	if o == nil {
		o = &object{}
		h.objects[uid] = o
	}
	return o
}

// cronJob records a state of a CronJob, nil when it is gone.
func (h *history) cronJob(uid types.UID, is *lifecycle.CronJob, sent, acked time.Time) {
	h.lock.Lock()
	defer h.lock.Unlock()
	h.cronJobs[uid] = append(h.cronJobs[uid], state[*lifecycle.CronJob]{sent, acked, is})
}

// quota records how many Jobs the quota of a namespace allows.
func (h *history) quota(namespace string, allows int64, sent, acked time.Time) {
	h.lock.Lock()
	defer h.lock.Unlock()
	h.quotas[namespace] = append(h.quotas[namespace], state[int64]{sent, acked, allows})
}

// hold records that objects wait from a time on.
func (h *history) hold(from time.Time, uids ...types.UID) {
	h.lock.Lock()
	defer h.lock.Unlock()
	for _, uid := range uids {
		h.held[uid] = &hold{from: from}
	}
}

// heldBy records when the change was acknowledged for which objects wait.
func (h *history) heldBy(acked time.Time, uids ...types.UID) {
	h.lock.Lock()
	defer h.lock.Unlock()
	for _, uid := range uids {
		if held := h.held[uid]; held != nil {
			held.changed = acked
		}
	}
}

// holdOf returns the hold of an object that waits, or has waited.
func (h *history) holdOf(uid types.UID) hold {
	h.lock.Lock()
	defer h.lock.Unlock()
	if held := h.held[uid]; held != nil {
		return *held
	}
	return hold{}
}

// release records that objects that waited may go.
func (h *history) release(at time.Time, uids ...types.UID) {
	h.lock.Lock()
	defer h.lock.Unlock()
	for _, uid := range uids {
		if held := h.held[uid]; held != nil && held.until.IsZero() {
			held.until = at
		}
	}
}

// forget drops what was gone or replaced before a time.
func (h *history) forget(before time.Time) {
	h.lock.Lock()
	defer h.lock.Unlock()
	for uid, o := range h.objects {
		if o.isGone() && o.states[len(o.states)-1].sent.Before(before) {
			delete(h.objects, uid)
			delete(h.held, uid)
		}
	}
	for uid, t := range h.cronJobs {
		if last := t[len(t)-1]; last.is == nil && last.sent.Before(before) {
			delete(h.cronJobs, uid)
		}
	}
	for len(h.changes) > 1 && h.changes[1].acked.Before(before.Add(-time.Second)) {
		h.changes = h.changes[1:]
	}
}

// left are the UIDs of what is not gone.
func (h *history) left() map[types.UID]string {
	h.lock.Lock()
	defer h.lock.Unlock()
	out := map[types.UID]string{}
	for uid, o := range h.objects {
		if o.last() != nil {
			out[uid] = o.namespace + "/" + o.name
		}
	}
	return out
}

// orphans are the Jobs and Pods whose controller is gone, which the garbage collector of Kubernetes deletes.
func (h *history) orphans() (out []*lifecycle.Fact) {
	h.lock.Lock()
	defer h.lock.Unlock()
	for _, o := range h.objects {
		f := o.last()
		if f == nil || f.Controller == nil {
			continue
		}
		job, cronJob := h.objects[f.Controller.UID], h.cronJobs[f.Controller.UID]
		if (job == nil || job.last() == nil) && (len(cronJob) == 0 || cronJob[len(cronJob)-1].is == nil) {
			out = append(out, f)
		}
	}
	return out
}

func (h *history) changed(c change) {
	h.lock.Lock()
	defer h.lock.Unlock()
	h.changes = append(h.changes, c)
}

// inForce are the changes of policies that a DELETE of this time may follow, the newest first: one that was acknowledged more than
// a second before it has taken the place of all that came earlier.
func (h *history) inForce(at time.Time) []change {
	h.lock.Lock()
	defer h.lock.Unlock()
	var out []change
	for i := len(h.changes) - 1; i >= 0; i-- {
		c := h.changes[i]
		if c.sent.After(at) {
			continue
		}
		out = append(out, c)
		if c.acked.Before(at.Add(-time.Second)) {
			break
		}
	}
	return out
}

// view says how a world is put together of what was possible.
type view struct {
	// lag is how old the state of what is observed may be that is not the newest. A request that is under way leaves it
	// open which one that is.
	lag time.Duration
	// first takes the first of the possible states that count alike, else it is the last.
	first bool
	// annotated takes states that annotations keep before others. A ceiling deletes objects that annotations keep after everything else of
	// their namespace, so these states explain the deletion of such an object best.
	annotated bool
	// fewest is a namespace in which as few objects as possible count, unlike elsewhere; empty for none. What is above the capacity of a
	// suspended policy is held, and no ceiling deletes it in its place. So a ceiling may delete an object because fewer counted.
	fewest string
	// earlier is how much earlier the decision was made.
	earlier time.Duration
}

// world is what somebody who sees the cluster at a time may take for true under these policies. Of the states that something may be in, it
// is in the one that speaks most for the deletion of others: a Job or Pod is there, finished, and not kept by its annotations; a
// CronJob counts on no Job; a quota allows little.
func (h *history) world(now time.Time, c change, v view) *oracle.World {
	w := &oracle.World{
		Now: now.Add(-v.earlier), Namespaces: map[string]oracle.Namespace{},
		Policies: slices.Collect(maps.Values(c.policies)), ClusterPolicies: slices.Collect(maps.Values(c.cluster)),
	}
	for name, labels := range c.namespaces {
		w.Namespaces[name] = oracle.Namespace{Labels: labels}
	}
	h.lock.Lock()
	defer h.lock.Unlock()
	for _, o := range h.objects {
		if f := most(o.states.possible(now, v.lag), v.first, v.scoreIn(o.namespace)); f != nil && f.Namespace != residentNamespace {
			w.Objects = append(w.Objects, f)
		}
	}
	for _, t := range h.cronJobs {
		if cj := most(t.possible(now, v.lag), v.first, frees); cj != nil {
			w.CronJobs = append(w.CronJobs, cj)
		}
	}
	for namespace, t := range h.quotas {
		little := func(n int64) int { return -int(n) }
		if namespace == v.fewest {
			little = func(n int64) int { return int(n) }
		}
		if allows := most(t.possible(now, v.lag), v.first, little); allows != noQuota && len(t) > 0 {
			w.Quotas = append(w.Quotas, quotaOf(namespace, allows))
		}
	}
	return w
}

// quotaOf allows so many Jobs.
func quotaOf(namespace string, allows int64) *corev1.ResourceQuota {
	return &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: policyName},
		Spec: corev1.ResourceQuotaSpec{
			Hard: corev1.ResourceList{"count/" + gc.ResourceJobs: *resource.NewQuantity(allows, resource.DecimalSI)},
		},
	}
}

// find returns the state of a Job or Pod with this resource version, and whether a newer one was acknowledged before a time.
func (h *history) find(uid types.UID, version uint64, before time.Time) (fact *lifecycle.Fact, outdated bool) {
	h.lock.Lock()
	defer h.lock.Unlock()
	if o := h.objects[uid]; o != nil {
		for _, s := range o.states {
			switch {
			case s.is == nil:
			case s.is.ResourceVersion == version:
				fact = s.is
			case s.is.ResourceVersion > version && s.acked.Before(before):
				outdated = true
			}
		}
	}
	return fact, outdated
}

// isHeld reports whether an object waits for approval at a time.
func (h *history) isHeld(uid types.UID, at time.Time) bool {
	h.lock.Lock()
	defer h.lock.Unlock()
	return h.held[uid].at(at)
}

// tell describes the objects of some namespaces that were there within the longest lag before a time, with all their states, one line each.
func (h *history) tell(now time.Time, in func(namespace string) bool) string {
	h.lock.Lock()
	defer h.lock.Unlock()
	var lines []string
	for uid, o := range h.objects {
		if !in(o.namespace) || len(o.states.possible(now, lags[len(lags)-1])) == 0 {
			continue
		}
		line := fmt.Sprintf("%s/%s %s", o.namespace, o.name, uid)
		for _, s := range o.states {
			line += fmt.Sprintf("; %s to %s: ", s.sent.Format(timeFormat), s.acked.Format(timeFormat))
			if f := s.is; f == nil {
				line += "gone"
			} else {
				line += fmt.Sprintf("%d finished=%v at %s ttl=%v keep-until=%v terminating=%v owner=%v",
					f.ResourceVersion, f.Finished, f.FinishedAt.Format(timeFormat), deref(f.TTL), deref(f.KeepUntil), f.Terminating, f.Controller)
			}
		}
		lines = append(lines, line)
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

const timeFormat = "15:04:05.000"

func deref(s *string) string {
	if s == nil {
		return "none"
	}
	return *s
}

// isGone reports whether the object was deleted.
func (o *object) isGone() bool { return len(o.states) > 0 && o.last() == nil }

// last is the newest fact, nil when it is gone.
func (o *object) last() *lifecycle.Fact {
	if len(o.states) == 0 {
		return nil
	}
	return o.states[len(o.states)-1].is
}

// most is the value with the highest score, of equal ones the first or the last; the zero value if there is none.
func most[T any](of []T, first bool, score func(T) int) (out T) {
	for i, v := range of {
		if i == 0 || score(v) > score(out) || score(v) == score(out) && !first {
			out = v
		}
	}
	return out
}

// scoreIn orders the facts of a namespace by which of them the view takes.
func (v view) scoreIn(namespace string) func(*lifecycle.Fact) int {
	if namespace == v.fewest {
		return func(f *lifecycle.Fact) int { return -v.counts(f) }
	}
	return v.counts
}

// counts orders facts by how much they speak for the deletion of others.
func (v view) counts(f *lifecycle.Fact) int {
	switch {
	case f == nil:
		return 0
	case !f.Finished, f.Terminating, malformed(f):
		return 1 // No limit counts it.
	case (f.TTL != nil || f.KeepUntil != nil) != v.annotated:
		return 2
	}
	return 3
}

// malformed reports whether an annotation of an object cannot be read.
func malformed(f *lifecycle.Fact) bool {
	if f.TTL != nil {
		if _, _, err := gc.TTL(*f.TTL).Parse(); err != nil {
			return true
		}
	}
	if f.KeepUntil != nil {
		if _, err := time.Parse(time.RFC3339, *f.KeepUntil); err != nil {
			return true
		}
	}
	return false
}

// frees orders states of a CronJob by how many of its Jobs they count on.
func frees(cj *lifecycle.CronJob) int {
	switch {
	case cj == nil:
		return 0
	case cj.LastScheduled.IsZero():
		return 1
	}
	return 1000 - len(cj.Active)
}
