// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
)

// verdict is an answer with the policy that decides.
type verdict struct {
	Answer
	policy PolicyRef
	ends   bool // see changeOfDeadline
	// waits is why the object is kept although it is due, because it waits for something; empty if it does not.
	waits string
}

func (c *recomputation) answers() map[types.UID]Answer {
	out := map[types.UID]Answer{}
	for _, f := range c.Objects {
		out[f.UID] = c.decide(f).Answer
	}
	return out
}

// decide returns what happens to an object now.
func (c *recomputation) decide(f *lifecycle.Fact) verdict {
	v := c.decideUnstopped(f)
	held := map[string]string{Delete: Hold, SetDeadline: HoldDeadline}[v.Action]
	switch {
	case held == "":
	case c.unreadable(f.Namespace):
		v.Action, v.Reason = held, "PolicyUnreadable"
	case c.allSuspended(f.Namespace), c.suspended(v.policy):
		v.Action, v.Reason = held, "Suspended"
	case c.withoutAccount(f.Namespace, v.policy):
		v.Action, v.Reason = held, "Unauthorized"
	case v.waits != "":
		v.Action, v.Reason = Hold, v.waits
	}
	return v
}

// decideUnstopped returns what would happen if nothing stopped the deletions of a whole policy or namespace, and if the object waited for
// nothing. The first reason that applies decides.
func (c *recomputation) decideUnstopped(f *lifecycle.Fact) verdict {
	v := c.decideAnytime(f)
	if v.Action == Delete && v.waits == "" {
		v.waits = c.outsideWindow(f.Namespace)
	}
	return v
}

// decideAnytime is decideUnstopped without windows.
func (c *recomputation) decideAnytime(f *lifecycle.Fact) verdict {
	if v, changes := c.changeOfDeadline(f); changes {
		return v
	}
	if reason := c.ignored(f); reason != "" {
		return verdict{Answer: Answer{Action: Ignore, Reason: reason}}
	}
	s := c.effectiveAnswer(f)
	say := func(action, reason string, at time.Time) verdict {
		return verdict{Answer: Answer{Action: action, Reason: reason, By: s.by, At: at}, policy: s.policy}
	}
	_, overCeiling := c.ceilings[f.UID]
	switch {
	case f.Terminating:
		return say(Await, "Terminating", time.Time{})
	case f.Failed != "", c.conditionFailed(f):
		return say(Hold, "ExpressionError", time.Time{})
	case c.unnoted(f):
		return say(Hold, "FinishTimeUnknown", time.Time{})
	case len(c.matches[f.UID]) == 0 && !overCeiling:
		return say(Keep, "UnderCeiling", time.Time{})
	case s.never:
		return say(Keep, c.reasonForNever(f), time.Time{})
	}
	return c.decideCandidate(f, s, say)
}

// reasonForNever returns why no time ends the object. If all matches that keep it limit the number of objects, that is WithinCapacity, or
// OutsideCapacity if the pool of one does not count it.
func (c *recomputation) reasonForNever(f *lifecycle.Fact) string {
	var matches, within, outside int
	for _, v := range c.matches[f.UID] {
		if m, _ := c.answerOf(v, f); !m.never {
			continue
		}
		matches++
		switch {
		case v.capacity == nil:
		case !c.pooled[f.UID][v.policy]:
			outside++
		case c.limits(v, f):
			within++
		}
	}
	switch {
	case matches == 0 || within+outside < matches: // An annotation keeps it, or a rule without a limit.
		return "Never"
	case outside > 0:
		return "OutsideCapacity"
	}
	return "WithinCapacity"
}

// limits reports whether the capacity of a match limits anything. A percentage does not without a quota.
func (c *recomputation) limits(v match, f *lifecycle.Fact) bool {
	_, limited := c.limit(v.capacity, f)
	return limited
}

// decideCandidate returns what would happen to a candidate that is not kept forever.
func (c *recomputation) decideCandidate(
	f *lifecycle.Fact, s effectiveAnswer, say func(action, reason string, at time.Time) verdict,
) verdict {
	switch {
	case f.Doubt != "":
		return say(Hold, "FinishTimeUnknown", time.Time{})
	case c.usageUnknown(f) && f.Usage.Since.IsZero():
		return say(Hold, "ReferrersUnknown", time.Time{})
	case c.Now.Before(s.at):
		return say(Wait, "NotDue", s.at)
	case c.runs(f):
		return say(Hold, "StillRunning", s.at)
	case c.ownHold(f) != "":
		return say(Hold, c.ownHold(f), s.at)
	}
	due := s.at
	if s.reason != "Expired" {
		due = time.Time{} // It depends on when other objects finished.
	}
	if w := c.longestWait(f); w != nil {
		waits, at := c.decideWait(f, w, due)
		v := say(Delete, s.reason, at)
		if v.waits = waits; waits != "" {
			return v
		}
		return c.afterNotice(f, s, v)
	}
	return c.afterNotice(f, s, say(Delete, s.reason, due))
}

