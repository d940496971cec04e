// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/pkg/controller/policy"
	"github.com/winnow-dev/winnow/pkg/controller/tracker"
)

const (
	// sumFor is how long deletions of a policy are summed up before the next event of them.
	sumFor = 30 * time.Second
	// settleFor is how long something stands still before a warning: most finalizers are gone by then.
	settleFor = 3 * time.Second
	// repeatAfter is when a warning that still holds is given again.
	repeatAfter = 10 * time.Minute
)

// event is an event that is yet to be written.
type event struct {
	subject
	kind, reason, note string
}

// subject is the policy that an event is about.
type subject struct {
	types.NamespacedName
	uid types.UID
}

// teller remembers what was told, and what is to be.
type teller struct {
	mu    *sync.Mutex
	sums  map[subject]*deletions
	heard map[heardKey]*heard
}

// deletions sums up those of one policy since the last event.
type deletions struct {
	byRule map[string]map[string]int // rule, resource
	after  time.Time                 // not before then is the next event
}

type heardKey struct {
	namespace string
	policy    types.UID
	reason    policy.Reason
}

// heard is a reason that stands; told is zero before its warning.
type heard struct{ since, told time.Time }

func newTeller() teller {
	return teller{mu: &sync.Mutex{}, sums: map[subject]*deletions{}, heard: map[heardKey]*heard{}}
}

func (t *teller) gone(all []tracker.Gone) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, g := range all {
		of := subject{g.Policy, g.PolicyUID}
		d := t.sums[of]
		if d == nil {
			d = &deletions{}
			t.sums[of] = d
		}
		if d.byRule == nil {
			d.byRule = map[string]map[string]int{}
		}
		if d.byRule[g.Rule] == nil {
			d.byRule[g.Rule] = map[string]int{}
		}
		d.byRule[g.Rule][g.Fact.Resource]++
	}
}

// deletions returns the sums whose time has come: the first at once, further ones no more often than sumFor.
func (t *teller) deletions(now time.Time) []event {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []event
	for of, d := range t.sums {
		switch {
		case now.Before(d.after):
		case len(d.byRule) == 0:
			delete(t.sums, of)
		default:
			out = append(out, event{subject: of, kind: corev1.EventTypeNormal, reason: "Deleted", note: d.note()})
			d.byRule, d.after = nil, now.Add(sumFor)
		}
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
func (t *teller) warnings(r *tracker.Report, now time.Time) (out []event, settled bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	settled = true
	standing := map[policy.Reason]bool{}
	for _, g := range slices.Concat(r.Holds, r.Awaiting) {
		what := "Held, "
		if g.Reason == policy.ReasonTerminating {
			what = "Being deleted, "
		}
		standing[g.Reason] = true
		key := heardKey{r.Stored.Namespace, r.Stored.UID, g.Reason}
		h := t.heard[key]
		if h == nil {
			h = &heard{since: now}
			t.heard[key] = h
		}
		if now.Sub(h.since) < settleFor {
			settled = false
			continue
		}
		if h.told.IsZero() || now.Sub(h.told) >= repeatAfter {
			h.told = now
			note := what + g.String()
			if g.Reason == policy.ReasonHeld {
				note = waiting(r)
			}
			out = append(out, event{
				subject: subject{types.NamespacedName{Namespace: r.Stored.Namespace, Name: r.Stored.Name}, r.Stored.UID},
				kind:    corev1.EventTypeWarning, reason: string(g.Reason), note: note,
			})
		}
	}
	maps.DeleteFunc(t.heard, func(key heardKey, _ *heard) bool {
		return key.policy == r.Stored.UID && !standing[key.reason]
	})
	return out, settled
}

// forget drops what was heard of policies of a namespace that are gone; those of the reports are not.
func (t *teller) forget(namespace string, reports []tracker.Report) {
	t.mu.Lock()
	defer t.mu.Unlock()
	maps.DeleteFunc(t.heard, func(key heardKey, _ *heard) bool {
		return key.namespace == namespace && !slices.ContainsFunc(reports, func(r tracker.Report) bool { return r.Stored.UID == key.policy })
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
	_, err := w.Events.EventsV1().Events(home).Create(ctx, &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: home, Name: fmt.Sprintf("%s.%x", strings.TrimRight(fmt.Sprintf("%.200s", e.Name), "-."), now.UnixNano()),
		},
		EventTime: metav1.NewMicroTime(now), Type: e.kind, Reason: e.reason, Note: note, Action: "Cleanup",
		ReportingController: gc.GroupName + "/winnow", ReportingInstance: w.Instance,
		Regarding: corev1.ObjectReference{
			APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: kind,
			Namespace: e.Namespace, Name: e.Name, UID: e.uid,
		},
	}, metav1.CreateOptions{})
	return err
}
