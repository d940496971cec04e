// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/dump"
	"pgregory.net/rapid"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/internal/model"
	"github.com/winnow-dev/winnow/pkg/controller/rules/deletion"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

// work deletes everything that is due, and compares the order of the deletions with the model.
func (e *simulation) work(t *rapid.T) {
	e.read()
	e.both(e.stepAll)
	e.forgetNotices()
	byNamespace := map[string][]types.UID{}
	var orders []*deletion.Order
	for o, ok := e.leader.Take(e.Now); ok; o, ok = e.leader.Take(e.Now) {
		orders = append(orders, o)
		byNamespace[o.Fact.Namespace] = append(byNamespace[o.Fact.Namespace], o.Fact.UID)
	}
	propagations, wants := e.Propagations(), e.wants()
	answers := e.Answers()
	for _, o := range orders {
		if i := e.indexOf(o.Fact.UID); o.Deadline == nil && i >= 0 {
			e.checkMatched(t, e.Objects[i], answers)
		}
	}
	for _, name := range model.DrawnNamespaces {
		want, got := e.order(name, wants), byNamespace[name]
		want = want[:e.paced(name, len(want))]
		if !slices.Equal(got, want) {
			t.Fatalf("deletes %q in namespace %s, want %q", got, name, want)
		}
	}
	e.checkAnnounced(t, orders)
	for _, o := range orders {
		if want := propagations[o.Fact.UID]; o.Deadline == nil && o.Propagation != want {
			t.Fatalf("deletes %s with propagation %s, want %s", o.Fact.UID, o.Propagation, want)
		}
	}
	for _, o := range orders {
		if o.Deadline != nil {
			e.deadlineChanged(t, o)
			continue
		}
		e.leader.Done(o, deletion.Result{Outcome: deletion.Accepted}, e.Now)
	}
	for _, o := range orders {
		if o.Deadline == nil {
			e.deleted(t, o.Fact.UID)
		}
	}
	e.clearDue()
}

// deadlineChanged carries out an order for a deadline. The watch of the leader may deliver the new state before the answer.
func (e *simulation) deadlineChanged(t *rapid.T, o *deletion.Order) {
	i := e.indexOf(o.Fact.UID)
	f := *e.Objects[i]
	e.next()
	f.ResourceVersion, f.Deadline.Set = uint64(e.version), *o.Deadline
	e.Objects[i] = &f
	e.follower.Upsert(e.follower.observed(&f), e.Now)
	if rapid.Bool().Draw(t, "seen") {
		e.leader.Upsert(e.leader.observed(&f), e.Now)
	}
	answered := f
	answered.Conditions = o.Conditions.Evaluate(model.Content(&f))
	e.leader.Done(o, deletion.Result{Outcome: deletion.Accepted, Changed: &answered}, e.Now)
}

// simPace is a token bucket whose tokens are time. It holds one second, or the time of one deletion if that is more.
type simPace struct {
	perMinute int
	empty     time.Time // when the bucket was last empty
}

// paced returns how many of n deletions may be sent now, and takes their time from the bucket.
func (e *simulation) paced(namespace string, n int) int {
	p := e.paces[namespace]
	if p == nil || p.perMinute == 0 {
		return n
	}
	each := time.Minute / time.Duration(p.perMinute)
	most := max(time.Second, each)
	saved := min(e.Now.Sub(p.empty), most)
	n = min(n, int(saved/each))
	p.empty = e.Now.Add(time.Duration(n)*each - saved)
	return n
}

// resetPaces gives a full bucket to the namespaces whose pace has changed, or to all.
func (e *simulation) resetPaces(all bool) {
	for _, name := range model.DrawnNamespaces {
		perMinute, _ := e.MaxDeletionsPerMinute(name)
		ns, known := e.Namespaces[name]
		if !known && !all && e.leader.Namespaces[name] != nil {
			continue // A removed namespace keeps its pace, as it keeps its guardrails.
		}
		if !known || ns.Protected || gc.Protects(ns.Labels) {
			perMinute = 0
		}
		if p := e.paces[name]; all || p == nil || p.perMinute != perMinute {
			e.paces[name] = &simPace{perMinute: perMinute, empty: e.Now.Add(-time.Hour)}
		}
	}
}

