// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/oracle"
	"github.com/winnow-dev/winnow/test/simulation/apiserver"
)

// hold is a change that made so many objects due at once that they must wait for approval, until the policy changes again.
type hold struct {
	since      time.Time
	uids       sets.Set[types.UID]
	generation int64
	approved   string // the value of the annotation when the change was made
}

// changed looks for a change of a policy that makes too many objects due at once.
func (j *judge) changed() {
	if !j.edited {
		return
	}
	j.edited = false
	now, revision := time.Now(), j.store.Revision()
	before, after := j.world(revision-1, now), j.world(revision, now)
	maps.DeleteFunc(j.holds, func(key oracle.PolicyInNamespace, h *hold) bool { return !h.waits(policyOf(after, key)) })
	j.noteApprovals(before, after)
	uncounted := j.uncounted(before, after)
	due, together := oracle.NewlyDue(before, after), map[string][]types.UID{}
	for key, uids := range due {
		due[key] = slices.DeleteFunc(uids, uncounted.Has)
		together[key.Namespace] = append(together[key.Namespace], due[key]...)
	}
	for key, uids := range due {
		p := policyOf(after, key)
		tooMany := len(uids) > max(j.limitOf(before, key.Namespace), j.limitOf(after, key.Namespace))
		if p == nil || len(uids) == 0 || !tooMany && !j.tooLarge(before, after, key.Namespace, together[key.Namespace]) {
			continue
		}
		h := &hold{since: now, generation: p.GetGeneration(), approved: p.GetAnnotations()[gc.AnnotationApprovedHold], uids: sets.New(uids...)}
		if before := j.holds[key]; before != nil {
			h.uids = h.uids.Union(before.uids)
		}
		j.holds[key] = h
	}
}

// uncounted are the objects that a change need not count: those that somebody has approved, those that a replica may take for unused since
// later than the judge, those that may have come back too often, and those that wait for approval already. These may be all that were due
// before where the status of a policy says that something waits: the judge does not add up what several changes made due.
func (j *judge) uncounted(before, after *oracle.World) sets.Set[types.UID] {
	out := j.approved.Clone()
	for _, h := range j.holds {
		out = out.Union(h.uids)
	}
	held := sets.Set[string]{}
	for _, what := range listedHolds(before) {
		held.Insert(what.Namespace)
	}
	for key, uids := range before.DueBy() {
		if held.Has(key.Namespace) {
			out.Insert(uids...)
		}
	}
	again := j.returns.perhaps(after.Objects)
	for _, f := range after.Objects {
		if f.Usage.State != lifecycle.UsageUnknown || again[f.UID] {
			out.Insert(f.UID)
		}
	}
	return out
}

// meant identifies what people want of a policy; empty for no policy. Any change of it has another generation or other annotations.
func (j *judge) meant(o *apiserver.Object) string {
	if o == nil {
		return ""
	}
	p, ok := j.stored(o).(metav1.Object)
	if !ok {
		return ""
	}
	return fmt.Sprint(p.GetUID(), p.GetGeneration(), p.GetAnnotations())
}

// noteApprovals notes what somebody approves, which does not count again.
func (j *judge) noteApprovals(before, after *oracle.World) {
	for key, uids := range before.DueBy() {
		was, is := policyOf(before, key), policyOf(after, key)
		if is != nil && is.GetAnnotations()[gc.AnnotationApprovedHold] != was.GetAnnotations()[gc.AnnotationApprovedHold] {
			j.approved.Insert(uids...)
		}
	}
}

// limitOf is how many objects one change may make due in a namespace.
func (j *judge) limitOf(w *oracle.World, namespace string) int {
	if n, ok := w.HoldAbove(namespace); ok {
		return n
	}
	return j.holdAbove
}

