// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/engine/knowledge"
	"github.com/winnow-dev/winnow/pkg/controller/engine/view"
	"github.com/winnow-dev/winnow/pkg/controller/objects/kinds"
	"github.com/winnow-dev/winnow/pkg/controller/rules/deletion"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
	"github.com/winnow-dev/winnow/pkg/controller/rules/report"
)

const (
	// sumFor is how long deletions of a policy are counted before the next event about them.
	sumFor = 30 * time.Second
	// warnAfter is how long objects must be held, or wait for finalizers, before a warning: most finalizers are gone by then.
	warnAfter = 3 * time.Second
	// repeatAfter is how long after a warning it is repeated, if its reason still exists.
	repeatAfter = 10 * time.Minute
)

// event is an event to be written. If object is set, the event is on the object, with the policy as related, so that users who can read
// only their own namespace learn what cluster policies do there. Otherwise the event is on the policy. An object that must not be named is
// its namespace.
type event struct {
	subject
	object             *corev1.ObjectReference
	kind, reason, note string
	// id ends the name of the event, so that the event is not written twice. It is empty for an event that may be repeated.
	id string
}

// subject is the policy that an event is about.
type subject struct {
	types.NamespacedName
	uid types.UID
}

// correlator combines deletions into few events, and says when warnings are due. It is safe for concurrent use.
type correlator struct {
	kinds    func() *kinds.Table
	mu       *sync.Mutex
	sums     map[sumKey]*deletions
	warnings map[warningKey]*warning
}

// sumKey identifies the deletions of a policy, or of a cluster policy in the namespace within, by the reason of the event.
type sumKey struct {
	subject
	within, reason string
}

// Reasons of events about what Winnow did.
const (
	reasonDeleted           = "Deleted"
	reasonDeadlineSet       = "DeadlineSet"
	reasonDeadlineWithdrawn = "DeadlineWithdrawn"
)

// did says what Winnow did, by the reason of the event.
var did = map[string]string{
	reasonDeleted:           "Deleted ",
	reasonDeadlineSet:       "Set activeDeadlineSeconds of ",
	reasonDeadlineWithdrawn: "Removed the activeDeadlineSeconds that Winnow had set from ",
}

func reasonOf(g *deletion.Gone) string {
	switch {
	case g.Deadline == nil:
		return reasonDeleted
	case *g.Deadline == 0:
		return reasonDeadlineWithdrawn
	}
	return reasonDeadlineSet
}

// deletions counts the deletions of one sumKey since the last event.
type deletions struct {
	byRule map[string]map[string]int // rule, resource
	last   *corev1.ObjectReference   // the last object, if the key has a namespace
	after  time.Time                 // the earliest time of the next event
}

// warningKey identifies a warning. within is the namespace of the objects if the event is on one of them.
type warningKey struct {
	namespace, within string
	policy            types.UID
	reason            policy.Reason
}

// warning says since when its reason exists, and when an event was last returned for it; zero if never.
type warning struct{ since, returned time.Time }

func newCorrelator(kinds func() *kinds.Table) correlator {
	return correlator{kinds: kinds, mu: &sync.Mutex{}, sums: map[sumKey]*deletions{}, warnings: map[warningKey]*warning{}}
}

// addGone counts deletions whose objects are gone.
func (c *correlator) addGone(all []deletion.Gone) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, g := range all {
		of, reason := subject{g.Policy, g.PolicyUID}, reasonOf(&g)
		if of.uid == "" {
			continue // No policy has withdrawn the deadline.
		}
		if g.Fact.Resource == gc.ResourceEvents {
			continue // The rule would delete an Event about it too, and so on for ever.
		}
		c.sum(sumKey{subject: of, reason: reason}).add(&g)
		if g.Policy.Namespace == "" {
			within := c.sum(sumKey{of, g.Fact.Namespace, reason})
			within.add(&g)
			within.last = c.reference(g.Fact.Resource, g.Fact.Namespace, g.Fact.Name, g.Fact.UID)
		}
	}
}

