// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package tracker

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/internal/model"
	"github.com/winnow-dev/winnow/pkg/controller/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/policy"
)

// work carries out what is due, and holds its order against the model.
func (e *engine) work(t *rapid.T) {
	e.read()
	e.rest()
	byNamespace := map[string][]types.UID{}
	var orders []*Order
	for o, ok := e.tracker.Take(e.Now); ok; o, ok = e.tracker.Take(e.Now) {
		orders = append(orders, o)
		byNamespace[o.Fact.Namespace] = append(byNamespace[o.Fact.Namespace], o.Fact.UID)
	}
	propagations, wants := e.Propagations(), e.wants()
	for _, name := range model.DrawnNamespaces {
		want, got := e.order(name, wants), byNamespace[name]
		_, paced := e.MaxDeletionsPerMinute(name)
		if paced && len(got) <= len(want) {
			want = want[:len(got)]
		}
		if !slices.Equal(got, want) {
			t.Fatalf("deletes %q in namespace %s, want %q", got, name, want)
		}
	}
	for _, o := range orders {
		if want := propagations[o.Fact.UID]; o.Propagation != want {
			t.Fatalf("deletes %s with propagation %s, want %s", o.Fact.UID, o.Propagation, want)
		}
	}
	for _, o := range orders {
		e.tracker.Done(o, Result{Outcome: Accepted}, e.Now)
	}
	for _, o := range orders {
		e.remove(o.Fact)
	}
	for c := range e.tracker.haunted { // The model knows nothing of what is gone; named tests tell of ghosts.
		for ns, m := range c.ghosts {
			delete(c.ghosts, ns)
			c.over--
			m.Leave()
		}
	}
	e.tracker.settleFlipped(e.Now)
	e.tracker.recreated = newMemory()
	for _, f := range e.Objects {
		e.remember(f)
	}
}

// order is in which the objects of a namespace are to be deleted: whoever finished first goes first, and of equals whoever
// ranks last.
func (e *engine) order(namespace string, wants map[types.UID]model.Answer) []types.UID {
	var due []*lifecycle.Fact
	for _, f := range e.Objects {
		if f.Namespace == namespace && wants[f.UID].Action == model.Delete {
			due = append(due, f)
		}
	}
	slices.SortFunc(due, func(a, b *lifecycle.Fact) int {
		return cmp.Or(a.FinishedAt.Compare(b.FinishedAt), -cmp.Compare(a.UID, b.UID))
	})
	var out []types.UID
	for _, f := range due {
		out = append(out, f.UID)
	}
	return out
}

// wants are the answers of the model, with what it does not know: holds for approval, and the clock.
func (e *engine) wants() map[types.UID]model.Answer {
	out := e.Answers()
	held := map[types.UID]bool{}
	for key, uids := range e.DueBy() {
		for _, uid := range uids {
			held[uid] = e.held[key]
		}
	}
	for uid, a := range out {
		switch {
		case a.Action != model.Delete:
			continue
		case held[uid]:
			a.Action, a.Reason = model.Hold, string(policy.ReasonHeld)
		case e.clockLies:
			a.Action, a.Reason = model.Hold, string(policy.ReasonClockInDoubt)
		}
		out[uid] = a
	}
	return out
}

// limited tells whether an enforcing policy counts objects. A preview takes the pools of other policies as they are, not as they would
// be if it enforced, so that what it says beside them is not compared.
func (e *engine) limited() bool {
	spec := func(s *gc.CleanupPolicySpec) bool {
		return s.Mode == gc.ModeEnforce &&
			(s.Capacity != nil || slices.ContainsFunc(s.Rules, func(r gc.CleanupRule) bool { return r.Capacity != nil }))
	}
	return slices.ContainsFunc(e.Policies, func(p *gc.CleanupPolicy) bool { return spec(&p.Spec) }) ||
		slices.ContainsFunc(e.ClusterPolicies, func(p *gc.ClusterCleanupPolicy) bool {
			return spec(p.Spec.Defaults()) || p.Spec.Guardrails != nil && len(p.Spec.Guardrails.Capacity) > 0
		})
}