// tooLarge reports whether newly due objects, by all policies together, are surely a larger share of all candidates of their namespace than
// may go without approval. Objects that were deleted lately are candidates too. Objects above a ceiling are not.
func (j *judge) tooLarge(before, after *oracle.World, namespace string, uids []types.UID) bool {
	was, ok := before.HoldAbovePercent(namespace)
	percent, still := after.HoldAbovePercent(namespace)
	if !ok || !still {
		return false
	}
	candidates := sets.Set[types.UID]{}
	for _, w := range []*oracle.World{after, before} {
		answers := w.Answers()
		for _, f := range w.Objects {
			if a := answers[f.UID]; f.Namespace == namespace && a.IsCandidate() && a.Reason != overCeiling {
				candidates.Insert(f.UID)
			}
		}
		if len(candidates) < gc.PercentFrom { // After the change, there are too few.
			return false
		}
	}
	for uid, d := range j.gone {
		if d.namespace == namespace {
			candidates.Insert(uid)
		}
	}
	counted := candidates.Intersection(sets.New(uids...))
	return len(counted)*100 > max(was, percent)*len(candidates)
}

// waits reports whether nobody has changed the policy, or approved what it makes due.
func (h *hold) waits(p metav1.Object) bool {
	return p != nil && p.GetGeneration() == h.generation && p.GetAnnotations()[gc.AnnotationApprovedHold] == h.approved
}

func policyOf(w *oracle.World, key oracle.PolicyInNamespace) metav1.Object {
	for _, p := range w.Policies {
		if p.Namespace == key.Policy.Namespace && p.Name == key.Policy.Name {
			return p
		}
	}
	for _, p := range w.ClusterPolicies {
		if key.Policy.Namespace == "" && p.Name == key.Policy.Name {
			return p
		}
	}
	return nil
}

// heldBack judges whether an object that is due may go without approval. A replica that knew less than all when the policy changed may have
// counted fewer objects. A hold ends if a change of the namespace has its objects kept.
func (j *judge) heldBack(what, from string, fact *lifecycle.Fact, answer oracle.Answer) {
	for key, h := range j.holds {
		if !j.around[key.Namespace].Before(h.since) {
			continue
		}
		if h.uids.Has(fact.UID) && key.Namespace == fact.Namespace && strings.HasPrefix(answer.By, key.Policy.String()+" ") && j.lag(from) == 0 {
			j.fault("%s: a change of %v at %s made %d objects due at once, which wait for approval",
				what, key.Policy, h.since.Format(time.TimeOnly), len(h.uids))
		}
	}
}

// listedHolds are what waits for approval, as far as the status of policies says, by ID.
func listedHolds(w *oracle.World) map[string]gc.PolicyHold {
	out := map[string]gc.PolicyHold{}
	eachHold(w, func(p metav1.Object, h gc.PolicyHold) {
		h.Policy = gc.PolicyTitle(p.GetNamespace(), p.GetName())
		out[h.ID] = h
	})
	return out
}

// eachHold calls do with each hold in the status of a policy.
func eachHold(w *oracle.World, do func(metav1.Object, gc.PolicyHold)) {
	for _, p := range w.Policies {
		for _, h := range p.Status.Holds {
			do(p, h)
		}
	}
	for _, p := range w.ClusterPolicies {
		for _, h := range p.Status.Holds {
			do(p, h)
		}
	}
}

// noteHolds notes the holds in the status of a stored policy.
func (j *judge) noteHolds(o *apiserver.Object) {
	for _, h := range gc.HoldsOf(j.stored(o)) {
		j.listed[h.ID] = h
	}
}

// countsDiffer reports whether replicas may count differently what changes of the last ten minutes have made due in a namespace: one of
// them had not run for so long when a hold began, and does not know what was counted before its start.
func (j *judge) countsDiffer(namespace string, replicas []*replica) bool {
	for _, h := range j.listed {
		for _, r := range replicas {
			if ran := h.Since.Sub(r.started); (h.Namespace == namespace || h.Namespace == "") && 0 < ran && ran < 10*time.Minute {
				return true
			}
		}
	}
	return false
}
