// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/pkg/controller/deletion"
	"github.com/winnow-dev/winnow/pkg/controller/engine"
	"github.com/winnow-dev/winnow/pkg/controller/kinds"
	"github.com/winnow-dev/winnow/pkg/controller/policy"
	"github.com/winnow-dev/winnow/pkg/controller/report"
)

const (
	// sumFor is how long deletions of a policy are summed up before the next event of them.
	sumFor = 30 * time.Second
	// settleFor is how long something stands still before a warning: most finalizers are gone by then.
	settleFor = 3 * time.Second
	// repeatAfter is when a warning that still holds is given again.
	repeatAfter = 10 * time.Minute
)

// event is an event that is yet to be written: on the policy, or, where there is one, on an object, with the policy as related. Who may
// see nothing but a namespace learns from the latter what cluster policies do there.
type event struct {
	subject
	object             *corev1.ObjectReference
	kind, reason, note string
	// id ends the name of the event, so that it is not written twice; empty for one that may be repeated.
	id string
}

// subject is the policy that an event is about.
type subject struct {
	types.NamespacedName
	uid types.UID
}

// teller remembers what was told, and what is to be.
type teller struct {
	mu    *sync.Mutex
	sums  map[sumKey]*deletions
	heard map[heardKey]*heard
}

// sumKey tells apart what is summed up: the deletions of a policy, and those of a cluster policy in each namespace.
type sumKey struct {
	subject
	within string
}

// deletions sums up those of one policy since the last event.
type deletions struct {
	byRule map[string]map[string]int // rule, resource
	last   *corev1.ObjectReference   // where they are those within a namespace
	after  time.Time                 // not before then is the next event
}

// heardKey tells apart what warnings are of; within is the namespace of the objects for an event on one of them.
type heardKey struct {
	namespace, within string
	policy            types.UID
	reason            policy.Reason
}

// heard is a reason that stands; told is zero before its warning.
type heard struct{ since, told time.Time }

func newTeller() teller {
	return teller{mu: &sync.Mutex{}, sums: map[sumKey]*deletions{}, heard: map[heardKey]*heard{}}
}

func (t *teller) gone(all []deletion.Gone) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, g := range all {
		of := subject{g.Policy, g.PolicyUID}
		t.sum(sumKey{subject: of}).add(&g)
		if g.Policy.Namespace == "" {
			within := t.sum(sumKey{of, g.Fact.Namespace})
			within.add(&g)
			within.last = reference(g.Fact.Resource, g.Fact.Namespace, g.Fact.Name, g.Fact.UID)
		}
	}
}

func (t *teller) sum(key sumKey) *deletions {
	if t.sums[key] == nil {
		t.sums[key] = &deletions{}
	}
	return t.sums[key]
}

func (d *deletions) add(g *deletion.Gone) {
	if d.byRule == nil {
		d.byRule = map[string]map[string]int{}
	}
	if d.byRule[g.Rule] == nil {
		d.byRule[g.Rule] = map[string]int{}
	}
	d.byRule[g.Rule][g.Fact.Resource]++
}

// deletions returns some of the sums whose time has come: the first at once, further ones no more often than sumFor.
func (t *teller) deletions(now time.Time, most int) []event {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []event
	for of, d := range t.sums {
		switch {
		case now.Before(d.after):
		case len(d.byRule) == 0:
			delete(t.sums, of)
		case len(out) < most:
			out = append(
				out,
				event{subject: of.subject, object: d.last, kind: corev1.EventTypeNormal, reason: "Deleted", note: d.note() + of.by()},
			)
			d.byRule, d.after = nil, now.Add(sumFor)
		}
	}
	return out
}

// by names the policy where the event is not on it.
func (k sumKey) by() string {
	if k.within == "" {
		return ""
	}
	return " of ClusterCleanupPolicy " + k.Name
}

// reference names an object, with its UID where that is known.
func reference(resource, namespace, name string, uid types.UID) *corev1.ObjectReference {
	out := &corev1.ObjectReference{Namespace: namespace, Name: name, UID: uid}
	if k, err := kinds.For(resource); err == nil {
		out.APIVersion, out.Kind = k.GroupVersionKind.ToAPIVersionAndKind()
	}
	return out
}

func (d *deletions) note() string {
	var parts []string
	for _, rule := range slices.Sorted(maps.Keys(d.byRule)) {
		for _, resource := range slices.Sorted(maps.Keys(d.byRule[rule])) {
			by := "rule " + rule
			if rule == "" {
				by = "the ceiling"
			}
			parts = append(parts, fmt.Sprintf("%d %s by %s", d.byRule[rule][resource], resource, by))
		}
	}
	return "Deleted " + strings.Join(parts, ", ")
}