func (c *correlator) sum(key sumKey) *deletions {
	if c.sums[key] == nil {
		c.sums[key] = &deletions{}
	}
	return c.sums[key]
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

// dueDeletions returns at most most events about deletions: the first deletions of a policy at once, and later ones every sumFor.
func (c *correlator) dueDeletions(now time.Time, most int) []event {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []event
	for of, d := range c.sums {
		switch {
		case now.Before(d.after):
		case len(d.byRule) == 0:
			delete(c.sums, of)
		case len(out) < most:
			out = append(
				out,
				event{
					subject: of.subject, object: d.last, kind: corev1.EventTypeNormal, reason: of.reason, note: did[of.reason] + d.note() + of.by(),
				},
			)
			d.byRule, d.after = nil, now.Add(sumFor)
		}
	}
	return out
}

// by names the policy if the event is not on the policy.
func (k sumKey) by() string {
	if k.within == "" {
		return ""
	}
	return " of ClusterCleanupPolicy " + k.Name
}

// reference returns a reference to an object, or to its namespace if the object must not be named. uid is empty if it is not known.
func (c *correlator) reference(resource, namespace, name string, uid types.UID) *corev1.ObjectReference {
	if !report.MayName(resource) {
		// An event is in the namespace of what it is on, so the reference to a Namespace has one too.
		return &corev1.ObjectReference{APIVersion: "v1", Kind: "Namespace", Namespace: namespace, Name: namespace}
	}
	out := &corev1.ObjectReference{Namespace: namespace, Name: name, UID: uid}
	if k, err := c.kinds().For(resource); err == nil {
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
	return strings.Join(parts, ", ")
}

// dueWarnings returns the warnings that are due about objects that cannot be deleted. It reports whether these are all; if not, it must be
// called again for the policy.
func (c *correlator) dueWarnings(r *report.Report, now time.Time) (out []event, complete bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	complete = true
	of := subject{types.NamespacedName{Namespace: r.Stored.Namespace, Name: r.Stored.Name}, r.Stored.UID}
	present := map[warningKey]bool{}
	warn := func(within string, g report.Group, holds []gc.PolicyHold) {
		if g.Reason == policy.ReasonNotified || g.Reason == policy.ReasonNoticePending {
			return // The notice itself is an event.
		}
		key := warningKey{r.Stored.Namespace, within, r.Stored.UID, g.Reason}
		present[key] = true
		switch due, early := c.warningDue(key, now); {
		case early:
			complete = false
		case due:
			e := event{subject: of, kind: kindOf(g.Reason), reason: string(g.Reason), note: note(r, within, g, holds)}
			if within != "" {
				e.object = c.objectOf(g)
				e.note = fmt.Sprintf("ClusterCleanupPolicy %s: %s", r.Stored.Name, e.note)
			}
			out = append(out, e)
		}
	}
	for _, g := range slices.Concat(r.HeldByReason, r.AwaitingByReason) {
		warn("", g, r.Holds)
	}
	for _, in := range r.ByNamespace {
		holds := slices.DeleteFunc(
			slices.Clone(r.Holds),
			func(h gc.PolicyHold) bool { return h.Namespace != "" && h.Namespace != in.Namespace },
		)
		for _, g := range slices.Concat(in.HeldByReason, in.AwaitingByReason) {
			warn(in.Namespace, g, holds)
		}
	}
	maps.DeleteFunc(c.warnings, func(key warningKey, _ *warning) bool { return key.policy == r.Stored.UID && !present[key] })
	return out, complete
}

// kindOf returns the type of an event about objects that cannot be deleted. That they wait to be archived is what the author of the rule
// wants, and that they wait for a window what the author of the window wants.
func kindOf(reason policy.Reason) string {
	if reason == policy.ReasonWaitingForArchive || reason == policy.ReasonOutsideWindow {
		return corev1.EventTypeNormal
	}
	return corev1.EventTypeWarning
}

// warningDue reports whether a warning is due now, or whether it is still too early.
func (c *correlator) warningDue(key warningKey, now time.Time) (due, early bool) {
	w := c.warnings[key]
	if w == nil {
		w = &warning{since: now}
		c.warnings[key] = w
	}
	switch {
	case now.Sub(w.since) < warnAfter:
		return false, true
	case w.returned.IsZero() || now.Sub(w.returned) >= repeatAfter:
		w.returned = now
		return true, false
	}
	return false, false
}

// note says why objects are not deleted, and for holds how to approve them.
func note(r *report.Report, within string, g report.Group, holds []gc.PolicyHold) string {
	what := g.String()
	if r.Stored.Namespace == "" && within == "" {
		// Who may read these events may not be allowed to list the objects. There are events in their namespaces too.
		what = fmt.Sprintf("%s: %s; events in their namespaces name them", g.Reason, report.Objects(g.Count))
	}
	switch {
	case g.Reason == policy.ReasonHeld && len(holds) > 0:
		return strings.Join(waiting(r, holds, eventHoldsMost), "; ")
	case g.Reason == policy.ReasonTerminating:
		return "Being deleted, " + what
	}
	return "Held, " + what
}

// objectOf returns a reference to the first object of a group of a cluster policy.
func (c *correlator) objectOf(g report.Group) *corev1.ObjectReference {
	namespace, object, _ := strings.Cut(g.Object, "/")
	resource, name, _ := strings.Cut(object, "/")
	return c.reference(resource, namespace, name, "")
}

// noticeEvent returns the event on an object whose annotation has no effect, or cannot be read. For all objects of a resource that must not
// be named, it returns the same event.
func (c *correlator) noticeEvent(n *view.Notice) event {
	f := n.Fact
	about, text := string(f.UID), n.Text
	if !report.MayName(f.Resource) {
		about = f.Namespace + "/" + f.Resource
		text = fmt.Sprintf(
			"Annotations of %s that Winnow reads have no effect, or cannot be read (kubectl get cand -o yaml explains each)", f.Resource,
		)
	}
	id := textID(strings.Join([]string{about, string(n.Reason), text}, "\n"))
	return event{
		subject: subject{n.Policy, n.PolicyUID}, object: c.reference(f.Resource, f.Namespace, f.Name, f.UID),
		kind: corev1.EventTypeWarning, reason: string(n.Reason), note: text, id: id,
	}
}

// reasonStoreWentBack is the reason of events about policies and namespaces that are as they were before.
const reasonStoreWentBack = "StoreWentBack"

// wentBackEvent returns the event on a policy or namespace that has gone back.
func wentBackEvent(b *knowledge.WentBack) event {
	e := event{
		subject: subject{b.NamespacedName, b.UID}, kind: corev1.EventTypeWarning, reason: reasonStoreWentBack, note: b.Text,
		id: textID(b.Text), // Another replica may have written it.
	}
	if ns := b.Namespace; b.Name == "" { // An event is in the namespace of what it is on, so the reference to a Namespace has one too.
		e.subject = subject{NamespacedName: types.NamespacedName{Name: ns}}
		e.object = &corev1.ObjectReference{APIVersion: "v1", Kind: "Namespace", Namespace: ns, Name: ns, UID: b.UID}
	}
	return e
}

// forget forgets the warnings of all policies of a namespace that have no report, because they are gone.
func (c *correlator) forget(namespace string, reports []report.Report) {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.warnings, func(key warningKey, _ *warning) bool {
		return key.namespace == namespace &&
			!slices.ContainsFunc(reports, func(r report.Report) bool { return r.Stored.UID == key.policy })
	})
}