// order returns the objects of a namespace that must be deleted, in their order.
func (e *simulation) order(namespace string, wants map[types.UID]model.Answer) []types.UID {
	return slices.DeleteFunc(e.DeletionOrder(namespace), func(uid types.UID) bool {
		return wants[uid].Action != model.Delete && wants[uid].Action != model.SetDeadline
	})
}

// wants returns the answers of the model, with the holds and the clock, which the model does not know.
func (e *simulation) wants() map[types.UID]model.Answer {
	out := e.Answers()
	held, nobody := map[types.UID]bool{}, map[types.UID]bool{}
	for _, all := range []map[model.PolicyInNamespace][]types.UID{e.DueBy(), e.Deadlines()} {
		for key, uids := range all {
			for _, uid := range uids {
				held[uid], nobody[uid] = e.heldBy(uid, key) != nil, key.Policy == model.PolicyRef{}
			}
		}
	}
	for uid, a := range out {
		if nobody[uid] && e.leader.Records.Get(uid) == nil {
			a = model.Answer{Action: model.Ignore} // No policy has named Jobs since Winnow started.
		}
		if out[uid] = e.held(a, held[uid]); out[uid].Action == model.Delete && e.onlyTold(uid) {
			a.Action, a.Reason = model.Hold, string(policy.ReasonNoticePending)
			out[uid] = a
		}
	}
	return out
}

// held returns the answer if a hold, or else the clock, prevents the request.
func (e *simulation) held(a model.Answer, byHold bool) model.Answer {
	action := map[string]string{model.Delete: model.Hold, model.SetDeadline: model.HoldDeadline}[a.Action]
	if policy.IsWait(policy.Reason(a.Reason)) { // People read of holds and clocks first.
		action = model.Hold
	}
	switch {
	case action == "":
	case byHold:
		a.Action, a.Reason = action, string(policy.ReasonHeld)
	case e.clockInDoubt:
		a.Action, a.Reason = action, string(policy.ReasonClockInDoubt)
	}
	return a
}

// limited reports whether an enforcing policy counts objects. A preview uses the pools of other policies as they are, not as they would be
// if it were enforced, so its answers are not compared if such a policy applies too.
func (e *simulation) limited() bool {
	spec := func(s *gc.CleanupPolicySpec) bool {
		return s.Mode == gc.ModeEnforce &&
			(s.Capacity != nil || slices.ContainsFunc(s.Rules, func(r gc.CleanupRule) bool { return r.Capacity != nil }))
	}
	return slices.ContainsFunc(e.Policies, func(p *gc.CleanupPolicy) bool { return spec(&p.Spec) }) ||
		slices.ContainsFunc(e.ClusterPolicies, func(p *gc.ClusterCleanupPolicy) bool {
			return spec(p.Spec.Defaults()) || p.Spec.Guardrails != nil && len(p.Spec.Guardrails.Ceilings) > 0
		})
}

// checkPreviews compares the decisions of Preview policies for an object, and removes them from the expected previews.
func (e *simulation) checkPreviews(t *rapid.T, previews map[model.PolicyRef]map[types.UID]model.Answer, rec *memory.Record) {
	for _, p := range rec.Previews() {
		ref := model.PolicyRef{Namespace: p.Policy.Namespace, Name: p.Policy.Name}
		want, ok := previews[ref][rec.UID()]
		want = e.held(want, e.heldBy(rec.UID(), model.PolicyInNamespace{Policy: ref, Namespace: rec.Namespace}) != nil)
		if !ok || actionNames[p.Decision().Action] != want.Action || string(p.Decision().Reason) != want.Reason {
			t.Fatalf("%s: policy %s previews %+v, want %+v", rec.UID(), ref, p.Decision(), want)
		}
		delete(previews[ref], rec.UID())
	}
}

var actionNames = map[policy.Action]string{
	policy.Ignore: model.Ignore, policy.Keep: model.Keep, policy.Wait: model.Wait, policy.Hold: model.Hold, policy.Delete: model.Delete,
	policy.Await: model.Await, policy.SetDeadline: model.SetDeadline, policy.HoldDeadline: model.HoldDeadline,
}

