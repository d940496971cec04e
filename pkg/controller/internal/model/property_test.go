// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
)

// worlds has a property tried on many of them.
func worlds(t *testing.T, property func(*rapid.T, *World)) {
	t.Helper()
	testbuilders.Checks(t, 1000)
	rapid.Check(t, func(t *rapid.T) { property(t, Draw(t)) })
}

func TestNothingGoesThatMustStay(t *testing.T) {
	worlds(t, func(t *rapid.T, w *World) {
		answers := w.Answers()
		for _, f := range w.Objects {
			ns, known := w.Namespaces[f.Namespace]
			switch a := answers[f.UID]; {
			case a.Action == Wait && !a.At.After(w.Now):
				t.Errorf("%s waits for what has passed: %+v", f.Name, a)
			case a.Action != Delete:
			case !known || ns.Protected || ns.Terminating || ns.labelProtects():
				t.Errorf("%s goes, but its namespace is %+v", f.Name, ns)
			case f.Finishes && !f.Finished || f.FinishedAt.After(w.Now) && f.FirstSeen == nil:
				t.Errorf("%s goes, but has not finished for sure: %+v", f.Name, f)
			case f.Terminating || f.Uncounted || f.Contradictory, (f.Applied != "" || w.Recreated[f.UID]) && !w.deletesManagedElsewhere():
				t.Errorf("%s goes, but is held: %+v", f.Name, f)
			case w.mustWait(f):
				t.Errorf("%s goes, but waits to be archived: %+v", f.Name, f)
			case len(w.Policies)+len(w.ClusterPolicies) == 0:
				t.Errorf("%s goes without a policy", f.Name)
			}
		}
	})
}

// mustWait reports whether a rule that matches the object makes it wait without end, or for so long after its end that time cannot have
// ended the wait.
func (w *World) mustWait(f *lifecycle.Fact) bool {
	c := w.recomputation(PolicyRef{})
	since := c.sinceWhen(f)
	if f.Finished && f.FinishedAt.Before(since) {
		since = f.FinishedAt // The TTL of the object and maxTTL count from its end, also if the rule began to match later.
	}
	return slices.ContainsFunc(c.matches[f.UID], func(v match) bool {
		return v.waitFor != nil && (v.waitFor.OnTimeout != gc.WaitTimeoutDelete ||
			v.ttl == nil && f.TTL == nil && f.KeepUntil == nil && f.NativeTTL == nil && len(w.ClusterPolicies) == 0 ||
			since.Add(duration(*v.waitFor.AtMost)).After(c.Now))
	})
}

// deletesManagedElsewhere reports whether any rule says managedElsewhere: Delete.
func (w *World) deletesManagedElsewhere() bool {
	says := func(r gc.CleanupRule) bool { return r.ManagedElsewhere == gc.ManagedElsewhereDelete }
	return slices.ContainsFunc(w.Policies, func(p *gc.CleanupPolicy) bool { return slices.ContainsFunc(p.Spec.Rules, says) }) ||
		slices.ContainsFunc(w.ClusterPolicies, func(p *gc.ClusterCleanupPolicy) bool { return slices.ContainsFunc(p.Spec.Rules, says) })
}

func TestMinTTLIsNeverUndercut(t *testing.T) {
	worlds(t, func(t *rapid.T, w *World) {
		answers := w.Answers()
		for _, p := range w.ClusterPolicies {
			if p.Spec.Mode != gc.ModeEnforce || p.Spec.Guardrails == nil || p.Spec.Guardrails.MinTTL == nil {
				continue
			}
			least, err := gc.ParseDuration(string(*p.Spec.Guardrails.MinTTL))
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range w.Objects {
				if a := answers[f.UID]; a.Action == Delete && matches(p.Spec.NamespaceSelector, labels.Set(w.Namespaces[f.Namespace].Labels)) &&
					(w.Now.Sub(f.Created) < least || f.Finished && w.Now.Sub(f.FinishedAt) < least) {
					t.Errorf("%s goes, created %s and finished %s, though %s keeps it %s", f.Name, f.Created, f.FinishedAt, p.Name, least)
				}
			}
		}
	})
}