// previewsAgree compares what preview policies would do, and takes it out of what is expected of them.
func (e *engine) previewsAgree(t *rapid.T, previews map[model.PolicyRef]map[types.UID]model.Answer, rec *record) {
	for _, p := range rec.previews() {
		ref := model.PolicyRef{Namespace: p.policy.Namespace, Name: p.policy.Name}
		want, ok := previews[ref][rec.UID()]
		if !ok || actionNames[p.decision.Action] != want.Action && want.Action != model.Delete {
			t.Fatalf("%s: policy %s previews %+v, want %+v", rec.UID(), ref, p.decision, want)
		}
		delete(previews[ref], rec.UID())
	}
}

var actionNames = map[policy.Action]string{
	policy.Ignore: model.Ignore, policy.Keep: model.Keep, policy.Wait: model.Wait, policy.Hold: model.Hold, policy.Delete: model.Delete,
	policy.Await: model.Await,
}

// agrees compares all that follows for all objects.
func (e *engine) agrees(t *rapid.T) {
	e.rest()
	wants, limited := e.wants(), e.limited()
	var previews map[model.PolicyRef]map[types.UID]model.Answer
	if !limited {
		previews = e.Previews()
	}
	for _, f := range e.Objects {
		want := wants[f.UID]
		rec := e.tracker.records.get(f.UID)
		if rec == nil {
			if want.Action != model.Ignore {
				t.Fatalf("%s is not tracked, want %+v", f.UID, want)
			}
			continue
		}
		got := answerOf(rec.resolution(), rec.decision())
		if want.At.IsZero() {
			got.At = time.Time{}
		}
		if got.Action != model.Ignore && got != want || got.Action != want.Action {
			t.Fatalf("%s: got %+v, want %+v\n%+v", f.UID, got, want, f)
		}
		if !limited {
			e.previewsAgree(t, previews, rec)
		}
	}
	for ref, left := range previews {
		for uid, a := range left {
			t.Fatalf("policy %s previews nothing for %s, want %+v", ref, uid, a)
		}
	}
	e.reportsAgree(t, wants)
}

func answerOf(r policy.Resolution, d policy.Decision) model.Answer {
	out := model.Answer{Action: actionNames[d.Action], Reason: string(d.Reason), At: d.At}
	if r.Policy == nil || d.Action == policy.Ignore {
		return out
	}
	ref := model.PolicyRef{Namespace: r.Policy.Namespace, Name: r.Policy.Name}
	out.By = ref.String() + " " + r.RuleName()
	if r.Rule == nil {
		out.By = "ceiling=" + ref.String()
	}
	return out
}

// reportsAgree compares the counts of enforcing policies, and their holds.
func (e *engine) reportsAgree(t *rapid.T, wants map[types.UID]model.Answer) {
	waiting := 0
	for _, name := range append([]string{""}, model.DrawnNamespaces...) {
		for _, r := range e.tracker.Reports(name) {
			waiting += len(r.Waiting)
			for _, h := range r.Waiting {
				if !e.held[model.PolicyInNamespace{Policy: model.PolicyRef{Namespace: r.Namespace, Name: r.Name}, Namespace: h.Namespace}] {
					t.Fatalf("policy %s/%s is held in %s: %+v", r.Namespace, r.Name, h.Namespace, h)
				}
			}
		}
	}
	if waiting != len(e.held) {
		t.Fatalf("%d holds, want %v", waiting, e.held)
	}
	candidates := map[string]int64{}
	for _, a := range wants {
		if a.Action != model.Ignore {
			candidates[a.By]++
		}
	}
	got := map[string]int64{}
	for rec := range e.tracker.records.all() {
		if rec.decision().Candidate() {
			got[answerOf(rec.resolution(), rec.decision()).By]++
		}
	}
	if !maps.Equal(got, candidates) {
		t.Fatalf("candidates %v, want %v", got, candidates)
	}
}