// checkAll compares everything that the engines decided and report.
func (e *simulation) checkAll(t *rapid.T) {
	e.resetPaces(false)
	e.both(e.stepAll)
	e.forgetNotices()
	e.checkTotals(t)
	wants, limited := e.wants(), e.limited()
	var previews map[model.PolicyRef]map[types.UID]model.Answer
	if !limited {
		previews = e.Previews()
	}
	for _, f := range e.Objects {
		want := wants[f.UID]
		rec := e.leader.Records.Get(f.UID)
		if rec == nil {
			if want.Action != model.Ignore {
				t.Fatalf("%s is not tracked, want %+v", f.UID, want)
			}
			continue
		}
		got := answerOf(rec.Resolution, rec.Decision())
		if want.At.IsZero() {
			got.At = time.Time{}
		}
		if got.Action != model.Ignore && got != want || got.Action != want.Action {
			t.Fatalf("%s: got %+v, want %+v\n%s", f.UID, got, want, dump.Pretty(f)) // Without addresses, or rapid does not shrink it.
		}
		if !limited {
			e.checkPreviews(t, previews, rec)
		}
	}
	for ref, left := range previews {
		for uid, a := range left {
			t.Fatalf("policy %s previews nothing for %s, want %+v", ref, uid, a)
		}
	}
	e.checkReports(t, wants)
	e.checkFollower(t)
}

func answerOf(r policy.Resolution, d policy.Decision) model.Answer {
	out := model.Answer{Action: actionNames[d.Action], Reason: string(d.Reason), At: d.At}
	if r.Policy == nil || d.Action == policy.Ignore {
		return out
	}
	ref := model.PolicyRef{Namespace: r.Policy.Namespace, Name: r.Policy.Name}
	if ref == (model.PolicyRef{}) { // Nobody wants a deadline any more.
		return out
	}
	out.By = ref.String() + " " + r.RuleName()
	if r.Rule == nil {
		out.By = "ceiling=" + ref.String()
	}
	return out
}

// heldBy returns the hold that an object waits under, or else the hold of the policy that would delete it.
func (e *simulation) heldBy(uid types.UID, key model.PolicyInNamespace) *simHold {
	if h := e.under[uid]; h != nil || key.Policy == (model.PolicyRef{}) {
		return h
	}
	if h := e.holdOf(e.uidOf(key.Policy), key.Namespace); h != nil {
		return h
	}
	return e.candidate(uid, key, func(h *simHold) bool { return !h.Searched })
}

func (e *simulation) isCluster(uid types.UID) bool {
	return slices.ContainsFunc(e.ClusterPolicies, func(p *gc.ClusterCleanupPolicy) bool { return p.UID == uid })
}

// checkHolds compares the holds in reports: how many objects wait under each, by policy and namespace, or in all namespaces together.
func (e *simulation) checkHolds(t *rapid.T) {
	type reported struct {
		policy, owner types.UID // of the report, and of the hold
		namespace     string
	}
	namespaces := map[string]int{}
	for _, h := range e.waiting() {
		namespaces[h.ID]++
	}
	want := map[reported]int64{}
	own := func(h *simHold, by types.UID) reported {
		ns := e.leader.Namespaces[h.namespace]
		if ns == nil || ns.Holds.Of(h.Owner) == nil {
			t.Fatalf("there is no hold of %s in %s, want %+v", h.Owner, h.namespace, *h)
		}
		same := ns.Holds.ByID(h.ID) // A policy may own several in a namespace.
		if same == nil {
			same = ns.Holds.Of(h.Owner)
		}
		if e.isCluster(by) && same.Total {
			return reported{by, h.Owner, ""}
		}
		if namespaces[h.ID] > 1 && by == h.Owner {
			t.Fatalf("the hold of %s in %s is in several namespaces, but is not reported as one", h.Owner, h.namespace)
		}
		return reported{by, h.Owner, h.namespace}
	}
	for _, h := range e.waiting() {
		want[own(h, h.Owner)] += 0
	}
	for key, uids := range e.DueBy() {
		for _, uid := range uids {
			h := e.heldBy(uid, key)
			if h == nil || h.Owner == "" {
				continue
			}
			want[own(h, h.Owner)]++
			decider := e.uidOf(key.Policy)
			if decider != h.Owner {
				want[own(h, decider)]++
			}
			for _, other := range e.waiting() { // If it is unknown which of them has the object, its policy reports all.
				may := e.under[uid] != nil && other != h && other.Owner != decider &&
					e.candidate(uid, key, func(of *simHold) bool { return of == other }) != nil
				if may {
					want[own(other, decider)] += 0
				}
			}
		}
	}
	got := map[reported]int64{}
	for _, name := range append([]string{""}, model.DrawnNamespaces...) {
		for _, r := range e.leader.Reports(name) {
			for _, h := range r.Holds {
				got[reported{r.UID, e.uidOf(model.PolicyRef(h.Owner(r.NamespacedName()))), h.Namespace}] += h.Objects
			}
		}
	}
	if !maps.Equal(got, want) {
		t.Fatalf("reports have the holds\n%v\nwant\n%v", got, want)
	}
}