// TestMaxTTLIsNeverExceeded: however late a rule began to match, what has finished waits no longer than maxTTL after its end, or minTTL if
// that is more, or for something else than time.
func TestMaxTTLIsNeverExceeded(t *testing.T) {
	worlds(t, func(t *rapid.T, w *World) {
		answers, c := w.Answers(), w.recomputation(PolicyRef{})
		for _, f := range w.Objects {
			a := answers[f.UID]
			if !f.Finished || a.Action != Wait || a.Reason != "NotDue" {
				continue
			}
			var least, most time.Duration
			limited := false
			for _, p := range c.enforcedIn(f.Namespace) {
				if g := p.cluster.Guardrails; g != nil && g.MinTTL != nil {
					least = max(least, duration(*g.MinTTL))
				}
				if g := p.cluster.Guardrails; g != nil && g.MaxTTL != nil {
					most, limited = max(most, duration(*g.MaxTTL)), true
				}
			}
			if ends := c.endedAt(f).Add(max(least, most) + time.Second); limited && !a.At.Before(ends) {
				t.Errorf("%s waits until %s, though maxTTL ends before %s: %+v", f.Name, a.At, ends, a)
			}
		}
	})
}

// TestNothingGoesUnannounced: what goes was given notice for as long as every guardrail demands; and, unless a ceiling or maxTTL wants it
// gone, for as long as every rule that matches it demands, and not before the time that the notice names.
func TestNothingGoesUnannounced(t *testing.T) {
	worlds(t, func(t *rapid.T, w *World) {
		w.Notices = map[types.UID]Notice{}
		for _, f := range w.Objects {
			if rarely(t, 2) {
				given := w.Now.Add(-pick(t, drawnAges...))
				n := Notice{Given: given, At: given.Add(pick(t, drawnAges...))}
				if rarely(t, 2) {
					n.Delivered = given.Add(pick(t, drawnAges...))
				}
				w.Notices[f.UID] = n
			}
		}
		answers, c := w.Answers(), w.recomputation(PolicyRef{})
		for _, f := range w.Objects {
			n, given := w.Notices[f.UID]
			if answers[f.UID].Action != Delete {
				continue
			}
			limited := w.Demanded(f.UID).Limited
			for _, v := range c.matches[f.UID] {
				if v.notice != nil && !limited && (!given || w.Now.Before(n.Given.Add(duration(*v.notice))) || w.Now.Before(n.At)) {
					t.Errorf("%s goes, and was given notice %+v; a rule demands %s", f.Name, n, *v.notice)
				}
				required := v.noticeDelivery == gc.NoticeDeliveryRequired
				if required && !limited && (n.Delivered.IsZero() || w.Now.Before(n.Delivered.Add(duration(*v.notice)))) {
					t.Errorf("%s goes, and the receiver acknowledged its notice at %s; a rule demands that %s before", f.Name, n.Delivered, *v.notice)
				}
			}
			for _, p := range c.enforcedIn(f.Namespace) {
				if g := p.cluster.Guardrails; g != nil && g.MinNotice != nil && duration(*g.MinNotice) > 0 && (!given || w.Now.Before(n.Given.Add(duration(*g.MinNotice)))) {
					t.Errorf("%s goes, and was given notice %+v; a guardrail demands %s", f.Name, n, *g.MinNotice)
				}
			}
		}
	})
}

// calm takes away all that keeps what is over a limit.
func calm(w *World) {
	w.Policies = slices.DeleteFunc(w.Policies, func(p *gc.CleanupPolicy) bool { return !readable(policy{spec: &p.Spec}) })
	w.ClusterPolicies = slices.DeleteFunc(w.ClusterPolicies, func(p *gc.ClusterCleanupPolicy) bool {
		return !readable(policy{spec: p.Spec.Defaults(), cluster: &p.Spec})
	})
	for _, p := range w.ClusterPolicies {
		p.Spec.Suspend = false
		if p.Spec.Guardrails != nil {
			p.Spec.Guardrails.SuspendAll, p.Spec.Guardrails.MinTTL = false, nil
		}
	}
	for _, p := range w.Policies {
		p.Spec.Suspend = false
	}
}

func TestCeilingsHoldAndAreFair(t *testing.T) {
	worlds(t, func(t *rapid.T, w *World) {
		calm(w)
		c := w.recomputation(PolicyRef{})
		for _, p := range c.clusterWide() {
			if p.spec.Mode != gc.ModeEnforce || p.cluster.Guardrails == nil {
				continue
			}
			for _, ceiling := range p.cluster.Guardrails.Ceilings {
				for _, resource := range orJobsAndPods(ceiling.Resources) {
					checkCeiling(t, c, p, resource, int(*ceiling.MaxObjects))
				}
			}
		}
	})
}