// warnings returns what is to be told of objects that cannot be deleted; settled is false while something is yet to be
// told, so that the policy must be looked at again.
func (t *teller) warnings(r *report.Report, now time.Time) (out []event, settled bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	settled = true
	of := subject{types.NamespacedName{Namespace: r.Stored.Namespace, Name: r.Stored.Name}, r.Stored.UID}
	standing := map[heardKey]bool{}
	tell := func(within string, g report.Group, holds []gc.PolicyHold) {
		key := heardKey{r.Stored.Namespace, within, r.Stored.UID, g.Reason}
		standing[key] = true
		switch due, early := t.hears(key, now); {
		case early:
			settled = false
		case due:
			e := event{subject: of, kind: corev1.EventTypeWarning, reason: string(g.Reason), note: note(r, g, holds)}
			if within != "" {
				e.object = objectOf(g)
				e.note = fmt.Sprintf("ClusterCleanupPolicy %s: %s", r.Stored.Name, e.note)
			}
			out = append(out, e)
		}
	}
	for _, g := range slices.Concat(r.HeldByReason, r.AwaitingByReason) {
		tell("", g, r.Holds)
	}
	for _, in := range r.ByNamespace {
		holds := slices.DeleteFunc(
			slices.Clone(r.Holds),
			func(h gc.PolicyHold) bool { return h.Namespace != "" && h.Namespace != in.Namespace },
		)
		for _, g := range slices.Concat(in.HeldByReason, in.AwaitingByReason) {
			tell(in.Namespace, g, holds)
		}
	}
	maps.DeleteFunc(t.heard, func(key heardKey, _ *heard) bool { return key.policy == r.Stored.UID && !standing[key] })
	return out, settled
}

// hears reports whether a warning is due, or too early yet.
func (t *teller) hears(key heardKey, now time.Time) (due, early bool) {
	h := t.heard[key]
	if h == nil {
		h = &heard{since: now}
		t.heard[key] = h
	}
	switch {
	case now.Sub(h.since) < settleFor:
		return false, true
	case h.told.IsZero() || now.Sub(h.told) >= repeatAfter:
		h.told = now
		return true, false
	}
	return false, false
}

// note says why objects stand still, and for holds how to approve them.
func note(r *report.Report, g report.Group, holds []gc.PolicyHold) string {
	switch {
	case g.Reason == policy.ReasonHeld && len(holds) > 0:
		return strings.Join(waiting(r, holds, toldMost), "; ")
	case g.Reason == policy.ReasonTerminating:
		return "Being deleted, " + g.String()
	}
	return "Held, " + g.String()
}

// objectOf is the first object of a group of a cluster policy.
func objectOf(g report.Group) *corev1.ObjectReference {
	namespace, object, _ := strings.Cut(g.Object, "/")
	resource, name, _ := strings.Cut(object, "/")
	return reference(resource, namespace, name, "")
}

// noticeEvent tells the owner of an object of its annotations.
func noticeEvent(n *engine.Notice) event {
	f := n.Fact
	sum := sha256.Sum256([]byte(strings.Join([]string{string(f.UID), string(n.Reason), n.Text}, "\n")))
	return event{
		subject: subject{n.Policy, n.PolicyUID}, object: reference(f.Resource, f.Namespace, f.Name, f.UID),
		kind: corev1.EventTypeWarning, reason: string(n.Reason), note: n.Text, id: hex.EncodeToString(sum[:8]),
	}
}

// forget drops what was heard of policies of a namespace that are gone; those of the reports are not.
func (t *teller) forget(namespace string, reports []report.Report) {
	t.mu.Lock()
	defer t.mu.Unlock()
	maps.DeleteFunc(t.heard, func(key heardKey, _ *heard) bool {
		return key.namespace == namespace &&
			!slices.ContainsFunc(reports, func(r report.Report) bool { return r.Stored.UID == key.policy })
	})
}

// noteMost is the longest note that the API takes.
const noteMost = 1024

func (w *Writer) createEvent(ctx context.Context, e event) error {
	now := w.Clock.Now()
	note := e.note
	if len(note) > noteMost {
		note = strings.ToValidUTF8(note[:noteMost-3], "") + "..."
	}
	kind, home := "CleanupPolicy", e.Namespace
	if home == "" { // Events of what has no namespace stand here, as kubectl expects.
		kind, home = "ClusterCleanupPolicy", metav1.NamespaceDefault
	}
	regarding, related := &corev1.ObjectReference{
		APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: kind, Namespace: e.Namespace, Name: e.Name, UID: e.uid,
	}, (*corev1.ObjectReference)(nil)
	if e.object != nil {
		home, regarding, related = e.object.Namespace, e.object, regarding
	}
	id := e.id
	if id == "" {
		id = strconv.FormatInt(now.UnixNano(), 16)
	}
	_, err := w.Events.EventsV1().Events(home).Create(ctx, &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: home, Name: strings.TrimRight(fmt.Sprintf("%.200s", e.Name), "-.") + "." + id,
		},
		EventTime: metav1.NewMicroTime(now), Type: e.kind, Reason: e.reason, Note: note, Action: "Cleanup",
		ReportingController: gc.GroupName + "/winnow", ReportingInstance: w.Instance,
		Regarding: *regarding, Related: related,
	}, metav1.CreateOptions{})
	return err
}