// checkCeilings compares the ceilings in reports.
func (e *simulation) checkCeilings(t *rapid.T) {
	wants := e.Ceilings()
	for _, r := range e.leader.Reports("") {
		if want := wants[model.PolicyRef{Name: r.Name}]; !slices.Equal(r.Ceilings, want) {
			t.Fatalf("the ceilings of %s: got %+v, want %+v", r.Name, r.Ceilings, want)
		}
	}
}

// checkNamespaces compares what reports on enforcing cluster policies count by namespace.
func (e *simulation) checkNamespaces(t *rapid.T, wants map[types.UID]model.Answer) {
	for _, r := range e.leader.Reports("") {
		if r.Mode == gc.ModePreview {
			continue
		}
		var want []gc.NamespaceStatus
		for _, name := range model.DrawnNamespaces {
			if n := e.countIn(name, r.Name, wants); n.Candidates > 0 {
				want = append(want, n)
			}
		}
		slices.SortFunc(want, func(a, b gc.NamespaceStatus) int {
			return cmp.Or(-cmp.Compare(a.Due, b.Due), -cmp.Compare(a.Candidates, b.Candidates), strings.Compare(a.Namespace, b.Namespace))
		})
		if !slices.Equal(r.Namespaces, want) || r.UnlistedNamespaces != 0 {
			t.Fatalf("the namespaces of %s: got %+v and %d more, want %+v", r.Name, r.Namespaces, r.UnlistedNamespaces, want)
		}
	}
}

// countIn counts the objects of a namespace for which a cluster policy decides.
func (e *simulation) countIn(namespace, name string, wants map[types.UID]model.Answer) gc.NamespaceStatus {
	n := gc.NamespaceStatus{Namespace: namespace}
	for _, f := range e.Objects {
		a := wants[f.UID]
		by := strings.HasPrefix(a.By, name+" ") || a.By == "ceiling="+name
		if f.Namespace != namespace || !by || !a.IsCandidate() {
			continue
		}
		n.Candidates++
		switch a.Action {
		case model.Hold:
			n.Due, n.Held = n.Due+1, n.Held+1
		case model.Delete, model.Await:
			n.Due++
		}
	}
	return n
}

// checkReports compares the holds, the ceilings, the counts by namespace, and the candidates of enforcing policies.
func (e *simulation) checkReports(t *rapid.T, wants map[types.UID]model.Answer) {
	e.checkHolds(t)
	e.checkCeilings(t)
	e.checkNamespaces(t, wants)
	candidates := map[string]int64{}
	for _, a := range wants {
		if a.IsCandidate() {
			candidates[a.By]++
		}
	}
	got := map[string]int64{}
	for rec := range e.leader.Records.All() {
		if rec.Decision().Candidate() {
			got[answerOf(rec.Resolution, rec.Decision()).By]++
		}
	}
	if !maps.Equal(got, candidates) {
		t.Fatalf("candidates %v, want %v", got, candidates)
	}
}