// ignored returns why an object is no candidate; empty if it is one.
func (c *recomputation) ignored(f *lifecycle.Fact) string {
	switch {
	case c.namespaceForbids(f.Namespace) != "":
		return c.namespaceForbids(f.Namespace)
	case len(c.matches[f.UID]) == 0 && !c.hasCeiling(f):
		return "NoPolicy"
	case !f.Finished && f.Failed == "" && countsFrom(c.matches[f.UID]) == gc.AfterFinished:
		return "NotFinished"
	case countsFromUse(c.matches[f.UID]) && f.Usage.State == lifecycle.InUse:
		return "InUse"
	case c.leftToOwner(f):
		return "LeftToOwner"
	}
	return ""
}

// namespaceForbids returns why no object of a namespace is a candidate; empty if they may be.
func (w *World) namespaceForbids(name string) string {
	ns, known := w.Namespaces[name]
	switch {
	case !known:
		return "NamespaceUnknown"
	case ns.Terminating:
		return "NamespaceTerminating"
	case ns.Protected, ns.labelProtects():
		return "NamespaceProtected"
	}
	return ""
}

// labelProtects reports whether the namespace has the label with any value other than "false".
func (ns Namespace) labelProtects() bool {
	value, labelled := ns.Labels[gc.LabelProtected]
	return labelled && value != "false"
}

// hasCeiling reports whether a ceiling counts the objects of this resource in this namespace.
func (w *World) hasCeiling(f *lifecycle.Fact) bool {
	return slices.ContainsFunc(w.enforcedIn(f.Namespace), func(p policy) bool {
		return p.cluster.Guardrails != nil && slices.ContainsFunc(p.cluster.Guardrails.Ceilings, func(ceiling gc.Ceiling) bool {
			return slices.Contains(orJobsAndPods(ceiling.Resources), f.Resource)
		})
	})
}

// ownHold returns why the object may not be deleted in its present state; empty if it may.
func (c *recomputation) ownHold(f *lifecycle.Fact) string {
	switch {
	case c.conditionFailed(f):
		return "ExpressionError"
	case f.Doubt != "", c.unnoted(f):
		return "FinishTimeUnknown"
	case c.usageUnknown(f):
		return "ReferrersUnknown"
	case c.annotations(f).malformed:
		return "InvalidAnnotation"
	case c.ownerUnderRules(f) == unknown, c.ownerUnderRules(f) == doubtful:
		return "OwnerActive"
	case f.Uncounted:
		return "Uncounted"
	case f.Contradictory:
		return "ConflictingFinalizers"
	}
	return c.comesBack(f)
}

// comesBack returns why something would create the object again; empty if nothing would, or if all matches say to delete it all the same.
func (c *recomputation) comesBack(f *lifecycle.Fact) string {
	matches := c.matches[f.UID]
	switch {
	case len(matches) > 0 && all(matches, func(v match) bool { return v.deletesApplied }):
		return ""
	case f.Applied != "":
		return "ManagedElsewhere"
	case c.Recreated[f.UID]:
		return "RecreateLoop"
	}
	return ""
}

// usageUnknown reports whether it matters what uses the object, and is not known.
func (c *recomputation) usageUnknown(f *lifecycle.Fact) bool {
	return countsFromUse(c.matches[f.UID]) && f.Usage.State == lifecycle.UsageUnknown
}

// conditionFailed reports whether it is not known which rule matches the object.
func (c *recomputation) conditionFailed(f *lifecycle.Fact) bool {
	return slices.ContainsFunc(c.matches[f.UID], func(v match) bool { return v.failed })
}

// unreadable reports whether a policy that may select objects of the namespace cannot be read. A cluster policy may select objects of the
// namespaces that its selector matches, or of all namespaces if the selector cannot be read either.
func (w *World) unreadable(namespace string) bool {
	for _, p := range w.namespaced() {
		if p.ref.Namespace == namespace && !readable(p) {
			return true
		}
	}
	for _, p := range w.clusterWide() {
		s := p.cluster.NamespaceSelector
		if !readable(p) && (s == nil || !readableSelector(s) || w.selects(p, namespace)) {
			return true
		}
	}
	return false
}

// allSuspended reports whether a cluster policy of either mode stops all deletions in the namespace.
func (w *World) allSuspended(namespace string) bool {
	return slices.ContainsFunc(w.clusterWide(), func(p policy) bool {
		return readable(p) && p.cluster.Guardrails != nil && p.cluster.Guardrails.SuspendAll && w.selects(p, namespace)
	})
}

// suspended reports whether a policy has spec.suspend.
func (w *World) suspended(ref PolicyRef) bool {
	return slices.ContainsFunc(slices.Concat(w.namespaced(), w.clusterWide()), func(p policy) bool {
		return p.ref == ref && p.spec.Suspend
	})
}

// withoutAccount reports whether a policy has no ServiceAccount although a cluster policy requires one in the namespace. Nobody needs one
// to take back a deadline.
func (c *recomputation) withoutAccount(namespace string, ref PolicyRef) bool {
	required := slices.ContainsFunc(c.enforcedIn(namespace), func(p policy) bool {
		return p.cluster.Guardrails != nil && p.cluster.Guardrails.RequireServiceAccount
	})
	return required && slices.ContainsFunc(slices.Concat(c.namespaced(), c.clusterWide()), func(p policy) bool {
		return p.ref == ref && p.spec.ServiceAccountName == ""
	})
}