func checkCeiling(t *rapid.T, c *recomputation, p policy, resource string, most int) {
	total, kept, taken := map[string]int{}, 0, map[string]bool{}
	for _, f := range c.Objects {
		if f.Resource != resource || !f.Finished || !c.selects(p, f.Namespace) || c.namespaceForbids(f.Namespace) != "" || !c.counts(f) {
			continue
		}
		total[f.Namespace]++
		switch a := c.decide(f).Answer; {
		case slices.Contains([]string{"WaitingForArchive", "NotArchived", "NoticePending", "Notified", "OutsideWindow", "WindowNeverOpens"}, a.Reason):
			// The ceiling counts it, and lets it wait.
		case a.Action != Delete:
			kept++
		case a.By == "ceiling="+p.ref.Name:
			taken[f.Namespace] = true
		}
	}
	if kept > most {
		t.Errorf("%s: %d of %s are kept, more than %d", p.ref, kept, resource, most)
	}
	for namespace := range taken {
		if total[namespace] <= most/len(total) {
			t.Errorf("%s: takes %s of namespace %s, which has only %d of %d", p.ref, resource, namespace, total[namespace], most)
		}
	}
}

// limits are all numbers that keep objects.
func limits(w *World) []*int64 {
	var out []*int64
	capacity := func(c *gc.Capacity) {
		if c != nil && c.MaxObjects != nil {
			out = append(out, c.MaxObjects)
		}
	}
	for _, p := range slices.Concat(w.namespaced(), w.clusterWide()) {
		capacity(p.spec.Capacity)
		for _, r := range p.spec.Rules {
			capacity(r.Capacity)
		}
		if p.cluster != nil && p.cluster.Guardrails != nil {
			for _, ceiling := range p.cluster.Guardrails.Ceilings {
				out = append(out, ceiling.MaxObjects)
			}
		}
	}
	return out
}

func TestRaisingALimitSaves(t *testing.T) {
	worlds(t, func(t *rapid.T, w *World) {
		all := limits(w)
		if len(all) == 0 {
			return
		}
		before := due(w)
		limit := rapid.SampledFrom(all).Draw(t, "limit")
		*limit += rapid.Int64Range(1, 10).Draw(t, "more")
		for uid := range due(w) {
			if !before[uid] {
				t.Errorf("%s became due", uid)
			}
		}
	})
}

// due are the objects that would be deleted, whoever decides.
func due(w *World) map[types.UID]bool {
	out := map[types.UID]bool{}
	for _, uids := range w.DueBy() {
		for _, uid := range uids {
			out[uid] = true
		}
	}
	return out
}

// Whatever goes leaves room for the others.
func TestDeletionsMakeNothingElseDue(t *testing.T) {
	worlds(t, func(t *rapid.T, w *World) {
		gone := due(w)
		w.Objects = slices.DeleteFunc(w.Objects, func(f *lifecycle.Fact) bool { return gone[f.UID] })
		if more := due(w); len(more) > 0 {
			t.Errorf("once all that is due has gone, these become due: %v", slices.Collect(maps.Keys(more)))
		}
	})
}

func TestPreviewPoliciesChangeNothing(t *testing.T) {
	worlds(t, func(t *rapid.T, w *World) {
		calm(w)
		before := w.Answers()
		w.Policies = slices.DeleteFunc(w.Policies, func(p *gc.CleanupPolicy) bool { return p.Spec.Mode == gc.ModePreview })
		w.ClusterPolicies = slices.DeleteFunc(w.ClusterPolicies, func(p *gc.ClusterCleanupPolicy) bool { return p.Spec.Mode == gc.ModePreview })
		if diff := cmp.Diff(before, w.Answers()); diff != "" {
			t.Errorf("without Preview policies (-with +without):\n%s", diff)
		}
	})
}

// What a Preview policy counts is what happens once it enforces, as long as nothing else of it binds.
func TestPreviewsComeTrue(t *testing.T) {
	worlds(t, func(t *rapid.T, w *World) {
		for _, p := range w.ClusterPolicies {
			if p.Spec.Mode == gc.ModePreview {
				p.Spec.Guardrails = nil
			}
		}
		previews := w.Previews()
		for i, p := range slices.Concat(w.namespaced(), w.clusterWide()) {
			preview, ok := previews[p.ref]
			if !ok {
				continue
			}
			mode := &p.spec.Mode
			if p.cluster != nil {
				mode = &p.cluster.Mode
			}
			*mode = gc.ModeEnforce
			c, decided := w.recomputation(PolicyRef{}), map[types.UID]Answer{}
			for _, f := range w.Objects {
				if v := c.decide(f); v.policy == p.ref && v.Action != Ignore {
					decided[f.UID] = v.Answer
				}
			}
			*mode = gc.ModePreview
			if diff := cmp.Diff(preview, decided); diff != "" {
				t.Errorf("policy %d, %s (-preview +enforced):\n%s", i, p.ref, diff)
			}
		}
	})
}

func TestOrderDoesNotMatter(t *testing.T) {
	worlds(t, func(t *rapid.T, w *World) {
		before, order := w.Answers(), w.DeletionOrder("n1")
		w.Objects = rapid.Permutation(w.Objects).Draw(t, "objects")
		w.Policies = rapid.Permutation(w.Policies).Draw(t, "policies")
		w.ClusterPolicies = rapid.Permutation(w.ClusterPolicies).Draw(t, "cluster policies")
		w.Quotas = rapid.Permutation(w.Quotas).Draw(t, "quotas")
		if diff := cmp.Diff(before, w.Answers()); diff != "" {
			t.Errorf("in another order (-before +after):\n%s", diff)
		}
		if got := w.DeletionOrder("n1"); !slices.Equal(got, order) {
			t.Errorf("deleted in the order %q, and then %q", order, got)
		}
	})
}

// Time alone makes nothing newly due by a change, and objects are deleted in the order in which they or their owners finished, except
// objects that annotations keep, and those whose rule counts from something else than the end.
func TestNewlyDueAndOrder(t *testing.T) {
	worlds(t, func(t *rapid.T, w *World) {
		if n := NewlyDue(w, w); len(n) > 0 {
			t.Errorf("no change makes these due: %v", n)
		}
		facts := map[types.UID]*lifecycle.Fact{}
		for _, f := range w.Objects {
			facts[f.UID] = f
		}
		answers, n := w.Answers(), 0
		for _, namespace := range DrawnNamespaces {
			last, lastKept := time.Time{}, false
			for _, uid := range w.DeletionOrder(namespace) {
				c := w.recomputation(PolicyRef{})
				kept, fromEnd := c.keptByAnnotation(facts[uid]), c.countsFromEnd(facts[uid], answers[uid])
				if kept && !lastKept {
					last = time.Time{}
				}
				if fromEnd && c.endedAt(facts[uid]).Before(last) || lastKept && !kept || !sends(answers[uid]) {
					t.Errorf("%s is out of order", uid)
				}
				if fromEnd {
					last = c.endedAt(facts[uid])
				}
				lastKept, n = kept, n+1
			}
		}
		for _, a := range answers {
			if sends(a) {
				n--
			}
		}
		if n != 0 {
			t.Errorf("the order has %d too many", n)
		}
	})
}

// sends reports whether a request is sent for the object.
func sends(a Answer) bool { return a.Action == Delete || a.Action == SetDeadline }

// TestDrawnWorldsHaveEverything sees to it that what is judged by drawn worlds has met each answer.
func TestDrawnWorldsHaveEverything(t *testing.T) {
	missing := map[string]bool{
		"SetDeadline ActiveDeadline": true, "SetDeadline ActiveDeadlineWithdrawn": true, "HoldDeadline Suspended": true,
		"Ignore NamespaceUnknown": true, "Ignore NamespaceTerminating": true, "Ignore NamespaceProtected": true, "Ignore NoPolicy": true,
		"Ignore NotFinished": true, "Ignore LeftToOwner": true, "Await Terminating": true, "Keep UnderCeiling": true, "Keep Never": true,
		"Keep OutsideCapacity": true,
		"Hold ExpressionError": true, "Wait NotDue": true, "Hold InvalidAnnotation": true, "Hold OwnerActive": true, "Hold Uncounted": true,
		"Hold WaitingForArchive": true, "Hold NotArchived": true, "previewed Hold WaitingForArchive": true,
		"Hold ManagedElsewhere": true, "Hold RecreateLoop": true, "Hold PolicyUnreadable": true, "Hold Suspended": true,
		"Delete Expired": true, "Delete OverCapacity": true, "Delete OverCeiling": true,
		"previewed Delete OverCapacity": true, "previewed Wait NotDue": true,
	}
	testbuilders.Checks(t, 1000)
	rapid.Check(t, func(t *rapid.T) {
		w := Draw(t)
		for _, a := range w.Answers() {
			delete(missing, a.Action+" "+a.Reason)
		}
		for _, preview := range w.Previews() {
			for _, a := range preview {
				delete(missing, "previewed "+a.Action+" "+a.Reason)
			}
		}
	})
	for answer := range missing {
		t.Errorf("no drawn world has %q", answer)
	}
}

// countsFromEnd reports whether a ceiling decides for an object with this answer, or a rule that counts from its end.
func (c *recomputation) countsFromEnd(f *lifecycle.Fact, a Answer) bool {
	return !slices.ContainsFunc(c.matches[f.UID], func(v match) bool {
		return a.By == v.policy.String()+" "+v.rule && v.after != "" && v.after != gc.AfterFinished
	})
}
